"""Programs compiled soon give what they would give otherwise, and options that cannot be given are left out."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from rflvm import compiling


@pytest.fixture(autouse=True)
def _asked_anew():
    compiling.options.cache_clear()
    yield
    compiling.options.cache_clear()


def test_the_function_is_computed_and_keeps_its_name():
    def power(x, n):
        """To a power."""
        return x**n

    compiled = compiling.compiled_soon(power, static_argnames="n")
    assert compiled(jnp.asarray(3.0), n=2) == 9
    assert (compiled.__name__, compiled.__doc__) == ("power", "To a power.")


def test_options_that_xla_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setattr(compiling, "OPTIONS", {"xla_backend_optimization_level": 1, "xla_of_another_age": True})
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert compiling.options() == {"xla_backend_optimization_level": 1}


def test_what_the_user_has_set_is_left_to_them(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert "xla_backend_optimization_level" not in compiling.options()


def test_the_options_are_known():
    """Of the versions that the tests run with; with none of them the engine would only begin later."""
    assert all(compiling._known(name, value) for name, value in compiling.OPTIONS.items())
