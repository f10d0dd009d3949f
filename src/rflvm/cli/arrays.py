"""NPY and NPZ files: arrays without names. Nothing in them is ever unpickled, and every declared size is checked."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..data import memory, tables
from ..files.npz import FileError
from ..numerics.errors import InputError, reworded
from .columns import Wanted, assign
from .messages import OPTIONS
from .table import FileTable, covariates_of

# Members of a file of scipy.sparse.save_npz: those that every sparse format has, and the indices of each format.
_SPARSE = {"format", "shape", "data"}
_PARTS = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npy(path: Path, wanted: Wanted) -> FileTable:
    """Read one array."""
    _check_magic(path, npy.MAGIC_PREFIX)
    with path.open("rb") as file:
        array = _guarded(path, lambda: _read_array(file, os.fstat(file.fileno()).st_size, str(path)))
    return table_of(path, array, wanted)


def read_npz(path: Path, wanted: Wanted) -> FileTable:
    """Read the only array, the one named by ``--layer``, or a sparse matrix that SciPy has saved."""
    _check_magic(path, b"PK")
    return table_of(path, _guarded(path, lambda: _read_npz(path, wanted.layer)), wanted)


def table_of(path: Path, array: Any, wanted: Wanted) -> FileTable:
    """The table that an array without names is, dense or sparse."""
    try:
        values = tables.numeric(str(path), array, 2)
    except (TypeError, ValueError) as error:
        raise FileError(f"{reworded(error, OPTIONS)}: expected a table, rows x columns of real numbers") from None
    if 0 in values.shape:
        raise FileError(
            f"{path} has {values.shape[0]} rows and {values.shape[1]} columns: expected at least one of each"
        )
    roles = assign(path, None, values.shape[1], wanted)
    cells = values[:, roles.cells]
    cells = np.where(np.isin(cells, wanted.numeric_marks), np.nan, cells)
    text = lambda j: [f"{value:.15g}" for value in values[:, j]]  # noqa: E731
    return FileTable(
        path=path,
        values=cells,
        labels=None if roles.labels is None else text(roles.labels),
        classes={name: text(j) for name, j in roles.classes.items()},
        numbers=[j + 1 for j in roles.cells],
        covariates=covariates_of({name: text(j) for name, j in roles.covariates.items()}, wanted),
        offset=None if roles.offset is None else values[:, roles.offset],
    )


def _check_magic(path: Path, start: bytes) -> None:
    with path.open("rb") as file:
        if file.read(len(start)) != start:
            kind = path.suffix[1:].upper()
            raise FileError(f"{path} is not an {kind} file: check that its name fits its content")


def _guarded(path: Path, read: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of some damaged headers before it fails
            return read()
    except (FileError, InputError, MemoryError):
        raise
    except Exception as error:  # numpy, zipfile and tokenize have a dozen ways to stumble over a damaged file
        text = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{path} is damaged ({text}): take another copy of it") from None


def _read_npz(path: Path, layer: str | None) -> Any:
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if layer is not None or not set(names) > _SPARSE:
            return _read_member(path, archive, _choose(path, names, layer))
        return _read_sparse(path, archive)


def _read_sparse(path: Path, archive: zipfile.ZipFile) -> Any:
    from scipy import sparse

    form = str(np.asarray(_read_member(path, archive, "format"), "S3").item(), "ascii")
    if form not in _PARTS:
        raise ValueError(f"a sparse matrix of the unknown format {form!r}")
    parts = [_read_member(path, archive, name) for name in ("data", *_PARTS[form])]
    shape = tuple(int(size) for size in _read_member(path, archive, "shape"))
    data, *indices = parts
    if any(part.dtype.kind not in "iu" for part in indices):
        raise ValueError("indices that are not whole numbers")
    # The constructors look at lengths only; ``data.sparse`` looks at the indices before the matrix is made dense.
    make: Any = getattr(sparse, f"{form}_array")
    return make((data, tuple(indices)) if form == "coo" else (data, *indices), shape=shape)


def _read_member(path: Path, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    file = name if name in archive.namelist() else f"{name}.npy"
    size = archive.getinfo(file).file_size
    memory.check(str(path), size, f"to unpack {name!r}")
    with archive.open(file) as member:
        return _read_array(member, size, str(path))  # pyright: ignore[reportArgumentType]


def _read_array(file: BufferedIOBase, size: int, name: str) -> np.ndarray:
    """An array from a file of this size; its header may not declare more bytes than follow it."""
    header = _HEADERS.get(npy.read_magic(file))
    if header is None:
        raise ValueError("its version of the NPY format is neither 1.0 nor 2.0")
    shape, _, dtype = header(file)
    if dtype.hasobject:
        raise FileError(f"{name} holds Python objects, which are never loaded: save an array of numbers instead")
    needed, present = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or needed > present:
        raise ValueError(f"an array of shape {shape} takes {needed} bytes, and there are {present}")
    memory.check(name, needed, f"as an array of shape {shape}")
    file.seek(0)
    return npy.read_array(file, allow_pickle=False)


def _choose(path: Path, names: list[str], layer: str | None) -> str:
    if layer is None and len(names) == 1:
        return names[0]
    if layer is None or layer not in names:
        problem = "more than one array" if layer is None else f"no array {layer!r}"
        raise FileError(f"{path} has {problem}: name one by --layer; it has {', '.join(names) or 'none'}")
    return layer
