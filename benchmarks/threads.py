"""Fits in threads: whether pairs of them end, and what the lock of ``rflvm.numerics.compilation`` costs one fit.

    python benchmarks/threads.py

Poisson tables of 60 x 64 (D = 2, M = 40), pairs of short runs of the sampler and of the MAP engine by turns, in
processes of ``PAIRS_AT_ONCE`` pairs; a process that does not end in ``SECONDS`` counts as a hang, with the pairs that
it did not finish. The cost of the lock is the time of one sweep with it over the time without, in one process, median
of ``ROUNDS`` rounds that alternate. Writes benchmarks/results/threads.json.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import common
import numpy as np

import rflvm
from rflvm.numerics import compilation

PAIRS, PAIRS_AT_ONCE, SECONDS = 50, 10, 300
ROUNDS, SWEEPS = 7, 100


def table() -> np.ndarray:
    """Counts, large enough for jaxlib to split a batch of matrices over its pool."""
    return np.random.default_rng(0).poisson(3, (60, 64)).astype(float)


def sample(seed: int, n_samples: int = 10) -> None:
    """A short run of the sampler."""
    rflvm.sample(table(), "poisson", n_features=40, n_samples=n_samples, n_burnin=10, init="pca", seed=seed)


def maximise(seed: int) -> None:
    """A short climb."""
    rflvm.maximise(table(), "poisson", n_features=40, n_iterations=10, init="pca", kernel="rbf", seed=seed)


def pairs(count: int) -> None:
    """Pairs of fits in two threads, after one of each alone; a line for each pair that ended."""
    sample(0)
    maximise(0)
    with ThreadPoolExecutor(2) as pool:
        for i in range(count):
            list(pool.map((sample, maximise)[i % 2], (2 * i, 2 * i + 1)))
            print("pair", i, flush=True)


def count_pairs() -> dict[str, int]:
    """Pairs that ended, and processes that did not."""
    done = hangs = 0
    for _ in range(PAIRS // PAIRS_AT_ONCE):
        command = [sys.executable, __file__, "pairs", str(PAIRS_AT_ONCE)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                output, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
                hangs += 1
            else:
                if process.returncode:
                    raise RuntimeError(f"a process of pairs ended with {process.returncode}")
        done += output.count("pair")
        print(done, "pairs,", hangs, "hangs", flush=True)
    return {"pairs": PAIRS, "pairs_done": done, "hangs": hangs}


def sweep_seconds(locked: bool) -> float:
    """Time of one sweep, with the lock and the wait for each result, or as ``jax.jit`` alone would run it."""
    run = compilation._queue.run
    if not locked:
        compilation._queue.run = lambda program: program()  # type: ignore[method-assign]
    try:
        start = time.perf_counter()
        sample(0, SWEEPS)
        return (time.perf_counter() - start) / (SWEEPS + 10)
    finally:
        compilation._queue.run = run  # type: ignore[method-assign]


def cost_of_lock() -> dict[str, float]:
    """Medians over rounds that alternate, so that a busy moment of the machine meets both."""
    sample(0)
    rounds = [(sweep_seconds(True), sweep_seconds(False)) for _ in range(ROUNDS)]
    locked, free = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for one, other in rounds)
    return {"sweep_seconds": round(locked, 5), "without_lock": round(free, 5), "ratio": round(ratio, 3)}


def main() -> None:
    """Pairs first, then the cost."""
    result = {"machine": common.machine(), "table": [60, 64], "n_features": 40, **count_pairs(), "lock": cost_of_lock()}
    common.write("threads", result)


if __name__ == "__main__":
    if sys.argv[1:2] == ["pairs"]:
        pairs(int(sys.argv[2]))
    else:
        main()
