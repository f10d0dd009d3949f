"""How a run reports its progress: not at all, by a bar, or to the user's function."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from ..model.draws import Run
from .chain import Chain


class Progress(NamedTuple):
    """What a progress callback is called with."""

    sweep: int
    n_sweeps: int
    n_burnin: int
    sweeps_per_second: float
    log_joint: float
    acceptance: dict[str, float]  # of the blocks that propose, mean over the sweeps after burn-in; empty before


def acceptance_rates(info: list[dict[str, Any]]) -> dict[str, float]:
    """Mean acceptance of the blocks that propose, over chains."""
    names = [name for name, block in info[0].items() if hasattr(block, "acceptance")]
    return {name: float(np.mean([np.mean(chain[name].acceptance) for chain in info])) for name in names}


Report = Callable[
    [Run, list[Chain], Callable[[], float]], None
]  # called with the run, its chains, and a function that gives the log joint density
Reporter = Callable[[Run, int], AbstractContextManager[Report]]


def _acceptance(run: Run, chains: list[Chain]) -> dict[str, float]:
    """Mean acceptance of the blocks that propose since the end of burn-in, over chains."""
    if not chains[0].info_sum:
        return {}
    sums = acceptance_rates([chain.info_sum for chain in chains])
    return {name: total / run.n_sampled for name, total in sums.items()}


def reporter(progress: bool | Callable[[Progress], None]) -> Reporter:
    """How the run reports its progress: not at all, by a bar, or to the user's function."""

    @contextmanager
    def silent(run, n_sweeps):
        yield lambda now, chains, log_joint: None

    @contextmanager
    def bar(run, n_sweeps):
        with tqdm(total=n_sweeps, initial=run.n_sweeps, unit="sweep", desc="burn-in") as line:
            shown = [0.0]

            def report(now, chains, log_joint):
                done = now.n_sweeps
                line.update(done - line.n)
                seconds = time.perf_counter()
                if seconds - shown[0] > 0.25 or done == n_sweeps:
                    shown[0] = seconds
                    line.set_description("burn-in" if done <= run.n_burnin else "sampling", refresh=False)
                    rates = list(_acceptance(now, chains).values())
                    accepted = f", acceptance {np.mean(rates):.2f}" if rates else ""
                    line.set_postfix_str(f"log joint {log_joint():.1f}{accepted}")

            yield report

    @contextmanager
    def callback(run, n_sweeps):
        start = time.perf_counter()

        def report(now, chains, log_joint):
            rate = (now.n_sweeps - run.n_sweeps) / (time.perf_counter() - start)
            accepted = _acceptance(now, chains)
            progress(Progress(now.n_sweeps, n_sweeps, run.n_burnin, rate, log_joint(), accepted))  # pyright: ignore[reportCallIssue]

        yield report

    if callable(progress):
        return callback
    return bar if progress else silent
