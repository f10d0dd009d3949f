"""Programs compiled in less time give what they would give otherwise, and never do two of them run at once."""

from __future__ import annotations

import inspect
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
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


def test_only_one_program_runs_at_a_time():
    running, most = [], []

    def look(x):
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return x

    def slow(x):
        return jax.pure_callback(look, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    programs = [compilation.compiled(slow), compilation.compiled(lambda x: 2 * slow(x))]
    x = jnp.zeros(3)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: programs[n % 2](x), range(12)))
    assert (len(most), max(most)) == (12, 1)


def test_a_program_may_be_a_part_of_another():
    inner = compilation.compiled(lambda x: x + 1)
    outer = compilation.compiled(lambda x: inner(x) * inner(jnp.ones(3)))
    np.testing.assert_array_equal(outer(jnp.ones(3)), [4, 4, 4])
    np.testing.assert_array_equal(jax.jit(jax.vmap(inner))(jnp.ones(3)), [2, 2, 2])


def test_results_may_be_any_tree():
    program = compilation.compiled(lambda x: {"a": (x, None), "b": 3})
    assert jax.tree.map(float, program(1.0)) == {"a": (1, None), "b": 3}


def test_an_error_leaves_the_way_free_for_the_next_program():
    def broken(x):
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        compilation.compiled(broken)(1.0)
    with ThreadPoolExecutor(1) as pool:  # another thread: this one could take the lock again
        assert pool.submit(compilation.compiled(lambda x: x + 1), 1.0).result(timeout=60) == 2


def test_what_an_interrupted_program_left_running_is_waited_for(monkeypatch):
    finished = []

    def slow(x):
        time.sleep(0.3)
        finished.append(1)
        return x

    program = compilation.compiled(lambda x: jax.pure_callback(slow, jax.ShapeDtypeStruct((), x.dtype), x))
    other = compilation.compiled(lambda x: x + 1)
    wait = jax.block_until_ready
    with monkeypatch.context() as patch:
        patch.setattr(jax, "block_until_ready", lambda result: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            program(jnp.asarray(1.0))
    waited = []
    monkeypatch.setattr(jax, "block_until_ready", lambda result: waited.append(wait(result)) or result)
    assert other(1.0) == 2
    assert finished
    assert waited == [1, 2]
