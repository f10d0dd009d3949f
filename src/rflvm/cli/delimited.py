"""CSV and TSV files. Every cell that cannot be read is named by its line, its column and what it holds."""

from __future__ import annotations

import csv
import gzip
import math
import sys
import zlib
from array import array
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain
from pathlib import Path

import numpy as np

from ..data import memory
from ..files.npz import FileError
from .columns import LABELS, Roles, Wanted, assign
from .table import FileTable

DELIMITERS = "\t;,"
Line = tuple[int, list[str]]  # its number and its cells


def read(path: Path, wanted: Wanted) -> FileTable:
    """Read a delimited text file, compressed by gzip if its name ends in .gz."""
    try:
        with _open(path) as file:
            return _read(file, path, wanted)
    except UnicodeDecodeError:
        raise FileError(f"{path}, {_bad_line(path)}: save the table as text in UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileError(f"{path} is not a whole gzip file ({error}): take another copy of it") from None


def _open(path: Path) -> TextIOWrapper:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read(file: TextIOWrapper, path: Path, wanted: Wanted) -> FileTable:
    lines = _lines(file, path)
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
    why_labels = ""
    if names is not None and names[0] == "":
        why_labels = "it has no name"
    elif is_text(head[-1][1][0], marks):
        why_labels = f"{head[-1][1][0]!r} is not a number"
    n_columns = len(names or first[1])
    roles = assign(path, names, n_columns, wanted, why_labels)
    return _table(path, names, n_columns, roles, chain(head, lines), marks, notes + roles.notes)


def _table(
    path: Path, names: list[str] | None, n_columns: int, roles: Roles, lines: Iterator[Line], marks: frozenset[str],
    notes: list[str],
) -> FileTable:  # fmt: skip
    cells, numbers, labels, offset = array("d"), [], [], []
    classes: dict[str, list[str]] = {name: [] for name in roles.classes}
    most_cells = memory.SHARE * (memory.available() or sys.maxsize) / cells.itemsize
    for number, row in lines:
        if len(row) != n_columns:
            raise FileError(
                f"{path}, line {number}: {_count(len(row))} where the first line has {n_columns}: every line needs a "
                "cell, if only an empty one, for each column"
            )
        numbers.append(number)
        if roles.labels is not None:
            labels.append(row[roles.labels].strip())
        for name, j in roles.classes.items():
            classes[name].append(row[j].strip())
        if roles.offset is not None:
            offset.append(_number(row, roles.offset, marks, path, number, names))
            if math.isnan(offset[-1]):
                raise FileError(f"{path}, line {number}: the offset is missing, and every row needs one")
        cells.extend([_number(row, j, marks, path, number, names) for j in roles.cells])
        if len(cells) > most_cells:
            raise MemoryError(f"{memory.gigabytes(len(cells) * cells.itemsize)} up to line {number}")
    return FileTable(
        path=path,
        values=np.frombuffer(cells, float).reshape(len(numbers), len(roles.cells)),
        columns=None if names is None else tuple(names[j] for j in roles.cells),
        labels=labels if roles.labels is not None else None,
        label_name=(names[roles.labels] if names and roles.labels is not None else "") or LABELS,
        classes=classes,
        offset=np.array(offset) if roles.offset is not None else None,
        lines=numbers,
        notes=notes,
    )


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


def _number(row: list[str], j: int, marks: frozenset[str], path: Path, line: int, names: list[str] | None) -> float:
    cell = row[j].strip()
    if cell.lower() in marks:
        return math.nan
    name = str(j + 1) if names is None else names[j]
    where = f"{path}, line {line}, column {name if names is None else repr(name)}: {cell!r}"
    if is_text(cell, marks):
        if cell.count(",") == 1 and not is_text(cell.replace(",", "."), marks):
            raise FileError(f"{where} is not a number; if the comma is a decimal one write {cell.replace(',', '.')}")
        quoted = f'"{name}"' if " " in name else name
        raise FileError(
            f"{where} is not a number; if it marks a missing value give --missing {cell}; if the column holds labels "
            f"give --classes {quoted}"
        )
    value = float(cell)
    if math.isinf(value):
        raise FileError(f"{where} is infinite; leave the cell empty if it is missing")
    return value


def _lines(file: TextIOWrapper, path: Path) -> Iterator[Line]:
    """Lines that are not blank, split at the delimiter that is most frequent in the first of them."""
    text = _without_nul(file, path)
    blank, start = next(((n, line) for n, line in enumerate(text) if line.strip()), (0, None))
    if start is None:
        return
    number = blank
    try:
        # The csv module is not used to try delimiters: with a wrong one a long header is one cell, beyond its limit.
        unquoted = "".join(start.split('"')[::2])
        delimiter = max(DELIMITERS, key=unquoted.count)
        reader = csv.reader(chain([start], text), delimiter=delimiter, strict=True)
        for row in reader:
            number = reader.line_num + blank
            if any(cell.strip() for cell in row) or len(row) > 1:
                yield number, row
    except csv.Error as error:
        advice = "look for a quote that is not closed"
        if "field limit" in str(error):
            advice += ", or for another separator than comma, semicolon or tab"
        raise FileError(f"{path}, line {number + 1}: {error}: {advice}") from None


def _without_nul(file: TextIOWrapper, path: Path) -> Iterator[str]:
    longest = int(memory.SHARE * (memory.available() or sys.maxsize))  # a compressed file can hold a line of any length
    for number, line in enumerate(iter(lambda: file.readline(longest), ""), 1):
        if len(line) == longest:
            raise MemoryError(f"line {number} has {memory.gigabytes(longest)} or more")
        if "\0" in line:
            raise FileError(
                f"{path}, line {number} has NUL bytes, so it is not a text table in UTF-8: if it comes from a "
                "spreadsheet save it as CSV in UTF-8, otherwise check that its name fits its content"
            )
        yield line


def _bad_line(path: Path) -> str:
    """Where a file stops being UTF-8."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f"line {number} is not UTF-8 (byte {line[error.start]:#04x} at position {error.start + 1})"
    return "somewhere the text is not UTF-8"


def _count(n: int) -> str:
    return f"{n} cell{'s' * (n != 1)}"
