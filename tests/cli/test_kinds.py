"""What the text in a column is taken for: each guess is said aloud, and problems are told all at once."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from openpyxl import Workbook

from rflvm.cli import main, reading
from rflvm.cli.columns import Wanted
from rflvm.files.npz import FileError


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(text: str, name: str = "t.csv", **wanted):
    Path(name).write_text(text)
    return reading.read(name, Wanted(**wanted))


@pytest.mark.parametrize(
    ("yes", "no"), [("yes", "no"), ("TRUE", "FALSE"), ("Y", "n"), ("oui", "non"), ("Ja", "Nein"), ("t", "f")]
)
def test_answers_are_ones_and_zeros(yes, no):
    table = read(f"a,b\n3,{yes}\n4,{no}\n5,\n")
    np.testing.assert_array_equal(table.values, [[3, 1], [4, 0], [5, np.nan]])
    assert table.columns == ("a", "b")
    assert table.notes == ["t.csv: yes is taken as 1 and no as 0 in 'b'"]
    first = read(f"b,a\n{yes}{yes},3\n{no},4\n" if len(yes) == 1 else f"b,a\n{yes},3\n{no},4\n")
    assert (first.labels is None) == (len(yes) > 1)  # a single letter in the first column is a label


def test_other_columns_of_two_texts_are_named_after_the_one_that_counts_and_read_so_for_a_model():
    table = read("a,sex\n3,male\n4,female\n5,male\n6,\n")
    assert table.columns == ("a", "sex = male")
    np.testing.assert_array_equal(table.values[:, 1], [1, 0, 1, np.nan])
    assert "of two texts, the one after the = is taken as 1" in table.notes[0]
    assert "'sex = male'" in table.notes[0]
    new = read("sex,a\nfemale,1\nfemale,2\nmale,3\n", known=("a", "sex = male"))
    assert new.columns == ("a", "sex = male")
    np.testing.assert_array_equal(new.values, [[1, 0], [2, 0], [3, 1]])


def test_decimal_commas_and_thousands():
    table = read("a;b;c\n1,5;2,25;7\n-,5;1.000,5;8\n+3,0e2;;9\n")
    np.testing.assert_array_equal(table.values, [[1.5, 2.25, 7], [-0.5, 1000.5, 8], [300, np.nan, 9]])
    assert table.notes == ["t.csv: commas are taken as decimal commas in 'a', 'b'"]
    table = read('a,b\n"1,234",1.5\n"1,234,567",2\n12,3\n')
    np.testing.assert_array_equal(table.values, [[1234, 1.5], [1234567, 2], [12, 3]])
    assert table.notes == ["t.csv: commas are taken to separate thousands in 'a'"]
    # 2,500 is a decimal where another cell can only be one.
    assert read("a;b\n2,5;2,500\n1;3\n").values[0].tolist() == [2.5, 2.5]


def test_columns_that_are_no_cells_are_set_aside_aloud():
    text = (
        "n,,when,hour,what,same,none,a\n1,00:00,01/02/2015,12:30,abc,7,,1\n2,00:00,2015-02-02 01:00,1:30 PM,de,7,,0\n"
    )
    table = read(text + "3,00:00,2015-02-03T01:00:00Z,3:30,fgh,7,NA,1\n")
    assert table.columns == ("n", "a")
    assert table.notes == [
        "t.csv: left out, because they have no name: '2'",
        "t.csv: left out, because they hold dates or times: 'when', 'hour'; --labels takes one as the rows' names",
        "t.csv: left out, because they hold text: 'what'; --labels or --colour takes one",
        "t.csv: left out, because all of their cells are the same: 'same'",
        "t.csv: left out, because all of their cells are missing: 'none'",
    ]
    table = reading.read("t.csv", Wanted(labels="when", classes=("what",), whole=True))
    assert table.labels is not None
    assert table.labels[0] == "01/02/2015"
    assert table.classes == {"what": ["abc", "de", "fgh"]}
    assert table.columns == ("n", "same", "none", "a")  # an image keeps its constant pixels


def test_a_first_column_called_id_has_labels():
    table = read("ID,a,b\n10,1,2\n11,0,3\n")
    assert table.labels == ["10", "11"]
    assert table.notes == ["t.csv: the first column is taken as row labels (its name is 'ID')"]
    assert read("ID,a\n10,1\n11,0\n", known=("ID", "a")).labels is None


def test_names_that_stand_there_twice_are_numbered():
    table = read("a,b,a,a (2),a\n1,2,3,4,5\n2,3,4,5,6\n")
    assert table.columns == ("a", "b", "a (3)", "a (2)", "a (4)")
    assert table.notes == ["t.csv: names that stand there more than once are numbered: 'a (3)', 'a (4)'"]
    new = reading.read("t.csv", Wanted(known=("a (4)", "a")))
    np.testing.assert_array_equal(new.values, [[5, 1], [6, 2]])


def test_all_problems_are_told_at_once_with_a_command_that_puts_up_with_them():
    Path("t.csv").write_text("a,b,c,d\n1,?,1,x\n2,3,u,4\n3,4,v,inf\n4,?,5,6\n5,1,2,7\n9,9,9,9\n")
    result = CliRunner().invoke(main, ["fit", "t.csv", "--out", "run"])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "rflvm: error: t.csv has 4 problems",
        "- line 4, column 'd': 'inf' is infinite; leave a cell empty if it is missing",
        "- line 2, column 'b': '?' is not a number (and 1 more such cells); if it marks a missing value give --missing "
        "?; if the column holds labels give --colour b",
        "- line 3, column 'c': 'u' is not a number (and 1 more such cells); if it marks a missing value give "
        "--missing u; if the column holds labels give --colour c",
        "- line 2, column 'd': 'x' is not a number; if it marks a missing value give --missing x; if the column holds "
        "labels give --colour d",
        "to put up with all of them: rflvm fit t.csv --out run --missing inf --missing '?' --ignore c --missing x",
    ]
    assert not Path("run").exists()
    table = reading.read("t.csv", Wanted(missing=("inf", "?", "x"), ignored=("c",)))
    assert table.values.shape == (6, 3)


def test_lines_of_other_lengths_are_counted():
    with pytest.raises(FileError, match=r"line 3: 1 cell where the first line has 2 \(1 more lines have too few"):
        read("a,b\n1,2\n1\n2,3\n4,5,6\n")


def workbook(name: str = "t.xlsx", **sheets):
    book = Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(name)
    return book


def test_a_workbook_is_read_as_it_is():
    day = datetime.date(2026, 1, 5)
    answers = [
        [None, None],
        ["who", "smokes", "q1", "when", "q2", "true"],
        ["ann", "yes", 5, day, 1.5, True],
        ["bob", "no", 3, day, None, False],
        ["cy", None, 4, datetime.datetime(2026, 1, 6, 12), 2, True, None],
    ]
    workbook(notes=[], answers=answers, other=[["x", "y"], [1, 2], [3, 5]])
    table = reading.read("t.xlsx", Wanted())
    assert table.columns == ("smokes", "q1", "q2", "true")
    assert table.labels == ["ann", "bob", "cy"]
    np.testing.assert_array_equal(table.values, [[1, 5, 1.5, 1], [0, 3, np.nan, 0], [np.nan, 4, 2, 1]])
    assert table.lines == [3, 4, 5]
    assert any("dates" in note for note in table.notes)
    assert reading.read("t.xlsx", Wanted(layer="other")).values.tolist() == [[1, 2], [3, 5]]
    with pytest.raises(FileError, match="has no sheet 'more'; it has 'notes', 'answers', 'other'"):
        reading.read("t.xlsx", Wanted(layer="more"))
    workbook(empty=[])
    with pytest.raises(FileError, match="has no visible sheet with cells"):
        reading.read("t.xlsx", Wanted())
    workbook(wide=[["a", "b"], [1, 2], [1, 2, 3]])
    with pytest.raises(FileError, match="line 3: 3 cells where the first line has 2"):
        reading.read("t.xlsx", Wanted())


def test_a_workbook_beyond_the_memory_is_refused(monkeypatch):
    workbook(a=[["a", "b"], [1, 2]])
    monkeypatch.setattr("rflvm.data.memory.available", lambda: 3000)
    with pytest.raises(FileError, match=r"t.xlsx needs .* of memory to unpack it"):
        reading.read("t.xlsx", Wanted())


def test_parquet_has_the_same_kinds():
    frame = pd.DataFrame(
        {
            "smokes": ["yes", "no", None],
            "flag": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "count": pd.array([1, None, 3], dtype="Int64"),
            "when": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]),
            "what": ["x", "yy", "z"],
            "a": [1.5, 2.5, np.nan],
        }
    )
    frame.to_parquet("t.parquet")
    table = reading.read("t.parquet", Wanted(labels="what"))
    assert table.columns == ("smokes", "flag", "maybe", "count", "a")
    np.testing.assert_array_equal(
        table.values, [[1, 1, 1, 1, 1.5], [0, 0, np.nan, np.nan, 2.5], [np.nan, 1, 0, 3, np.nan]]
    )
    assert [note.split(": ")[1] for note in table.notes] == [
        "left out, because they hold dates or times",
        "yes is taken as 1 and no as 0 in 'smokes'",
    ] or len(table.notes) == 2
