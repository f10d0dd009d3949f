"""CSV and TSV files: text that is split into lines of cells."""

from __future__ import annotations

import csv
import gzip
import sys
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain
from pathlib import Path

from ..data import memory
from ..files.npz import FileError
from . import lines
from .columns import Wanted
from .lines import Line
from .table import FileTable

DELIMITERS = "\t;,"


def read(path: Path, wanted: Wanted) -> FileTable:
    """Read a delimited text file, compressed by gzip if its name ends in .gz."""
    try:
        with _open(path) as file:
            return lines.read(path, _lines(file, path), wanted)
    except UnicodeDecodeError:
        raise FileError(f"{path}, {_bad_line(path)}: save the table as text in UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileError(f"{path} is not a whole gzip file ({error}): take another copy of it") from None


def _open(path: Path) -> TextIOWrapper:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


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
