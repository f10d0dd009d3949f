"""Sparse tables made dense, after a look at their indices and at the size of the result.

SciPy believes the indices of a sparse matrix, and an index out of range writes to memory that is not its own, which
ends the process. Whoever builds a matrix from parts, or reads one from a damaged file, can have such indices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.errors import InputError
from . import memory


def to_dense(name: str, matrix: Any) -> Any:
    """The matrix as an array; cells that are stored more than once are added up.

    Parameters
    ----------
    name : str
        What the matrix is called in messages.
    matrix : sparse matrix or array
        Of SciPy, in any of its formats, or whatever else has ``toarray``.

    Raises
    ------
    InputError
        When an index is out of range, parts do not fit together, or the result is too large for the memory.
    """
    shape = getattr(matrix, "shape", ())
    memory.check(name, 8 * math.prod(map(int, shape)), f"as a dense table of shape {_by(shape)}, which a sparse one "
                 "is made into")  # fmt: skip
    check(name, matrix)
    return matrix.toarray()


def check(name: str, matrix: Any) -> None:
    """Raise when an index of a sparse matrix is out of range, or its parts do not fit together."""
    problems = _CHECKS.get(getattr(matrix, "format", ""))
    if problems is not None:
        problems(name, matrix)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _require(holds: Any, name: str, problem: str) -> None:
    if not holds:
        raise InputError(
            "{parameter} is a sparse table that cannot be: {problem}; make it or its file again",
            parameter=name, problem=problem,
        )  # fmt: skip


def _check_indices(name: str, what: str, indices: Any, size: int) -> None:
    """Indices are whole numbers from 0 to size - 1."""
    indices = np.asarray(indices)
    _require(indices.ndim == 1 and indices.dtype.kind in "iu", name, f"its {what} are not a list of whole numbers")
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        wrong = low if low < 0 else high
        _require(low >= 0 and high < size, name, f"its {what} include {wrong}, and must be from 0 to {size - 1}")


def _check_compressed(name: str, matrix: Any, n_lines: int, n_places: int) -> None:
    """Lines (rows, columns or rows of blocks) are stretches of ``indices`` that ``indptr`` delimits."""
    indptr, n_stored = np.asarray(matrix.indptr), np.size(matrix.indices)
    _require(indptr.shape == (n_lines + 1,), name, f"its indptr has shape {indptr.shape}, and must have {n_lines + 1}")
    _check_indices(name, "indptr", indptr, n_stored + 1)
    _require(indptr[0] == 0 and (indptr[1:] >= indptr[:-1]).all(), name, "its indptr does not rise from 0")
    _require(len(matrix.data) == n_stored, name, f"it has {n_stored} indices for {len(matrix.data)} values")
    _check_indices(name, "indices", matrix.indices[: indptr[-1]], n_places)


def _check_csr(name: str, matrix: Any) -> None:
    _require(np.ndim(matrix.data) == 1, name, "its values are not a list")
    _check_compressed(name, matrix, math.prod(matrix.shape[:-1]), matrix.shape[-1])


def _check_csc(name: str, matrix: Any) -> None:
    _require(np.ndim(matrix.data) == 1, name, "its values are not a list")
    _check_compressed(name, matrix, matrix.shape[1], matrix.shape[0])


def _check_bsr(name: str, matrix: Any) -> None:
    _require(np.ndim(matrix.data) == 3, name, "its values are not blocks")
    (N, J), (height, width) = matrix.shape, matrix.data.shape[1:]
    fits = height > 0 and width > 0 and N % height == 0 and J % width == 0
    _require(fits, name, f"blocks of {_by((height, width))} do not fill {_by((N, J))}")
    _check_compressed(name, matrix, N // height, J // width)


def _check_coo(name: str, matrix: Any) -> None:
    _require(np.ndim(matrix.data) == 1 and len(matrix.coords) == len(matrix.shape), name, "its values are not a list "
             "with an index for every dimension")  # fmt: skip
    for axis, (indices, size) in enumerate(zip(matrix.coords, matrix.shape, strict=True)):
        what = ("row indices", "column indices")[axis] if len(matrix.shape) == 2 else "indices"
        n = np.size(indices)
        _require(n == len(matrix.data), name, f"it has {n} {what} for {len(matrix.data)} values")
        _check_indices(name, what, indices, size)


def _check_dia(name: str, matrix: Any) -> None:
    # An offset beyond the corners is a diagonal without cells, which SciPy leaves out.
    data, offsets = np.asarray(matrix.data), np.asarray(matrix.offsets)
    whole = offsets.ndim == 1 and offsets.dtype.kind in "iu"
    _require(whole and data.ndim == 2, name, "its offsets are not a list of whole numbers, or its values no diagonals")
    _require(len(data) == len(offsets), name, f"it has {len(offsets)} offsets for {len(data)} diagonals")
    _require(len(np.unique(offsets)) == len(offsets), name, "one of its offsets is there twice")


def _check_lil(name: str, matrix: Any) -> None:
    _require(len(matrix.rows) == len(matrix.data) == matrix.shape[0], name, "it has not one list for each row")
    for indices, values in zip(matrix.rows, matrix.data, strict=True):
        _require(len(indices) == len(values), name, f"a row has {len(indices)} indices for {len(values)} values")
        if indices:
            _check_indices(name, "column indices", np.array(indices), matrix.shape[1])


def _check_dok(name: str, matrix: Any) -> None:
    for indices in matrix.keys():  # noqa: SIM118 (a dok matrix iterates over its rows)
        for index, size in zip(np.atleast_1d(indices), matrix.shape, strict=True):
            _require(0 <= index < size, name, f"it has a value at {indices}, and its shape is {_by(matrix.shape)}")


_CHECKS = {
    "csr": _check_csr,
    "csc": _check_csc,
    "bsr": _check_bsr,
    "coo": _check_coo,
    "dia": _check_dia,
    "lil": _check_lil,
    "dok": _check_dok,
}
