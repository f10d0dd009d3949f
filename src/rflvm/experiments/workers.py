"""Several calls at a time, each in a process that has its share of the cores to itself.

Fits of small tables do not keep two cores busy: side by side, with one core each, two are done sooner than one by one.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Any


def run(calls: dict[str, Callable[[], Any]], jobs: int, on_start: Callable[[str], None]) -> Iterator[tuple[str, Any]]:
    """Names and results of calls, as they end; ``on_start`` is called with the name of each before it.

    With one job they run here, one after the other. With more, calls and results must be picklable, and an error of one
    of them is raised once those that are running have ended.
    """
    if jobs == 1:
        for name, call in calls.items():
            on_start(name)
            yield name, call()
        return
    waiting = iter(calls.items())
    with ExitStack() as stack:
        running: dict[Future, tuple[str, ProcessPoolExecutor]] = {}

        def start(worker: ProcessPoolExecutor) -> None:
            for name, call in waiting:
                on_start(name)
                running[worker.submit(call)] = name, worker
                return

        for cores in shares(jobs):
            with confined(cores):  # a process starts at its first call, and inherits the cores of its parent
                context = multiprocessing.get_context("spawn")
                start(stack.enter_context(ProcessPoolExecutor(1, mp_context=context)))
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name, worker = running.pop(future)
                yield name, future.result()
                start(worker)


def shares(jobs: int) -> list[set[int]]:
    """The cores of this process divided among the jobs; all of them for each job where there are too few."""
    cores = sorted(_cores())
    return [set(cores[i::jobs] if jobs <= len(cores) else cores) for i in range(jobs)]


@contextmanager
def confined(cores: set[int]) -> Iterator[None]:
    """Run on these cores only; processes started within keep them. No effect on systems without CPU affinity."""
    before = _cores()
    if before:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        if before:
            os.sched_setaffinity(0, before)


def _cores() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
