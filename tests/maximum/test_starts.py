"""Where X starts."""

from __future__ import annotations

import numpy as np
import pytest

from rflvm.datasets import make_s_curve
from rflvm.maximum import starts
from rflvm.numerics.affine import r2_affine


@pytest.mark.parametrize(("init", "shape", "D"), [("isomap", (6, 5), 2), ("kernel", (30, 2), 2), ("tsne", (40, 9), 4)])
def test_starts_that_cannot_be_made_are_refused(init, shape, D):
    with pytest.raises(ValueError, match=f"init='{init}' cannot be made for a table of shape"):
        starts.embed(init, np.ones(shape), D, 0)


@pytest.mark.parametrize("name", starts.STARTS)
def test_starts_have_mean_zero_and_variance_one(name):
    X = starts.embed(name, make_s_curve(60, 20, emissions="gaussian").data, 2, 0)
    np.testing.assert_allclose(X.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(X.std(0), 1, atol=1e-6)


def test_kernel_matching_finds_the_arrangement():
    """From random starts, several different shapes, the best first."""
    truth = make_s_curve(200, 400, emissions="gaussian")
    found = starts.matched(truth.data, 2, 0)
    assert r2_affine(truth.X, found[0]) > 0.97
    for i, X in enumerate(found):
        assert all(r2_affine(other, X) < 0.95 for other in found[:i])


def test_other_rows_go_next_to_their_neighbours():
    truth = make_s_curve(300, 60, emissions="gaussian")
    rows = np.arange(0, 300, 2)
    X = starts.extend(truth.X[rows], rows, truth.data, 0)
    np.testing.assert_array_equal(X[rows], truth.X[rows])
    assert r2_affine(truth.X, X) > 0.95


def test_gaps_are_filled_from_the_other_columns():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 12))
    mask = rng.random(table.shape) > 0.2
    filled = starts.filled(np.where(mask, table, 0), mask, 2)
    np.testing.assert_array_equal(filled[mask], table[mask])
    assert np.abs(filled - table)[~mask].mean() < 0.1 * np.abs(table[~mask]).mean()


def test_gaps_are_filled_from_as_many_components_as_help():
    """Functions of two dimensions span more than a plane; whatever the gaps were drawn with."""
    Y = make_s_curve(300, 60, emissions="gaussian").data
    mask = np.random.default_rng(0).random(Y.shape) > 0.2
    error = {"means": Y - Y.mean(0), "filled": starts.filled(np.where(mask, Y, 0), mask, 2) - Y}
    left = {name: np.mean(cells[~mask] ** 2) for name, cells in error.items()}
    assert left["filled"] < 0.45 * left["means"]  # a plane leaves 0.6


def test_gaps_of_tiny_tables():
    """As many components as columns less one, or the means where there is a single column."""
    table = np.array([[1.0, 0.0], [3.0, 6.0], [2.0, 4.0], [0.0, 0.0]])
    mask = np.array([[True, False], [True, True], [True, True], [True, True]])
    assert 1 < starts.filled(table, mask, 2)[0, 1] < 3
    np.testing.assert_array_equal(starts.filled(table[:, 1:], mask[:, 1:], 2)[0], 10 / 3)
