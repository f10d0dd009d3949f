"""Paths under a fit against integration on a grid; alignment that leaves a prior over time as it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from rflvm import likelihoods
from rflvm.fitted import members as members_
from rflvm.fitted import paths
from rflvm.model import alignment
from rflvm.model.draws import Draws
from rflvm.model.dynamics import Chronology, Matern
from rflvm.model.features import features
from rflvm.model.joint import Data, Model

stats: Any = scipy.stats  # its frozen distributions are typed as discrete and continuous at once


stats: Any = scipy.stats  # its frozen distributions are typed as discrete and continuous at once


@pytest.fixture(scope="module")
def problem():
    """One latent dimension, two rows of Poisson counts half a unit apart, one member."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        W = 0.4 * rng.normal(size=(1, 4, 1))
        beta = np.concatenate([rng.normal(size=(1, 8, 12)), np.ones((1, 1, 12))], axis=1)
        model = Model(likelihoods.Poisson(), 1, 4, dynamics=Matern(lengthscale=1.5))
        anchors = rng.normal(size=(1, 200, 1))
        known = members_.choose_members(anchors, W, beta, {}, np.ones((200, 12), bool), 0)
        members = known._replace(lengthscale=jnp.array([[1.5]]))
        X = np.array([[0.6], [0.3]])
        Y = rng.poisson(np.exp(np.asarray(features(jnp.asarray(X), jnp.asarray(W[0]))) @ beta[0])).astype(float)
        data = Data(jnp.asarray(Y), None, jnp.zeros(2), None)
        chronology = Chronology(jnp.array([0.0, 0.5]), jnp.array([True, False]), jnp.asarray(0.5))
        block = paths.padded(data, chronology, slice(0, 2))
        session = paths.first_rows(paths.place(jax.random.key(0), *block, members, model), 2)
        grid = np.linspace(-5, 5, 801)
        F = np.asarray(features(jnp.asarray(grid[:, None]), jnp.asarray(W[0]))) @ beta[0]
    return session, Y, grid, F


def test_density_and_moments_of_a_session_are_those_of_integration_on_a_grid(problem):
    """Within the error of a Gaussian approximation: 0.05 nats, a tenth of a standard deviation."""
    session, Y, grid, F = problem
    cells = scipy.stats.poisson.logpmf(Y[:, None], np.exp(F)).sum(axis=2)
    r = np.sqrt(3) * 0.5 / 1.5
    rho = (1 + r) * np.exp(-r)
    prior = stats.multivariate_normal(cov=np.array([[1, rho], [rho, 1]]))
    pairs = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    weight = np.exp(prior.logpdf(pairs) + cells[0][:, None] + cells[1][None])
    width = grid[1] - grid[0]
    found = paths.moments(session)
    assert found.log_density.sum() == pytest.approx(np.log(weight.sum() * width**2), abs=0.05)
    alone = np.exp(scipy.stats.norm.logpdf(grid) + cells[0]).sum() * width
    assert found.log_density[0] == pytest.approx(np.log(alone), abs=0.5)
    share = weight / weight.sum()
    mean = np.einsum("ab,abd->d", share, pairs)
    variance = np.einsum("ab,abd->d", share, (pairs - mean) ** 2)
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=0.1 * np.sqrt(variance).min())
    np.testing.assert_allclose(found.covariance[:, 0, 0], variance, rtol=0.15)


def test_drawn_paths_are_symmetric_around_the_mean(problem):
    session, *_ = problem
    np.testing.assert_allclose(session.paths.mean(axis=1), session.mean, atol=1e-9)


# Alignment


def draws_for(process, lengthscale):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(1, 3, 20, 2)), rng.normal(size=(1, 3, 4, 2))
    Sigma = np.tile(np.diag([1.0, 4.0]), (1, 3, 4, 1, 1))
    X[:], W[:] = X[:, -1:], W[:, -1:]
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])  # the second axis becomes the first, the first minus the second
    X[0, 0], W[0, 0], Sigma[0, 0] = X[0, 0] @ turn, W[0, 0] @ turn, turn.T @ Sigma[0, 0] @ turn
    lengthscale = np.tile(lengthscale, (1, 3, 1))
    lengthscale[0, 0] = lengthscale[0, 0][::-1]
    arrays = {"X": X, "W": W, "mu": W.copy(), "Sigma": Sigma, "lengthscale": lengthscale, "log_joint": np.zeros((1, 3))}
    return Draws(Model(likelihoods.Poisson(), 2, 4, dynamics=process), arrays, 1)


def test_permuted_axes_take_their_lengthscales_along():
    draws = draws_for(Matern(), [1.0, 5.0])
    aligned = alignment.align(draws)
    for name in ("X", "W", "mu", "Sigma", "lengthscale"):
        np.testing.assert_allclose(aligned[name][0, 0], aligned[name][0, 2], atol=1e-12)


def test_axes_are_not_mixed_where_they_have_lengthscales_of_their_own():
    """A rotation by a quarter of a right angle is left, reflections are undone; one shared lengthscale is rotated."""
    angle = np.pi / 8
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for process, mixed in ((Matern(), False), (Matern(per_dimension=False), True), (None, True)):
        draws = draws_for(process, [1.0, 5.0] if process == Matern() else [2.0])
        X = draws["X"].copy()
        X[0, 0] = X[0, 2] @ turn * [1, -1]
        aligned = alignment.align(dataclasses.replace(draws, arrays=draws.arrays | {"X": X}))
        same = np.allclose(aligned["X"][0, 0], aligned["X"][0, 2])
        assert same == mixed
        if not mixed:
            np.testing.assert_allclose(aligned["X"][0, 0], X[0, 0] * [1, -1])


def test_axes_that_were_given_lengthscales_stay_where_they_are():
    R = alignment.signed_permutations(np.eye(2)[::-1] * [1.0, -0.1], np.eye(2) + 0.01, permute=False)
    assert (R != 0).tolist() == [[True, False], [False, True]]
