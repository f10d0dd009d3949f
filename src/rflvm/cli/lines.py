"""A table from lines of text cells, of a delimited file or a sheet of a workbook.

What is a number is read as one, what is not is kept as text until ``kinds.py`` has seen the whole column, and
all that is wrong is told at once.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from ..data import memory
from ..files.npz import FileError
from .columns import IDENTIFIERS, LABELS, MISSING, Roles, Wanted, assign
from .kinds import Cells, settle, stands_for_number
from .problems import Problem, ProblemsError
from .table import FileTable, covariates_of

Line = tuple[int, list[str]]  # its number and its cells


def read(path: Path, lines: Iterator[Line], wanted: Wanted) -> FileTable:
    """Read a table from its lines, blank ones left out; the first has the names of the columns if it has text."""
    first = next(lines, None)
    if first is None:
        raise FileError(f"{path} is empty: expected a line of column names, and one line per row")
    marks = wanted.marks
    names, notes = None, []
    if any(is_text(cell, marks) for cell in first[1]):
        names = [cell.strip() for cell in first[1]]
        if len(names) > 1 and not any(is_text(cell, marks) for cell in names[1:]) and any(names[1:]):
            notes.append(f"{path.name}: the first line is taken as column names; if it is a row put names above it")
    else:
        lines = chain([first], lines)
    first = next(lines, None)
    if first is None:
        raise FileError(f"{path} has a header and no rows: expected one line per row below it")

    # Whether the first column holds labels is decided by its first cell that is not missing.
    head = [first]
    while names is not None and head[-1][1][0].strip().lower() in marks and (line := next(lines, None)):
        head.append(line)
    n_columns = len(names or first[1])
    roles = assign(path, names, n_columns, wanted, _why_labels(names, head[-1][1][0], marks))
    return _table(path, n_columns, roles, chain(head, lines), wanted, notes + roles.notes)


def is_text(cell: str, marks: frozenset[str]) -> bool:
    """Whether a cell is neither a number nor a mark for a missing one."""
    cell = cell.strip()
    if cell.lower() in marks:
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return "_" in cell  # Python reads 1_000 as a number, and a table does not mean it


def _why_labels(names: list[str] | None, cell: str, marks: frozenset[str]) -> str:
    """Why the first column looks like row labels, empty if it does not; one of its cells decides, and its name."""
    if names is not None and names[0] == "":
        return "it has no name"
    if names is not None and names[0].lower() in IDENTIFIERS:
        return f"its name is {names[0]!r}"
    if is_text(cell, marks) and not stands_for_number(cell):
        return f"{cell!r} is not a number"
    return ""


def _table(
    path: Path, n_columns: int, roles: Roles, lines: Iterator[Line], wanted: Wanted, notes: list[str]
) -> FileTable:
    reader = _Reader(roles.cells, roles, wanted.marks)
    offsets = _Reader([] if roles.offset is None else [roles.offset], roles, wanted.marks)
    most_cells = memory.SHARE * (memory.available() or sys.maxsize) / reader.cells.itemsize
    labels: list[str] = []
    texts: dict[int, list[str]] = {j: [] for j in (*roles.classes.values(), *roles.covariates.values())}
    ragged: list[tuple[int, int]] = []
    for number, row in lines:
        if len(row) != n_columns:
            ragged.append((number, len(row)))
            continue
        if roles.labels is not None:
            labels.append(row[roles.labels].strip())
        for j, text in texts.items():
            text.append(row[j].strip())
        reader.add(number, row)
        offsets.add(number, row)
        if len(reader.cells) > most_cells:
            raise MemoryError(f"{memory.gigabytes(len(reader.cells) * reader.cells.itemsize)} up to line {number}")
    cells, offset = reader.result(path), offsets.result(path)
    settled = settle(cells, wanted)
    offset_settled = settle(offset, wanted._replace(whole=True, known=()))
    problems = [*_ragged(ragged, n_columns), *reader.infinite(cells), *settled.problems]
    problems += offsets.infinite(offset)
    problems += offset_settled.problems or _without_offset(offset, offset_settled.values)
    if problems:
        raise ProblemsError(path, problems)
    if not settled.kept:
        aside = "; ".join(note.removeprefix(f"{path.name}: ") for note in settled.notes)
        raise FileError(f"{path} has no column of numbers{aside and ': '}{aside}")
    return FileTable(
        path=path,
        values=settled.values,
        columns=settled.names,
        labels=labels if roles.labels is not None else None,
        label_name=(roles.names[roles.labels] if roles.names and roles.labels is not None else "") or LABELS,
        classes={name: texts[j] for name, j in roles.classes.items()},
        numbers=[cells.numbers[j] for j in settled.kept],
        covariates=covariates_of({name: texts[j] for name, j in roles.covariates.items()}, wanted),
        offset=None if roles.offset is None else offset_settled.values[:, 0],
        lines=cells.lines,
        notes=notes + settled.notes,
        marks=wanted.marks,
    )


class _Reader:
    """Collects the cells of some columns."""

    def __init__(self, columns: list[int], roles: Roles, marks: frozenset[str]):
        self._names = roles.names
        self._columns = columns
        self._marks = marks
        self._numeric_marks = frozenset(mark for mark in marks - {*MISSING} if not is_text(mark, frozenset()))
        self.cells = array("d")
        self._text: dict[int, dict[int, str]] = {}
        self._points: dict[int, int] = {}
        self._infinite: list[tuple[int, int, str]] = []
        self._lines: list[int] = []

    def add(self, number: int, row: list[str]) -> None:
        """Add a line."""
        n = len(self._lines)
        self._lines.append(number)
        self.cells.extend([self._number(n, place, row[j]) for place, j in enumerate(self._columns)])

    def _number(self, n: int, place: int, cell: str) -> float:
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        else:
            if "_" not in cell and not (self._numeric_marks and cell.strip().lower() in self._numeric_marks):
                if math.isinf(value):
                    self._infinite.append((n, place, cell.strip()))
                    return math.nan
                if "." in cell:
                    self._points.setdefault(place, n)
                return value
        cell = cell.strip()
        if cell.lower() not in self._marks:
            self._text.setdefault(place, {})[n] = cell
        return math.nan

    def result(self, path: Path) -> Cells:
        """All that was added."""
        return Cells(
            path=path,
            values=np.frombuffer(self.cells, float).reshape(len(self._lines), len(self._columns)),
            names=None if self._names is None else tuple(self._names[j] for j in self._columns),
            numbers=[j + 1 for j in self._columns],
            text=self._text,
            points=self._points,
            lines=self._lines,
        )

    def infinite(self, cells: Cells) -> list[Problem]:
        """What to say of cells beyond the range of a number."""
        if not self._infinite:
            return []
        n, place, cell = self._infinite[0]
        more = f" ({len(self._infinite) - 1} more such cells)" if len(self._infinite) > 1 else ""
        where = f"{cells.where(n, place)}: {cell!r}"
        return [Problem(f"{where} is infinite{more}; leave a cell empty if it is missing", ("--missing", cell))]


def _ragged(lines: list[tuple[int, int]], n_columns: int) -> list[Problem]:
    if not lines:
        return []
    number, n = lines[0]
    more = f" ({len(lines) - 1} more lines have too few or too many)" if len(lines) > 1 else ""
    return [
        Problem(
            f"line {number}: {n} cell{'s' * (n != 1)} where the first line has {n_columns}{more}: every line needs a "
            "cell, if only an empty one, for each column"
        )
    ]


def _without_offset(cells: Cells, offset: np.ndarray) -> list[Problem]:
    rows = np.flatnonzero(np.isnan(offset).any(axis=1))
    if not len(rows):
        return []
    more = f" ({len(rows) - 1} more such lines)" if len(rows) > 1 else ""
    return [Problem(f"line {cells.lines[rows[0]]}: the offset is missing{more}, and every row needs one")]
