"""The competition of starts."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.maximum import competition, starts
from searches import search_on, table


def test_auto_tries_several_starts_and_says_which_it_kept(caplog):
    Y = make_s_curve(80, 12, emissions="poisson").data
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(Y, "poisson", n_features=8, n_iterations=3, kernel="rbf")
    assert fit.init.split()[0] in starts.STARTS
    assert f"start of X: {fit.init}" in caplog.text
    for name in starts.STARTS:  # all of them on the stand-in
        assert f"{name} " in caplog.text


def test_a_graph_of_neighbours_meets_the_table_where_it_shows_another_picture(x64, monkeypatch):
    data, model, _ = search_on("poisson", "rbf", table("poisson"))
    rng = np.random.default_rng(0)
    one, other = (starts.scaled(rng.normal(size=(30, 2))) for _ in range(2))
    candidates = {"pca": one, "isomap": 2 * one, "tsne": other, "kernel 1": one}
    monkeypatch.setattr(starts, "candidates", lambda *arguments: candidates)
    monkeypatch.setattr(competition, "_screen", lambda *arguments: {})
    entered = competition._entrants(np.asarray(data.Y), data, model, 0, lambda height: None, True)
    assert list(entered) == ["pca", "kernel 1", "tsne"]


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


def test_an_interrupt_before_there_is_a_start_is_raised(x64):
    data, model, _ = search_on("gaussian", "rbf", table("gaussian"))

    def stop(value):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        competition.choose_start(data, model, "auto", 0, 10, stop)


def test_finalists_are_high_and_have_different_pictures(x64):
    _, _, search = search_on("gaussian", "rbf", table("gaussian"))
    rng = np.random.default_rng(0)
    other = lambda: search.with_parameters(X=rng.normal(size=search.parameters.X.shape))  # noqa: E731
    turned = search.with_parameters(X=search.parameters.X @ np.array([[0.0, 1.0], [-1.0, 0.0]]))
    at = {
        "too low for the last place": (-200.0, other()),
        "low": (-100.0, other()),
        "best": (0.0, search),
        "the same picture, turned": (-20.0, turned),
        "almost as high": (-1.5, other()),
        "lower": (-50.0, other()),
    }
    entrants = {
        name: competition.Entrant(dataclasses.replace(search, value=value), [value])
        for name, (value, search) in at.items()
    }
    assert competition.finalists(entrants) == ["best", "almost as high", "lower", "low"]


def test_chains_can_start_from_other_pictures_that_come_close_and_from_other_ways_to_the_same_one(x64):
    _, _, search = search_on("gaussian", "rbf", table("gaussian"))
    rng = np.random.default_rng(0)
    other = lambda: search.with_parameters(X=rng.normal(size=search.parameters.X.shape))  # noqa: E731
    N = len(search.parameters.X)
    limit = competition.CLOSE * N
    at = {
        "the same, dropped": (search, [-9.0]),  # less than the winner after its first round
        "far below": (other(), [-10.0, -1.1 * limit]),
        "the same": (search, [-10.0, -0.5 * limit]),
        "winner": (search, [-8.0, 0.0]),
        "close": (other(), [-10.0, -0.9 * limit]),
        "closer": (other(), [-10.0, -0.1 * limit]),
    }
    entrants = {name: competition.Entrant(search, heights) for name, (search, heights) in at.items()}
    expected = ["closer", "close", "the same, dropped", "the same"]
    assert competition.others(entrants, "winner", N) == expected


def test_a_start_that_cannot_catch_up_is_dropped(x64, monkeypatch):
    """By the rise of its last round; before the second round on one table nobody is."""
    _, _, search = search_on("gaussian", "rbf", table("gaussian"))
    rises = {"ahead": [100.0, 10.0, 1.0], "slow": [50.0, 20.0, 10.0], "fast": [40.0, 69.0, 5.0]}
    n_rounds = dict.fromkeys(rises, 0)

    def advance(search, data, model, n_iterations, on_iteration):
        name = list(rises)[int(search.trace[0])]
        value = search.value + rises[name][n_rounds[name]]
        n_rounds[name] += 1
        return dataclasses.replace(search, value=value, n_iterations=search.n_iterations + n_iterations)

    monkeypatch.setattr(competition, "_advance", advance)
    entrants = {
        name: competition.Entrant(dataclasses.replace(search, value=0.0, trace=[float(i)]), [])
        for i, name in enumerate(rises)
    }
    last = competition._race(entrants, *search_on("gaussian", "rbf", table("gaussian"))[:2], 500, lambda height: None)
    assert n_rounds == {"ahead": 3, "slow": 2, "fast": 3}
    assert last["fast"].heights == [40.0, 109.0, 114.0]


def test_starts_are_kept_with_their_heights():
    truth = make_s_curve(80, 12, emissions="poisson")
    fit = rflvm.maximise(truth.data, "poisson", n_features=12, seed=3)
    names = [start.name for start in fit.starts]
    assert fit.init == names[0]
    assert {"pca", "kernel 1"} <= set(names)
    assert fit.starts[0].same_picture
    assert all(len(start.heights) >= 1 and not start.sampled for start in fit.starts)
    last = max(len(start.heights) for start in fit.starts)
    assert len(fit.starts[0].heights) == last
    assert all(start.heights[-1] <= fit.log_posterior + 0.1 for start in fit.starts if len(start.heights) == last)
