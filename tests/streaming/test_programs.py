"""Sums over rows against brute force: derivatives of the objective, curvatures, positions beside anchors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rflvm import likelihoods
from rflvm.model.features import features, linear_predictor
from rflvm.model.joint import Data, Model, sample_data, sample_prior
from rflvm.model.rows import expand
from rflvm.streaming import programs
from rflvm.streaming.functions import unpacked
from rflvm.streaming.programs import Anchors

N, J, D, H = 16, 4, 2, 3
FAMILIES = [
    likelihoods.Poisson(),
    likelihoods.ZeroInflatedNegativeBinomial(),
    pytest.param(likelihoods.Ordinal(low=0, high=4), marks=pytest.mark.long),
    pytest.param(likelihoods.Gaussian(), marks=pytest.mark.long),
]


def problem(family: Any) -> tuple[Any, Any, Any]:
    """Functions from the prior, rows drawn given them with gaps, positions away from their modes."""
    model = Model(family, D, H)
    keys = jax.random.split(jax.random.key(1), 4)
    state = sample_prior(keys[0], model, N, J, jnp.float64)
    mask = jax.random.uniform(keys[1], (N, J)) < 0.8
    offset = 0.1 * jax.random.normal(keys[2], (N,))
    data = Data(jnp.zeros((N, J)), mask, offset, None)
    return model, state, sample_data(keys[3], state, data, model)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_sums_are_those_of_the_objective(family, x64):
    model, state, data = problem(family)
    weight = jnp.ones(N).at[3].set(0).at[-1].set(0)
    numbers, key = jnp.arange(N, dtype=jnp.uint32) + 100, jax.random.key(5)
    X, draws, sums = programs.visit(state.X, numbers, weight, data, state, key, model, 3)
    local = expand(X, state, data, model)
    S = np.linalg.inv(local.metric)
    expected = X[None] + np.stack([draw(local.metric[n], numbers[n], key) for n in range(N)], axis=1)
    np.testing.assert_allclose(draws, expected, rtol=1e-9, atol=1e-9)

    def log_likelihood(beta):
        cells = jnp.stack([family.log_factor(data.Y, at(x, beta, state, data), state.theta, None) for x in draws])
        return jnp.sum(jnp.where(data.mask & (weight[:, None] > 0), cells, 0)) / 3

    # A family whose log density is not concave may give another curvature, never another slope.
    np.testing.assert_allclose(sums.gradient, jax.grad(log_likelihood)(state.beta), rtol=1e-8, atol=1e-8)
    counted = np.asarray(weight) > 0
    square = sum(X[n][:, None] * X[n][None] + S[n] for n in range(N) if counted[n])
    np.testing.assert_allclose(sums.square, square, rtol=1e-9)
    divergence = sum(
        0.5 * (np.trace(S[n]) + X[n] @ X[n] - D - np.log(np.linalg.det(S[n]))) for n in range(N) if counted[n]
    )
    np.testing.assert_allclose(sums.objective, log_likelihood(state.beta) - divergence, rtol=1e-9)
    assert sums.n == N - 2


def draw(metric, number, key):
    """L^{-T} e of one row, its noise from the key and its number alone."""
    noise = jax.random.normal(jax.random.fold_in(key, number), (3, D), jnp.float64)
    return np.linalg.solve(np.linalg.cholesky(metric).T, noise.T).T


def at(X, beta, state, data):
    return linear_predictor(features(X, state.W), beta, data.offset)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_curvatures_are_those_of_the_density(family, x64):
    model, state, data = problem(family)
    weight = jnp.ones(N).at[0].set(0)
    found = programs.curvature(state.X, weight, data, state, model)
    Phi = features(state.X, state.W)
    counted = data.mask & (weight[:, None] > 0)
    w = family.slope_and_curvature(data.Y, at(state.X, state.beta, state, data), state.theta, None)[2]
    gram = jnp.einsum("nj,na,nb->jab", jnp.where(counted, w, 0), Phi, Phi)
    np.testing.assert_allclose(np.tril(found.gram), np.tril(gram), rtol=1e-9, atol=1e-9)
    own = {name: jnp.log(value) for name, value in state.theta.items() if value.ndim}
    P = len(programs.stack(own))
    assert found.slope.shape == (P, J)
    assert found.bend.shape == (P, P, J)
    if not P:
        return

    def log_density(stacked):
        theta = state.theta | {k: jnp.exp(v) for k, v in programs.unstack(stacked, own).items()}
        cells = family.log_prob(data.Y, at(state.X, state.beta, state, data), theta, None)
        return jnp.sum(jnp.where(counted, cells, 0))

    hessian = jax.hessian(log_density)(programs.stack(own))  # (P, J, P, J), zero between columns
    np.testing.assert_allclose(found.slope, jax.grad(log_density)(programs.stack(own)), rtol=1e-8, atol=1e-10)
    for j in range(J):
        np.testing.assert_allclose(found.bend[:, :, j], hessian[:, j, :, j], rtol=1e-8, atol=1e-10)


def test_parameters_are_stacked_and_unstacked():
    theta = {"odds": jnp.arange(4.0), "gaps": jnp.ones((3, 4)), "r": 2 * jnp.ones(4)}
    again = programs.unstack(programs.stack(theta), theta)
    assert list(again) == list(theta)
    for name, value in theta.items():
        np.testing.assert_array_equal(again[name], value)


def test_rows_are_placed_at_their_modes(x64):
    model, state, data = problem(likelihoods.Poisson())
    positions = jnp.asarray(stats.norm.ppf(stats.qmc.Sobol(D, rng=np.random.default_rng(0)).random(64)))
    F = features(positions, state.W) @ state.beta
    near = jnp.argsort(jnp.sum((positions[:8, None] - positions[None]) ** 2, axis=2), axis=1)[:, :64]
    anchors = Anchors(positions, F, near)
    values = jnp.stack(
        [
            jnp.where(data.mask, model.likelihood.log_factor(data.Y, f[None] + data.offset[:, None], {}, None), 0).sum(
                1
            )
            for f in F
        ]
    )
    best = jnp.argmax(values - 0.5 * jnp.sum(positions**2, axis=1)[:, None], axis=0)
    start, other = programs.beside_anchors(data, anchors, {}, model)
    assert (np.linalg.norm(start - other, axis=1) > programs.MIN_DISTANCE).all()
    np.testing.assert_array_equal(start, positions[best])  # all are near to all: nothing is left out
    X, triangles = programs.place(data, anchors, state, model)
    local = expand(X, state, data, model)
    assert np.abs(local.gradient).max() < 1e-3
    np.testing.assert_allclose(unpacked(np.asarray(triangles), D), np.linalg.inv(local.metric), rtol=1e-9)
