"""Cells of a workbook as text."""

from rflvm.datasets import xlsx


def test_numbers_shared_strings_and_formulas(workbook):
    sheet = (
        '<row r="1"><c r="A1" t="s"><v>1</v></c><c r="AB1" t="s"><v>0</v></c></row><row r="3"/>'
        '<row r="4"><c r="A4"><v>42826</v></c><c r="B4"/><c r="C4"><f>A4+1</f><v>42827</v></c></row>'
    )
    strings = "<si><t>Date</t></si><si><r><t>High </t></r><r><t>Temp</t></r></si>"
    rows = xlsx.rows(workbook(sheet, strings))
    assert rows == [{"A": "High Temp", "AB": "Date"}, {}, {"A": "42826", "C": "42827"}]
