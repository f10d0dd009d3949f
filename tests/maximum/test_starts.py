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
