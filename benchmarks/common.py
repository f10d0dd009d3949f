"""What the benchmarks share: the yardstick U, the machine, the data sets and the result files."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from sklearn.utils import Bunch

from rflvm import datasets

RESULTS = Path(__file__).parent / "results"


def unit_seconds(clock: Callable[[], float] = time.perf_counter) -> float:
    """U: seconds of one 2000 x 2000 float64 matrix product, median of five."""
    x = np.random.default_rng(0).normal(size=(2000, 2000))
    return median_seconds(lambda: np.matmul(x, x), 5, clock)


def median_seconds(run: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Median time of a call, after one call that may compile; ``clock`` may be that of the process's CPU time."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = clock()
        jax.block_until_ready(run())
        times.append(clock() - start)
    return statistics.median(times)


def machine() -> dict[str, str | int]:
    """What measured."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(models) or os.cpu_count() or 1,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
    }


def table(load: Callable[..., Bunch], **options: Any) -> Bunch | None:
    """A data set of the folder that RFLVM_DATA names, if it is there."""
    try:
        return load(**options) if os.environ.get("RFLVM_DATA") else None
    except FileNotFoundError:
        return None


def congress() -> tuple[np.ndarray, np.ndarray] | None:
    """529 x 1000 phrase counts of the 109th Congress, and whether a member is a Republican."""
    found = table(datasets.load_congress109)
    return None if found is None else (found.data, found.target == 2)


def montreal() -> tuple[np.ndarray, np.ndarray] | None:
    """319 days x 17 complete bicycle counters of 2015, and the season."""
    found = table(datasets.load_montreal)
    return None if found is None else (found.data, found.target)


def mnist(n: int = 1000) -> tuple[np.ndarray, np.ndarray] | None:
    """The first n training digits (n x 784) and their labels."""
    found = table(datasets.load_mnist, n_samples=n, random_state=None)
    return None if found is None else (found.data, found.target)


def yale() -> tuple[np.ndarray, np.ndarray] | None:
    """165 faces of 32 x 32 grey levels, and the person."""
    found = table(datasets.load_yale)
    if found is None:
        return None
    # Column by column: the order of the pixels in which the committed results were measured.
    return found.data.reshape(-1, 32, 32).transpose(0, 2, 1).reshape(-1, 1024), found.target


def newsgroups() -> tuple[np.ndarray, np.ndarray] | None:
    """Word counts of the posts of three groups, words in 10 to 90 % of the posts, and the group."""
    found = table(datasets.load_newsgroups)
    return None if found is None else (found.data, found.target)


def write(name: str, result: dict[str, Any]) -> None:
    """Save a result as JSON."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
