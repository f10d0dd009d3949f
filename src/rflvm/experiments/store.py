"""Results on disk, one file per task: tasks that are done are not run again after an interruption."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..files import npz
from . import workers

KIND = "experiment"


class Task(NamedTuple):
    """One fit of an experiment, and what is measured of it."""

    name: str  # unique within an experiment
    group: str  # tasks of a group take about as long as each other
    run: Callable[[], tuple[dict[str, Any], dict[str, np.ndarray]]]  # gives numbers and texts, and arrays


class Result(NamedTuple):
    """What a task gave, with ``values["seconds"]``, the time that it took."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def numbers(self) -> dict[str, Any]:
        """The values without the fields that only the file needs."""
        return {key: value for key, value in self.values.items() if key not in ("kind", "settings")}


class Step(NamedTuple):
    """How far an experiment is, before a task or after the last one."""

    begun: int  # tasks that are done or running
    total: int
    name: str
    seconds_left: float | None  # None before anything is known


def path_of(folder: Path, task: Task) -> Path:
    """The file of a task."""
    return folder / f"{task.name}.npz"


def read(folder: Path, task: Task) -> Result | None:
    """What a task gave, if it is done."""
    path = path_of(folder, task)
    return Result(*npz.read(path, KIND)) if path.exists() else None


def run(
    tasks: Sequence[Task],
    folder: Path,
    settings: dict[str, Any],
    on_step: Callable[[Step], None] = lambda step: None,
    jobs: int = 1,
) -> list[Result]:
    """All results, of tasks done earlier and now; the first task of each group runs first: times are then known soon.

    Parameters
    ----------
    tasks : sequence of Task
        In the order of the results.
    folder : Path
        Where their files are.
    settings : dict
        What the results depend on; a file with others is not reused.
    on_step : callable
        Called with a ``Step`` before each task and after the last.
    jobs : int
        How many tasks at a time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done: dict[str, Result] = {}
    for task in tasks:
        result = read(folder, task)
        if result is not None and result.values.get("settings") == settings:
            done[task.name] = result

    begun = itertools.count(len(done))

    def step(name: str) -> Step:
        left = seconds_left(tasks, {name: result.values["seconds"] for name, result in done.items()})
        return Step(next(begun), len(tasks), name, left and left / jobs)

    calls = {
        task.name: functools.partial(do, task, folder, settings)
        for task in _first_of_each_group_first(tasks)
        if task.name not in done
    }
    for name, result in workers.run(calls, jobs, lambda name: on_step(step(name))):
        done[name] = result
    on_step(step(""))
    return [done[task.name] for task in tasks]


def do(task: Task, folder: Path, settings: dict[str, Any]) -> Result:
    """Run a task and write its file."""
    start = time.perf_counter()
    values, arrays = task.run()
    values = {**values, "settings": settings, "seconds": time.perf_counter() - start}
    npz.write(path_of(folder, task), {"kind": KIND, **values}, arrays)
    return Result(values, arrays)


def seconds_left(tasks: Iterable[Task], seconds: dict[str, float]) -> float | None:
    """Estimated time of the tasks that are not done: the mean over their group, or else over all that are done."""
    if not seconds:
        return None
    known: dict[str, list[float]] = {}
    tasks = list(tasks)
    for task in tasks:
        if task.name in seconds:
            known.setdefault(task.group, []).append(seconds[task.name])
    mean = float(np.mean(list(seconds.values())))
    return sum(float(np.mean(known.get(task.group, [mean]))) for task in tasks if task.name not in seconds)


def _first_of_each_group_first(tasks: Sequence[Task]) -> list[Task]:
    seen: set[str] = set()
    first = [task for task in tasks if not (task.group in seen or seen.add(task.group))]
    return [*first, *(task for task in tasks if task not in first)]
