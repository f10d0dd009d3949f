"""Alignment of draws and the plan for their memory."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from rflvm.likelihoods import Poisson
from rflvm.model.alignment import align, mean_latents, rotations
from rflvm.model.draws import Draws, Kept, Recorder, kept_cells, linear_predictors, plan_beta_thinning
from rflvm.model.features import features, linear_predictor
from rflvm.model.joint import Model, State


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
    kept = (*example[:6], example.theta["r"], np.zeros((3, 2)))  # and two linear predictors of each row
    small = sum((4 if part.dtype == float else 8) * part.size for part in map(np.asarray, kept)) + 8
    return n_chains * (n_draws * small + -(-n_draws // thin) * 4 * np.asarray(example.beta).size)


def some_draws(rng, n_chains=1, n_draws=5, N=8, D=2, H=3):
    """Chains that scatter around one X, with frequencies and components of any kind."""
    A = rng.normal(size=(n_chains, n_draws, H, D, D))
    return {
        "X": rng.normal(size=(N, D)) + 0.1 * rng.normal(size=(n_chains, n_draws, N, D)),
        "W": rng.normal(size=(n_chains, n_draws, H, D)),
        "mu": rng.normal(size=(n_chains, n_draws, H, D)),
        "Sigma": A @ np.swapaxes(A, -1, -2),
        "log_joint": np.zeros((n_chains, n_draws)),
    }


def turned(arrays, R):
    """The same draws in other coordinates."""
    return {
        "X": arrays["X"] @ R,
        "W": arrays["W"] @ R,
        "mu": arrays["mu"] @ R,
        "Sigma": R.T @ arrays["Sigma"] @ R,
        "log_joint": arrays["log_joint"],
    }


def draws_of(arrays):
    return Draws(Model(Poisson(), arrays["X"].shape[-1], 1), arrays, 1, [], [], [])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("D", [1, 2, 3])
def test_a_planted_rotation_or_reflection_is_recovered(D, sign):
    rng = np.random.default_rng(D)
    reference, R = rng.normal(size=(9, D)), orthogonal(rng, D, sign)
    np.testing.assert_allclose(rotations(reference @ R, reference), R.T, atol=1e-12)


def test_the_rotation_is_the_best_of_many():
    rng = np.random.default_rng(1)
    X, reference = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    others = [np.sum((X @ orthogonal(rng, 2, s) - reference) ** 2) for s in (1, -1) for _ in range(500)]
    assert np.sum((X @ rotations(X, reference) - reference) ** 2) <= min(others)


@pytest.mark.parametrize("sign", [1, -1])
def test_chains_that_differ_by_an_orthogonal_map_are_the_same_after_alignment(sign):
    """All that turns with X goes along, and the mean of both is that of one."""
    rng = np.random.default_rng(2)
    one = some_draws(rng)
    other = turned(one, orthogonal(rng, 2, sign))
    both = align(draws_of({name: np.concatenate([other[name], one[name]]) for name in one}))
    alone = align(draws_of(one))
    for name in one:
        for chain in (0, 1):
            np.testing.assert_allclose(both[name][chain], alone[name][0], atol=1e-12)
    np.testing.assert_allclose(mean_latents(both), alone["X"].mean(axis=(0, 1)), atol=1e-12)


def test_alignment_changes_no_distance_and_no_kernel():
    draws = draws_of(some_draws(np.random.default_rng(3), n_chains=2))
    after = align(draws)
    for name in ("X", "W"):
        before = draws["X"] @ np.swapaxes(draws[name], -1, -2)
        np.testing.assert_allclose(after["X"] @ np.swapaxes(after[name], -1, -2), before)
    np.testing.assert_allclose(np.linalg.det(after["Sigma"]), np.linalg.det(draws["Sigma"]))


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
            recorder.record(chain, draw, Kept(new, value, np.full((3, 2), value)))
    arrays = recorder.arrays(5)  # as after an interruption
    np.testing.assert_array_equal(arrays["X"][:, :, 0, 0], [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]])
    np.testing.assert_array_equal(arrays["r"][:, :, 0], arrays["X"][:, :, 0, 0])
    np.testing.assert_array_equal(arrays["log_joint"], arrays["X"][:, :, 0, 0])
    np.testing.assert_array_equal(arrays["beta"][:, :, 0, 0], [[0, 3], [10, 13]])
    np.testing.assert_array_equal(arrays["F"][:, :, 2, 1], arrays["log_joint"])
    assert "theta" not in arrays


def test_kept_cells_are_observed_where_there_are_any_and_their_predictors_are_those_of_the_table(x64):
    rng = np.random.default_rng(0)
    observed = rng.random((3, 4)) < 0.6
    observed[0], observed[1] = False, [True, False, True, False]
    cells = kept_cells(observed, 4)
    assert cells.shape == (3, 2)
    assert all(len(set(row)) == 2 for row in cells)
    assert set(cells[1]) == {0, 2}
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape))  # noqa: E731
    one = state()._replace(X=draw(3, 2), W=draw(2, 2), beta=draw(5, 4))
    F = np.asarray(linear_predictor(features(one.X, one.W), one.beta, jnp.zeros(3)))
    found = linear_predictors(one, jnp.asarray(cells))
    np.testing.assert_allclose(found, np.take_along_axis(F, cells, axis=1))
