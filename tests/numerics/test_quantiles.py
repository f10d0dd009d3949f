"""Medians of many short lists against sorting."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm.numerics.quantiles import median, weighted_median

pytestmark = pytest.mark.usefixtures("x64")


def by_sorting(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The first value in order at which the weight so far is half of the whole or more."""
    result = np.empty(values.shape[1:])
    for at in np.ndindex(*result.shape):
        order = np.argsort(values[:, *at])
        so_far = np.cumsum(weights[order, *at])
        result[at] = values[order, *at][np.argmax(so_far >= so_far[-1] / 2)]
    return result


def test_the_weighted_median_is_that_of_sorting():
    """Of both signs, over 40 orders of magnitude, with ties, zeros and infinities; weights that are added exactly."""
    rng = np.random.default_rng(0)
    values = rng.choice([-1, 1], (48, 6, 7)) * np.exp(30 * rng.normal(size=(48, 6, 7)))
    values[:, 0] = rng.integers(-2, 3, (48, 7))
    values[:30, 1], values[:30, 2] = np.inf, -np.inf
    values[:, 3] = -np.abs(values[:, 3])
    weights = rng.integers(0, 5, values.shape) / 8
    found = np.asarray(jax.jit(weighted_median)(jnp.asarray(values), jnp.asarray(weights)))
    np.testing.assert_array_equal(found, by_sorting(values, weights))


def test_weights_broadcast_and_values_keep_double_precision():
    values = np.array([0.1, 0.2, 0.3, 0.4])[:, None] * np.ones(3)
    weights = np.array([[1.0], [1.0], [1.0], [4.0]])
    np.testing.assert_array_equal(weighted_median(jnp.asarray(values), jnp.asarray(weights)), 0.4)
    np.testing.assert_array_equal(weighted_median(jnp.asarray(values), jnp.ones((4, 1))), 0.2)


@pytest.mark.parametrize("S", [1, 2, 5, 16])
def test_the_median_is_that_of_numpy(S):
    values = np.random.default_rng(S).normal(size=(S, 3, 4))
    np.testing.assert_array_equal(median(jnp.asarray(values)), np.median(values, axis=0))
