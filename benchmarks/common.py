"""What the benchmarks share: the yardstick U, the machine, the data sets and the result files."""

from __future__ import annotations

import csv
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

RESULTS = Path(__file__).parent / "results"


def unit_seconds() -> float:
    """U: seconds of one 2000 x 2000 float64 matrix product, median of five."""
    x = np.random.default_rng(0).normal(size=(2000, 2000))
    return median_seconds(lambda: np.matmul(x, x), 5)


def median_seconds(run: Callable[[], Any], repeats: int) -> float:
    """Median time of a call, after one call that may compile."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
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


def congress() -> np.ndarray | None:
    """The 529 x 1000 phrase counts of the 109th Congress, if RFLVM_DATA names a folder that has them."""
    folder = os.environ.get("RFLVM_DATA")
    path = Path(folder, "congress109", "congress109.csv") if folder else None
    if path is None or not path.exists():
        return None
    with path.open(newline="") as file:
        return np.array([row[1:] for row in list(csv.reader(file))[1:]], float)


def write(name: str, result: dict[str, Any]) -> None:
    """Save a result as JSON."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
