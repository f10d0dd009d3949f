"""What a fit carries."""

from __future__ import annotations

import logging

import jax.numpy as jnp
import numpy as np
import pytest

import rflvm
from rflvm.maximum import objective, result
from searches import FAMILIES, LEARNED, SMALL, search_on, table


@pytest.mark.parametrize("name", FAMILIES)
def test_fit_carries_what_prediction_needs(name):
    Y = table(name)
    Y[2, 3] = np.nan
    fit = rflvm.maximise(Y, FAMILIES[name], **(LEARNED if name == "poisson" else SMALL))
    N, J = len(Y), Y.shape[1] - (name == "multinomial")
    assert fit.X.shape == (N, 2)
    assert fit.X_covariance.shape == (N, 2, 2)
    assert (np.linalg.eigvalsh(fit.X_covariance) > 0).all()
    assert (np.linalg.eigvalsh(fit.X_covariance) <= 1 + 1e-5).all()
    assert fit.W.shape == (4, 2)
    assert fit.beta.shape == (9, J)
    assert fit.beta_factor is not None
    assert fit.beta_factor.shape == (J, 9, 9)
    assert fit.beta_scale.shape == (J,)
    assert set(fit.theta) == {"gaussian": {"sigma2"}, "negative-binomial": {"r", "h"}}.get(name, set())
    assert fit.convergence in ("converged", "iteration limit")
    assert fit.init == "pca"
    for values in (fit.X, fit.W, fit.beta, fit.trace, *fit.theta.values()):
        assert np.isfinite(values).all()


def test_one_factor_serves_a_gaussian_table_without_gaps():
    fit = rflvm.maximise(table("gaussian"), "gaussian", **SMALL)
    assert fit.beta_factor is not None
    assert fit.beta_factor.shape == (1, 9, 9)


def test_factor_is_left_out_when_it_does_not_fit(caplog):
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(table("poisson"), "poisson", memory_budget=100, **SMALL)
    assert fit.beta_factor is None
    assert "left out" in caplog.text


def test_gaussian_details_are_the_posterior(x64):
    """beta_j | sigma_j^2, its leverage and sigma_j^2 against NumPy, with and without gaps."""
    Y = table("gaussian", 9, 3)
    for mask in (None, np.random.default_rng(3).random(Y.shape) > 0.2):
        data, model, search = search_on("gaussian", "rbf", Y, mask)
        Phi = np.asarray(objective.scaled_features(search.parameters, search.spectrum)[0])
        details = result._gaussian_details(jnp.asarray(Phi), data, model)
        for j in range(3):
            seen = np.ones(len(Y), bool) if mask is None else mask[:, j]
            S = Phi[seen].T @ Phi[seen] + np.diag(np.asarray(model.prior.precision(Phi.shape[1], jnp.float64)))
            y = np.asarray(data.Y - data.offset[:, None])[seen, j]
            mean = np.linalg.solve(S, Phi[seen].T @ y)
            sigma2 = (1 + (y @ y - mean @ S @ mean) / 2) / (1 + seen.sum() / 2)
            np.testing.assert_allclose(details.beta[:, j], mean, atol=1e-9)
            np.testing.assert_allclose(details.scale[j], sigma2)
            leverage = sigma2 * np.einsum("na,ab,nb->n", Phi, np.linalg.inv(S), Phi)
            np.testing.assert_allclose(details.leverage[:, j], leverage)
            np.testing.assert_allclose(details.curvature[:, j], seen / sigma2)
