"""Missing cells filled for the starts."""

from __future__ import annotations

import numpy as np

from rflvm.datasets import make_s_curve
from rflvm.maximum import gaps


def test_gaps_are_filled_from_the_other_columns():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 12))
    mask = rng.random(table.shape) > 0.2
    filled = gaps.filled(np.where(mask, table, 0), mask, 2)
    np.testing.assert_array_equal(filled[mask], table[mask])
    assert np.abs(filled - table)[~mask].mean() < 0.1 * np.abs(table[~mask]).mean()


def test_gaps_are_filled_from_as_many_components_as_help():
    """Functions of two dimensions span more than a plane; whatever the gaps were drawn with."""
    Y = make_s_curve(300, 60, emissions="gaussian").data
    mask = np.random.default_rng(0).random(Y.shape) > 0.2
    error = {"means": Y - Y.mean(0), "filled": gaps.filled(np.where(mask, Y, 0), mask, 2) - Y}
    left = {name: np.mean(cells[~mask] ** 2) for name, cells in error.items()}
    assert left["filled"] < 0.45 * left["means"]  # a plane leaves 0.6


def test_gaps_of_tiny_tables():
    """As many components as columns less one, or the means where there is a single column."""
    table = np.array([[1.0, 0.0], [3.0, 6.0], [2.0, 4.0], [0.0, 0.0]])
    mask = np.array([[True, False], [True, True], [True, True], [True, True]])
    assert 1 < gaps.filled(table, mask, 2)[0, 1] < 3
    np.testing.assert_array_equal(gaps.filled(table[:, 1:], mask[:, 1:], 2)[0], 10 / 3)
