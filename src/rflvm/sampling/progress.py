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
from .rounds import End


class Progress(NamedTuple):
    """What a progress callback is called with."""

    sweep: int
    n_sweeps: int  # at most, where the run ends as soon as it has settled
    n_burnin: int
    sweeps_per_second: float
    log_joint: float
    acceptance: dict[str, float]  # of the blocks that propose, mean over the sweeps after burn-in; empty before
    settled: float | None = None  # share of the rows whose positions have settled, once that was looked at


def acceptance_rates(info: list[dict[str, Any]]) -> dict[str, float]:
    """Mean acceptance of the blocks that propose, over chains."""
    names = [name for name, block in info[0].items() if hasattr(block, "acceptance")]
    return {name: float(np.mean([np.mean(chain[name].acceptance) for chain in info])) for name in names}


# Called with the run, its chains, a function that gives the log joint density, and the share of rows that have settled.
Report = Callable[[Run, list[Chain], Callable[[], float], float | None], None]
Reporter = Callable[[Run, End], AbstractContextManager[Report]]


def _acceptance(run: Run, chains: list[Chain]) -> dict[str, float]:
    """Mean acceptance of the blocks that propose since the end of burn-in, over chains."""
    if not chains[0].info_sum:
        return {}
    sums = acceptance_rates([chain.info_sum for chain in chains])
    return {name: total / run.n_sampled for name, total in sums.items()}


def reporter(progress: bool | Callable[[Progress], None]) -> Reporter:
    """How the run reports its progress: not at all, by a bar, or to the user's function."""

    @contextmanager
    def silent(run, end):
        yield lambda now, chains, log_joint, settled: None

    @contextmanager
    def bar(run, end):
        # Nobody knows when a run that ends by itself will: it has no total, and no time is promised.
        total = None if end.settles else end.n_sweeps
        with tqdm(total=total, initial=run.n_sweeps, unit="sweep", desc="burn-in") as line:
            shown = [(0.0, None)]

            def report(now, chains, log_joint, settled):
                done = now.n_sweeps
                line.update(done - line.n)
                seconds = time.perf_counter()
                if seconds - shown[0][0] > 0.25 or settled != shown[0][1] or done == end.n_sweeps:
                    shown[0] = seconds, settled
                    line.set_description("burn-in" if done <= run.n_burnin else "sampling", refresh=False)
                    rates = list(_acceptance(now, chains).values())
                    accepted = f", acceptance {np.mean(rates):.2f}" if rates else ""
                    share = "" if settled is None else f"positions settled for {settled:.0%} of rows, "
                    line.set_postfix_str(f"{share}log joint {log_joint():.1f}{accepted}")

            yield report

    @contextmanager
    def callback(run, end):
        start = time.perf_counter()

        def report(now, chains, log_joint, settled):
            rate = (now.n_sweeps - run.n_sweeps) / (time.perf_counter() - start)
            accepted = _acceptance(now, chains)
            progress(Progress(now.n_sweeps, end.n_sweeps, run.n_burnin, rate, log_joint(), accepted, settled))  # pyright: ignore[reportCallIssue]

        yield report

    if callable(progress):
        return callback
    return bar if progress else silent
