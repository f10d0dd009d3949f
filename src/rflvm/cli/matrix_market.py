"""Matrix Market files, read by NumPy line by line.

SciPy's reader is not used: its parser ends the process on a symmetric array that is not square, and on some files whose
last line is cut off.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..data import memory
from ..files.npz import FileError
from .arrays import table_of
from .columns import Wanted
from .table import FileTable

_LAYOUTS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern", "complex")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_LONGEST_LINE = 1024  # by the definition of the format
_EXACT = 2**53


class _Header(NamedTuple):
    layout: str
    field: str
    symmetry: str
    shape: tuple[int, int]
    entries: int  # lines below the header


def read(path: Path, wanted: Wanted) -> FileTable:
    """Read a Matrix Market file, compressed by gzip if its name ends in .gz; entries that are not stored are zero."""
    compressed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path, "rb") if compressed else path.open("rb") as file:
            matrix = _read(file, str(path))
    except (gzip.BadGzipFile, EOFError, zlib.error, _DamagedError) as error:
        raise FileError(f"{path} is not a whole Matrix Market file ({error}): take another copy of it") from None
    return table_of(path, matrix, wanted)


class _DamagedError(Exception):
    pass


def _read(file: BufferedIOBase, name: str) -> Any:
    lines = _lines(file)
    header = _header(lines)
    N, J = header.shape
    if header.field == "complex":
        raise FileError(f"{name} must hold real numbers, got complex ones")
    memory.check(name, 8 * N * J, f"as a dense table of shape {N} x {J}, which a sparse one is made into")
    width = 1 if header.layout == "array" else 2 if header.field == "pattern" else 3
    memory.check(name, 8 * width * header.entries, f"for its {header.entries} entries")
    numbers = _numbers(lines, header.entries, width)
    if header.field.endswith("integer") and (np.abs(numbers[:, -1]) >= _EXACT).any():
        raise FileError(f"{name} holds a whole number of 2**53 or beyond, which cannot be represented exactly")
    return _dense(numbers[:, 0], header) if header.layout == "array" else _sparse(numbers, header)


def _lines(file: BufferedIOBase) -> Iterator[str]:
    """Lines, none of them longer than the format allows: a compressed file can hold a line of any length."""
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise _DamagedError(f"a line is longer than {_LONGEST_LINE} characters")
        yield line.decode("latin-1")


def _header(lines: Iterator[str]) -> _Header:
    words = next(lines, "").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise _DamagedError("its first line does not begin with %%MatrixMarket matrix and say what is in it")
    layout, field, symmetry = words[2:]
    for word, known in ((layout, _LAYOUTS), (field, _FIELDS), (symmetry, _SYMMETRIES)):
        if word not in known:
            raise _DamagedError(f"its first line says {word!r} where one of {', '.join(known)} is known")
    if layout == "array" and field == "pattern":
        raise _DamagedError("an array cannot be a pattern")
    sizes = next((line.split() for line in lines if line.strip() and not line.startswith("%")), [])
    if len(sizes) != (3 if layout == "coordinate" else 2) or not all(
        size.isascii() and size.isdecimal() for size in sizes
    ):
        raise _DamagedError(f"the line with its sizes is {' '.join(sizes)!r}")
    N, J = int(sizes[0]), int(sizes[1])
    if symmetry != "general" and N != J:
        raise _DamagedError(f"{N} x {J} cannot be {symmetry}")
    stored = {"general": N * J, "skew-symmetric": N * (N - 1) // 2}.get(symmetry, N * (N + 1) // 2)
    return _Header(layout, field, symmetry, (N, J), int(sizes[2]) if layout == "coordinate" else stored)


def _numbers(lines: Iterator[str], entries: int, width: int) -> np.ndarray:
    """The lines below the header as numbers, (entries, width)."""
    not_blank = (line for line in lines if not line.isspace())
    first = next(not_blank, None)
    if first is None:
        numbers = np.zeros((0, width))
    else:
        try:
            numbers = np.loadtxt(_chain(first, not_blank), comments=None, ndmin=2, max_rows=entries + 1)
        except ValueError as error:
            raise _DamagedError(str(error)) from None
    if numbers.shape != (entries, width):
        raise _DamagedError(f"it has {numbers.shape[0]} lines of {numbers.shape[1]} numbers, not {entries} of {width}")
    return numbers


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _dense(numbers: np.ndarray, header: _Header) -> np.ndarray:
    """A matrix stored column by column: all of it, or its lower triangle (without the diagonal if it is skew)."""
    N, J = header.shape
    if header.symmetry == "general":
        return numbers.reshape(J, N).T
    skew = header.symmetry == "skew-symmetric"
    columns, rows = np.triu_indices(N, k=int(skew))
    values = np.zeros((N, N))
    values[columns, rows] = -numbers if skew else numbers
    values[rows, columns] = numbers
    return values


def _sparse(numbers: np.ndarray, header: _Header) -> Any:
    from scipy import sparse

    indices = []
    for what, column, size in zip(("row", "column"), numbers.T[:2], header.shape, strict=True):
        wrong = ~((column >= 1) & (column <= size) & (column == np.floor(column)))
        if wrong.any():
            raise _DamagedError(f"an entry is in {what} {column[wrong.argmax()]:g}, and there are {what}s 1 to {size}")
        indices.append(column.astype(np.int64) - 1)
    rows, columns = indices
    values = np.ones(len(numbers)) if header.field == "pattern" else numbers[:, 2]
    if header.symmetry != "general":
        off = rows != columns
        mirrored = -values[off] if header.symmetry == "skew-symmetric" else values[off]
        rows, columns = np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])
        values = np.concatenate([values, mirrored])
    return sparse.coo_array((values, (rows, columns)), shape=header.shape)
