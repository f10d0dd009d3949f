"""Fixed frequencies: the discrepancy is what it says it is, and its minimum is better than draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from rflvm.numerics import quadrature


@pytest.mark.parametrize("D", [1, 2, 3])
def test_discrepancy_is_the_mean_squared_error_of_the_kernel(D):
    """A Monte Carlo mean of 200,000 lags, one z-score: exceeds 5 with probability 6e-7."""
    rng = np.random.default_rng(D)
    W = rng.standard_normal((7, D))
    lags = 3 * rng.standard_normal((200_000, D))
    errors = (np.cos(lags @ W.T).mean(axis=1) - np.exp(-0.5 * np.sum(lags**2, axis=1))) ** 2
    score = (quadrature.discrepancy(W.ravel(), D)[0] - errors.mean()) / (errors.std() / np.sqrt(len(errors)))
    assert abs(score) < 5


def test_gradient_equals_finite_differences():
    flat = np.random.default_rng(0).standard_normal(12)
    value, gradient = (lambda flat, i=i: quadrature.discrepancy(flat, 2)[i] for i in (0, 1))
    assert optimize.check_grad(value, gradient, flat) < 1e-6


@pytest.mark.parametrize(("D", "times"), [(1, 10), (2, 5), (3, 2), (5, 1)])
def test_kernel_is_closer_to_its_limit_than_that_of_draws(D, times):
    error = lambda W: np.sqrt(quadrature.discrepancy(W.ravel(), D)[0])  # noqa: E731
    draws = np.mean([error(np.random.default_rng(seed).standard_normal((50, D))) for seed in range(20)])
    assert error(quadrature.frequencies(50, D, 0)) < draws / times


def test_seed_repeats():
    first, second, other = (quadrature.frequencies(9, 2, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)
