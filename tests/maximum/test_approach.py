"""The approximation of the objective: exact where it must be, and a way to the same maximum."""

from __future__ import annotations

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm.maximum import approach, climb, objective
from rflvm.model import laplace
from searches import search_on, table

TOLERANCE = 1e-13


def evaluated(search, data, model, anchor=None, parameters=None):
    parameters = search.parameters if parameters is None else parameters
    return objective.evaluate(parameters, search.mode, search.spectrum, data, model, TOLERANCE, anchor)


@pytest.fixture(autouse=True)
def _exact_modes(monkeypatch):
    """Gradients are compared, and they are those at the modes."""
    monkeypatch.setitem(climb.MODE_TOLERANCE, "float64", TOLERANCE)


def on_the_way(name, mask=None):
    """Data, model, a search that has left its start, and the approximation there."""
    data, model, search = search_on(name, "rbf", table(name), mask)
    search, gradient, _ = approach.measured(climb.climb(search, data, model, 4), data, model)
    return data, model, search, approach.anchored(search, gradient, data, model)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial", "multinomial"])
@pytest.mark.parametrize("gaps", [False, True])
def test_gradient_is_exact_at_the_anchor(x64, name, gaps):
    mask = np.random.default_rng(0).random(table(name).shape) > 0.2 if gaps and name != "multinomial" else None
    data, model, search, anchor = on_the_way(name, mask)
    exact, without = (climb.flatten(evaluated(search, data, model, a)[1])[0] for a in (None, anchor))
    np.testing.assert_allclose(without, exact, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_gradient_of_the_approximation_is_that_of_finite_differences(x64, name):
    data, model, search, anchor = on_the_way(name)
    flat, unravel = climb.flatten(search.parameters)
    rng = np.random.default_rng(1)
    away = flat + 0.1 * rng.normal(size=flat.shape)
    value, gradient, _ = evaluated(search, data, model, anchor, unravel(away))
    gradient = climb.flatten(gradient)[0]
    assert np.isfinite(float(value))
    for _ in range(3):
        step, h = rng.normal(size=flat.shape), 1e-4
        at = lambda k: float(evaluated(search, data, model, anchor, unravel(away + k * h * step))[0])  # noqa: B023, E731
        numeric = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
        assert gradient @ step == pytest.approx(numeric, rel=1e-5, abs=1e-4)


def test_shared_determinants_are_those_of_the_columns_where_the_curvature_is_of_rank_one(x64):
    """At the intercepts alone the curvature of Poisson cells is of rank one."""
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    zero = jax.tree.map(jnp.zeros_like, search.parameters)
    anchor = objective.Anchor(approach._share_curvature(search.parameters, search.mode, data, model), zero)
    assert search.mode is not None
    F = np.asarray(search.mode.F[0])
    product = np.outer(anchor.shared.rows, anchor.shared.columns)
    np.testing.assert_allclose(product, np.exp(F), rtol=1e-10)
    Phi = objective.scaled_features(search.parameters, search.spectrum)[0]
    B0_inverse = np.diag(np.asarray(model.prior.precision(Phi.shape[1], Phi.dtype)))
    P = [Phi.T @ (D[:, None] * Phi) + B0_inverse for D in product.T]
    half_logdet, slope = jax.jit(laplace._shared_determinants, static_argnums=2)(Phi, anchor.shared, model)
    assert float(half_logdet) == pytest.approx(0.5 * sum(np.linalg.slogdet(p)[1] for p in P), rel=1e-10)
    exact = sum(D[:, None] * np.asarray(Phi) @ np.linalg.inv(p) for p, D in zip(P, product.T, strict=True))
    np.testing.assert_allclose(slope, exact, rtol=1e-8, atol=1e-12)


def test_rounds_end_where_the_objective_itself_would(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    near = approach.approach(search, data, model, 200)
    exact = climb.climb(search, data, model, 500)
    assert near.value > search.value
    assert (np.diff(near.trace) > 0).all()
    after = climb.climb(near, data, model, 500)
    assert after.convergence == "converged"
    assert after.value > exact.value - 5


def test_a_round_that_the_objective_does_not_confirm_is_not_kept(x64, monkeypatch, caplog):
    data, model, search, _ = on_the_way("poisson")
    far = search.with_parameters(X=search.parameters.X + 5.0)
    monkeypatch.setattr(approach, "_round", lambda *arguments: (far, 1.0, True))
    with caplog.at_level(logging.INFO, logger="rflvm"):
        after = approach.approach(search, data, model, 100)
    assert "no more of them" in caplog.text
    assert not after.approximable
    assert approach.approach(after, data, model, 100) is after
    np.testing.assert_array_equal(after.parameters.X, search.parameters.X)


def test_an_interrupted_round_keeps_what_was_confirmed(x64):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    seen = []

    def stop(height):
        seen.append(height)
        if len(seen) == 10:
            raise KeyboardInterrupt

    after = approach.approach(search, data, model, 200, stop)
    assert after.convergence == "interrupted"
    assert after.value >= seen[-1]


def test_rounds_that_cost_as_much_as_the_objective_are_given_up(x64, monkeypatch):
    data, model, search = search_on("poisson", "rbf", table("poisson"))
    monkeypatch.setattr(climb, "MAX_RENEWALS", -1.0)
    after = approach.approach(search, data, model, 200)
    assert after.convergence == "iteration limit"
    assert len(after.trace) == 1
    assert after.n_iterations == 1


def test_the_conjugate_gaussian_needs_no_approximation(x64):
    data, model, search = search_on("gaussian", "rbf", table("gaussian"))
    assert approach.approach(search, data, model, 10) is search
