"""A root of the RBF kernel."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rflvm.baselines import rbf

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize(("N", "D", "spread"), [(300, 2, 1.0), (300, 2, 0.3), (200, 3, 0.3), (30, 2, 20.0)])
def test_the_root_has_the_kernel_for_its_square(N, D, spread):
    """In few columns where the rows are near each other, in all where they are not."""
    X = spread * np.random.default_rng(0).standard_normal((N, D))
    rows = rbf.pivots(X)
    assert len(set(rows.tolist())) == len(rows)
    assert (len(rows) < N / 2) == (spread <= 1)
    Phi = np.asarray(rbf.root(jnp.asarray(X), jnp.asarray(rows)))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    assert np.abs(Phi @ Phi.T - K).max() < rbf.TOLERANCE


def test_rows_in_the_same_place_are_no_obstacle():
    X = np.repeat(np.random.default_rng(0).standard_normal((5, 2)), 4, axis=0)
    for rows in (rbf.pivots(X), np.arange(20)):
        Phi = np.asarray(rbf.root(jnp.asarray(X), jnp.asarray(rows)))
        assert np.abs(Phi @ Phi.T - np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))).max() < rbf.TOLERANCE
