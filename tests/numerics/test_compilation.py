"""Programs compiled in less time give what they would give otherwise, and options that cannot be given are left out."""

from __future__ import annotations

import inspect

import jax.numpy as jnp
import pytest

from rflvm.numerics import compilation


@pytest.fixture(autouse=True)
def _asked_anew():
    compilation.quick_options.cache_clear()
    yield
    compilation.quick_options.cache_clear()


def test_the_function_is_computed_and_keeps_its_name():
    def power(x, n):
        """To a power."""
        return x**n

    program = compilation.compiled(power, quick=True, static_argnames="n")
    assert program(jnp.asarray(3.0), n=2) == 9
    assert (inspect.unwrap(program), program.__doc__) == (power, "To a power.")


def test_options_that_xla_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setattr(compilation, "QUICK", {"xla_backend_optimization_level": 1, "xla_of_another_age": True})
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert compilation.quick_options() == {"xla_backend_optimization_level": 1}


def test_what_the_user_has_set_is_left_to_them(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert "xla_backend_optimization_level" not in compilation.quick_options()


def test_the_options_are_known():
    """Of the versions that the tests run with; with none of them the engine would only begin later."""
    assert all(compilation._known(name, value) for name, value in compilation.QUICK.items())
