"""The estimate of a fit's memory: what it grows with, and that what would not fit is refused before it begins."""

import logging
from typing import Any

import numpy as np
import pytest

import rflvm
from rflvm import RFLVM, likelihoods
from rflvm.data import checks, footprint, memory
from rflvm.model.draws import N_CELLS

WIDE = np.random.default_rng(0).poisson(1.0, (10, 2000)).astype(float)


def size(Y: np.ndarray, family: Any, H: int = 50) -> footprint.Size:
    return footprint.size_of(checks.check_table(Y, family, None, None, 2), family, 2, H)


def test_every_column_has_its_matrices_but_those_of_a_gaussian_without_gaps():
    gaps = WIDE.copy()
    gaps[0, 0] = np.nan
    assert size(WIDE, likelihoods.Poisson()).n_matrices == 2000
    assert size(WIDE, likelihoods.Gaussian()).n_matrices == 1
    assert size(gaps, likelihoods.Gaussian()).n_matrices == 2000
    assert size(WIDE, likelihoods.Multinomial()).n_matrices == 1999


def test_the_matrices_of_the_climb_grow_with_columns_times_the_square_of_the_features():
    few, many = (footprint.of_maximum(size(WIDE, likelihoods.Poisson(), H), 1e9, 0) for H in (50, 250))
    assert many.matrices / few.matrices == pytest.approx((501 / 101) ** 2)
    assert many.matrices > 3 * 2000 * 501**2 * 4
    assert many.table == few.table


def test_beta_is_drawn_with_its_factors_if_these_are_within_the_budget():
    fit = size(WIDE, likelihoods.Poisson())
    least, most = (footprint.of_maximum(fit, budget, 64).matrices for budget in (0, 1e9))
    assert least == footprint.of_maximum(fit, 0, 0).matrices < most


def test_kept_draws_count_up_to_the_budget():
    fit = size(WIDE, likelihoods.Poisson())
    draws = [footprint.of_chains(fit, 2, n, 1e9, at_maximum=True).draws for n in (10, 20, 10**6)]
    assert draws[1] == 2 * draws[0]
    small = 10 * (2 + N_CELLS) + 2 * 50 * 2 + 50 * 4 + 2 * 2000
    assert draws[2] == 2 * 2 * 10**6 * footprint.SINGLE * small + 1e9


def test_the_estimate_is_logged_before_the_fit(caplog, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 8 * 10**9)
    with caplog.at_level(logging.INFO, logger="rflvm.data.footprint"):
        fit = size(WIDE, likelihoods.Poisson())
        footprint.check(fit, footprint.of_maximum(fit, 1e9, 64))
    (record,) = caplog.records
    text = record.getMessage()
    assert text.startswith("a fit of 10 x 2000 cells with n_features = 100 needs about ")
    assert text.endswith(" GB of memory, and 8 GB are free")


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"inference": "map"}, "lower n_features, or fit fewer columns"),
        ({"inference": "gibbs", "n_samples": 2}, "lower n_features, or fit fewer columns"),
        ({"inference": "gibbs", "likelihood": "gaussian", "n_samples": 10**6}, "raise thin"),
        (
            {"inference": "gibbs", "likelihood": "gaussian", "n_features": 2, "n_samples": 2},
            "fit fewer rows or columns",
        ),
    ],
)
def test_a_fit_that_would_not_fit_is_refused_before_anything_is_compiled(settings, remedy, monkeypatch):
    def fail(*arguments, **named):
        pytest.fail("the fit started")

    monkeypatch.setattr("rflvm.maximum.maximise.find_maximum", fail)
    monkeypatch.setattr("rflvm.sampling.run._starter", fail)
    monkeypatch.setattr(memory, "available", lambda: 3 * 10**8)
    with pytest.raises(ValueError, match=rf"^a fit of 10 x 2000 cells .* 0\.3 GB are free: .*{remedy}$"):
        RFLVM(**{"likelihood": "poisson", "n_features": 100} | settings).fit(WIDE)


def test_the_functions_refuse_as_the_estimator_does(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 3 * 10**8)
    for fit in (rflvm.maximise, rflvm.sample):
        with pytest.raises(ValueError, match=r"^a fit of 10 x 2000 cells"):
            fit(WIDE, "poisson")


def test_where_the_free_memory_is_not_known_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: None)
    fit = size(WIDE, likelihoods.Poisson(), H=10**6)
    footprint.check(fit, footprint.of_maximum(fit, 1e9, 64))
