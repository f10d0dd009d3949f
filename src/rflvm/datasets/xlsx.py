"""The cells of an Excel workbook's first sheet: an xlsx file is a zip of XML."""

from __future__ import annotations

from xml.etree import ElementTree

from .archives import unzip

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def rows(content: bytes) -> list[dict[str, str]]:
    """The rows from the top, each as text by column letter; empty cells are left out, dates are numbers of days."""
    files = unzip(content)
    strings = ElementTree.fromstring(files["xl/sharedStrings.xml"]).iter(f"{_MAIN}si")
    shared = ["".join(part.text or "" for part in string.iter(f"{_MAIN}t")) for string in strings]
    table = []
    for row in ElementTree.fromstring(files["xl/worksheets/sheet1.xml"]).iter(f"{_MAIN}row"):
        cells = {}
        for cell in row.iter(f"{_MAIN}c"):
            text = cell.findtext(f"{_MAIN}v")
            if text:
                column = cell.attrib["r"].rstrip("0123456789")
                cells[column] = shared[int(text)] if cell.get("t") == "s" else text
        table.append(cells)
    return table
