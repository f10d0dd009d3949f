"""What is special about the Poisson family; the rest is in test_base.py."""

import numpy as np
import pytest

from rflvm.likelihoods import Poisson


def test_negative_counts_are_named():
    Y = np.array([[0.0, 1.0], [4.0, -2.0]])
    with pytest.raises(ValueError, match=r"poisson needs counts >= 0, got Y\[1, 1\] = -2 \(1 such cell\)"):
        Poisson().check(Y, np.ones(Y.shape, bool))


def test_fractional_counts_are_named_with_advice():
    Y = np.array([[0.0, 1.5], [4.5, 2.0]])
    with pytest.raises(ValueError, match=r"whole numbers, got Y\[0, 1\] = 1.5 \(2 such cells\); .* gaussian"):
        Poisson().check(Y, np.ones(Y.shape, bool))


def test_hidden_cells_may_hold_anything():
    Y = np.array([[np.nan, -1.5], [4.0, 2.0]])
    Poisson().check(Y, np.array([[False, False], [True, True]]))
