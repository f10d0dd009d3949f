"""Every kind of table gives the same rows, in its own type, and says which row cannot be read."""

from __future__ import annotations

import threading
from typing import Any

import anndata
import dask.array
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from scipy import sparse

from rflvm.data.blocks.ahead import ahead
from rflvm.data.blocks.sources import open_table
from rflvm.files.npz import FileError
from rflvm.numerics.errors import InputError, InputTypeError

Y = np.random.default_rng(0).poisson(1.0, (50, 4)).astype(np.uint16)
KINDS = (
    "array", "npy", "zarr", "zarr path", "dask", "csr", "csc", "npz", "parquet", "folder", "h5ad dense", "h5ad csr",
    "frame", "list",
)  # fmt: skip


def table(kind: str, folder) -> Any:
    """The table in one form."""
    if kind == "npy":
        np.save(folder / "y.npy", Y)
        return folder / "y.npy"
    if kind.startswith("zarr"):
        made = zarr.create_array(store=str(folder / "y.zarr"), shape=Y.shape, chunks=(7, 4), dtype=Y.dtype)
        made[:] = Y
        return folder / "y.zarr" if kind == "zarr path" else made
    if kind == "npz":
        sparse.save_npz(folder / "y.npz", sparse.csc_array(Y))
        return str(folder / "y.npz")
    frame = pd.DataFrame(Y, columns=list("abcd"))
    if kind == "parquet":
        frame.to_parquet(folder / "y.parquet", row_group_size=8, index=True)
        return folder / "y.parquet"
    if kind == "folder":
        for i, part in enumerate((frame[:9], frame[9:30], frame[30:])):
            part.to_parquet(folder / f"part-{i}.parquet", row_group_size=5)
        return folder
    if kind.startswith("h5ad"):
        cells = Y if kind == "h5ad dense" else sparse.csr_matrix(Y)
        anndata.AnnData(cells, var=pd.DataFrame(index=list("abcd"))).write_h5ad(folder / "y.h5ad")
        return folder / "y.h5ad"
    forms = {"csr": sparse.csr_array, "csc": sparse.csc_matrix, "frame": lambda _: frame, "list": np.ndarray.tolist}
    forms |= {"array": np.asarray, "dask": lambda y: dask.array.from_array(y, chunks="auto").rechunk((11, 2))}
    return forms[kind](Y)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_its_rows(kind, tmp_path):
    source = open_table(table(kind, tmp_path))
    assert source.shape == Y.shape
    read = list(source.blocks(16))
    assert [start for start, _ in read] == [0, 16, 32, 48]
    np.testing.assert_array_equal(np.concatenate([cells for _, cells in read]), Y)
    np.testing.assert_array_equal(np.concatenate([cells for _, cells in source.blocks(6, 13, 40)]), Y[13:40])
    rows = np.array([0, 7, 8, 31, 44])
    np.testing.assert_array_equal(source.take(rows), Y[rows])
    if kind not in ("frame", "list"):
        assert read[0][1].dtype == np.uint16
    if kind in ("parquet", "folder", "h5ad dense", "h5ad csr", "frame"):
        assert source.columns == ("a", "b", "c", "d")


def test_missing_cells_of_parquet_and_of_masked_arrays(tmp_path):
    pq.write_table(pa.table({"a": [1, None, 3], "b": [1.5, 2.0, None]}), tmp_path / "y.parquet")
    expected = [[1, 1.5], [np.nan, 2], [3, np.nan]]
    np.testing.assert_array_equal(open_table(tmp_path / "y.parquet").take(np.arange(3)), expected)
    masked = np.ma.masked_equal([[1, 2], [9, 4]], 9)
    np.testing.assert_array_equal(open_table(masked).take(np.arange(2)), [[1, 2], [np.nan, 4]])


def test_a_file_that_shrinks_is_noticed_before_it_is_read(tmp_path):
    source = open_table(table("npy", tmp_path))
    blocks = source.blocks(16)
    next(blocks)
    with (tmp_path / "y.npy").open("r+b") as file:
        file.truncate(128 + 8 * 20 + 3)
    with pytest.raises(InputError, match=r"row 20 of Y is not in .*y.npy any more") as caught:
        list(blocks)
    assert caught.value.row == 20


def test_a_damaged_file_names_its_rows(tmp_path):
    source = open_table(table("parquet", tmp_path))
    file = tmp_path / "y.parquet"
    content = bytearray(file.read_bytes())
    content[200:600] = bytes(400)
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"rows 0 to 49 of Y cannot be read .*damaged"):
        list(source.blocks(64))


class Breaking:
    """A table whose rows are lost from the thirtieth on."""

    shape = (50, 4)

    def __getitem__(self, rows: slice) -> np.ndarray:
        if rows.stop > 40:
            raise OSError("the disk is gone")
        return Y[rows][: max(30 - rows.start, 0)]


def test_errors_of_reading_name_rows():
    blocks = open_table(Breaking()).blocks(20)
    next(blocks)
    with pytest.raises(InputError, match="row 30 and those after it"):
        next(blocks)
    with pytest.raises(InputError, match=r"rows 25 to 49 of Y cannot be read \(the disk is gone\)"):
        list(open_table(Breaking()).blocks(25, 25))


def test_tables_that_cannot_be_read(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "text.parquet")
    with pytest.raises(InputTypeError, match="column 'b' of Y must hold numbers, got string"):
        open_table(tmp_path / "text.parquet")
    (tmp_path / "y.pdf").touch()
    with pytest.raises(FileError, match=r"y.pdf: the name does not say"):
        open_table(tmp_path / "y.pdf")
    with pytest.raises(FileError, match="is not there"):
        open_table(tmp_path / "none.npy")
    with pytest.raises(InputError, match="two dimensions"):
        open_table(np.zeros(3))
    broken = sparse.csr_array(Y)
    broken.indices[0] = 9
    with pytest.raises(InputError, match="indices include 9"):
        open_table(broken)
    anndata.AnnData(sparse.csc_matrix(Y)).write_h5ad(tmp_path / "columns.h5ad")
    with pytest.raises(InputError, match="kept by columns"):
        open_table(tmp_path / "columns.h5ad")
    with pytest.raises(InputTypeError, match="dates"):
        list(open_table(np.zeros((2, 2), "M8[s]")).blocks(2))


def test_reading_ahead_is_in_order_raises_and_stops():
    made, main = [], threading.get_ident()

    def items():
        for i in range(100):
            assert threading.get_ident() != main
            if i == 5:
                raise KeyError(i)
            made.append(i)
            yield i

    with pytest.raises(KeyError):
        list(ahead(items()))
    assert made == list(range(5))

    def endless():
        yield from iter(int, 1)

    reader = ahead(endless())
    assert next(reader) == 0
    reader.close()  # ends the thread: pytest would not end otherwise
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rflvm-reader")]
