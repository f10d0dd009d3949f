"""The objective: its gradient, the amplitude, and the volume correction."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from rflvm.maximum import climb, objective, result
from rflvm.maximum.competition import Start
from rflvm.model.joint import Prior
from searches import search_on, table

START = Start("pca", 0, (), False, True, 1.0)


@pytest.mark.parametrize(
    ("name", "kernel"), [("gaussian", "learned"), ("poisson", "learned"), ("negative-binomial", "rbf")]
)
def test_gradient_of_the_objective_equals_finite_differences(x64, name, kernel):
    Y = table(name, 12, 4)
    mask = np.random.default_rng(1).random(Y.shape) > 0.15
    data, model, search = search_on(name, kernel, Y, mask)
    flat, unravel = climb.flatten(search.parameters)
    value = lambda flat: objective.evaluate(unravel(flat), search.mode, search.spectrum, data, model, 1e-16)  # noqa: E731
    gradient = climb.flatten(value(flat)[1])[0]
    rng = np.random.default_rng(2)
    for _ in range(2):
        step, h = rng.normal(size=flat.shape), 1e-4
        at = lambda k, step=step, h=h: float(value(flat + k * h * step)[0])  # noqa: E731
        numeric = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
        assert gradient @ step == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_amplitude_is_the_scale_of_the_coefficients(x64, name):
    """Learned as 1.7, or given as the prior's: the same evidence, the same posterior of beta."""
    amplitude = jnp.log(jnp.asarray(1.7))
    data, model, search = search_on(name, "rbf", table(name, 12, 4))
    learned = search.with_parameters(log_amplitude=amplitude)
    given = search.with_parameters(log_amplitude=None)
    scaled = dataclasses.replace(model, prior=Prior(beta_scale=1.7))
    value = lambda s, m: objective.evaluate(s.parameters, s.mode, s.spectrum, data, m, 1e-12)  # noqa: E731
    (first, _, evidence), (second, _, other) = value(learned, model), value(given, scaled)
    assert float(first) + 0.5 * float(amplitude) ** 2 == pytest.approx(float(second), abs=1e-6)
    fits = [
        result.summarise(dataclasses.replace(s, mode=None if e is None else e.mode), (START,), data, m, 1e9)
        for s, e, m in ((learned, evidence, model), (given, other, scaled))
    ]
    assert [fit.amplitude for fit in fits] == pytest.approx([1.7, 1.0])
    np.testing.assert_allclose(fits[0].beta, fits[1].beta, atol=1e-6)
    np.testing.assert_allclose(fits[0].X_covariance, fits[1].X_covariance, atol=1e-6)
    assert fits[0].beta_factor is not None
    assert fits[1].beta_factor is not None
    np.testing.assert_allclose(fits[0].beta_factor, fits[1].beta_factor, atol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "learned"])
def test_scale_that_latents_and_frequencies_share_is_settled_by_the_prior(x64, kernel):
    """X -> sX, W -> W/s leaves the likelihood alone; the objective is highest where X has mean square one."""
    _, model, search = search_on("gaussian", kernel, table("gaussian"))
    flat = search.spectrum._replace(information=jnp.asarray(1e6), Sigma=1e6 * search.spectrum.Sigma)

    def value(s):
        X, log_amplitude, log_scale, W, log_theta = search.parameters
        scale = None if log_scale is None else log_scale - np.log(s)
        moved = objective.Parameters(X * s, log_amplitude, scale, None if W is None else W / s, log_theta)
        return float(objective.log_prior(moved, flat, model))

    at = [value(s) for s in (0.8, 1.0, 1.25)]
    assert at[1] > max(at[0], at[2])
