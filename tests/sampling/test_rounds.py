"""Runs that end by themselves: when, in which arrangement, and that nothing but their length depends on it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rflvm
from equality import assert_same_draws
from rflvm.data.footprint import Size
from rflvm.model.draws import Run
from rflvm.numerics.convergence import ess, esses, rhat, rhats
from rflvm.sampling import agreement, rounds

Y = np.random.default_rng(0).poisson(3, size=(12, 5)).astype(float)
SHORT: dict[str, Any] = {"n_features": 6, "init": "pca", "n_chains": 2, "n_burnin": 4, "thin": 1}


@pytest.fixture
def short_rounds(monkeypatch):
    """Rounds of three sweeps, twelve in all at most, and no more draws wanted than there are."""
    monkeypatch.setattr(rounds, "N_ROUND", 3)
    monkeypatch.setattr(rounds, "MOST_SAMPLES", 12)


def settles_after(monkeypatch, n: int) -> list[tuple[int, ...]]:
    """Judge a run as settled when it has so many draws; the shapes that were judged."""
    seen = []

    def judge(X, F):
        seen.append((*X.shape[:2], *F.shape[2:]))
        return rounds.Judgement(X.shape[1] >= n, X.shape[1] / 12, 1)

    monkeypatch.setattr(rounds, "judge", judge)
    return seen


def scattered(n_draws=200, N=40, centre=None, seed=0):
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(N, 2)) if centre is None else centre
    return centre + 0.1 * rng.normal(size=(2, n_draws, N, 2)), rng.normal(size=(2, n_draws, N, 2))


def turn(X, angle):
    return X @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


# Convergence of many scalars at once, and of rows.


def test_many_scalars_are_judged_as_each_of_them(monkeypatch):
    """Also in parts, and those that never change."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(3, 41, 7)).cumsum(axis=1)
    draws[..., 1], draws[..., 2] = 0.0, np.arange(3)[:, None]
    whole = rhats(draws), esses(draws)
    monkeypatch.setattr("rflvm.numerics.convergence.N_AT_ONCE", 2 * 3 * 41)
    for values, each, parts in zip(whole, (rhat, ess), (rhats(draws), esses(draws)), strict=True):
        np.testing.assert_allclose(values, parts, rtol=1e-12)
        np.testing.assert_allclose(values, [each(draws[..., k]) for k in range(7)], rtol=1e-12)
    assert whole[0][1] == 1.0
    assert whole[0][2] == np.inf


def test_draws_that_are_turned_agree_and_a_row_elsewhere_does_not():
    X, _ = scattered()
    X[1] = turn(X[1], 2.0) * [1, -1]
    assert agreement.arrangements(X) == ((0, 1),)
    agreed = agreement.of_rows(agreement.aligned(X))
    assert agreed.settled
    assert agreed.rhat.max() < 1.1
    X[1, :, 7] += 1.0
    moved = agreement.of_rows(agreement.aligned(X))
    assert np.flatnonzero(moved.rhat > 1.1).tolist() == [7]


def test_chains_with_other_pictures_are_other_arrangements():
    X = np.concatenate([scattered(seed=s)[0] for s in (0, 1, 0)])
    assert agreement.arrangements(X) == ((0, 1, 4, 5), (2, 3))


# The verdict on which a run ends.


def test_a_run_has_settled_when_positions_and_predictions_have():
    X, F = scattered()
    assert rounds.judge(X, F) == (True, 1.0, 1)
    assert not rounds.judge(X, F + np.arange(2)[:, None, None, None]).settled
    assert not rounds.judge(X[:, :30], F[:, :30]).settled  # 60 draws in all
    X[1, :, :4] += 0.5
    judged = rounds.judge(X, F)
    assert (judged.settled, judged.n_arrangements) == (False, 1)
    assert judged.share < 0.95


def test_draws_of_version_0_1_have_no_predictors_and_are_left_out_where_these_are_judged():
    X, F = scattered(n_draws=400)
    F[:, :100] = np.nan
    np.testing.assert_array_equal(agreement.of_predictors(F).rhat, agreement.of_rows(F[:, 100:]).rhat)
    assert rounds.judge(X, F).settled
    assert not agreement.of_predictors(np.full_like(F, np.nan)).settled


def test_chains_in_different_arrangements_are_judged_within_them():
    one, F = scattered(n_draws=400, seed=0)
    other, _ = scattered(n_draws=400, seed=1)
    apart = np.stack([one[0], other[0]])
    assert rounds.judge(apart, F)[::2] == (True, 2)
    apart[1, 200:, :10] += 1.0  # the second one is still on its way
    assert rounds.judge(apart, F)[::2] == (False, 2)


def test_lengths_are_numbers_or_auto():
    most, burnin = rounds.MOST_SAMPLES, rounds.N_BURNIN
    assert rounds.lengths("auto", "auto", "auto") == (most, burnin, rounds.THIN, True, True)
    assert rounds.lengths("auto", 3, 1) == (most, 3, 1, True, False)
    assert rounds.lengths(5, "auto", 2) == (5, burnin, 2, False, False)
    assert rounds.lengths(5, 0, "auto") == (5, 0, 1, False, True)
    with pytest.raises(TypeError, match="n_samples must be a whole number"):
        rounds.lengths("long", 1, 1)
    with pytest.raises(TypeError, match="n_burnin must be a whole number"):
        rounds.lengths("auto", "long", 1)


def test_a_run_that_ends_by_itself_is_bounded_by_the_memory_for_its_draws():
    size = Size(N=10_000, J=50, D=2, H=50, n_matrices=50, conjugate=False)
    automatic = rounds.lengths("auto", "auto", 1)
    assert rounds.within(automatic, size, 2, 1e12) == automatic
    bounded = rounds.within(automatic, size, 2, 1e9).n_samples
    assert rounds.N_ROUND <= bounded < rounds.MOST_SAMPLES
    assert bounded % rounds.N_ROUND == 0
    assert rounds.within(automatic, size, 2, 1.0).n_samples == rounds.N_ROUNDS * rounds.N_ROUND
    number = rounds.lengths(5000, 1, 1)
    assert rounds.within(number, size, 2, 1.0) == number


def test_looks_are_at_multiples_of_a_round_after_burnin():
    end, run = rounds.End(4 + 1000, settles=True), Run(0, 4, 1, ("sample", "hmc", "hmc"), "")
    looks = [0]
    while looks[-1] < end.n_sweeps:
        looks.append(end.next_look(run._replace(n_sweeps=looks[-1])))
    assert looks == [0, 4, *range(104, 1005, 100)]
    judged = [t for t in range(1005) if end.to_be_judged(run._replace(n_sweeps=t))]
    assert judged == list(range(204, 1005, 100))
    assert rounds.End(50).next_look(run._replace(n_sweeps=7)) == 50


# Runs.


@pytest.mark.usefixtures("short_rounds")
def test_a_run_that_settles_is_the_run_of_that_length(monkeypatch):
    seen, told = settles_after(monkeypatch, 9), []
    draws = rflvm.sample(Y, "poisson", n_samples="auto", progress=told.append, **SHORT)
    assert draws.ended == "settled"
    assert seen == [(2, 6, 12, 2), (2, 9, 12, 2)]
    assert [p.settled for p in told] == [None] * 9 + [0.5] * 3 + [0.75]
    assert {p.n_sweeps for p in told} == {16}
    numbers = rflvm.sample(Y, "poisson", n_samples=9, **SHORT)
    assert_same_draws(draws, numbers)
    assert numbers.ended == "length"


@pytest.mark.usefixtures("short_rounds")
def test_a_run_that_ends_by_itself_keeps_every_fourth_draw_and_little_of_beta(monkeypatch):
    settles_after(monkeypatch, 3)
    automatic: dict[str, Any] = SHORT | {"thin": "auto"}
    every_fourth: dict[str, Any] = SHORT | {"thin": 4}
    draws = rflvm.sample(Y, "poisson", n_samples="auto", **automatic)
    assert (draws.n_draws, draws.beta_thin) == (3, 1)
    assert_same_draws(draws, rflvm.sample(Y, "poisson", n_samples=12, **every_fourth))
    monkeypatch.setattr("rflvm.model.draws.BETA_BYTES", 3 * 4 * 35)  # room for three
    monkeypatch.setattr("rflvm.model.draws.FEWEST_BETA", 2)
    few = rflvm.sample(Y, "poisson", n_samples="auto", **automatic)
    assert few.beta_thin == 2
    np.testing.assert_array_equal(few["beta"], draws["beta"][:, ::2])
    np.testing.assert_array_equal(few["X"], draws["X"])
    monkeypatch.setattr("rflvm.model.draws.FEWEST_BETA", 6)
    assert rflvm.sample(Y, "poisson", n_samples="auto", **automatic).beta_thin == 1


@pytest.mark.usefixtures("short_rounds")
def test_a_run_that_does_not_settle_ends_and_goes_on_when_asked(monkeypatch):
    settles_after(monkeypatch, 99)
    draws = rflvm.sample(Y, "poisson", n_samples="auto", **SHORT)
    assert (draws.ended, draws.n_draws) == ("limit", 12)
    settles_after(monkeypatch, 18)
    longer = rflvm.continue_sampling(Y, draws)
    assert (longer.ended, longer.n_draws) == ("settled", 18)
    assert_same_draws(longer, rflvm.sample(Y, "poisson", n_samples=18, **SHORT))
    assert rflvm.continue_sampling(Y, longer).n_draws == 18  # it has settled


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("sweep", [3, 8, 10, 11])
def test_an_interrupted_run_that_is_resumed_ends_where_it_would_have(tmp_path, monkeypatch, sweep):
    settles_after(monkeypatch, 9)
    whole = rflvm.sample(Y, "poisson", n_samples="auto", **SHORT)

    def stop(progress):
        if progress.sweep == sweep:
            raise KeyboardInterrupt

    try:
        part = rflvm.sample(Y, "poisson", n_samples="auto", checkpoint=tmp_path, progress=stop, **SHORT)
        assert part.ended == "interrupted"
    except KeyboardInterrupt:
        assert sweep <= 4
    for _ in range(2):  # the second time there is nothing left to do
        assert_same_draws(rflvm.sample(Y, "poisson", n_samples="auto", checkpoint=tmp_path, **SHORT), whole)


@pytest.mark.parametrize("n_samples", ["auto", 50])
def test_time_that_is_over_ends_a_run_which_can_go_on(monkeypatch, tmp_path, n_samples: Any):
    """Each look at the clock is a second later; burn-in is made in any case."""
    clock = itertools.count()
    monkeypatch.setattr(rounds.time, "monotonic", lambda: float(next(clock)))
    draws = rflvm.sample(Y, "poisson", n_samples=n_samples, max_time=4, checkpoint=tmp_path, **SHORT)
    monkeypatch.undo()
    assert draws.ended == "time"
    assert 2 <= draws.n_draws < 10
    longer = rflvm.sample(Y, "poisson", n_samples=12, checkpoint=tmp_path, **SHORT)
    assert_same_draws(longer, rflvm.sample(Y, "poisson", n_samples=12, **SHORT))
    with pytest.raises(ValueError, match="max_time must be finite and positive"):
        rflvm.sample(Y, "poisson", max_time=0, **SHORT)


def test_beta_makes_room_when_a_run_goes_on_by_itself(monkeypatch):
    settles_after(monkeypatch, 0)
    monkeypatch.setattr(rounds, "N_ROUND", 3)
    draws = rflvm.sample(Y, "poisson", n_samples=7, **SHORT)
    budget = 1e6
    monkeypatch.setattr(rounds, "MOST_SAMPLES", 1200)
    longer = rflvm.continue_sampling(Y, draws, memory_budget=budget)
    assert (longer.ended, longer.n_draws) == ("settled", 9)
    assert longer.beta_thin > 1
    np.testing.assert_array_equal(longer["beta"][:, 0], draws["beta"][:, 0])


def test_the_bar_says_how_far_the_run_is(monkeypatch, capsys):
    monkeypatch.setattr(rounds, "N_ROUND", 3)
    settles_after(monkeypatch, 9)
    rflvm.sample(Y, "poisson", n_samples="auto", progress=True, **SHORT)
    assert "positions settled for 75% of rows" in capsys.readouterr().err
