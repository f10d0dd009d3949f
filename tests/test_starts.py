"""Where X starts."""

from __future__ import annotations

import numpy as np
import pytest

from rflvm import starts
from rflvm.datasets import make_s_curve
from rflvm.metrics import r2_affine


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
