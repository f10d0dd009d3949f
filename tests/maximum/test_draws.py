"""Draws around a maximum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rflvm import likelihoods
from rflvm.maximum import draws
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, Prior


def test_refined_draws_of_beta_are_those_of_integration_on_a_grid(x64):
    """A column of counts and one of zeros only, whose Gaussian approximation is as wide as the prior."""
    Phi = features(jnp.linspace(-1, 1, 6)[:, None], jnp.ones((1, 1)))
    Y = jnp.stack([jnp.arange(6.0), jnp.zeros(6)], axis=1)
    model = Model(likelihoods.Poisson(), 1, 1, Prior(bias_scale=2.0))
    column_scale = jnp.asarray([3.0, 3.0, 1.0])
    data = Data(Y, None, jnp.zeros(6), None)

    points = np.linspace(-14, 14, 113)
    grid = np.stack(np.meshgrid(points, points, np.linspace(-8, 8, 65), indexing="ij"), axis=-1).reshape(-1, 3)
    F = grid @ np.asarray(Phi).T
    precision = np.asarray(model.prior.precision(3, float)) / np.asarray(column_scale) ** 2
    for j in range(2):
        log_density = F @ np.asarray(Y[:, j]) - np.exp(F).sum(axis=1) - 0.5 * grid**2 @ precision
        p = np.exp(log_density - log_density.max())
        p /= p.sum()
        mean = p @ F
        std = np.sqrt(p @ (F - mean) ** 2)
        top = grid[log_density.argmax()]
        rate = np.exp(np.asarray(Phi) @ top)
        covariance = np.linalg.inv((np.asarray(Phi).T * rate) @ np.asarray(Phi) + np.diag(precision))
        root = jnp.asarray(np.linalg.cholesky(covariance))[None]
        column = data._replace(Y=Y[:, j : j + 1])
        beta = draws.refine_beta(
            jax.random.key(0), jnp.asarray(top)[:, None], root, Phi, column_scale, {}, column, model, 4000
        )
        drawn = np.asarray(beta[:, :, 0] @ Phi.T)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.15 * std.max())
        np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.12)
