"""What the text in a column is: answers, numbers with a decimal comma, dates, other text, or a mistake.

Files are read in one pass: cells that are numbers go to an array, and what is not is kept as text, by column. Here it
is decided, column by column, what the text means. A guess is said aloud, and one that could be wrong without being
noticed is not made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .columns import Wanted, listed
from .problems import Problem

# Pairs of answers that mean the same in every file. Other columns of two texts are named after the one that counts.
YES = ("yes", "y", "true", "t", "on", "present", "positive", "oui", "vrai", "ja", "wahr", "si", "sí", "sim")
NO = ("no", "n", "false", "f", "off", "absent", "negative", "non", "faux", "nein", "falsch", "nee", "não")

_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?"
_DATE = re.compile(rf"(\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}})([T ]+{_TIME})?\S*|{_TIME}")


class Cells(NamedTuple):
    """The cells of a table of text, as far as they are numbers.

    Attributes
    ----------
    path : Path
        Of the file, for notes.
    values : array (N, J)
        NaN where a cell is missing or text.
    names : tuple of str or None
        Of the columns, in the order of ``values``; a name may be empty.
    numbers : list of int
        The number of each column in the file, from 1.
    text : mapping of column to {row: text}
        The cells that are neither numbers nor missing.
    points : mapping of column to row
        The first number of a column that has a decimal point.
    lines : list of int
        The line of the file on which each row is.
    unit : str
        What a line is called in messages.
    """

    path: Path
    values: np.ndarray
    names: tuple[str, ...] | None
    numbers: list[int]
    text: Mapping[int, Mapping[int, str]]
    points: Mapping[int, int]
    lines: list[int]
    unit: str = "line"

    def name(self, j: int) -> str:
        """A column, for a message."""
        return repr(self.names[j]) if self.names and self.names[j] else str(self.numbers[j])

    def where(self, n: int, j: int) -> str:
        """A cell, for a message."""
        return f"{self.unit} {self.lines[n]}, column {self.name(j)}"


class Settled(NamedTuple):
    """The columns that are cells of the table."""

    values: np.ndarray
    names: tuple[str, ...] | None
    kept: list[int]  # which columns of ``Cells`` these are
    notes: list[str]
    problems: list[Problem]


def settle(cells: Cells, wanted: Wanted) -> Settled:
    """Decide what every column is; of ``wanted.known``, the columns of a fitted model, none is set aside."""
    notes: dict[str, list[str]] = {}
    problems: list[Problem] = []
    names = list(cells.names or ())
    values, kept = cells.values.copy(), []
    known = cells.names is not None and wanted.known is not None
    if known and wanted.known:
        names = list(wanted.known)
    for j in range(values.shape[1]):
        kind, renamed = _column(cells, j, values, known, wanted, problems)
        if renamed and not known:
            names[j] = renamed
        if kind:
            notes.setdefault(kind, []).append(renamed or (names[j] if names and names[j] else str(cells.numbers[j])))
        if kind not in _ASIDE:
            kept.append(j)
    told = [_NOTES[kind].format(path=cells.path.name, columns=listed(columns)) for kind, columns in notes.items()]
    return Settled(values[:, kept], tuple(names[j] for j in kept) if names else None, kept, told, problems)


_ASIDE = ("unnamed", "empty", "constant", "dates", "text")
_NOTES = {
    "answers": "{path}: yes is taken as 1 and no as 0 in {columns}",
    "two": "{path}: of two texts, the one after the = is taken as 1 and the other as 0: {columns}",
    "comma": "{path}: commas are taken as decimal commas in {columns}",
    "thousands": "{path}: commas are taken to separate thousands in {columns}",
    "unnamed": "{path}: left out, because they have no name: {columns}",
    "empty": "{path}: left out, because all of their cells are missing: {columns}",
    "constant": "{path}: left out, because all of their cells are the same: {columns}",
    "dates": "{path}: left out, because they hold dates or times: {columns}; --labels takes one as the rows' names",
    "text": "{path}: left out, because they hold text: {columns}; --labels or --colour takes one",
}


def _column(
    cells: Cells, j: int, values: np.ndarray, known: bool, wanted: Wanted, problems: list[Problem]
) -> tuple[str, str]:
    """The kind of a column, a key of ``_NOTES`` or empty for one of numbers, and its new name if it gets one."""
    kind, renamed = "", ""
    text = cells.text.get(j, {})
    if cells.names is not None and not cells.names[j] and not known:
        return "unnamed", ""
    if text:
        kind, numbers, renamed = _meaning(cells, j, text, wanted)
        if numbers is not None:
            values[list(numbers), j] = list(numbers.values())
        if kind in ("dates", "text") and not known:
            return kind, ""
        if numbers is None:
            problems.append(_mistakes(cells, j, text, known))
            return "", ""
    observed = values[~np.isnan(values[:, j]), j]
    if not known and not wanted.whole and len(values) > 1:
        if not len(observed):
            return "empty", ""
        if len(observed) > 1 and (observed == observed[0]).all():
            return "constant", ""
    return kind, renamed


def _meaning(
    cells: Cells, j: int, text: Mapping[int, str], wanted: Wanted
) -> tuple[str, Mapping[int, float] | None, str]:
    """What the text of a column means: its kind, the numbers that it stands for, and a new name."""
    strings = {cell.casefold() for cell in text.values()}
    numeric = int(np.count_nonzero(~np.isnan(cells.values[:, j])))
    if strings <= {*YES, *NO} and not numeric:
        return "answers", {n: float(cell.casefold() in YES) for n, cell in text.items()}, ""
    name = cells.names[j] if cells.names else ""
    if wanted.known is not None:
        renamed = [other for other in wanted.known if name and other.startswith(f"{name} = ")]
        if renamed:
            target = renamed[0][len(name) + 3 :]
            return "two", {n: float(cell == target) for n, cell in text.items()}, renamed[0]
    elif len(strings) == 2 and not numeric and len(text) > 2 and name and not _dates(text):
        target = max(text.values())
        return "two", {n: float(cell == target) for n, cell in text.items()}, f"{name} = {target}"
    if all(_THOUSANDS.fullmatch(cell) for cell in text.values()):
        certain = any(cell.count(",") > 1 or "." in cell for cell in text.values())
        if certain:
            return "thousands", {n: float(cell.replace(",", "")) for n, cell in text.items()}, ""
        if not any(_decimal(cell) for column in cells.text.values() for cell in column.values()):
            return "", None, ""  # 1,234 is a thousand and more, or little more than one: nothing in the file says which
    if all(_COMMA.fullmatch(cell) for cell in text.values()) and not cells.points:
        return "comma", {n: float(cell.replace(".", "").replace(",", ".")) for n, cell in text.items()}, ""
    if len(text) > numeric:
        return "dates" if _dates(text) else "text", None, ""
    return "", None, ""


def stands_for_number(cell: str) -> bool:
    """Whether a cell that is no number itself may stand for one: an answer, or a number with commas."""
    cell = cell.strip()
    answer = len(cell) > 1 and cell.casefold() in (*YES, *NO)  # a single letter in a first column is a label
    return answer or bool(_COMMA.fullmatch(cell) or _THOUSANDS.fullmatch(cell))


def _dates(text: Mapping[int, str]) -> bool:
    return all(_DATE.fullmatch(cell) for cell in text.values())


def _decimal(cell: str) -> bool:
    """Whether the comma of a cell can only be a decimal one."""
    return bool(_COMMA.fullmatch(cell)) and not _THOUSANDS.fullmatch(cell)


def _mistakes(cells: Cells, j: int, text: Mapping[int, str], known: bool) -> Problem:
    """What to say of a column in which some cells are not numbers."""
    first = next(iter(text))
    cell = text[first]
    more = f" (and {len(text) - 1} more such cells)" if len(text) > 1 else ""
    what = f"{cells.where(first, j)}: {cell!r} is not a number{more}"
    name = cells.names[j] if cells.names and cells.names[j] else str(cells.numbers[j])
    if _COMMA.fullmatch(cell) or _THOUSANDS.fullmatch(cell):
        if cells.points:
            column, row = next(iter(cells.points.items()))
            return Problem(
                f"{what}: its comma may be a decimal one, and {cells.where(row, column)} has a decimal point: "
                "write all numbers in one way"
            )
        return Problem(
            f"{what}: its comma may be a decimal one or separate thousands: write {cell.replace(',', '.')} or "
            f"{cell.replace(',', '')}"
        )
    quoted = f'"{name}"' if " " in name else name
    labels = "" if known else f"; if the column holds labels give --colour {quoted}"
    one = len({string.casefold() for string in text.values()}) == 1
    options = ("--missing", cell) if one else () if known else ("--ignore", name)
    return Problem(f"{what}; if it marks a missing value give --missing {cell}{labels}", options)
