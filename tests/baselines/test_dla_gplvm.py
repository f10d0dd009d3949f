"""DLA-GPLVM: its gradient, the Laplace evidence, the mode, and the S-curve."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from rflvm.baselines import DLAGPLVM, dla_gplvm, rbf
from rflvm.baselines.dla_gplvm import Parameters
from rflvm.baselines.poisson import Columns, Sites, first_sites, sites_at
from rflvm.datasets import make_s_curve
from rflvm.maximum import starts
from rflvm.numerics import linalg
from rflvm.numerics.affine import r2_affine


def problem(N, J=3, D=2, seed=0):
    """Parameters, and a table of which a fifth is missing."""
    rng = np.random.default_rng(seed)
    Y, observed = rng.poisson(2.0, (N, J)).astype(float), rng.random((N, J)) > 0.2
    table = Columns(jnp.asarray(np.where(observed, Y, 0)), jnp.asarray(observed, float))
    parameters = Parameters(jnp.asarray(0.5 * rng.standard_normal((N, D))), jnp.asarray(0.3))
    return parameters, table


def rows_of(parameters):
    return jnp.asarray(rbf.pivots(np.asarray(parameters.X)))


def by_the_book(parameters, sites, table):
    """The decoupled objective with dense N x N matrices, and no features."""
    X, log_amplitude = parameters
    K = jnp.exp(2 * log_amplitude) * rbf.kernel(X, X) + dla_gplvm.BIAS_SCALE**2
    total = dla_gplvm.log_prior(parameters)
    for j in range(table.Y.shape[1]):
        b, W, y, observed = sites.b[:, j], sites.W[:, j], table.Y[:, j], table.observed[:, j]
        A = jnp.eye(len(K)) + K * W[None]
        a = jnp.linalg.solve(A.T, b)  # K^{-1} f with f = (K^{-1} + W)^{-1} b
        f = K @ a
        cells = observed * (y * f - jnp.exp(f) - jax.scipy.special.gammaln(y + 1))
        total += cells.sum() - 0.5 * a @ f - 0.5 * jnp.linalg.slogdet(A)[1]
    return total


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("N", [8, 60])
def test_the_objective_is_that_of_dense_matrices_and_its_gradient_that_of_finite_differences(N, monkeypatch):
    """Away from the mode, with gaps, columns two at a time; of 8 rows the kernel is factored whole, of 60 in part."""
    parameters, table = problem(N)
    rows = rows_of(parameters)
    assert (len(rows) < N) == (N == 60)
    monkeypatch.setattr(dla_gplvm, "_BLOCK_NUMBERS", 2 * (len(rows) + 1) ** 2)
    sites = first_sites(table)
    value, slope = dla_gplvm.evaluate(parameters, sites, table, rows)
    assert float(value) == pytest.approx(float(by_the_book(parameters, sites, table)), rel=1e-5)
    rng, step = np.random.default_rng(1), 1e-5
    for _ in range(3):
        direction = jax.tree.map(lambda part: jnp.asarray(rng.standard_normal(part.shape)), parameters)
        ends = (jax.tree.map(lambda p, d, h=h: p + h * d, parameters, direction) for h in (step, -step))
        above, below = (float(dla_gplvm.evaluate(end, sites, table, rows)[0]) for end in ends)
        promised = sum(float(jnp.sum(a * b)) for a, b in zip(slope, direction, strict=True))
        assert (above - below) / (2 * step) == pytest.approx(promised, rel=1e-5, abs=1e-5)


@pytest.mark.usefixtures("x64")
def test_the_mode_is_a_mode_from_any_start():
    """Also with a count of 500 in a column of zeros, where whole Newton steps would overflow."""
    parameters, table = problem(40, 5)
    table = Columns(table.Y.at[:, 0].set(0).at[3, 0].set(500), table.observed.at[:, 0].set(1))
    rows = rows_of(parameters)
    flat = sites_at(jnp.zeros_like(table.Y), table)
    found = [np.asarray(dla_gplvm.find_mode(parameters, sites, table, rows)[0]) for sites in (flat, first_sites(table))]
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    F = jnp.asarray(found[0])
    Phi = dla_gplvm.features(parameters, rows)
    g = table.Y - table.observed * jnp.exp(F)
    # At the mode beta = Lambda^{-1} Phi' g, so that f = Phi Lambda^{-1} Phi' g.
    np.testing.assert_allclose(F, Phi @ (Phi.T @ g / dla_gplvm._precision(Phi)[:, None]), atol=0.05)


@pytest.mark.usefixtures("x64")
def test_at_the_mode_the_evidence_is_near_its_integral(monkeypatch):
    """Three rows, by Gauss-Hermite quadrature over beta; Laplace's method is good for counts of some size."""
    monkeypatch.setattr(dla_gplvm, "BIAS_SCALE", 1.0)
    X, Y = np.array([[0.0], [0.5], [2.0]]), np.array([[30.0, 20.0], [24.0, 9.0], [12.0, 40.0]])
    parameters = Parameters(jnp.asarray(X), jnp.asarray(0.0))
    table = Columns(jnp.asarray(Y), jnp.ones_like(jnp.asarray(Y)))
    F, decrement = dla_gplvm.find_mode(parameters, first_sites(table), table, jnp.arange(3))
    assert decrement < dla_gplvm.DECREMENT
    Phi = dla_gplvm.features(parameters, jnp.arange(3))
    value, _ = dla_gplvm.evidence(Phi, sites_at(F, table), table)

    # f ~ N(0, C), integrated over v with f = mode + R v and R R' the posterior covariance at the mode
    C = np.asarray(Phi @ Phi.T)
    nodes, weights = hermegauss(24)
    V = np.stack(np.meshgrid(*[nodes] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    log_weights = np.log(np.prod(np.meshgrid(*[weights] * 3, indexing="ij"), axis=0)).ravel() + 0.5 * (V**2).sum(1)
    expected, normal = 0.0, stats.multivariate_normal(np.zeros(3), C)  # pyright: ignore[reportArgumentType]
    for y, mode in zip(Y.T, np.asarray(F).T, strict=True):
        R = np.linalg.cholesky(np.linalg.inv(np.linalg.inv(C) + np.diag(np.exp(mode))))
        f = mode + V @ R.T
        log_joint = stats.poisson.logpmf(y, np.exp(f)).sum(1) + normal.logpdf(f)
        expected += np.logaddexp.reduce(log_joint + log_weights) + np.linalg.slogdet(R)[1]
    assert float(value) == pytest.approx(expected, abs=0.02)


def test_the_s_curve_is_recovered():
    """A table whose principal components are near enough: from some others the fit ends in another arrangement."""
    truth = make_s_curve(120, 60, emissions="poisson", seed=5)
    model = DLAGPLVM(random_state=0).fit(truth.data)
    start = starts.embed("pca", np.sqrt(truth.data), 2, 0)
    assert r2_affine(truth.X, start) < 0.85
    assert r2_affine(truth.X, model.embedding_) > 0.95
    assert np.mean((model.F_ - truth.F) ** 2) < 0.14
    assert model.convergence_ == "converged"
    assert (np.diff(model.log_evidence_)[:-1] > 0).all()
    again = DLAGPLVM(init=model.embedding_).fit(truth.data)
    np.testing.assert_allclose(again.embedding_, model.embedding_, atol=0.1)


def test_it_is_the_same_twice_and_expects_missing_cells():
    truth = make_s_curve(50, 20, emissions="poisson", seed=2)
    hidden = np.random.default_rng(0).random(truth.data.shape) < 0.1
    Y = np.where(hidden, np.nan, truth.data)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        one, other = (DLAGPLVM(max_iter=2, random_state=0).fit(Y) for _ in range(2))
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    error = (np.exp(one.F_) - np.exp(truth.F))[hidden]
    constant = (np.nanmean(Y, axis=0) - np.exp(truth.F))[hidden]
    assert np.mean(error**2) < 0.6 * np.mean(constant**2)


def test_numbers_that_are_not_finite_are_not_passed_on(monkeypatch):
    monkeypatch.setattr(dla_gplvm, "first_sites", lambda table: Sites(table.Y * jnp.nan, table.Y))
    with pytest.raises(linalg.NumericalError, match="not finite"):
        DLAGPLVM().fit(make_s_curve(20, 5).data)
