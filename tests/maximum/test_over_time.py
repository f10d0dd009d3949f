"""A prior over time in the MAP engine: objective, lengthscales, coordinates, starts and fits."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import rflvm
from rflvm import likelihoods
from rflvm.data import checks, tables
from rflvm.data import times as timelines
from rflvm.maximum import climb, draws, lengthscales, objective, smoothing, starts
from rflvm.maximum.search import begin, free_frequencies
from rflvm.model import dynamics
from rflvm.model.dynamics import Chronology, Matern
from rflvm.model.joint import Model
from rflvm.numerics.affine import r2_affine
from searches import table

TIMES = np.array([0.0, 1.0, 2.5, 3.0, 7.0, 0.0, 0.4, 1.0, 1.1, 5.0, 0.0, 2.0])
STARTS = [0, 5, 10]


def dense(lengthscale, nu=1.5, times=TIMES, begins=STARTS):
    """The covariance matrix of one dimension."""
    session = np.searchsorted(begins, np.arange(len(times)), side="right")
    r = np.abs(times[:, None] - times) / lengthscale * (1 if nu == 0.5 else np.sqrt(3))
    return np.where(session[:, None] == session, np.exp(-r) * (1 if nu == 0.5 else 1 + r), 0)


LEARNED = Matern()


def search_over_time(kernel="rbf", process=LEARNED):
    """Data, model and a search on twelve rows of three sessions, one of them without cells."""
    Y = table("poisson", 12, 4)
    Y[3] = np.nan
    Y[0, 1] = np.nan
    timeline = timelines.read(tables.read(Y), TIMES, STARTS)
    family = likelihoods.Poisson()
    data = checks.to_device(checks.check_table(Y, family, None, None, 2, timeline), "float64")
    model = Model(family, 2, 4, dynamics=process)
    search = begin(0, starts.embed("pca", starts.stabilised(data, model), 2, 0), data, model, learn_amplitude=True)
    return data, model, search if kernel == "rbf" else free_frequencies(jax.random.key(1), search, model)


def test_gradient_of_the_objective_equals_finite_differences(x64):
    data, model, search = search_over_time("learned", Matern(0.5, per_dimension=False))
    flat, unravel = climb.flatten(search.parameters)
    value = lambda flat: objective.evaluate(unravel(flat), search.mode, search.spectrum, data, model, 1e-16)  # noqa: E731
    gradient = climb.flatten(value(flat)[1])[0]
    step, h = np.random.default_rng(2).normal(size=flat.shape), 1e-4
    at = lambda k: float(value(flat + k * h * step)[0])  # noqa: E731
    assert gradient @ step == pytest.approx((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h), rel=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "learned"])
def test_the_density_and_the_volume_of_paths_are_those_of_dense_processes(x64, kernel):
    data, model, search = search_over_time(kernel)
    path = search.spectrum.path
    assert path is not None
    path = path._replace(lengthscale=jnp.array([0.8, 6.0]))
    spectrum = search.spectrum._replace(path=path)
    X, W = np.asarray(search.parameters.X), np.asarray(objective.frequencies(search.parameters, spectrum))
    K, N = [dense(0.8), dense(6.0)], len(X)
    S, slopes = np.cov(X.T, bias=True), W.T @ W / len(W)
    S = S if kernel == "learned" else np.eye(2) * np.diag(S).mean()
    half = lambda A: 0.5 * np.linalg.slogdet(A)[1]  # noqa: E731
    expected, v = 0.0, float(spectrum.volume_weight)
    for d in range(2):
        orbit = half(np.eye(N) + np.asarray(path.relative)[:, [d]] / S[d, d] * K[d])
        posterior = half(np.eye(N) + np.asarray(path.information)[:, None] * slopes[d, d] * K[d])
        expected += -(1 - v) * orbit - v * posterior - 0.5 * X[:, d] @ np.linalg.solve(K[d], X[:, d])
    precision = np.eye(2) + float(spectrum.information) * slopes
    correlation = lambda A: N * (half(A) - 0.5 * np.log(np.diag(A)).sum())  # noqa: E731
    expected += (1 - v) * correlation(S) - v * correlation(precision) - X.size / 2 * np.log(2 * np.pi)
    expected += scipy.stats.norm.logpdf(np.log([0.8, 6.0]), np.log(10 * 1.0), dynamics.LOG_DEVIATION).sum()
    without = search.parameters._replace(log_theta={}, log_amplitude=None)
    found = float(objective.log_prior(without, spectrum, model, data.chronology))
    if kernel == "learned":
        found -= float(
            objective.log_prior(without, search.spectrum._replace(path=None), dataclasses.replace(model, dynamics=None))
            - objective.log_prior_latents(without.X)
            - objective.log_volume(without, search.spectrum)
        )
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "learned"])
def test_rows_far_apart_in_time_have_the_objective_of_independent_rows(x64, kernel):
    """K = I: the same up to a constant, where the rows have information and X the mean zero."""
    data, model, search = search_over_time(kernel, Matern(lengthscale=1e-4))
    assert search.spectrum.path is not None
    each = jnp.full(12, search.spectrum.information)
    path = search.spectrum.path._replace(information=each, relative=jnp.full((12, 2), 1e9))
    spectrum = search.spectrum._replace(path=path)
    alone = dataclasses.replace(model, dynamics=None)
    rng = np.random.default_rng(0)

    def difference(s):
        X = rng.normal(size=(12, 2)) * s
        moved = search.parameters._replace(X=jnp.asarray(X - X.mean(0)), log_theta={})
        over_time = objective.log_prior(moved, spectrum, model, data.chronology)
        return float(over_time - objective.log_prior(moved, spectrum._replace(path=None), alone))

    assert difference(0.5) == pytest.approx(difference(2.0), abs=1e-3)


def test_the_density_of_lengthscales_is_that_of_a_dense_gaussian(x64):
    """Differences of log p(Y | l), rows with information of rank two, one and none."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(12, 2, 2)) * 2
    roots[3], roots[5, :, 0] = 0, 0
    information, natural = roots @ np.swapaxes(roots, 1, 2), rng.normal(size=(12, 2))
    natural[3] = 0
    natural[5] = information[5] @ rng.normal(size=2)
    timeline = timelines.read(tables.read(np.zeros((12, 1))), TIMES, STARTS)
    chronology = Chronology(*(jnp.asarray(part) for part in (timeline.gap, timeline.first, timeline.typical)))
    full = np.zeros((24, 24))
    for n in range(12):
        full[2 * n : 2 * n + 2, 2 * n : 2 * n + 2] = information[n]
    h = natural.ravel()

    def expected(each):
        K = np.zeros((12, 2, 12, 2))
        for d in range(2):
            K[:, d, :, d] = dense(each[d])
        K = K.reshape(24, 24)
        log_prior = scipy.stats.norm.logpdf(np.log(each), np.log(10 * timeline.typical), dynamics.LOG_DEVIATION).sum()
        quadratic = 0.5 * h @ K @ np.linalg.solve(np.eye(24) + full @ K, h)
        return quadratic - 0.5 * np.linalg.slogdet(np.eye(24) + full @ K)[1] + log_prior

    found = [
        float(lengthscales._log_density(jnp.log(jnp.array(each)), information, natural, chronology, Matern())[0])
        for each in ([0.5, 3.0], [4.0, 1.0])
    ]
    assert found[0] - found[1] == pytest.approx(expected([0.5, 3.0]) - expected([4.0, 1.0]), rel=1e-6)


def test_gradient_of_the_preconditioned_coordinates_is_that_of_the_chain_rule(x64):
    data, model, search = search_over_time()
    P = climb.Preconditioner.at(search, data, model)
    flat = climb.flatten(search.parameters)[0]
    np.testing.assert_allclose(P.parameters(P.coordinates(flat)), flat)
    rng = np.random.default_rng(0)
    point, gradient = rng.normal(size=P.coordinates(flat).shape), rng.normal(size=flat.shape)
    step = rng.normal(size=point.shape)
    moved = (P.parameters(point + 1e-6 * step) - P.parameters(point)) / 1e-6
    assert P.gradient(gradient) @ step == pytest.approx(gradient @ moved, rel=1e-6)


def test_smoothing_is_the_weighted_mean_of_the_session():
    rng = np.random.default_rng(0)
    gap = np.r_[0.0, rng.gamma(2.0, 0.5, 29)]
    first = np.isin(np.arange(30), [0, 20, 29])
    gap[first] = 0
    slow = np.cumsum(rng.normal(size=(30, 1)), axis=0) * 0.3 @ rng.normal(size=(1, 5)) + rng.normal(size=(30, 5))
    weight = rng.random(30)
    weight[4] = 0
    chronology = Chronology(jnp.asarray(gap), jnp.asarray(first), jnp.asarray(1.0))
    session, time = np.cumsum(first), np.cumsum(gap)
    lone = smoothing.LONE * np.average(slow, axis=0, weights=weight)

    def at(width):
        kernel = np.exp(-np.abs(time[:, None] - time) / width) * (session[:, None] == session) * weight[None]
        others = kernel * (1 - np.eye(30))
        apart = (others @ slow + lone) / (others.sum(1, keepdims=True) + smoothing.LONE)
        return np.sum(weight[:, None] * (apart - slow) ** 2), (kernel @ slow + lone) / (
            kernel.sum(1, keepdims=True) + smoothing.LONE
        )

    errors, smooth = zip(*(at(width) for width in smoothing.WIDTHS), strict=True)
    np.testing.assert_allclose(smoothing.smoothed(slow, weight, chronology), smooth[int(np.argmin(errors))], rtol=1e-4)


def test_times_without_a_prior_over_time_are_refused():
    with pytest.raises(ValueError, match="times needs a prior over time"):
        rflvm.maximise(table("gaussian"), times=np.arange(30))


# Fits


def series(N=120, J=12, lengthscale=12.0, seed=0):
    """X of two sessions and noisy smooth functions of it; the first session ends with rows that were not seen."""
    rng = np.random.default_rng(seed)
    K = dense(lengthscale, times=np.arange(float(N)), begins=[0, N // 2])
    X = np.linalg.cholesky(K + 1e-9 * np.eye(N)) @ rng.normal(size=(N, 2))
    squares = np.sum((X[:, None] - X) ** 2, axis=2)
    F = np.linalg.cholesky(np.exp(-0.5 * squares) + 1e-6 * np.eye(N)) @ rng.normal(size=(N, J))
    Y = F + 0.7 * rng.normal(size=(N, J))
    Y[N // 2 - 4 : N // 2] = np.nan
    return X, Y, [0, N // 2]


@pytest.fixture(scope="module")
def fitted():
    X, Y, sessions = series()
    settings = {"n_features": 30, "init": "pca", "n_iterations": 120}
    return X, Y, rflvm.maximise(Y, dynamics="matern32", sessions=sessions, **settings), settings


def test_a_series_is_found_with_its_lengthscale(fitted):
    X, Y, fit, settings = fitted
    seen = ~np.isnan(Y).all(axis=1)
    alone = rflvm.maximise(Y[seen], **settings)
    assert r2_affine(X[seen], fit.X[seen]) > max(0.93, r2_affine(X[seen], alone.X))
    assert fit.lengthscale == pytest.approx([12.0, 12.0], rel=0.5)


def test_rows_without_cells_are_less_certain_the_farther_they_are(fitted):
    _, Y, fit, _ = fitted
    sizes = np.trace(fit.X_covariance, axis1=1, axis2=2)
    last = len(Y) // 2 - 1
    assert (np.diff(sizes[last - 4 : last + 1]) > 0).all()
    assert sizes[last] < 2


def test_draws_of_paths_have_the_covariances_of_the_fit(fitted):
    """Of rows, and of neighbours: 500 draws, within 0.3 of each standard deviation squared."""
    _, Y, fit, _ = fitted
    table = checks.check_table(
        Y, fit.model.likelihood, None, None, 2, timelines.read(tables.read(Y), None, [0, len(Y) // 2])
    )
    with jax.enable_x64(True):
        drawn = draws.laplace_draws(fit, checks.to_device(table, "float64"), 500, 0)
    away = drawn["X"][0] - fit.X
    covariance = np.einsum("snd,sne->nde", away, away) / 500
    scale = np.sqrt(np.diagonal(fit.X_covariance, axis1=1, axis2=2))
    np.testing.assert_allclose(
        covariance / scale[:, :, None] / scale[:, None], fit.X_covariance / scale[:, :, None] / scale[:, None], atol=0.3
    )
    last = len(Y) // 2 - 1
    correlation = np.sum(away[:, last] * away[:, last - 1]) / np.sqrt(
        np.sum(away[:, last] ** 2) * np.sum(away[:, last - 1] ** 2)
    )
    assert correlation > 0.8
    np.testing.assert_array_equal(drawn["lengthscale"][0], np.tile(fit.lengthscale, (500, 1)))
