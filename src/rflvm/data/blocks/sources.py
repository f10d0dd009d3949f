"""Tables as something that gives rows, in the type in which they are kept.

A table is an array of NumPy, a memory map, a Zarr array, a dataset of HDF5, an array of Dask, a sparse matrix of SciPy,
an AnnData (backed or not), or anything else with ``shape`` that can be cut into rows; a data frame; or the path of a
file. What is sparse is made dense a block at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ...files.npz import FileError
from ...numerics.errors import InputError, InputTypeError
from .. import sparse, tables

# Cells that are read at once to pick rows from: a few megabytes.
PICKED_CELLS = 2**20

SUFFIXES = (".npy", ".npz", ".zarr", ".parquet", ".h5ad")


class Source:
    """A table that gives its rows in blocks, from the first to the last.

    Attributes
    ----------
    shape : (int, int)
        N and J.
    columns : tuple of str or None
        Names of the columns.
    index : Any
        Labels of the rows, or None.
    kind : str
        What the table is, as ``tables.Reading`` has it.
    """

    shape: tuple[int, int]
    columns: tuple[str, ...] | None = None
    index: Any = None
    kind: str = "array"

    def blocks(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Number of the first row and cells of each block of rows; all blocks have ``size`` rows but the last."""
        raise NotImplementedError(f"{type(self).__name__} does not define blocks")

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The cells of some rows, whose numbers rise. All of the table is read once, for rows are where they may be."""
        size = max(PICKED_CELLS // self.shape[1], 1)
        parts = []
        for start, cells in self.blocks(size, stop=int(rows[-1]) + 1):
            here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(cells))]
            parts.append(cells[here - start])
        return np.concatenate(parts)


class ArrayRows(Source):
    """Whatever has ``shape`` and can be cut into rows.

    Parameters
    ----------
    cells : Any
        The table.
    columns, index, kind
        As attributes.
    """

    def __init__(self, cells: Any, columns: tuple[str, ...] | None = None, index: Any = None, kind: str = "array"):
        self.shape = _table_shape(cells)
        self.cells, self.columns, self.index, self.kind = cells, columns, index, kind

    def blocks(self, size, start=0, stop=None):
        stop = self.shape[0] if stop is None else stop
        for first in range(start, stop, size):
            yield first, self._rows(first, min(first + size, stop))

    def _rows(self, start: int, stop: int) -> np.ndarray:
        _check_file(self.cells, start)
        with reading(start, stop):
            part = self.cells[start:stop]
            part = sparse.to_dense("Y", part) if hasattr(part, "toarray") else part
            hidden = np.ma.getmaskarray(part) if np.ma.isMaskedArray(part) else None
            values = np.asarray(part)
        return of_block(values if hidden is None else np.where(hidden, np.nan, values), start, stop, self.shape)


class reading:  # noqa: N801  (used like a function)
    """Names the rows when they cannot be read; libraries of files have a dozen kinds of errors."""

    def __init__(self, start: int, stop: int):
        self.start, self.stop = start, stop

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, InputError | InputTypeError | MemoryError):
            raise InputError(
                "{where:rows {row} to {last} of Y} cannot be read ({why}): the file is damaged or was changed; make it "
                "again",
                row=self.start,
                last=self.stop - 1,
                why=" ".join(str(error).split()) or type(error).__name__,
            ) from error


def of_block(values: np.ndarray, start: int, stop: int, shape: tuple[int, int]) -> np.ndarray:
    """Cells that were read, in their type if that is one of numbers; an error if they are not as many as there were."""
    if values.shape != (stop - start, shape[1]):
        raise InputError(
            "{Y} has become another table: {where:row {row}} and those after it were read as a block of shape {got} "
            "where {expected} was expected; do not change a table while it is fitted",
            row=start + min(len(values), stop - start),
            got=values.shape,
            expected=(stop - start, shape[1]),
        )
    return values if values.dtype.kind in "biuf" else tables.numeric("Y", values, 2)


def _check_file(cells: Any, start: int) -> None:
    """That the file of a memory map is as long as it was; reading beyond its end would end the process."""
    root = cells
    while isinstance(getattr(root, "base", None), np.memmap):
        root = root.base
    if not isinstance(root, np.memmap) or not isinstance(root.filename, str | os.PathLike):
        return
    with suppress(FileNotFoundError):  # a file that was removed is there as long as it is mapped
        size = os.stat(root.filename).st_size
        if size < root.offset + root.nbytes:
            begin = cells.__array_interface__["data"][0] - root.__array_interface__["data"][0] + root.offset
            left = max(size - begin, 0) // max(cells.strides[0], 1)
            raise InputError(
                "{where:row {row} of Y} is not in {file} any more, which is shorter than when it was opened: make the "
                "file again",
                row=max(int(left), start) if left < len(cells) else start,
                file=str(root.filename),
            )


def _table_shape(cells: Any) -> tuple[int, int]:
    shape = getattr(cells, "shape", ())
    if len(shape) != 2 or not all(int(size) > 0 for size in shape):
        raise InputError("{Y} must have two dimensions and at least one row and one column, got shape {shape}",
                         shape=tuple(shape))  # fmt: skip
    return int(shape[0]), int(shape[1])


def open_table(Y: Any, layer: str | None = None) -> Source:
    """A table of any kind as a source.

    Parameters
    ----------
    Y : table, str or PathLike
        The table, or the path of a file: .npy, .npz (a sparse matrix of SciPy), .zarr, .parquet (or a folder of such
        files), .h5ad.
    layer : str or None
        Which layer of an AnnData.
    """
    if isinstance(Y, str | os.PathLike):
        Y = _open_path(Path(Y))
        if isinstance(Y, Source):
            return Y
    kind = tables.kind_of(Y)
    if layer is not None and kind != "anndata":
        raise InputError("layer = {layer} was given, but {Y} has no layers: only an AnnData does", layer=repr(layer))
    if kind in ("frame", "timeseries"):
        found = tables.read(Y)
        return ArrayRows(found.values, found.columns, found.index, kind)
    if kind == "anndata":
        return ArrayRows(_by_rows(tables.layer_of(Y, layer)), tables.names_of(Y.var_names), Y.obs_names, kind)
    if not (hasattr(Y, "shape") and hasattr(Y, "__getitem__")):
        return ArrayRows(tables.numeric("Y", Y, 2))
    return ArrayRows(_by_rows(Y), kind=kind)


def _by_rows(cells: Any) -> Any:
    """A sparse matrix in rows; anything else as it is."""
    form = getattr(cells, "format", None)
    if hasattr(cells, "toarray"):
        sparse.check("Y", cells)
        return cells if form == "csr" else cells.tocsr()
    if form == "csc":  # a dataset of AnnData, in a file
        raise InputError(
            "{Y} is sparse and kept by columns, and rows of it cannot be read one after the other: write it by rows "
            "(CSR) first"
        )
    return cells


def _open_path(path: Path) -> Any:
    """A file as a table of a kind that ``open_table`` knows, or as a source."""
    from .parquet import ParquetRows

    suffix = path.suffix.lower()
    if not path.exists():
        raise FileError(f"{path} is not there")
    if suffix == ".parquet" or (path.is_dir() and suffix != ".zarr"):
        return ParquetRows(path)
    try:
        if suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if suffix == ".npz":
            from scipy.sparse import load_npz

            return load_npz(path)
        if suffix == ".zarr":
            import zarr

            return zarr.open_array(path, mode="r")
        if suffix == ".h5ad":
            from anndata import read_h5ad

            return read_h5ad(path, backed="r")
    except ImportError as error:
        raise ImportError(f"reading {path} needs {error.name}: pip install 'rflvm[files]'") from error
    except Exception as error:
        raise FileError(f"{path} cannot be read ({' '.join(str(error).split())}): take another copy of it") from error
    raise FileError(
        f"{path}: the name does not say what kind of table this is: expected {', '.join(SUFFIXES)}, or a folder of "
        ".parquet files"
    )
