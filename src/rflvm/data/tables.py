"""Tables in and embeddings out: every kind of table that a user may hold becomes one float array with NaN for
missing cells, and an embedding goes back in the kind of the table it came from. Kinds are told apart by their
attributes, so that none of the packages that define them is needed.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..numerics.errors import InputError, InputTypeError, Sentence
from . import sparse

_EXACT = 2**53  # from here on neighbouring whole numbers are the same float


class Reading(NamedTuple):
    """What was read.

    Attributes
    ----------
    values : ndarray of shape (N, J)
        The cells, float64, NaN where missing. May share memory with the input: not to be written to.
    columns : tuple of str or None
        Names of the columns; None unless all of them are strings.
    index : Any
        Labels of the rows as the input holds them, or None.
    kind : {"array", "frame", "sparse", "anndata", "timeseries"}
        What the input was.
    support : Any
        The time support of a TsdFrame, with the starts of its epochs; None of other tables.
    """

    values: np.ndarray
    columns: tuple[str, ...] | None
    index: Any
    kind: str
    support: Any = None


def read(Y: Any, layer: str | None = None) -> Reading:
    """Read a table.

    Infinite cells are passed on, because a mask may still hide them.

    Parameters
    ----------
    Y : table
        An array or nested list, a masked array, a pandas or polars DataFrame, a SciPy sparse matrix or array
        (what is not stored is zero), an AnnData or a pynapple TsdFrame.
    layer : str or None
        Which layer of an AnnData; None is its ``X``.

    Returns
    -------
    Reading

    Raises
    ------
    TypeError
        When a cell is not a number, or only some of the column names are strings.
    ValueError
        When the input is no table with at least one row and one column, holds complex numbers or whole
        numbers too large for a float, has no such layer, or is a sparse matrix with indices out of range or
        too large to be made dense.
    """
    kind = kind_of(Y)
    if layer is not None and kind != "anndata":
        raise InputError(
            "layer = {layer} was given, but {Y} ({kind}) has no layers: only an AnnData does",
            layer=repr(layer),
            kind=type(Y).__name__,
        )
    if kind == "frame":
        values, columns, index = _cells_of_frame(Y), names_of(Y.columns), getattr(Y, "index", None)
    elif kind == "anndata":
        values, columns, index = numeric("Y", _in_memory(layer_of(Y, layer)), 2), names_of(Y.var_names), Y.obs_names
    elif kind == "timeseries":
        values, columns, index = numeric("Y", Y.d, 2), names_of(getattr(Y, "columns", ())), Y.t
    else:
        values, columns, index = numeric("Y", Y, 2), None, None
    for size, what in zip(values.shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            # The wording after "got" is the one that scikit-learn's checks of an estimator look for.
            raise InputError(
                "{Y} must have at least one row and one column, got 0 {what} (shape={shape}) while a minimum of 1 is "
                "required.",
                what=what,
                shape=values.shape,
            )
    return Reading(values, columns, index, kind, Y.time_support if kind == "timeseries" else None)


def place(Y: Any, X: np.ndarray, names: Sequence[str], key: str) -> Any:
    """Give an embedding back in the kind of its table.

    Parameters
    ----------
    Y : table
        What was read.
    X : ndarray of shape (N, D)
        One position per row of Y.
    names : sequence of str
        Names of the D dimensions.
    key : str
        Where an AnnData keeps X: ``Y.obsm[key]``.

    Returns
    -------
    ndarray or TsdFrame
        For a TsdFrame one with the same times and time support; X itself otherwise.
    """
    kind = kind_of(Y)
    if kind == "anndata":
        Y.obsm[key] = X
    if kind == "timeseries":
        return type(Y)(t=Y.t, d=X, time_support=Y.time_support, columns=list(names))
    return X


def numeric(name: str, values: Any, ndim: int) -> np.ndarray:
    """A float array of ``ndim`` dimensions, NaN where cells are masked or missing; no copy where none is needed."""
    if hasattr(values, "toarray"):
        values = sparse.to_dense(name, values)
    hidden = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else None
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            "{parameter} cannot be read as an array of numbers: {why}", parameter=name, why=str(error)
        ) from None
    floats = _floats(name, array, hidden)
    if floats.ndim != ndim:
        reshape = (
            "{reshape:. Reshape your data: {parameter}.reshape(-1, 1) is one column, "
            "{parameter}.reshape(1, -1) one row}"
        )
        raise InputError(
            "{parameter} must have {ndim}, got shape {shape}" + reshape * ((floats.ndim, ndim) == (1, 2)),
            parameter=name,
            ndim=f"{ndim} dimension{'s' * (ndim > 1)}",
            shape=floats.shape,
        )
    return floats


def kind_of(Y: Any) -> str:
    """The kind of a table, as ``Reading`` has it."""
    # Frames come first, because a column may have the name of any attribute, and by attributes that NumPy has
    # nothing of the name of, because a TsdFrame pretends to have everything that NumPy has.
    for kind, attributes in (
        ("frame", ("columns", "iloc")),
        ("frame", ("columns", "get_columns")),
        ("anndata", ("layers", "obsm", "obs_names", "var_names")),
        ("timeseries", ("t", "d", "time_support")),
        ("sparse", ("toarray",)),
    ):
        if all(hasattr(Y, attribute) for attribute in attributes):
            return kind
    return "array"


def names_of(labels: Iterable[Any]) -> tuple[str, ...] | None:
    """The labels if all are strings, None if none is; scikit-learn refuses a mixture too."""
    labels = tuple(labels)
    strings = [isinstance(label, str) for label in labels]
    if any(strings) and not all(strings):
        other = labels[strings.index(False)]
        raise InputTypeError(
            "column names of {Y} must be strings, all or none of them, got {other} among strings: "
            "use Y.columns = Y.columns.astype(str)",
            other=repr(other),
        )
    return labels if any(strings) else None


def layer_of(Y: Any, layer: str | None) -> Any:
    """The cells of an AnnData, or of one of its layers, as they are kept."""
    if layer is not None and layer not in Y.layers:
        there = ", ".join(map(repr, Y.layers)) or "none"
        raise InputError("{Y} has no layer {layer}; its layers: {there}", layer=repr(layer), there=there)
    cells = Y.X if layer is None else Y.layers[layer]
    if cells is None:
        there = ", ".join(map(repr, Y.layers)) or "none"
        raise InputError("{Y} has no X: name one of its layers: {there}", there=there)
    return cells


def _in_memory(cells: Any) -> Any:
    return cells.to_memory() if hasattr(cells, "to_memory") else cells


def _cells_of_frame(Y: Any) -> np.ndarray:
    types = set(Y.dtypes)
    if len(types) == 1 and isinstance(dtype := types.pop(), np.dtype) and dtype.kind in "biuf":
        return numeric("Y", Y.to_numpy(), 2)
    columns = [Y.iloc[:, j] for j in range(Y.shape[1])] if hasattr(Y, "iloc") else Y.get_columns()
    values = np.empty(Y.shape)
    for j, column in enumerate(columns):
        label = Y.columns[j]
        label = repr(label) if isinstance(label, str) else str(label)
        values[:, j] = _cells_of_column(Sentence("column {label}{of_Y: of Y}", label=label), column)
    return values


def _cells_of_column(name: str, column: Any) -> np.ndarray:
    dtype = column.dtype
    if hasattr(dtype, "categories"):
        raise InputTypeError(
            "{parameter} must hold numbers, got categories ({dtype})", parameter=name, dtype=str(dtype)
        )
    if isinstance(dtype, np.dtype) or getattr(dtype, "kind", "O") not in "biuf":
        return _floats(name, column.to_numpy(), None)
    floats = column.to_numpy(dtype=float, na_value=np.nan)  # a pandas type with missing values
    _check_exact(name, floats, dtype.kind)
    return floats


def _floats(name: str, array: np.ndarray, hidden: np.ndarray | None) -> np.ndarray:
    """The array in double precision, NaN where hidden; what is hidden may be anything of the array's type."""
    kind = array.dtype.kind
    if kind in "mM":
        raise InputTypeError(
            "{parameter} must hold numbers, got dates or times ({dtype})", parameter=name, dtype=str(array.dtype)
        )
    if kind == "c":
        raise InputError(
            "{parameter} must hold real numbers: Complex data not supported ({dtype})",
            parameter=name,
            dtype=str(array.dtype),
        )
    if kind not in "biufO":
        raise InputTypeError("{parameter} must hold numbers, got {dtype} data", parameter=name, dtype=str(array.dtype))
    if hidden is not None and hidden.any():
        array = array.copy()
        array[hidden] = None if kind == "O" else 0
    if kind == "O":
        floats = np.empty(array.shape)
        for cell, value in np.ndenumerate(array):
            floats[cell] = _float(name, cell, value)
    else:
        with np.errstate(over="ignore"):  # what is beyond double precision becomes infinite, and is refused as that
            floats = np.asarray(array, float)
        _check_exact(name, floats, kind)
    return floats if hidden is None else np.where(hidden, np.nan, floats)


def _float(name: str, cell: tuple[int, ...], value: Any) -> float:
    if value is None or type(value).__name__ == "NAType":
        return np.nan
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        problem = "{parameter} must hold real numbers: Complex data not supported, got {value}"
        raise InputError(problem + _at(cell), parameter=name, value=repr(value), **_place(cell))
    if isinstance(value, (str, bytes, np.datetime64, np.timedelta64)):
        problem = "{parameter} must hold numbers, got {value}"
        raise InputTypeError(problem + _at(cell), parameter=name, value=repr(value), **_place(cell))
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    except Exception as error:  # whatever the __float__ of an unknown object raises
        problem = "{parameter} must hold numbers, got a value of type {kind}"
        parts = {"parameter": name, "kind": type(value).__name__, "why": str(error)}
        raise InputTypeError(problem + _at(cell) + ": {why}", **parts, **_place(cell)) from None
    if isinstance(value, numbers.Integral) and abs(number) >= _EXACT:
        raise _inexact(name, cell)
    return number


def _check_exact(name: str, floats: np.ndarray, kind: str) -> None:
    """Raise when a whole number of the input may be another one as a float."""
    if kind in "iu":
        large = (floats >= _EXACT) | (floats <= -_EXACT)
        if large.any():
            raise _inexact(name, tuple(int(i[0]) for i in np.nonzero(large)))


def _inexact(name: str, cell: tuple[int, ...]) -> InputError:
    holds, why = (
        "{parameter} holds a whole number of 2**53 or beyond",
        ", which cannot be represented exactly as a float",
    )
    return InputError(holds + _at(cell) + why, parameter=name, **_place(cell))


def _at(cell: tuple[int, ...]) -> str:
    """Where a cell is, as part of a template: in a table, in a column, nowhere."""
    return {2: " in {where:row {row} and column {column}}", 1: " in {where:row {row}}"}.get(len(cell), "")


def _place(cell: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(("row", "column"), cell, strict=False)) if len(cell) <= 2 else {}
