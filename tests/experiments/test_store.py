"""Work that is done is not done again, and what is left is estimated from what was alike."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest

from rflvm.experiments import store
from rflvm.experiments.store import Task
from rflvm.files.npz import FileError


def tasks(calls: list[str], names: tuple[str, ...] = ("a-0", "a-1", "b-0"), broken: str = "") -> list[Task]:
    def work(name):
        if name == broken:
            raise KeyboardInterrupt
        calls.append(name)
        return {"name": name}, {"X": np.arange(len(calls))}

    return [Task(name, name[0], lambda name=name: work(name)) for name in names]


def test_results_come_in_the_order_of_the_tasks_and_are_kept(tmp_path):
    calls: list[str] = []
    first = store.run(tasks(calls), tmp_path, {"quick": False})
    assert calls == ["a-0", "b-0", "a-1"]  # one of each kind first
    assert [result.values["name"] for result in first] == ["a-0", "a-1", "b-0"]
    again = store.run(tasks(calls), tmp_path, {"quick": False})
    assert len(calls) == 3
    for one, other in zip(first, again, strict=True):
        assert one.values["seconds"] == other.values["seconds"]
        np.testing.assert_array_equal(one.arrays["X"], other.arrays["X"])


def test_other_settings_do_not_reuse_them(tmp_path):
    calls: list[str] = []
    store.run(tasks(calls), tmp_path, {"quick": True})
    store.run(tasks(calls), tmp_path, {"quick": False})
    assert len(calls) == 6


def test_an_interrupted_run_goes_on(tmp_path):
    calls: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        store.run(tasks(calls, broken="a-1"), tmp_path, {})
    assert calls == ["a-0", "b-0"]
    steps: list[store.Step] = []
    store.run(tasks(calls), tmp_path, {}, steps.append)
    assert calls == ["a-0", "b-0", "a-1"]
    assert [(step.begun, step.total, step.name) for step in steps] == [(2, 3, "a-1"), (3, 3, "")]


def test_two_at_a_time(tmp_path):
    """The tasks are made of the standard library: other processes cannot import this module."""
    work = [Task(str(n), "alike", functools.partial(copy.copy, ({"n": n}, {"X": np.arange(n)}))) for n in range(3)]
    steps: list[store.Step] = []
    results = store.run(work, tmp_path, {}, steps.append, jobs=2)
    assert [result.values["n"] for result in results] == [0, 1, 2]
    assert [len(result.arrays["X"]) for result in results] == [0, 1, 2]
    assert [step.begun for step in steps] == [0, 1, 2, 3]
    first = [pytest.approx(result.values["seconds"]) for result in results[:2]]
    assert steps[2].seconds_left in first  # two tasks are left, in two processes


def test_a_damaged_result_is_named(tmp_path):
    calls: list[str] = []
    store.run(tasks(calls), tmp_path, {})
    path = tmp_path / "a-1.npz"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileError, match=r"a-1\.npz is damaged"):
        store.run(tasks(calls), tmp_path, {})


def test_time_left_is_that_of_tasks_alike():
    work = tasks([], ("a-0", "a-1", "a-2", "b-0", "b-1", "c-0"))
    assert store.seconds_left(work, {}) is None
    assert store.seconds_left(work, {"a-0": 10.0, "b-0": 1.0}) == pytest.approx(10 + 10 + 1 + 5.5)
