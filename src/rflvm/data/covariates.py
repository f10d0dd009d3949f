"""Covariates of rows (batch, animal, age): what a user gives becomes columns of numbers, as the engines see them.

Numbers have mean 0 and standard deviation 1 in the table that is fitted. Text is a category: each category has a column
of ones and zeros, less its share, so that none is the one that the others are compared with. Zeros are an average row.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ..numerics.errors import InputError

NAME = "covariate"  # of those that are given without names; with a number where there are several


class Covariate(NamedTuple):
    """One covariate as the fitted table has it.

    Attributes
    ----------
    name : str
        What the user calls it.
    categories : tuple of str or None
        The categories, each of which has a column; None: a number.
    location : tuple of float
        Mean of each column.
    scale : float
        Standard deviation of a number; 1 for categories.
    """

    name: str
    categories: tuple[str, ...] | None
    location: tuple[float, ...]
    scale: float

    @property
    def labels(self) -> tuple[str, ...]:
        """What each column stands for."""
        return (self.name,) if self.categories is None else tuple(f"{self.name} = {kind}" for kind in self.categories)


class Covariates(NamedTuple):
    """Covariates of the rows of a table: their columns, centred, and what these are."""

    values: Float[np.ndarray, "N C"]
    coding: tuple[Covariate, ...]


def learn(given: Any, N: int, Y: Any = None) -> Covariates | None:
    """Covariates of the table that is to be fitted.

    Parameters
    ----------
    given : None, array or list (N,) or (N, K), mapping of names to columns, data frame or a column of one; or names
        Numbers, text or categories. For an AnnData also the names of columns of its ``obs``.
    N : int
        Rows of the table.
    Y : table
        The table itself, in whose ``obs`` names are looked up.
    """
    if given is None:
        return None
    columns = {name: _cells(name, column, N) for name, column in _columns(given, Y).items()}
    coding = tuple(
        _category(name, cells) if cells.dtype == object else _number(name, cells) for name, cells in columns.items()
    )
    return Covariates(_coded(coding, columns), coding)


def encode(coding: Sequence[Covariate], given: Any, n: int, Y: Any = None) -> Float[np.ndarray, "n C"] | None:
    """Covariates of other rows, in the columns of the fit; ``given`` as in ``learn``, or coded already."""
    if isinstance(given, Covariates):
        return given.values
    names = ", ".join(repr(covariate.name) for covariate in coding)
    if not coding:
        if given is not None:
            raise InputError("{parameter} were given, and the model was fitted without any", parameter="covariates")
        return None
    if given is None:
        raise InputError(
            "the model was fitted with covariates of the rows, {names}: give {parameter}",
            parameter="covariates",
            names=names,
        )
    columns = _columns(given, Y)
    for covariate in coding:
        if covariate.name not in columns:
            raise InputError(
                "{parameter} must be those of the fit, {names}, got {got}",
                parameter="covariates",
                names=names,
                got=", ".join(map(repr, columns)),
            )
    return _coded(coding, {c.name: _cells(c.name, columns[c.name], n, c.categories is not None) for c in coding})


def labels(coding: Sequence[Covariate]) -> tuple[str, ...]:
    """What each column stands for."""
    return tuple(label for covariate in coding for label in covariate.labels)


def in_units(coding: Sequence[Covariate], gamma: Float[np.ndarray, "*S C J"]) -> Float[np.ndarray, "*S C J"]:
    """Effects of one unit of each number, and of being in each category in comparison with an average row."""
    parts, start = [], 0
    for covariate in coding:
        part = gamma[..., start : start + len(covariate.location), :]
        start += len(covariate.location)
        if covariate.categories is None:
            parts.append(part / covariate.scale)
        else:
            average = np.sum(np.array(covariate.location)[:, None] * part, axis=-2, keepdims=True)
            parts.append(part - average)
    return np.concatenate(parts, axis=-2)


def _number(name: str, cells: np.ndarray) -> Covariate:
    scale = float(cells.std())
    if not scale > 0:
        raise _refusal("covariate {name} is the same in all rows: leave it out", name)
    return Covariate(name, None, (float(cells.mean()),), scale)


def _category(name: str, cells: np.ndarray) -> Covariate:
    kinds, counts = np.unique(cells.astype(str), return_counts=True)
    if len(kinds) == 1:
        raise _refusal("covariate {name} is the same in all rows: leave it out", name)
    if len(kinds) == len(cells) > 2:
        raise _refusal("covariate {name} is another category in every row: leave it out, or give numbers", name)
    return Covariate(name, tuple(map(str, kinds)), tuple(map(float, counts / len(cells))), 1.0)


def _coded(coding: Sequence[Covariate], columns: Mapping[str, np.ndarray]) -> Float[np.ndarray, "n C"]:
    parts = []
    for covariate in coding:
        cells = columns[covariate.name]
        if covariate.categories is None:
            if cells.dtype == object:
                raise _refusal("covariate {name} must be numbers, as in the fit, got text", covariate.name)
            parts.append(((cells - covariate.location[0]) / covariate.scale)[:, None])
            continue
        unknown = [n for n, cell in enumerate(cells) if cell not in covariate.categories]
        if unknown:
            raise _refusal(
                "covariate {name} is {value} in {where:row {row}} ({such} such), which is none of the categories of "
                "the fit: {known}",
                covariate.name,
                value=repr(cells[unknown[0]]),
                row=unknown[0],
                such=len(unknown),
                known=", ".join(map(repr, covariate.categories)),
            )
        indicators = cells.astype(str)[:, None] == np.array(covariate.categories)[None]
        parts.append(indicators - np.array(covariate.location))
    return np.concatenate(parts, axis=1)


def _columns(given: Any, Y: Any) -> dict[str, Any]:
    """The columns by their names."""
    obs = getattr(Y, "obs", None) if hasattr(Y, "obsm") else None
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if obs is not None and names and all(isinstance(name, str) for name in names):
        for name in names:
            if name not in obs:
                raise InputError(
                    "{parameter} names {name}, and obs of {Y} has no such column; its columns: {there}",
                    parameter="covariates",
                    name=repr(name),
                    there=", ".join(map(repr, obs)) or "none",
                )
        return {name: obs[name] for name in names}
    columns = _columns_of_table(given)
    if not columns:
        raise InputError("{parameter} have no column: leave them out", parameter="covariates")
    return columns


def _columns_of_table(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {str(name): column for name, column in given.items()}
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        return {str(name): given.iloc[:, j] for j, name in enumerate(given.columns)}
    if hasattr(given, "get_columns"):
        return {column.name: column for column in given.get_columns()}
    if hasattr(given, "to_list"):  # one column of pandas or polars
        return {str(getattr(given, "name", None) or NAME): given}
    return _columns_of_array(given)


def _columns_of_array(given: Any) -> dict[str, np.ndarray]:
    try:
        array = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
        if array.ndim not in (1, 2):
            raise ValueError(f"shape {array.shape}")
    except (TypeError, ValueError) as error:
        raise InputError(
            "{parameter} must be one value for each row, or several in columns; got {what}",
            parameter="covariates",
            what=str(error),
        ) from None
    if array.ndim == 1 or array.shape[1] == 1:
        return {NAME: array.reshape(-1)}
    return {f"{NAME} {j}": column for j, column in enumerate(array.T)}


def _cells(name: str, column: Any, N: int, category: bool = False) -> np.ndarray:
    """A column as numbers, or as an array of strings where it has text or categories; with no cell missing."""
    cells = np.empty(len(column), object)
    for n, cell in enumerate(column):
        cells[n] = cell
    if len(cells) != N:
        raise _refusal("covariate {name} must have one value for each of the {N} rows of {Y}, got {n}", name, N=N,
                       n=len(cells))  # fmt: skip
    missing = np.flatnonzero([_is_missing(cell) for cell in cells])
    if missing.size:
        raise _refusal(
            "covariate {name} is missing in {where:row {row}} ({such} such): fill it in, or leave out these rows",
            name,
            row=int(missing[0]),
            such=missing.size,
        )
    text = [isinstance(cell, str) for cell in cells]
    if category or hasattr(getattr(column, "dtype", None), "categories") or (N > 0 and all(text)):
        cells[:] = [str(cell) for cell in cells]
        return cells
    for n, cell in enumerate(cells):
        if not isinstance(cell, numbers.Real | np.bool_) or not math.isfinite(float(cell)):
            raise _refusal(
                "covariate {name} must be all finite numbers or all text, got {value} in {where:row {row}}",
                name,
                value=repr(cell),
                row=n,
            )
    return cells.astype(float)


def _is_missing(cell: Any) -> bool:
    return cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)


def _refusal(template: str, name: str, **parts: Any) -> InputError:
    return InputError(template, parameter="covariates", name=repr(name), **parts)
