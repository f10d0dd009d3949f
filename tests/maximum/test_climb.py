"""L-BFGS: what it keeps, when it ends, and when it goes on in double precision."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import rflvm
from rflvm.maximum import climb
from searches import search_on, table


def test_objective_rises_within_a_climb(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    after = climb.climb(search, data, model, 15)
    assert (np.diff(after.trace) >= 0).all()
    assert after.trace[-1] > after.trace[0]


def test_a_climb_that_rises_no_more_has_converged(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    after = climb.climb(search, data, model, 500)
    assert after.convergence == "converged"
    again = climb.climb(after, data, model, 500)
    assert again.value - after.value < 20 * climb.MIN_RISE * len(data.Y)


def test_an_interrupted_climb_keeps_the_best_point(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    seen = []

    def stop(value):
        seen.append(value)
        if len(seen) == 3:
            raise KeyboardInterrupt

    after = climb.climb(search, data, model, 50, stop)
    assert after.convergence == "interrupted"
    assert after.value >= seen[-1]


def test_an_interrupt_before_the_first_point_is_raised(x64, monkeypatch):
    """While the objective is compiled, for example; not taken for an objective that is not finite."""
    data, model, search = search_on("poisson", "rbf", table("poisson"))

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(climb, "evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        climb.climb(search, data, model, 5)


def test_a_climb_goes_on_in_double_precision_where_single_is_too_coarse(caplog):
    """Counts of ten thousand: the determinant of P_j in single precision is noise, and the line search is lost."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    mean = 1e4 * np.exp(np.sin(X @ rng.normal(size=(2, 4))) + 0.5 * X @ rng.normal(size=(2, 4)))
    Y = rng.negative_binomial(30, 30 / (30 + mean)).astype(float)
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(Y, "negative_binomial", n_features=20, init="pca")
    assert "going on in double" in caplog.text
    assert fit.X.dtype == fit.beta.dtype == "float64"
    assert fit.convergence in ("converged", "iteration limit")
    assert (np.diff(fit.trace) >= -0.5).all()  # where precision changes, by what single precision was wrong


def test_single_precision_that_misses_the_modes_again_and_again_is_given_up(caplog, monkeypatch):
    """No Newton decrement is 0: every evaluation would go to the limit of its rounds."""
    monkeypatch.setitem(climb.MODE_TOLERANCE, "float32", 0.0)
    monkeypatch.setattr(climb, "MAX_MISSES", 3)
    with caplog.at_level(logging.INFO, logger="rflvm"):
        fit = rflvm.maximise(table("poisson"), "poisson", n_features=6, init="pca", n_iterations=10)
    assert "modes not found in single precision: going on in double" in caplog.text
    assert fit.X.dtype == "float64"
    assert len(fit.trace) > 3
    assert fit.convergence in ("converged", "iteration limit")


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        ({"interrupted", "modes_missing", "levelled", "at_limit"}, "interrupted"),
        ({"modes_missing", "levelled", "at_limit"}, "modes not found"),
        ({"levelled", "at_limit"}, "converged"),
        ({"at_limit"}, "iteration limit"),
        (set(), "line search failed"),
    ],
)
def test_verdict_is_the_gravest_of_what_was_seen(seen, verdict):
    names = ("interrupted", "modes_missing", "levelled", "at_limit")
    assert climb.verdict(**{name: name in seen for name in names}) == verdict


def test_gradient_of_the_preconditioned_coordinates_is_that_of_the_chain_rule(x64):
    """The change of variables is linear, so both sides of the chain rule are equal up to rounding."""
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    search = climb.climb(search, data, model, 3)  # from where rows are known in different measure
    preconditioner = climb.Preconditioner.at(search, data, model)
    flat, _ = climb.flatten(search.parameters)
    rng = np.random.default_rng(0)
    start = preconditioner.coordinates(flat)
    step, slope = rng.normal(size=start.shape), rng.normal(size=flat.shape)
    moved = preconditioner.parameters(start + step) - preconditioner.parameters(start)
    assert slope @ moved == pytest.approx(preconditioner.gradient(slope) @ step)
    np.testing.assert_array_equal(preconditioner.parameters(start), flat)
    assert np.ptp(np.asarray(preconditioner.factors)[:, 0, 0]) > 0.1
