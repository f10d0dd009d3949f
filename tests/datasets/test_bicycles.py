"""Bicycles in New York and Montreal."""

import io
import zipfile

import numpy as np
import pytest

from rflvm.datasets import load_bridges, load_montreal

ARCHIVE = "NYCDOT_Bicycle_Counts_2017-_East_River_Bridges.zip"


def test_bridges(real):
    bridges = real(load_bridges)
    assert bridges.data.shape == (214, 4)
    assert bridges.data.sum() == 3_986_323
    assert (bridges.row_names[0], bridges.row_names[-1]) == ("2017-04-01", "2017-10-31")
    assert bridges.data[0].tolist() == [606, 1446, 1915, 1430]
    assert np.bincount(bridges.target).tolist() == [152, 62]
    assert "ends with October" in bridges.DESCR


def test_sheets_are_put_in_order_and_end_where_the_days_end(plant, workbook):
    headings = ("Date", "Queensboro Bridge", "Brooklyn Bridge", "Manhattan Bridge", "Williamsburg Bridge", "Total")
    strings = "".join(f"<si><t>{heading}</t></si>" for heading in headings)

    def sheet(*days):
        letters = "BCDEF"
        top = "".join(f'<c r="{letter}6" t="s"><v>{i}</v></c>' for i, letter in enumerate(letters))
        rows = [f'<row r="2"><c r="B2" t="s"><v>5</v></c></row><row r="6">{top}</row>']
        for i, day in enumerate(days, 7):
            cells = "".join(f'<c r="{c}{i}"><v>{value}</v></c>' for c, value in zip(letters, day, strict=True))
            rows.append(f'<row r="{i}">{cells}</row>')
        rows.append('<row r="9"><c r="B9" t="s"><v>5</v></c></row><row r="10"><c r="B10"><v>42999</v></c></row>')
        return workbook("".join(rows), strings)

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("year/b.xlsx", sheet((42856, 40, 10, 20, 30)))  # Monday, 1 May 2017
        archive.writestr("year/a.xlsx", sheet((42827, 4, 1, 2, 3)))  # Sunday, 2 April
    bridges = load_bridges(data_home=plant("bridges", {ARCHIVE: buffer.getvalue()}))
    assert bridges.data.tolist() == [[1, 2, 3, 4], [10, 20, 30, 40]]
    assert bridges.row_names.tolist() == ["2017-04-02", "2017-05-01"]
    assert bridges.target_names[bridges.target].tolist() == ["weekend", "weekday"]


def test_montreal(real):
    montreal = real(load_montreal)
    assert montreal.data.shape == (319, 17)
    assert montreal.data.sum() == 9_191_276
    assert (montreal.row_names[0], montreal.row_names[-1]) == ("2015-01-01", "2015-11-15")
    assert np.bincount(montreal.target).tolist() == [78, 93, 94, 54]
    assert "Brébeuf" in montreal.feature_names


def test_eight_counters_and_seasons_by_month(real):
    every, eight = real(load_montreal), real(load_montreal, n_counters=8, seasons="months")
    assert eight.data.shape == (319, 8)
    kept = np.isin(every.feature_names, eight.feature_names)
    assert every.data[:, kept].sum(axis=0).min() > every.data[:, ~kept].sum(axis=0).max()
    np.testing.assert_array_equal(eight.data, every.data[:, kept])
    assert np.bincount(eight.target).tolist() == [59, 92, 92, 76]


DAYS = """Date,,Ä,gaps,b,c
28/02/2015,00:00,1,,5,3
01/03/2015,00:00,2,9,5,3
19/03/2015,00:00,2,9,5,3
20/03/2015,00:00,2,9,5,3
21/06/2015,00:00,2,9,5,3
22/09/2015,00:00,2,9,5,3
23/09/2015,00:00,2,9,5,3
21/12/2015,00:00,2,9,5,3
"""


def test_counters_with_gaps_are_left_out_and_seasons_begin_on_their_day(plant):
    home = plant("montreal", {"comptagesvelo2015.csv": DAYS.encode()})
    montreal = load_montreal(data_home=home)
    assert montreal.feature_names.tolist() == ["Ä", "b", "c"]
    assert montreal.data[0].tolist() == [1, 5, 3]
    assert montreal.target.tolist() == [0, 0, 0, 1, 2, 2, 3, 0]
    assert load_montreal(data_home=home, seasons="months").target.tolist() == [0, 1, 1, 1, 2, 3, 3, 0]
    assert load_montreal(data_home=home, n_counters=2).feature_names.tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="n_counters must be at most 3"):
        load_montreal(data_home=home, n_counters=4)
    with pytest.raises(ValueError, match="n_counters must be at least 1"):
        load_montreal(data_home=home, n_counters=0)
    with pytest.raises(ValueError, match="seasons must be one of"):
        load_montreal(data_home=home, seasons="tropical")
