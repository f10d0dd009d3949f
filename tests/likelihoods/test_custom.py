"""A family from the user's own density."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln

from rflvm.likelihoods import Custom, Poisson

Y = np.array([[0.0, 3.0], [1.0, 7.0]])
F = np.array([[-1.0, 0.5], [0.2, 2.0]])
ALL = np.ones(Y.shape, bool)


def poisson(y, f):
    return y * f - jnp.exp(f) - gammaln(y + 1)


def test_a_poisson_written_as_custom_is_the_poisson(x64):
    arguments = jnp.asarray(Y), jnp.asarray(F), {}, None
    np.testing.assert_allclose(Custom(poisson).log_prob(*arguments), Poisson().log_prob(*arguments), rtol=1e-14)
    bare = Custom(lambda y, f: y * f - jnp.exp(f))
    np.testing.assert_allclose(bare.log_factor(*arguments), Poisson().log_factor(*arguments), rtol=1e-14)


def test_given_functions_are_used(x64):
    family = Custom(poisson, mean=jnp.exp, variance=lambda f: 2 * jnp.exp(f), sample=lambda key, f: f + key)
    np.testing.assert_allclose(family.mean(jnp.asarray(F), {}), np.exp(F))
    np.testing.assert_allclose(family.variance(jnp.asarray(F), {}), 2 * np.exp(F))
    np.testing.assert_allclose(family.sample(jnp.asarray(1.0), jnp.asarray(F), {}), F + 1)


@pytest.mark.parametrize("name", ["mean", "variance", "sample"])
def test_a_function_that_was_not_given_is_named(name):
    arguments = (jnp.asarray(0.0),) if name == "sample" else ()
    with pytest.raises(ValueError, match=re.escape(f"no {name}: pass Custom(log_prob, {name}=...)")):
        getattr(Custom(poisson), name)(*arguments, jnp.zeros((2, 2)), {})


def test_a_density_that_does_not_return_one_value_per_cell_is_refused():
    with pytest.raises(ValueError, match=re.escape("one value per cell, (2, 2), got ()")):
        Custom(lambda y, f: jnp.sum(y * f)).check(Y, ALL)


def test_a_density_that_is_not_finite_is_refused_with_the_cell():
    family = Custom(lambda y, f: jnp.log(y) - f)
    with pytest.raises(ValueError, match=re.escape("not finite at Y[0, 0] = 0")):
        family.check(Y, ALL)
    family.check(Y, Y > 0)


@pytest.mark.parametrize("name", ["log_prob", "mean", "variance", "sample"])
def test_what_is_not_callable_is_refused(name):
    arguments: dict[str, Any] = {"log_prob": poisson} | {name: 3}
    with pytest.raises(TypeError, match=f"{name} to be callable, got int"):
        Custom(**arguments)
