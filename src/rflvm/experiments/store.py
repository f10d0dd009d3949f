"""Results on disk, one file per piece of work: what is done is not done again, whatever interrupted the rest."""

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
    """A piece of work: its name, unique within an experiment, what it is like, and what it does.

    ``run`` gives numbers and texts, and arrays. Tasks that are alike take about as long as each other.
    """

    name: str
    alike: str
    run: Callable[[], tuple[dict[str, Any], dict[str, np.ndarray]]]


class Result(NamedTuple):
    """What a task gave, with ``values["seconds"]``, the time that it took."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def numbers(self) -> dict[str, Any]:
        """The values without what the file says of itself."""
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
    tell: Callable[[Step], None] = lambda step: None,
    jobs: int = 1,
) -> list[Result]:
    """All results, of tasks done earlier and now; the first task of each kind runs first, so that times are known soon.

    Parameters
    ----------
    tasks : sequence of Task
        In the order of the results.
    folder : Path
        Where their files are.
    settings : dict
        What the results depend on; a file with others is not reused.
    tell : callable
        Given a ``Step`` before each task and after the last.
    jobs : int
        How many tasks at a time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Result] = {}
    for task in tasks:
        result = read(folder, task)
        if result is not None and result.values.get("settings") == settings:
            found[task.name] = result

    begun = itertools.count(len(found))

    def step(name: str) -> Step:
        left = seconds_left(tasks, {name: result.values["seconds"] for name, result in found.items()})
        return Step(next(begun), len(tasks), name, left and left / jobs)

    calls = {
        task.name: functools.partial(do, task, folder, settings)
        for task in _first_of_each_kind_first(tasks)
        if task.name not in found
    }
    for name, result in workers.run(calls, jobs, lambda name: tell(step(name))):
        found[name] = result
    tell(step(""))
    return [found[task.name] for task in tasks]


def do(task: Task, folder: Path, settings: dict[str, Any]) -> Result:
    """Run a task and write its file."""
    start = time.perf_counter()
    values, arrays = task.run()
    values = {**values, "settings": settings, "seconds": time.perf_counter() - start}
    npz.write(path_of(folder, task), {"kind": KIND, **values}, arrays)
    return Result(values, arrays)


def seconds_left(tasks: Iterable[Task], seconds: dict[str, float]) -> float | None:
    """Time of the tasks that are not done: that of those alike, or else the mean."""
    if not seconds:
        return None
    known: dict[str, list[float]] = {}
    tasks = list(tasks)
    for task in tasks:
        if task.name in seconds:
            known.setdefault(task.alike, []).append(seconds[task.name])
    mean = float(np.mean(list(seconds.values())))
    return sum(float(np.mean(known.get(task.alike, [mean]))) for task in tasks if task.name not in seconds)


def _first_of_each_kind_first(tasks: Sequence[Task]) -> list[Task]:
    seen: set[str] = set()
    first = [task for task in tasks if not (task.alike in seen or seen.add(task.alike))]
    return [*first, *(task for task in tasks if task not in first)]
