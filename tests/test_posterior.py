"""Alignment of draws and the plan for their memory."""

from typing import Any

import numpy as np
import pytest

from rflvm.likelihoods import Poisson
from rflvm.model import Model, State
from rflvm.posterior import Draws, Recorder, align, mean_latents, plan_beta_thinning


def orthogonal(rng, D, sign):
    Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
    Q[:, 0] *= sign * np.sign(np.linalg.det(Q))
    return Q


def state(N=3, D=2, H=2, J=4):
    zeros: Any = np.zeros
    return State(
        zeros((N, D)), zeros((H, D)), zeros(H, int), zeros((H, D)), zeros((H, D, D)), zeros(()), zeros((2 * H + 1, J)),
        {"r": zeros(J)},
    )  # fmt: skip


def size(n_chains, n_draws, thin):
    """Bytes of all kept draws."""
    example = state()
    small = sum(np.asarray(part).nbytes for part in (*example[:6], example.theta["r"])) + 8
    return n_chains * (n_draws * small + -(-n_draws // thin) * np.asarray(example.beta).nbytes)


def draws_of(X):
    return Draws(Model(Poisson(), X.shape[-1], 1), {"X": X, "log_joint": np.zeros(X.shape[:2])}, 1, [], [], [])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("D", [1, 2, 3])
def test_align_recovers_a_planted_rotation_or_reflection_and_shift(D, sign):
    rng = np.random.default_rng(D)
    reference = rng.normal(size=(9, D))
    moved = reference @ orthogonal(rng, D, sign) + rng.normal(size=D)
    np.testing.assert_allclose(align(moved, reference), reference - reference.mean(0), atol=1e-12)


def test_align_only_rotates_each_draw_on_its_own():
    rng = np.random.default_rng(0)
    X, reference = rng.normal(size=(2, 3, 7, 2)), rng.normal(size=(7, 2))
    aligned = align(X, reference)
    for c in range(2):
        for s in range(3):
            np.testing.assert_allclose(aligned[c, s], align(X[c, s], reference), atol=1e-12)
            centred = X[c, s] - X[c, s].mean(0)
            np.testing.assert_allclose(aligned[c, s] @ aligned[c, s].T, centred @ centred.T, atol=1e-12)


def test_align_is_the_best_of_many_rotations():
    rng = np.random.default_rng(1)
    X, reference = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    target, centred = reference - reference.mean(0), X - X.mean(0)
    others = [np.sum((centred @ orthogonal(rng, 2, s) - target) ** 2) for s in (1, -1) for _ in range(500)]
    assert np.sum((align(X, reference) - target) ** 2) <= min(others)


def test_mean_of_two_chains_that_differ_by_an_orthogonal_map_is_that_of_one():
    rng = np.random.default_rng(2)
    one = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(1, 5, 8, 2))
    for sign in (1, -1):
        other = one @ orthogonal(rng, 2, sign)
        both = mean_latents(draws_of(np.concatenate([other, one])))
        np.testing.assert_allclose(both, mean_latents(draws_of(one)), atol=1e-12)


@pytest.mark.parametrize(("n_chains", "n_draws"), [(1, 1), (1, 10), (2, 17), (3, 100)])
def test_thinning_of_beta_fits_the_budget_and_is_the_smallest_that_does(n_chains, n_draws):
    least, most = size(n_chains, n_draws, n_draws), size(n_chains, n_draws, 1)
    for budget in {least, least + 1, (2 * least + most) // 3, (least + most) // 2, most - 1, most, 2 * most}:
        if budget < least:
            continue
        thin = plan_beta_thinning(state(), n_chains, n_draws, budget)
        assert size(n_chains, n_draws, thin) <= budget
        assert thin == 1 or size(n_chains, n_draws, thin - 1) > budget


def test_a_budget_too_small_for_one_beta_per_chain_is_refused():
    least = size(2, 10, 10)
    assert plan_beta_thinning(state(), 2, 10, least) == 10
    with pytest.raises(ValueError, match=r"more than memory_budget .*: raise thin or the budget"):
        plan_beta_thinning(state(), 2, 10, least - 1)


def test_recorder_keeps_every_draw_and_every_thinned_beta():
    recorder = Recorder(state(), 2, 7, size(2, 7, 3))
    assert recorder.beta_thin == 3
    for draw in range(7):
        for chain in range(2):
            value = 10.0 * chain + draw
            example = state()
            new = example._replace(
                X=np.full((3, 2), value), beta=np.full((5, 4), value), theta={"r": np.full(4, value)}
            )  # type: ignore[arg-type]
            recorder.record(chain, draw, new, value)
    arrays = recorder.arrays(5)  # as after an interruption
    np.testing.assert_array_equal(arrays["X"][:, :, 0, 0], [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]])
    np.testing.assert_array_equal(arrays["r"][:, :, 0], arrays["X"][:, :, 0, 0])
    np.testing.assert_array_equal(arrays["log_joint"], arrays["X"][:, :, 0, 0])
    np.testing.assert_array_equal(arrays["beta"][:, :, 0, 0], [[0, 3], [10, 13]])
    assert "theta" not in arrays
