"""Rows with two modes: clouds of points of which that is known, and a function that takes its values twice."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.fitted import prediction
from rflvm.fitted.members import choose_members
from rflvm.fitted.modes import in_two_parts
from rflvm.model.joint import Model


def parts(X: np.ndarray, w: np.ndarray | None = None) -> bool:
    w = np.ones(len(X)) if w is None else w
    return bool(in_two_parts(X[:, None], (w / w.sum())[:, None])[0])


@pytest.mark.parametrize("D", [1, 2, 3])
def test_two_clouds_are_told_from_one(D):
    """One: normal, uniform, long-tailed or long. Two: eight standard deviations apart, also one wide and one narrow."""
    rng = np.random.default_rng(0)
    n = 16 * 24
    shift = np.zeros(D)
    shift[-1] = 8
    for _ in range(50):
        normal, wide = rng.normal(size=(n, D)), np.append(np.ones(D - 1), 30) * rng.normal(size=(n, D))
        for cloud in (normal, wide, rng.uniform(size=(n, D)), rng.standard_t(5, (n, D))):
            assert not parts(cloud)
        lesser = (np.arange(n) < 0.2 * n)[:, None]
        assert parts(normal + shift * lesser)
        assert parts(np.where(lesser, 0.01, 1) * normal + shift * lesser)
        assert not parts(normal + shift * (np.arange(n) < 0.05 * n)[:, None])  # few of them: a tail


def test_weights_count_and_points_without_weight_do_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) + np.where(np.arange(400) < 200, 10, 0)[:, None]
    assert parts(X)
    assert not parts(X, np.where(np.arange(400) < 200, 1.0, 0.0))
    assert not parts(X, np.where(np.arange(400) < 200, 1.0, 0.02))
    assert not parts(np.ones((400, 2)))  # all at one place
    assert not parts(0.01 * X)  # two that are one in the picture


@pytest.mark.usefixtures("x64")
def test_rows_of_functions_that_take_their_values_twice_have_two_modes():
    """Even functions cannot tell x from -x, except at 0; one odd function can."""
    model, S, J, N = Model(likelihoods.Gaussian(), 1, 1), 4, 6, 20
    X = np.linspace(-2, 2, N)[:, None]
    even = np.array([[6.0] * J, [0.0] * J, np.linspace(-1, 1, J)])
    odd = np.array([[0.0] * J, [6.0] * J, [0.0] * J])
    repeated = lambda part: np.repeat(np.asarray(part, float)[None], S, axis=0)  # noqa: E731
    for beta, expected in ((even, [True, False, True]), (odd, [False] * 3)):
        theta = {"sigma2": np.full((S, J), 0.05)}
        members = choose_members(
            repeated(X), np.full((S, 1, 1), 0.5), repeated(beta), theta, np.ones((N, J), bool), seed=0
        )
        members = jax.tree.map(jnp.asarray, members)
        at = np.array([[-1.2], [0.0], [1.2]])
        Y = np.concatenate([np.cos(at / 2), np.sin(at / 2), np.ones((3, 1))], axis=1) @ beta
        block, n = next(
            prediction.blocks(checks.to_device(checks.check_rows(Y, model.likelihood, None, None), "float64"))
        )
        placed = prediction.place(block, members, model)
        w = np.asarray(prediction.weights(placed))
        found = in_two_parts(np.asarray(placed.X).reshape(-1, *placed.X.shape[2:]), w.reshape(-1, w.shape[2]))
        assert found[:n].tolist() == expected
