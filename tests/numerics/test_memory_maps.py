"""Compiled programs are dropped before there are too many of them, and the user's own are kept."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from rflvm.numerics import memory_maps
from rflvm.numerics.compilation import compiled


@pytest.mark.parametrize(("lines", "dropped"), [(40, False), (60, True)])
def test_half_of_the_limit_is_kept_free(tmp_path, monkeypatch, lines, dropped):
    calls = []
    monkeypatch.setattr(memory_maps, "drop_programs", lambda: calls.append(1))
    (tmp_path / "limit").write_text("100\n")
    (tmp_path / "maps").write_text("a map\n" * lines)
    memory_maps.free_if_scarce(str(tmp_path / "limit"), str(tmp_path / "maps"))
    assert bool(calls) == dropped


def test_other_systems_have_no_such_files(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_maps, "drop_programs", lambda: pytest.fail("nothing was full"))
    memory_maps.free_if_scarce(str(tmp_path / "limit"), str(tmp_path / "maps"))


def test_programs_still_run_after_they_were_dropped_and_the_users_are_not_compiled_again():
    traced = []

    def double(name):
        def function(x):
            traced.append(name)
            return 2 * x

        return function

    ours, users = compiled(double("ours")), jax.jit(double("the user's"))
    for _ in range(2):
        assert ours(1.0) == users(1.0) == 2
    memory_maps.drop_programs()
    assert ours(1.0) == users(1.0) == 2
    assert traced == ["ours", "the user's", "ours"]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there are no memory maps to be counted")
def test_dropped_programs_give_their_memory_maps_back():
    def count():
        return len(Path("/proc/self/maps").read_bytes().splitlines())

    inner = compiled(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(len(x))))  # pyright: ignore[reportArgumentType]
    outer = compiled(lambda x: jnp.sort(inner(x) + jnp.cumsum(x)[0]))
    outer(jnp.ones((2, 3)))
    start = count()
    for n in range(3, 8):
        outer(jnp.ones((n, 3)))
    full = count()
    memory_maps.drop_programs()
    assert full - count() > 0.8 * (full - start) > 0
