"""Sparse tables: made dense as they are, and never with an index out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from rflvm.data import tables

FORMS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
Y = np.array([[1.0, 0, 3, 0], [0, 2, 0, 0.5]])


def matrix(form) -> Any:
    return sparse.csr_array(Y).asformat(form)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_keeps_its_cells(form):
    np.testing.assert_array_equal(tables.read(matrix(form)).values, Y)
    np.testing.assert_array_equal(tables.read(sparse.csr_matrix(Y).asformat(form)).values, Y)


def test_cells_that_are_stored_twice_are_added_up():
    twice = sparse.coo_array((np.array([1.0, 2.0]), (np.array([0, 0]), np.array([1, 1]))), shape=(2, 2))
    assert tables.read(twice).values.tolist() == [[0, 3], [0, 0]]
    twice = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2))
    assert tables.read(twice).values.tolist() == [[0, 3], [0, 0]]


def test_room_behind_the_last_stored_cell_is_not_looked_at():
    table = matrix("csr")
    table.indices = np.append(table.indices, np.int32(99))
    table.data = np.append(table.data, 1.0)
    np.testing.assert_array_equal(tables.read(table).values, Y)


def broken(form, **parts):
    table = matrix(form)
    for name, value in parts.items():
        setattr(table, name, np.asarray(value, None if name == "data" else np.int32))
    return table


def wild_lists(indices):
    table = matrix("lil")
    table.rows[1] = indices
    return table


def wild_dictionary():
    table = matrix("dok")
    table._dict[(1, 9)] = 1.0
    return table


def short_coordinates():
    table = matrix("coo")
    table.data = table.data[:2]
    return table


def wild_coordinates(row, column):
    table = matrix("coo")
    table.coords[row][column] = 7 if row else -1
    return table


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (broken("csr", indices=[0, 2, 1, 4]), r"its indices include 4, and must be from 0 to 3"),
        (broken("csr", indices=[0, 2, -1, 3]), r"its indices include -1"),
        (broken("csc", indices=[0, 1, 2, 1]), r"its indices include 2, and must be from 0 to 1"),
        (broken("csr", indptr=[0, 4, 2]), r"its indptr does not rise from 0"),
        (broken("csr", indptr=[1, 2, 4]), r"its indptr does not rise from 0"),
        (broken("csr", indptr=[0, 2, 5]), r"its indptr include 5, and must be from 0 to 4"),
        (broken("csr", indptr=[0, -2, 4]), r"its indptr include -2"),
        (broken("csr", indptr=[0, 4]), r"its indptr has shape \(2,\), and must have 3"),
        (broken("csr", data=[1.0]), r"it has 4 indices for 1 values"),
        (broken("csr", data=np.ones((4, 2))), r"its values are not a list"),
        (broken("bsr", data=np.ones((2, 2, 3))), r"blocks of 2 x 3 do not fill 2 x 4"),
        (broken("bsr", data=np.ones(4)), r"its values are not blocks"),
        (broken("bsr", indices=[0, 9, 1, 3]), r"its indices include 9"),
        (broken("dia", offsets=[0, 0, 2]), r"one of its offsets is there twice|offsets for"),
        (broken("dia", offsets=[0]), r"it has 1 offsets for 2 diagonals"),
        (wild_coordinates(0, 0), r"its row indices include -1, and must be from 0 to 1"),
        (wild_coordinates(1, 2), r"its column indices include 7, and must be from 0 to 3"),
        (short_coordinates(), r"it has 4 row indices for 2 values"),
        (wild_lists([0]), r"a row has 1 indices for 2 values"),
        (wild_lists([0, 4]), r"its column indices include 4"),
        (wild_lists([0, 2**70]), r"are not a list of whole numbers"),
        (wild_dictionary(), r"it has a value at \(1, 9\), and its shape is 2 x 4"),
    ],
)
def test_what_cannot_be_is_refused_by_name(table, problem):
    with pytest.raises(ValueError, match=rf"^Y is a sparse table that cannot be: .*{problem}.*; make it or its file"):
        tables.read(table)
