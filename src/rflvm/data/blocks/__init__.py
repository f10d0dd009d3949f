"""Tables as blocks of rows, from memory or from disk, of which never more than a few blocks are held as they are read.

sources    tables of every kind as something that gives rows: arrays, files, sparse matrices, AnnData
parquet    files of Parquet and folders of them
ahead      reading in a thread that is ahead of the computation
encoding   a block checked, encoded for its family and padded, in the type of its table
"""
