"""NPY, NPZ and Matrix Market files: numbers without names. Nothing in them is ever unpickled."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..data import tables
from ..files.npz import FileError
from .columns import Wanted, assign
from .table import FileTable

_SPARSE = {"format", "shape", "data"}  # what scipy.sparse.save_npz writes, among others


def read_npy(path: Path, wanted: Wanted) -> FileTable:
    """Read one array."""
    _check_magic(path, npy.MAGIC_PREFIX)
    try:
        # A map is refused when the file is shorter than the array, before any memory is asked for.
        array = np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError as error:
        raise _damaged(path, error) from None
    return _table(path, array, wanted)


def read_npz(path: Path, wanted: Wanted) -> FileTable:
    """Read the only array, the one named by ``--layer``, or a sparse matrix that SciPy has saved."""
    _check_magic(path, b"PK")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if set(file.files) > _SPARSE and wanted.layer is None:
                from scipy import sparse

                array = sparse.load_npz(path)
            else:
                array = file[_choose(path, file.files, wanted.layer)]
    except FileError:
        raise
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise _damaged(path, error) from None
    return _table(path, array, wanted)


def read_matrix_market(path: Path, wanted: Wanted) -> FileTable:
    """Read a Matrix Market file; what is not stored is zero."""
    from scipy.io import mmread

    try:
        array = mmread(path)
    except (ValueError, OverflowError, EOFError, zlib.error, OSError) as error:
        raise FileError(f"{path} is not a whole Matrix Market file ({error}): take another copy of it") from None
    return _table(path, array, wanted)


def _check_magic(path: Path, start: bytes) -> None:
    with path.open("rb") as file:
        if file.read(len(start)) != start:
            kind = path.suffix[1:].upper()
            raise FileError(f"{path} is not an {kind} file: check that its name fits its content")


def _choose(path: Path, names: list[str], layer: str | None) -> str:
    if layer is None and len(names) == 1:
        return names[0]
    if layer not in names:
        problem = "more than one array" if layer is None else f"no array {layer!r}"
        raise FileError(f"{path} has {problem}: name one by --layer; it has {', '.join(names) or 'none'}")
    return layer


def _table(path: Path, array: Any, wanted: Wanted) -> FileTable:
    try:
        values = tables.numeric(str(path), array, 2)
    except (TypeError, ValueError) as error:
        text = str(error).split(". Reshape")[0]
        raise FileError(f"{text}: expected a table, rows x columns of real numbers") from None
    if 0 in values.shape:
        raise FileError(
            f"{path} has {values.shape[0]} rows and {values.shape[1]} columns: expected at least one of each"
        )
    roles = assign(path, None, values.shape[1], wanted)
    cells = values[:, roles.cells]
    cells = np.where(np.isin(cells, wanted.marked), np.nan, cells)
    text = {name: [f"{value:.15g}" for value in values[:, j]] for name, j in roles.classes.items()}
    return FileTable(
        path=path,
        values=cells,
        labels=None if roles.labels is None else [f"{value:.15g}" for value in values[:, roles.labels]],
        classes=text,
        offset=None if roles.offset is None else values[:, roles.offset],
    )


def _damaged(path: Path, error: Exception) -> FileError:
    text = " ".join(str(error).split()) or type(error).__name__
    if "pickle" in text or "Object arrays" in text or "object arrays" in text or "Python objects" in text:
        return FileError(f"{path} holds Python objects, which are never loaded: save an array of numbers instead")
    return FileError(f"{path} is damaged ({text}): take another copy of it")
