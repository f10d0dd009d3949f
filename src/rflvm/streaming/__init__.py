"""The streaming engine: tables of a million rows and more, read in blocks, several times.

stream       the whole of it, as a user calls it
engine       a run: growth, placing, epochs, the end
shards       rows divided among processes
landmarks    rows that meet the MAP engine first
functions    what all rows share: frequencies, coefficients, the family's own parameters
programs     what is computed of a block of rows: placing, visits, curvatures
placing      anchors, and where every row goes first
epochs       one visit to every row, and sums over rows
update       the functions after an epoch, from these sums
held_out     the density of rows that are held out, by which an epoch is judged
checkpoints  a folder from which a run goes on after a kill
result       what a fit carries
"""
