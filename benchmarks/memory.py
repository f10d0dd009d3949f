"""The peak memory of fits beside what ``data/footprint.py`` estimates before they begin.

Each fit runs in a process of its own; measured is by how much its peak exceeds what it held when the library was
imported and the table made, which is what a fit must find free. Few iterations, since the peak does not depend on their
number. Writes benchmarks/results/memory.json.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, write

from rflvm import RFLVM
from rflvm.data import footprint

CASES: list[dict[str, Any]] = [
    {"N": 50, "J": 20, "likelihood": "poisson", "inference": "map", "n_features": 20},
    {"N": 60, "J": 1500, "likelihood": "poisson", "inference": "map", "n_features": 200},
    {"N": 60, "J": 300, "likelihood": "poisson", "inference": "map", "n_features": 400},
    {"N": 60, "J": 1500, "likelihood": "gaussian", "inference": "map", "n_features": 200, "gaps": True},
    {"N": 3000, "J": 600, "likelihood": "poisson", "inference": "map", "n_features": 50},
    {"N": 60, "J": 10_000, "likelihood": "poisson", "inference": "map", "n_features": 20},
    {"N": 60, "J": 1500, "likelihood": "poisson", "inference": "gibbs", "n_features": 200},
    {"N": 3000, "J": 600, "likelihood": "poisson", "inference": "gibbs", "n_features": 50},
]


def fit(N: int, J: int, gaps: bool = False, **settings: Any) -> dict[str, float]:
    """Bytes that a fit took and was estimated to take."""
    rng = np.random.default_rng(0)
    F = 0.5 * np.sin(rng.normal(size=(N, 2)) @ rng.normal(size=(2, J)))
    Y = rng.poisson(np.exp(F)).astype(float) if settings["likelihood"] == "poisson" else rng.normal(F, 0.5)
    if gaps:
        Y[rng.random(Y.shape) < 0.05] = np.nan
    estimates: list[float] = []
    check = footprint.check
    footprint.check = lambda size, needed: estimates.append(needed.total) or check(size, needed)
    before = _in_use()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        RFLVM(max_iter=2, init="pca", n_samples=4, n_burnin=2, random_state=0, **settings).fit(Y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"peak": peak - before, "estimate": estimates[0]}


def _in_use() -> int:
    """Bytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    """Every case in its process."""
    rows: list[dict[str, Any]] = []
    for case in CASES:
        command = [sys.executable, __file__, json.dumps(case)]
        result = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        measured = {name: round(value / 1e9, 2) for name, value in json.loads(result.splitlines()[-1]).items()}
        rows.append(case | {f"{name}_GB": value for name, value in measured.items()})
        print(*rows[-1].values(), flush=True)
        write("memory", {"machine": machine(), "fits": rows})


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(json.dumps(fit(**json.loads(sys.argv[1]))))
    else:
        main()
