"""beta integrated out by Laplace's method: values against quadrature, gradients against finite differences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.special import gammaln

from rflvm import likelihoods
from rflvm.model import laplace
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, Prior, sample_data, sample_prior

N, J, D, H = 9, 5, 2, 2
TIGHT = 1e-22
FAMILIES: dict[str, likelihoods.Likelihood] = {
    "poisson": likelihoods.Poisson(),
    "bernoulli": likelihoods.Bernoulli(),
    "binomial": likelihoods.Binomial(trials=7),
    "negative-binomial": likelihoods.NegativeBinomial(),
    "multinomial": likelihoods.Multinomial(),
    "student-t": likelihoods.StudentT(),
    "ordinal": likelihoods.Ordinal(low=1, high=5),
    "zero-inflated-poisson": likelihoods.ZeroInflatedPoisson(),
    "zero-inflated-negative-binomial": likelihoods.ZeroInflatedNegativeBinomial(),
    "custom": likelihoods.Custom(lambda y, f: -jnp.cosh(0.3 * (y - f))),
}


def problem(name):
    """A table drawn from the prior, with masks and offsets."""
    family = FAMILIES[name]
    model = Model(family, D, H, Prior(bias_scale=1.0))
    rng = np.random.default_rng(0)
    observed = rng.random((N, J)) > 0.2
    Y = np.tile([6.0, 3.0, 2.0, 2.0, 4.0], (N, 1)) if name == "multinomial" else np.zeros((N, J))
    cells, counted, trials = family.encode(Y, observed)
    as_array: Any = jnp.asarray
    design = Data(
        as_array(cells), as_array(counted), as_array(0.3 * rng.normal(size=N)),
        None if trials is None else as_array(trials),
    )  # fmt: skip
    state = sample_prior(jax.random.key(1), model, N, cells.shape[1], jnp.float64)
    drawn = design if name == "custom" else sample_data(jax.random.key(2), state, design, model)
    if name == "custom":
        drawn = design._replace(Y=as_array(np.where(counted, rng.normal(size=cells.shape), 0)))
    return model, state, drawn


def collapsed(state, data, model, mode=None):
    """The value as a function of X, W and theta."""
    start = laplace.start(data, model, jnp.zeros_like(state.beta)) if mode is None else mode
    theta = {name: value for name, value in state.theta.items() if value.ndim}

    def value(X, W, theta):
        return laplace.log_evidence(features(X, W), theta, start, data, model, TIGHT)[0]

    return jax.jit(value), (state.X, state.W, theta)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradient_equals_finite_differences(x64, name):
    """Through the mode, the curvature at the mode and the log-determinant."""
    model, state, data = problem(name)
    value, at = collapsed(state, data, model)
    gradient = jax.grad(value, argnums=(0, 1, 2))(*at)
    rng = np.random.default_rng(3)

    def along(step, h):
        return float(value(*jax.tree.map(lambda a, s: a + h * s, at, step)))

    for _ in range(3):
        step = jax.tree.map(lambda part: jnp.asarray(rng.normal(size=part.shape)), at)
        h = 1e-4
        numeric = (8 * (along(step, h) - along(step, -h)) - (along(step, 2 * h) - along(step, -2 * h))) / (12 * h)
        exact = sum(float(jnp.sum(g * s)) for g, s in zip(*map(jax.tree.leaves, (gradient, step)), strict=True))
        assert exact == pytest.approx(numeric, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_mode_is_where_the_gradient_vanishes(x64, name):
    model, state, data = problem(name)
    theta = {k: v for k, v in state.theta.items() if v.ndim}
    Phi = features(state.X, state.W)
    start = laplace.start(data, model, jnp.zeros_like(state.beta))
    _, evidence = laplace.log_evidence(Phi, theta, start, data, model, TIGHT)
    beta = laplace.Blocks(data.Y.shape[1]).join(evidence.mode.beta)

    def log_density(beta):
        F = Phi @ beta + data.offset[:, None]
        cells = jnp.where(jnp.asarray(data.mask), model.likelihood.log_prob(data.Y, F, theta, data.trials), 0)
        return cells.sum() - 0.5 * jnp.sum(model.prior.precision(len(beta), beta.dtype)[:, None] * beta**2)

    np.testing.assert_allclose(jax.grad(log_density)(beta), 0, atol=1e-7)
    assert float(evidence.decrement) <= 1e-12


def test_mode_is_found_from_a_bad_guess(x64):
    """The last mode overflows the rates after a large move of X; without features the way back is short."""
    model, state, data = problem("poisson")
    Phi, rng = features(state.X, state.W), np.random.default_rng(5)
    good, bad = (jnp.asarray(scale * rng.normal(size=state.beta.shape)).at[-1].set(0.0) for scale in (0.1, 300.0))
    values = [laplace.log_evidence(Phi, {}, laplace.start(data, model, b), data, model, TIGHT) for b in (good, bad)]
    assert float(values[1][0]) == pytest.approx(float(values[0][0]), rel=1e-9)
    assert float(values[1][1].decrement) <= 1e-12


def test_large_counts_among_zeros_do_not_overflow():
    """Pixels that are dark but for a few rows, in single precision: a whole Newton step there goes to exp(1e4)."""
    rng = np.random.default_rng(6)
    X, W = rng.normal(size=(60, D)), 3 * rng.normal(size=(20, D))
    Y = np.where(rng.random((60, 4)) < 0.1, 255.0, 0.0)
    as_array: Any = jnp.asarray
    model = Model(likelihoods.Poisson(), D, 20)
    data = Data(as_array(Y, "float32"), None, jnp.zeros(60, "float32"), None)
    Phi = 20 * features(as_array(X, "float32"), as_array(W, "float32"))
    _, evidence = laplace.log_evidence(Phi, {}, laplace.start(data, model, jnp.zeros((41, 4))), data, model, 1e-7)
    assert float(evidence.decrement) <= 1e-3


def test_modes_of_large_counts_are_found_in_single_precision():
    """y f - exp(f) is much larger than the log density: summed by itself, its rounding hides what a step gains."""
    rng = np.random.default_rng(7)
    X, W = rng.normal(size=(150, D)), rng.normal(size=(20, D))
    Y = rng.poisson(200 * np.exp(0.5 * np.sin(X @ rng.normal(size=(D, 40)))))
    as_array: Any = jnp.asarray
    model = Model(likelihoods.Poisson(), D, 20)
    data = Data(as_array(Y, "float32"), None, jnp.zeros(150, "float32"), None)
    Phi = features(as_array(X, "float32"), as_array(W, "float32"))
    begin = laplace.start(data, model, jnp.zeros((41, 40)).at[-1].set(5))
    _, evidence = laplace.log_evidence(Phi, {}, begin, data, model, 1e-7)
    moved = features(as_array(X + 0.05 * rng.normal(size=X.shape), "float32"), as_array(W, "float32"))
    _, evidence = laplace.log_evidence(moved, {}, evidence.mode, data, model, 1e-7)
    assert int(evidence.rounds) <= 4


def test_value_is_near_the_integral(x64):
    """One coefficient only matters: Laplace's error is of the order of 1/N."""
    model = Model(likelihoods.Poisson(), 1, 1, Prior(beta_scale=1e-6, bias_scale=1.0))
    y, offset = np.array([0.0, 2, 1, 3, 1, 0, 2, 4]), np.linspace(-0.3, 0.3, 8)
    data = Data(jnp.asarray(y)[:, None], None, jnp.asarray(offset), None)
    Phi = features(jnp.zeros((8, 1)), jnp.zeros((1, 1)))
    start = laplace.start(data, model, jnp.zeros((3, 1)))
    value, _ = laplace.log_evidence(Phi, {}, start, data, model, TIGHT)

    def density(b):
        f = b + offset
        return np.exp(np.sum(y * f - np.exp(f) - gammaln(y + 1)) - 0.5 * b**2) / np.sqrt(2 * np.pi)

    exact = np.log(integrate.quad(density, -5, 5)[0])
    assert float(value) == pytest.approx(exact, abs=0.02)


def test_gaussian_curvature_makes_it_exact(x64):
    """A Gaussian with known variance: the approximation is the marginal likelihood itself."""
    family = likelihoods.Custom(lambda y, f: -0.5 * (y - f) ** 2 - 0.5 * np.log(2 * np.pi))
    model = Model(family, D, H, Prior(bias_scale=2.0))
    state = sample_prior(jax.random.key(0), model, N, J, jnp.float64)
    rng = np.random.default_rng(1)
    data = Data(jnp.asarray(rng.normal(size=(N, J))), None, jnp.asarray(rng.normal(size=N)), None)
    value, at = collapsed(state, data, model)
    Phi = np.asarray(features(state.X, state.W))
    covariance = np.eye(N) + Phi / np.asarray(model.prior.precision(Phi.shape[1], jnp.float64)) @ Phi.T
    residual = np.asarray(data.Y - data.offset[:, None])
    dense = -0.5 * np.sum(residual * np.linalg.solve(covariance, residual))
    dense -= J / 2 * (np.linalg.slogdet(covariance)[1] + N * np.log(2 * np.pi))
    assert float(value(*at)) == pytest.approx(dense, rel=1e-10)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial", "multinomial"])
def test_blocks_of_columns_change_nothing(x64, name, monkeypatch):
    """One block, or several with a last one that is filled up."""
    model, state, data = problem(name)
    value, at = collapsed(state, data, model)
    whole = jax.value_and_grad(value, argnums=(0, 1, 2))(*at)
    monkeypatch.setattr(laplace, "COLUMN_BLOCK", 2)
    assert laplace.Blocks(data.Y.shape[1]).count > 1
    value, at = collapsed(state, data, model)
    parts = jax.value_and_grad(value, argnums=(0, 1, 2))(*at)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10), whole, parts)


def test_masked_cells_have_no_influence(x64):
    model, state, data = problem("poisson")
    other = data._replace(Y=jnp.where(jnp.asarray(data.mask), data.Y, 7.0))
    for one, two in zip(*(jax.tree.leaves(jax.value_and_grad(v)(*at)) for v, at in
                          (collapsed(state, d, model) for d in (data, other))), strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, two)


def test_a_far_start_and_a_warm_one_find_the_same_mode(x64):
    model, state, data = problem("poisson")
    Phi = features(state.X, state.W)
    far = laplace.start(data, model, jnp.full_like(state.beta, 2.0))
    value, evidence = laplace.log_evidence(Phi, {}, far, data, model, TIGHT)
    near, again = laplace.log_evidence(Phi, {}, evidence.mode, data, model, TIGHT)
    assert float(value) == pytest.approx(float(near), rel=1e-12)
    assert int(again.steps) < int(evidence.steps)
    start = laplace.start(data, model, jnp.zeros_like(state.beta))
    assert float(laplace.log_evidence(Phi, {}, start, data, model, TIGHT)[0]) == pytest.approx(float(near), rel=1e-12)


def test_single_precision_agrees():
    with jax.enable_x64(True):
        model, state, data = problem("poisson")
        value, at = collapsed(state, data, model)
        exact = float(value(*at))
    cast = lambda tree: jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype != bool else x, tree)  # noqa: E731
    value, at = collapsed(cast(state), cast(data), model)
    assert float(value(*at)) == pytest.approx(exact, rel=1e-5)


def test_details_hold_the_posterior_of_the_coefficients(x64):
    model, state, data = problem("poisson")
    Phi = features(state.X, state.W)
    start = laplace.start(data, model, jnp.zeros_like(state.beta))
    _, evidence = laplace.log_evidence(Phi, {}, start, data, model, TIGHT)
    found = laplace.details(Phi, {}, evidence.mode, data, model)

    def negative(beta, j):
        f = np.asarray(Phi) @ beta + np.asarray(data.offset)
        seen = np.asarray(data.mask)[:, j]
        prior = np.asarray(model.prior.precision(len(beta), jnp.float64))
        return np.sum((np.exp(f) - np.asarray(data.Y)[:, j] * f)[seen]) + 0.5 * np.sum(prior * beta**2)

    for j in range(J):
        mode = optimize.minimize(negative, np.zeros(Phi.shape[1]), args=(j,), options={"gtol": 1e-9}).x
        np.testing.assert_allclose(found.beta[:, j], mode, atol=1e-5)
        weights = np.asarray(jnp.where(jnp.asarray(data.mask), jnp.exp(Phi @ found.beta + data.offset[:, None]), 0))[
            :, j
        ]
        P = np.asarray(Phi).T @ (weights[:, None] * np.asarray(Phi))
        P += np.diag(np.asarray(model.prior.precision(len(mode), jnp.float64)))
        L = np.tril(np.asarray(found.factor[j]))
        np.testing.assert_allclose(L @ L.T, P, atol=1e-8)
        spread = np.einsum("na,ab,nb->n", Phi, np.linalg.inv(P), Phi)
        np.testing.assert_allclose(found.leverage[:, j], spread, rtol=1e-6)
