"""Compiled programs are dropped before there are too many of them."""

from __future__ import annotations

import jax
import pytest

from rflvm.numerics import memory_maps


@pytest.mark.parametrize(("lines", "dropped"), [(40, False), (60, True)])
def test_half_of_the_limit_is_kept_free(tmp_path, monkeypatch, lines, dropped):
    calls = []
    monkeypatch.setattr(jax, "clear_caches", lambda: calls.append(1))
    (tmp_path / "limit").write_text("100\n")
    (tmp_path / "maps").write_text("a map\n" * lines)
    memory_maps.make(str(tmp_path / "limit"), str(tmp_path / "maps"))
    assert bool(calls) == dropped


def test_other_systems_have_no_such_files(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "clear_caches", lambda: pytest.fail("nothing was full"))
    memory_maps.make(str(tmp_path / "limit"), str(tmp_path / "maps"))


def test_programs_still_run_after_they_were_dropped():
    double = jax.jit(lambda x: 2 * x)
    assert double(1.0) == 2
    jax.clear_caches()
    assert double(1.0) == 2
