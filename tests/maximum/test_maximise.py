"""The MAP engine: its objective, its starts, what it returns, and what it finds."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rflvm
from rflvm import likelihoods
from rflvm.data import checks
from rflvm.datasets import make_s_curve
from rflvm.maximum import climb, competition, draws, objective, result, starts
from rflvm.maximum.search import begin, free_frequencies
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, Prior
from rflvm.numerics.affine import r2_affine

SMALL: dict[str, Any] = {"n_features": 8, "n_iterations": 5, "init": "pca", "kernel": "rbf"}
LEARNED: dict[str, Any] = SMALL | {"kernel": "learned"}
FAMILIES: dict[str, likelihoods.Likelihood] = {
    "gaussian": likelihoods.Gaussian(),
    "poisson": likelihoods.Poisson(),
    "negative-binomial": likelihoods.NegativeBinomial(),
    "multinomial": likelihoods.Multinomial(),
}


def table(name, N=30, J=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, J)) if name == "gaussian" else rng.poisson(3, size=(N, J)).astype(float)


def search_on(name, kernel, Y, mask=None):
    """Data, model and a search with either kernel, in double precision."""
    family = FAMILIES[name]
    data = checks.to_device(checks.check_table(Y, family, mask, np.linspace(-0.2, 0.2, len(Y)), 2), "float64")
    model = Model(family, 2, 4)
    X = starts.embed("pca", starts.stabilised(data, model), 2, 0)
    search = begin(0, X, data, model, amplitude=True)
    if kernel == "learned":
        search = free_frequencies(jax.random.key(1), search, model)
    return data, model, search


@pytest.mark.parametrize(
    ("name", "kernel"), [("gaussian", "learned"), ("poisson", "learned"), ("negative-binomial", "rbf")]
)
def test_gradient_of_the_objective_equals_finite_differences(x64, name, kernel):
    Y = table(name, 12, 4)
    mask = np.random.default_rng(1).random(Y.shape) > 0.15
    data, model, search = search_on(name, kernel, Y, mask)
    flat, unravel = climb._flatten(search.parameters)
    value = lambda flat: objective.evaluate(unravel(flat), search.mode, search.spectrum, data, model, 1e-16)  # noqa: E731
    gradient = climb._flatten(value(flat)[1])[0]
    rng = np.random.default_rng(2)
    for _ in range(2):
        step, h = rng.normal(size=flat.shape), 1e-4
        at = lambda k, step=step, h=h: float(value(flat + k * h * step)[0])  # noqa: E731
        numeric = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
        assert gradient @ step == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_amplitude_is_the_scale_of_the_coefficients(x64, name):
    """Learned as 1.7, or given as the prior's: the same evidence, the same posterior of beta."""
    amplitude = jnp.log(jnp.asarray(1.7))
    data, model, search = search_on(name, "rbf", table(name, 12, 4))
    learned = dataclasses.replace(search, parameters=search.parameters._replace(log_amplitude=amplitude))
    given = dataclasses.replace(search, parameters=search.parameters._replace(log_amplitude=None))
    scaled = dataclasses.replace(model, prior=Prior(beta_scale=1.7))
    value = lambda s, m: objective.evaluate(s.parameters, s.mode, s.spectrum, data, m, 1e-12)  # noqa: E731
    (first, _, evidence), (second, _, other) = value(learned, model), value(given, scaled)
    assert float(first) + 0.5 * float(amplitude) ** 2 == pytest.approx(float(second), abs=1e-6)
    for search, found in ((learned, evidence), (given, other)):
        search.mode = None if found is None else found.mode
    fits = [result.finish(s, "pca", data, m, 1e9) for s, m in ((learned, model), (given, scaled))]
    assert [fit.amplitude for fit in fits] == pytest.approx([1.7, 1.0])
    np.testing.assert_allclose(fits[0].beta, fits[1].beta, atol=1e-6)
    np.testing.assert_allclose(fits[0].X_covariance, fits[1].X_covariance, atol=1e-6)
    assert fits[0].beta_factor is not None
    assert fits[1].beta_factor is not None
    np.testing.assert_allclose(fits[0].beta_factor, fits[1].beta_factor, atol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "learned"])
def test_scale_that_latents_and_frequencies_share_is_settled_by_the_prior(x64, kernel):
    """X -> sX, W -> W/s leaves the likelihood alone; the objective is highest where X has mean square one."""
    _, model, search = search_on("gaussian", kernel, table("gaussian"))
    flat = search.spectrum._replace(information=jnp.asarray(1e6), Sigma=1e6 * search.spectrum.Sigma)

    def value(s):
        X, log_amplitude, log_scale, W, log_theta = search.parameters
        scale = None if log_scale is None else log_scale - np.log(s)
        moved = objective.Parameters(X * s, log_amplitude, scale, None if W is None else W / s, log_theta)
        return float(objective.log_prior(moved, flat, model))

    at = [value(s) for s in (0.8, 1.0, 1.25)]
    assert at[1] > max(at[0], at[2])


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


def test_objective_rises_within_a_climb(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    after = climb.climb(search, data, model, 15)
    assert (np.diff(after.trace) >= 0).all()
    assert after.trace[-1] > after.trace[0]


def test_one_factor_serves_a_gaussian_table_without_gaps():
    fit = rflvm.maximise(table("gaussian"), "gaussian", **SMALL)
    assert fit.beta_factor is not None
    assert fit.beta_factor.shape == (1, 9, 9)


def test_factor_is_left_out_when_it_does_not_fit(caplog):
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(table("poisson"), "poisson", memory_budget=100, **SMALL)
    assert fit.beta_factor is None
    assert "left out" in caplog.text


def test_same_seed_same_fit():
    first, second = (rflvm.maximise(table("poisson"), "poisson", **SMALL) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.beta, second.beta)


def test_masked_cells_have_no_influence():
    Y = table("poisson")
    mask = np.random.default_rng(1).random(Y.shape) > 0.2
    other = np.where(mask, Y, 50.0)
    first, second = (rflvm.maximise(T, "poisson", mask=mask, **SMALL) for T in (Y, other))
    np.testing.assert_array_equal(first.X, second.X)


def test_auto_tries_several_starts_and_says_which_it_kept(caplog):
    Y = make_s_curve(80, 12, emissions="poisson").data
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(Y, "poisson", n_features=8, n_iterations=3, kernel="rbf")
    assert fit.init.split()[0] in starts.STARTS
    assert f"start of X: {fit.init}" in caplog.text
    for name in starts.STARTS:
        assert f"{name} " in caplog.text


def test_many_rows_are_screened_on_a_sample(monkeypatch):
    monkeypatch.setattr(starts, "N_LANDMARKS", 40)
    Y = make_s_curve(100, 10, emissions="poisson").data
    Y[::7, 2] = np.nan
    fit = rflvm.maximise(Y, "poisson", n_features=6, n_iterations=3, kernel="rbf")
    assert fit.X.shape == (100, 2)
    assert np.isfinite(fit.X).all()


def test_many_columns_are_screened_on_a_sample(monkeypatch):
    """The family's parameters of the other columns start where they would without a competition."""
    monkeypatch.setattr(competition, "N_COLUMNS", 6)
    Y = make_s_curve(60, 12, emissions="negative_binomial").data
    Y[::7, 2] = np.nan
    fit = rflvm.maximise(Y, "negative_binomial", n_features=6, n_iterations=3)
    assert fit.theta["r"].shape == (12,)
    assert fit.beta.shape == (7, 12)
    assert all(np.isfinite(part).all() for part in (fit.X, fit.beta, fit.theta["r"]))


def test_a_climb_goes_on_in_double_precision_where_single_is_too_coarse(caplog):
    """Counts of ten thousand: the determinant of P_j in single precision is noise, and the line search is lost."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    mean = 1e4 * np.exp(np.sin(X @ rng.normal(size=(2, 4))) + 0.5 * X @ rng.normal(size=(2, 4)))
    Y = rng.negative_binomial(30, 30 / (30 + mean)).astype(float)
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(Y, "negative_binomial", n_features=20, init="pca")
    assert "going on in double" in caplog.text
    assert fit.X.dtype == fit.beta.dtype == "float64"
    assert fit.convergence in ("converged", "iteration limit")
    assert (np.diff(fit.trace) >= -0.5).all()  # where precision changes, by what single precision was wrong


def test_single_precision_that_misses_the_modes_again_and_again_is_given_up(caplog, monkeypatch):
    """No Newton decrement is 0: every evaluation would go to the limit of its rounds."""
    monkeypatch.setitem(climb.TOLERANCE, "float32", 0.0)
    monkeypatch.setattr(climb, "MISSES", 3)
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(table("poisson"), "poisson", n_features=6, init="pca", n_iterations=10)
    assert "modes not found in single precision: going on in double" in caplog.text
    assert fit.X.dtype == "float64"
    assert len(fit.trace) > 3
    assert fit.convergence in ("converged", "iteration limit")


def test_a_climb_that_rises_no_more_has_converged(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    after = climb.climb(search, data, model, 500)
    assert after.convergence == "converged"
    again = climb.climb(after, data, model, 500)
    assert again.value - after.value < 20 * climb.RISE * abs(after.value)


def test_an_interrupted_climb_keeps_the_best_point(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    seen = []

    def stop(value):
        seen.append(value)
        if len(seen) == 3:
            raise KeyboardInterrupt

    after = climb.climb(search, data, model, 50, stop)
    assert after.convergence == "interrupted"
    assert after.value >= seen[-1]


def test_an_interrupt_before_the_first_point_is_raised(x64, monkeypatch):
    """While the objective is compiled, for example; not taken for an objective that is not finite."""
    data, model, search = search_on("poisson", "rbf", table("poisson"))

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(climb, "evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        climb.climb(search, data, model, 5)


def test_an_interrupt_before_there_is_a_start_is_raised(x64):
    data, model, _ = search_on("gaussian", "rbf", table("gaussian"))

    def stop(value):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        competition.choose_start(data, model, "auto", 0, stop)


@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (6, 2)])
def test_smallest_tables_are_fitted(shape):
    fit = rflvm.maximise(np.ones(shape), "poisson", n_components=1, n_features=4, n_iterations=3)
    assert np.isfinite(fit.X).all()


def test_bad_arguments_are_refused():
    bad: list[tuple[dict[str, Any], str]] = [
        ({"kernel": "matern"}, "kernel must be one of"),
        ({"init": "umap"}, "init must be one of"),
        ({"n_iterations": 0}, "n_iterations must be"),
        ({"dtype": "float16"}, "dtype must be one of"),
    ]
    for named, message in bad:
        with pytest.raises(ValueError, match=message):
            rflvm.maximise(table("poisson"), "poisson", **named)


def test_gaussian_details_are_the_posterior(x64):
    """beta_j | sigma_j^2, its leverage and sigma_j^2 against NumPy, with and without gaps."""
    Y = table("gaussian", 9, 3)
    for mask in (None, np.random.default_rng(3).random(Y.shape) > 0.2):
        data, model, search = search_on("gaussian", "rbf", Y, mask)
        Phi = np.asarray(objective.basis(search.parameters, search.spectrum)[0])
        found = result._gaussian_details(jnp.asarray(Phi), data, model)
        for j in range(3):
            seen = np.ones(len(Y), bool) if mask is None else mask[:, j]
            S = Phi[seen].T @ Phi[seen] + np.diag(np.asarray(model.prior.precision(Phi.shape[1], jnp.float64)))
            y = (Y - np.asarray(data.offset)[:, None])[seen, j]
            mean = np.linalg.solve(S, Phi[seen].T @ y)
            sigma2 = (1 + (y @ y - mean @ S @ mean) / 2) / (1 + seen.sum() / 2)
            np.testing.assert_allclose(found.beta[:, j], mean, atol=1e-9)
            np.testing.assert_allclose(found.scale[j], sigma2)
            leverage = sigma2 * np.einsum("na,ab,nb->n", Phi, np.linalg.inv(S), Phi)
            np.testing.assert_allclose(found.leverage[:, j], leverage)
            np.testing.assert_allclose(found.curvature[:, j], seen / sigma2)


def test_refined_draws_of_beta_are_those_of_integration_on_a_grid(x64):
    """A column of counts and one of zeros only, whose Gaussian approximation is as wide as the prior."""
    Phi = features(jnp.linspace(-1, 1, 6)[:, None], jnp.ones((1, 1)))
    Y = jnp.stack([jnp.arange(6.0), jnp.zeros(6)], axis=1)
    model = Model(likelihoods.Poisson(), 1, 1, Prior(bias_scale=2.0))
    times = jnp.asarray([3.0, 3.0, 1.0])
    data = Data(Y, None, jnp.zeros(6), None)

    points = np.linspace(-14, 14, 113)
    grid = np.stack(np.meshgrid(points, points, np.linspace(-8, 8, 65), indexing="ij"), axis=-1).reshape(-1, 3)
    F = grid @ np.asarray(Phi).T
    precision = np.asarray(model.prior.precision(3, float)) / np.asarray(times) ** 2
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
            jax.random.key(0), jnp.asarray(top)[:, None], root, Phi, times, {}, column, model, 4000
        )
        drawn = np.asarray(beta[:, :, 0] @ Phi.T)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.15 * std.max())
        np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.12)


def test_sampler_starts_at_the_map_and_says_so(caplog):
    truth = make_s_curve(150, 80, emissions="gaussian")
    with caplog.at_level(logging.INFO, logger="rflvm"):
        draws = rflvm.sample(truth.data, "gaussian", n_features=40, n_burnin=5, n_samples=5, n_chains=2)
    assert "the chains start at the MAP" in caplog.text
    assert not np.array_equal(draws["beta"][0, 0], draws["beta"][1, 0])
    assert r2_affine(truth.X, draws["X"][0, -1]) > 0.8


def test_s_curve_is_found():
    truth = make_s_curve(emissions="poisson")
    fit = rflvm.maximise(truth.data, "poisson", kernel="rbf", init="isomap", n_iterations=24)
    assert r2_affine(truth.X, fit.X) > 0.97
