"""Excel workbooks: the cells of one sheet, as text. ``lines.py`` decides what they are."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, time
from pathlib import Path
from typing import Any

from ..data import memory
from ..files.npz import FileError
from ..numerics.errors import InputError
from . import lines
from .columns import Wanted
from .lines import Line
from .table import FileTable


def read(path: Path, wanted: Wanted) -> FileTable:
    """Read the sheet named by ``--layer``, or the first one that is visible and has cells; values, not formulas."""
    import openpyxl

    try:
        with zipfile.ZipFile(path) as archive:
            memory.check(str(path), sum(member.file_size for member in archive.infolist()), "to unpack it")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it does not need: styles, validation of cells
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            sheet = _choose(path, book, wanted.layer)
            return lines.read(path, _lines(sheet), wanted._replace(layer=None))
    except (FileError, InputError, MemoryError):
        raise
    except Exception as error:  # openpyxl and zipfile have many ways to stumble over a damaged file
        raise FileError(f"{path} is not a whole Excel workbook ({error}): save it anew as .xlsx or as CSV") from None


def _choose(path: Path, book: Any, layer: str | None) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if layer is not None:
        if layer not in sheets:
            raise FileError(f"{path} has no sheet {layer!r}; it has {', '.join(map(repr, sheets)) or 'none'}")
        return sheets[layer]
    visible = [sheet for sheet in sheets.values() if sheet.sheet_state == "visible"]
    filled = (sheet for sheet in visible if next(_lines(sheet), None) is not None)
    sheet = next(filled, None)
    if sheet is None:
        raise FileError(f"{path} has no visible sheet with cells: --layer names another one")
    return sheet


def _lines(sheet: Any) -> Iterator[Line]:
    """Lines that are not blank, as wide as the first of them; cells beyond it are an error unless they are empty."""
    width = None
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        cells = [_text(value) for value in row]
        while cells and not cells[-1] and (width is None or len(cells) > width):
            cells.pop()
        if not any(cells):
            continue
        width = len(cells) if width is None else width
        yield number, cells + [""] * (width - len(cells))


def _text(value: Any) -> str:
    """A cell as a delimited file would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value).strip()
