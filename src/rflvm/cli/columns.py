"""Which column of a file is what: row labels, classes, the offset, cells of the table."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..files.npz import FileError

MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none")  # whatever their case
LABELS = "row"  # name of the label column where the file has none
IDENTIFIERS = ("id", "index", "row", "unnamed: 0")  # names of a first column that has labels, also where it has numbers


class Wanted(NamedTuple):
    """What the user asks for. Columns are named, or numbered from 1."""

    labels: str | None = None
    classes: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # covariates that are categories of a fitted model, also if they look like numbers
    offset: str | None = None
    time: str | None = None
    session: str | None = None
    ignored: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    layer: str | None = None
    whole: bool = False  # whether constant columns are kept, as the pixels of an image are
    known: tuple[str, ...] | None = None  # the columns of a fitted model, which are then all that is read

    @property
    def marks(self) -> frozenset[str]:
        """Missing-value marks, in lower case."""
        return frozenset((*MISSING, *(mark.strip().lower() for mark in self.missing)))

    @property
    def numeric_marks(self) -> list[float]:
        """The user's missing-value marks that are numbers, for tables that are read as numbers."""
        numbers = []
        for mark in self.missing:
            with contextlib.suppress(ValueError):
                numbers.append(float(mark))
        return numbers


class Roles(NamedTuple):
    """Positions of columns by what they are for."""

    names: tuple[str, ...] | None  # of all columns, none twice
    labels: int | None
    classes: dict[str, int]
    covariates: dict[str, int]  # by their names in the file
    offset: int | None
    cells: list[int]
    notes: list[str]


def assign(path: Path, names: Sequence[str] | None, n_columns: int, wanted: Wanted, why_labels: str = "") -> Roles:
    """What each column of a file is for.

    Parameters
    ----------
    path : Path
        For messages.
    names : sequence of str or None
        The header.
    n_columns : int
        How many there are.
    wanted : Wanted
        The user's wishes.
    why_labels : str
        Why the first column looks like row labels, empty if it does not.
    """
    notes = []
    if names is not None:
        names, twice = _unique(names)
        if twice and wanted.known is None:
            notes.append(f"{path.name}: names that stand there more than once are numbered: {listed(twice)}")
    labels = None if wanted.labels is None else find(path, names, n_columns, wanted.labels)
    classes = {name: find(path, names, n_columns, name) for name in wanted.classes}
    numbered = (
        n_columns if names is None or wanted.known is None else 0
    )  # those of a fit are known by their names alone
    placed = [(name, find(path, names, numbered, name, " (a covariate)")) for name in wanted.covariates]
    covariates = {name if names is None else names[position]: position for name, position in placed}
    offset = None if wanted.offset is None else find(path, names, n_columns, wanted.offset)
    used = {*classes.values(), *covariates.values(), *(find(path, names, n_columns, name) for name in wanted.ignored)}
    used |= {position for position in (labels, offset) if position is not None}
    known = wanted.known if names is not None else None
    if labels is None and why_labels and 0 not in used and not (known and names and names[0] in known):
        labels = 0
        used.add(0)
        notes.append(f"{path.name}: the first column is taken as row labels ({why_labels})")
    if known is not None and names is not None:
        sources = [_source(name, names) for name in known]
        absent = [name for name, source in zip(known, sources, strict=True) if source is None]
        if absent:
            raise FileError(
                f"{path} has no column {absent[0]!r}{_and_more(len(absent) - 1)}, which the model was fitted to; its "
                f"columns: {listed(names)}"
            )
        cells = [names.index(source) for source in sources if source is not None]
        others = [names[j] for j in range(n_columns) if j not in used and j not in cells and names[j]]
        if others:
            notes.append(f"{path.name}: left out, because the model was not fitted to them: {listed(others)}")
    else:
        cells = [j for j in range(n_columns) if j not in used]
    if not cells:
        hint = "; columns are separated by comma, semicolon or tab" if n_columns == 1 else ""
        raise FileError(
            f"{path} has no column of numbers: all are labels, classes, covariates, offset or ignored{hint}"
        )
    return Roles(None if names is None else tuple(names), labels, classes, covariates, offset, cells, notes)


def find(path: Path, names: Sequence[str] | None, n_columns: int, column: str, what: str = "") -> int:
    """The position of a column that the user has named or numbered; ``what`` says what it is for."""
    if names is not None and column in names:
        return names.index(column)
    if column.isdecimal() and 1 <= int(column) <= n_columns:
        return int(column) - 1
    if names is None:
        raise FileError(f"{path} has no column {column!r}{what}: it has no names, give a number from 1 to {n_columns}")
    close = difflib.get_close_matches(column, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; its columns: {listed(names)}"
    raise FileError(f"{path} has no column {column!r}{what}{hint}")


def listed(names: Sequence[str]) -> str:
    """The first names, and how many there are, for a message."""
    return ", ".join(map(repr, names[:6])) + f", ... ({len(names)} in all)" * (len(names) > 6)


def _source(known: str, names: Sequence[str]) -> str | None:
    """The column of a file that a column of a fitted model is read from: its own name, or ``kind`` for ``kind = a``."""
    if known in names:
        return known
    return next((name for name in names if name and known.startswith(f"{name} = ")), None)


def _unique(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names with repeated ones numbered, a, a (2), a (3), and which were; empty ones stay."""
    taken, seen, unique, twice = set(names), set(), [], []
    for name in names:
        n, numbered = 1, name
        while numbered and numbered in seen:
            n += 1
            numbered = f"{name} ({n})" if f"{name} ({n})" not in taken else numbered
        if numbered != name:
            twice.append(numbered)
        seen.add(numbered)
        unique.append(numbered)
    return unique, twice


def _and_more(n: int) -> str:
    return f" (and {n} more)" if n > 0 else ""
