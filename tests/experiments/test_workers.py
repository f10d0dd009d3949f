"""Calls side by side: all are made, each process stays on its cores, an error is not lost."""

from __future__ import annotations

import functools
import operator
import os

import pytest

from rflvm.experiments import workers

on_linux = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="the system does not bind processes to cores"
)


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_all_calls_are_made_and_told_of(jobs):
    calls = {str(n): functools.partial(operator.mul, n, n) for n in range(3)}
    told: list[str] = []
    assert dict(workers.run(calls, jobs, told.append)) == {"0": 0, "1": 1, "2": 4}
    assert told == ["0", "1", "2"]


@on_linux
def test_every_process_has_its_share_of_the_cores():
    before = os.sched_getaffinity(0)
    calls = {str(n): functools.partial(os.sched_getaffinity, 0) for n in range(2)}
    found = dict(workers.run(calls, 2, lambda name: None))
    assert [found["0"], found["1"]] == workers.shares(2)
    assert os.sched_getaffinity(0) == before


@on_linux
def test_cores_are_dealt_out_or_shared(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 3, 5})
    assert workers.shares(2) == [{1, 5}, {3}]
    assert workers.shares(4) == [{1, 3, 5}] * 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_raised(jobs):
    calls = {"bad": functools.partial(operator.truediv, 1, 0), "good": functools.partial(operator.add, 1, 1)}
    with pytest.raises(ZeroDivisionError):
        list(workers.run(calls, jobs, lambda name: None))
