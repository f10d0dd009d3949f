"""Bicycles counted per day: over four bridges of New York in 2017, and past the counters of Montreal in 2015."""

from __future__ import annotations

import csv
import datetime
import os

import numpy as np
from sklearn.utils import Bunch

from ..data.checks import check_choice, check_integer
from . import xlsx
from .archives import unzip
from .fetch import read
from .registry import SOURCES

BRIDGES = ("Brooklyn", "Manhattan", "Williamsburg", "Queensboro")
SEASONS = ("winter", "spring", "summer", "autumn")
_EXCEL_DAY_0 = datetime.date(1899, 12, 30)
_STARTS = ((3, 20), (6, 21), (9, 23), (12, 21))  # of spring, summer, autumn and winter 2015 in Montreal: month, day


def load_bridges(*, data_home: str | os.PathLike | None = None) -> Bunch:
    """Bicycles per day over four East River bridges: 214 days x 4 bridges, labels weekday and weekend.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``bridges/``; None: that of the environment variable RFLVM_DATA, or else a download.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names``, ``row_names`` (dates) and ``DESCR``.
    """
    months = unzip(read("bridges", "NYCDOT_Bicycle_Counts_2017-_East_River_Bridges.zip", data_home))
    days = sorted(day for content in months.values() for day in _month(content))
    weekend = [date.weekday() >= 5 for date, _ in days]
    return Bunch(
        data=np.array([counts for _, counts in days], float),
        target=np.array(weekend, int),
        target_names=np.array(["weekday", "weekend"]),
        feature_names=np.array(BRIDGES),
        row_names=np.array([date.isoformat() for date, _ in days]),
        DESCR=SOURCES["bridges"].describe(
            """Bicycles per day over the Brooklyn, Manhattan, Williamsburg and Queensboro bridges.

214 days x 4 bridges, counts of 24 hours, 1 April to 31 October 2017. Labels (the paper's): 152 weekdays (Monday to
Friday, holidays included) and 62 days of weekends.

The paper has April to November; the city's file for 2017 ends with October. Counts are those of the monthly sheets,
with nothing left out and nothing rescaled."""
        ),
    )


def _month(content: bytes) -> list[tuple[datetime.date, list[int]]]:
    """Days of a monthly sheet: below a row of headings, one row per day, until a row has no date."""
    rows = xlsx.rows(content)
    top = next(i for i, row in enumerate(rows) if "Date" in row.values())
    column = {heading: letter for letter, heading in rows[top].items()}
    days = []
    for row in rows[top + 1 :]:
        serial = row.get(column["Date"], "")
        if not serial.isdigit():
            break
        date = _EXCEL_DAY_0 + datetime.timedelta(days=int(serial))
        days.append((date, [int(row[column[f"{bridge} Bridge"]]) for bridge in BRIDGES]))
    return days


def load_montreal(
    *, data_home: str | os.PathLike | None = None, n_counters: int | None = None, seasons: str = "astronomical"
) -> Bunch:
    """Bicycles per day past Montreal's counters: 319 days x 17 counters, labels the four seasons.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``montreal/``; None: that of the environment variable RFLVM_DATA, or else a download.
    n_counters : int or None
        Only so many counters, those with the highest totals; the paper has eight. None: all 17.
    seasons : str
        "astronomical" (by equinox and solstice) or "months" (spring is March to May, and so on).

    Returns
    -------
    Bunch
        ``data``, ``target``, ``target_names``, ``feature_names``, ``row_names`` (dates) and ``DESCR``.
    """
    check_choice("seasons", seasons, ("astronomical", "months"))
    text = read("montreal", "comptagesvelo2015.csv", data_home).decode("utf-8")
    heading, *rows = csv.reader(text.splitlines())
    complete = [j for j in range(2, len(heading)) if all(row[j] for row in rows)]
    counts = np.array([[row[j] for j in complete] for row in rows], float)
    names = np.array([heading[j] for j in complete])
    if n_counters is not None:
        n_counters = check_integer("n_counters", n_counters, 1)
        if n_counters > len(complete):
            raise ValueError(f"n_counters must be at most {len(complete)}, the counters without gaps, got {n_counters}")
        most = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:n_counters])
        counts, names = counts[:, most], names[most]
    dates = [datetime.datetime.strptime(row[0], "%d/%m/%Y").date() for row in rows]
    season = [
        date.month % 12 // 3 if seasons == "months" else sum((date.month, date.day) >= start for start in _STARTS) % 4
        for date in dates
    ]
    return Bunch(
        data=counts,
        target=np.array(season),
        target_names=np.array(SEASONS),
        feature_names=names,
        row_names=np.array([date.isoformat() for date in dates]),
        DESCR=SOURCES["montreal"].describe(
            """Bicycles per day past automatic counters on the bicycle lanes of Montreal.

319 days x 17 counters, 1 January to 15 November 2015. Labels (the paper's): the four seasons.

The file has 21 counters; the four with gaps are left out. The paper has eight lanes and does not say which;
n_counters=8 takes the eight with the highest totals, in the order of the file.

The paper does not say where seasons begin. By default on 20 March, 21 June, 23 September and 21 December, the equinoxes
and solstices of that year: winter 78 days, spring 93, summer 94, autumn 54. With seasons="months" winter is December to
February, spring March to May, and so on: 59, 92, 92 and 76 days. That is probably the paper's rule: it prints an
accuracy of 0.2885 +- 0.0001 for a method that failed on this table, and 92 days of 319 are 0.2884."""
        ),
    )
