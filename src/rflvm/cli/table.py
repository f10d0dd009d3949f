"""A table as it was in a file, in the form that ``rflvm.data.tables.read`` takes for a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..files.npz import FileError
from ..numerics.errors import reworded
from .columns import LABELS, Wanted
from .messages import OPTIONS


@dataclass
class FileTable:
    """What was read.

    Attributes
    ----------
    values : ndarray (N, J)
        NaN where missing.
    columns, labels
        Names of the columns and of the rows, None if there are none.
    label_name : str
        What the column of labels is called.
    classes : dict
        The class columns, as text.
    numbers : list of int
        The number of each column in the file, from 1.
    covariates : dict or None
        The covariates, those of numbers as numbers; None if there are none.
    offset : ndarray (N,) or None
        The offset column.
    times : ndarray (N,) or None
        The time column: numbers or dates.
    sessions : list of str or None
        The session column.
    lines : list of int or None
        The line on which each row is.
    notes : list of str
        What was assumed of the file.
    marks : frozenset of str
        What marks a missing cell, in lower case.
    """

    path: Path
    values: np.ndarray
    columns: tuple[str, ...] | None = None
    labels: list[str] | None = None
    label_name: str = LABELS
    classes: dict[str, list[str]] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    covariates: dict[str, np.ndarray] | None = None
    offset: np.ndarray | None = None
    times: np.ndarray | None = None
    sessions: list[str] | None = None
    lines: list[int] | None = None
    notes: list[str] = field(default_factory=list)
    marks: frozenset[str] = Wanted().marks

    def frame(self) -> Any:
        """The table for ``RFLVM``."""
        return _Frame(self.values, self.columns or (), None if self.labels is None else np.array(self.labels, object))

    def colours(self) -> dict[str, Any]:
        """The class columns, those of numbers as numbers."""
        return {name: _numbers(column, self.marks) for name, column in self.classes.items()}

    def chronology(self) -> dict[str, Any]:
        """Times and sessions, as methods of ``RFLVM`` take them."""
        return {"times": self.times, "sessions": self.sessions}

    def covariate_notes(self) -> list[str]:
        """What each covariate was taken for."""
        notes = []
        for name, column in (self.covariates or {}).items():
            what = "numbers with a linear effect; if they are labels write them as text, batch1 for 1"
            if column.dtype == object:
                what = f"{len({cell for cell in column if cell is not None})} categories"
            notes.append(f"{self.path.name}: the covariate {name!r} is taken as {what}")
        return notes

    def row_names(self) -> list[str]:
        """Labels, or numbers from 1."""
        return [str(n + 1) for n in range(len(self.values))] if self.labels is None else self.labels

    def row(self, n: int) -> str:
        """Where a row is, for a message."""
        return f"row {n + 1}" if self.lines is None else f"line {self.lines[n]}"

    def column(self, j: int) -> str:
        """Which column, for a message."""
        return f"column {j + 1}" if self.columns is None else f"column {self.columns[j]!r}"

    def where(self, n: int | None, j: int | None) -> str:
        """Where a row, a column or a cell is, for a message."""
        row, column = (None if n is None else self.row(n)), (None if j is None else self.column(j))
        return ", ".join(part for part in (row, column) if part is not None)

    def refusal(self, error: Exception) -> FileError:
        """An error of the library about cells, rows or columns, with the lines and column names of the file in it."""
        return FileError(f"{self.path}: {reworded(error, OPTIONS, self.where)}")


def covariates_of(columns: dict[str, list[str]], wanted: Wanted, categories: Sequence[str] = ()) -> Any:
    """Columns of text as covariates, for ``FileTable``: numbers as numbers, but for those that are categories."""
    found = {}
    for name, column in columns.items():
        read = _text if name in categories or name in wanted.categories else _numbers
        cells = read(column, wanted.marks)
        found[name] = np.array(cells, object) if isinstance(cells, list) else cells
    return found or None


def with_chronology(table: FileTable, wanted: Wanted) -> FileTable:
    """The table with its time and session columns, which were read like classes, in their place."""
    columns = {}
    for role, name in (("times", wanted.time), ("sessions", wanted.session)):
        if name is not None:
            columns[role] = table.classes[name] if name in wanted.classes else table.classes.pop(name)
    if "times" in columns:
        table.times = _times(table, wanted.time, columns["times"])
    table.sessions = columns.get("sessions")
    return table


def _times(table: FileTable, name: str | None, column: list[str]) -> np.ndarray:
    numbers = np.asarray(_numbers(column, table.marks))
    if numbers.dtype.kind in "iuf":
        return numbers.astype(float)
    try:
        return np.array(["NaT" if cell.lower() in table.marks else cell for cell in column], "datetime64[ns]")
    except ValueError as error:
        raise FileError(
            f"{table.path}: column {name!r} has times that are neither numbers nor dates such as 2024-05-01T12:30 "
            f"({error})"
        ) from error


def _numbers(column: list[str], marks: frozenset[str]) -> Any:
    """A column of text as numbers if it has nothing else: whole ones as integers, missing ones as NaN."""
    try:
        values = np.array([np.nan if cell.lower() in marks else float(cell) for cell in column])
    except ValueError:
        return _text(column, marks)
    whole = np.isfinite(values).all() and (values == np.floor(values)).all() and (np.abs(values) < 2**53).all()
    return values.astype(int) if whole else values


def _text(column: list[str], marks: frozenset[str]) -> list[str | None]:
    return [None if cell.lower() in marks else cell for cell in column]


@dataclass
class _Frame:
    values: np.ndarray
    columns: tuple[str, ...]
    index: np.ndarray | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtypes(self) -> list[np.dtype]:
        return [self.values.dtype]

    def to_numpy(self) -> np.ndarray:
        return self.values

    def get_columns(self) -> list[np.ndarray]:
        return list(self.values.T)
