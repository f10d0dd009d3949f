"""Which columns are of which family, as a user says it: by names, numbers, slices or flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..numerics.errors import InputError, Sentence
from ..numerics.names import hint
from .base import Likelihood

Pairs = list[tuple[Any, list[int]]]


def is_specification(likelihood: Any) -> bool:
    """Whether it says which columns are of which family."""
    return isinstance(likelihood, Mapping | list | tuple)


def read(specification: Any, names: Sequence[str] | None, J: int | None) -> Pairs:
    """Families, or their names, with the numbers of their columns, from a mapping or a list of pairs.

    Parameters
    ----------
    specification : mapping of family to columns, or sequence of (family, columns)
        Columns are a name or number, several of them, a slice or an array of booleans.
    names : sequence of str or None
        Names of the columns of the table.
    J : int or None
        How many there are, if that is known.
    """
    given = specification.items() if isinstance(specification, Mapping) else specification
    pairs = []
    for pair in given:
        if isinstance(pair, str | Likelihood) or len(pair) != 2:
            raise InputError(
                "{parameter} must be pairs of a family and its columns, got {pair}", parameter="likelihood",
                pair=repr(pair),
            )  # fmt: skip
        pairs.append((pair[0], _numbers(pair[1], names, J)))
    _check_cover([j for _, columns in pairs for j in columns], names, J)
    return [pair for pair in pairs if pair[1]]


def _numbers(columns: Any, names: Sequence[str] | None, J: int | None) -> list[int]:
    if isinstance(columns, slice):
        if J is None:
            raise ValueError("a slice of columns needs the table: give their numbers")
        return list(range(*columns.indices(J)))
    array = np.asarray([columns] if isinstance(columns, str | int | np.integer) else columns)
    if array.dtype == bool:
        return np.flatnonzero(array).tolist()
    return [_number(column, names, J) for column in array.tolist()]


def _number(column: Any, names: Sequence[str] | None, J: int | None) -> int:
    if isinstance(column, str) and names is not None and column in names:
        return list(names).index(column)
    if isinstance(column, int) and (J is None or -J <= column < J):
        return column if J is None or column >= 0 else column + J
    raise InputError(
        "{parameter} names the column {name}, which {Y} has not{hint}",
        parameter="likelihood",
        name=repr(column),
        hint=hint(column, names or []) if isinstance(column, str) else f": it has {J}",
    )


def _check_cover(columns: list[int], names: Sequence[str] | None, J: int | None) -> None:
    """Raise unless every column has one family."""
    called = lambda j: repr(names[j]) if names is not None else str(j)  # noqa: E731
    twice = sorted({j for j in columns if columns.count(j) > 1}) if len(set(columns)) < len(columns) else []
    left = [] if J is None else sorted(set(range(J)) - set(columns))
    for some, problem in (
        (twice, "two families"),
        (left, Sentence('no family ({give_auto:give "auto" for those that may be looked at})')),
    ):
        if some:
            raise InputError(
                "{parameter} gives column {name} {problem}{more}",
                parameter="likelihood",
                name=called(some[0]),
                problem=problem,
                more=f", and {len(some) - 1} more" if len(some) > 1 else "",
            )
