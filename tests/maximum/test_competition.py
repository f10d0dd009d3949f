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


def test_an_interrupt_before_there_is_a_start_is_raised(x64):
    data, model, _ = search_on("gaussian", "rbf", table("gaussian"))

    def stop(value):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        competition.choose_start(data, model, "auto", 0, stop)


def test_finalists_are_high_and_in_different_maxima(x64):
    _, _, search = search_on("gaussian", "rbf", table("gaussian"))
    heights = {"low": -100.0, "best": 0.0, "the same maximum": -1.0, "second": -20.0, "third": -40.0}
    searches = {name: dataclasses.replace(search, value=value) for name, value in heights.items()}
    assert competition.finalists(searches) == ["best", "second"]
    del searches["second"], searches["third"]
    assert competition.finalists(searches) == ["best"]
