"""Effective draws per second of the kernel and of the log joint: the default W move against the paper's.

Four chains each on the Poisson S-curve (500 x 100, M = 100), from different starts of W, in one run.
The kernel at a lag is averaged over directions, so that it does not depend on the rotation of X. The
effective sample size is that of all chains together. Writes benchmarks/results/mixing.json.
"""

from __future__ import annotations

import os
import time
from typing import Any, Literal

import numpy as np
from common import machine, unit_seconds, write

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.diagnostics import ess, rhat

LAGS = (0.5, 1.0, 2.0)
N_CHAINS, N_BURNIN, N_SAMPLES = 4, 200, 300
MOVES: tuple[Literal["hmc", "prior"], ...] = ("hmc", "prior")


def radial_kernel(W: np.ndarray, lag: float) -> np.ndarray:
    """k(lag) averaged over 16 directions, for draws of W (chain, draw, H, 2)."""
    angles = np.linspace(0, np.pi, 16, endpoint=False)
    directions = lag * np.stack([np.cos(angles), np.sin(angles)])
    return np.cos(W @ directions).mean(axis=(-2, -1))


def measure(Y: np.ndarray, move: Literal["hmc", "prior"]) -> dict[str, Any]:
    """Effective draws per second of sampling with one move."""
    times = []
    draws = rflvm.sample(
        Y, "poisson", n_chains=N_CHAINS, n_burnin=N_BURNIN, n_samples=N_SAMPLES, frequencies=move,
        progress=lambda p: times.append(time.perf_counter()),
    )  # fmt: skip
    seconds = times[-1] - times[N_BURNIN + 1]  # the first sweep after burn-in compiles
    quantities = {f"kernel at lag {lag}": radial_kernel(draws["W"], lag) for lag in LAGS}
    quantities["log joint"] = draws["log_joint"]
    row: dict[str, Any] = {
        "move": move,
        "seconds": round(seconds, 1),
        "acceptance": round(float(np.mean([info["W"].acceptance for info in draws.info])), 4),
    }
    for name, values in quantities.items():
        row[name] = {
            "ess": round(ess(values), 1),
            "ess_per_second": round(ess(values) / seconds, 4),
            "rhat": round(rhat(values), 3),
            "chain_means": [round(float(m), 4) for m in values.mean(axis=1)],
        }
        print(f"{move:6s} {name:18s}", *(f"{key} {value}" for key, value in row[name].items()))
    return row


def main() -> None:
    """Compare the two moves."""
    load = round(os.getloadavg()[0], 2)
    Y = make_s_curve(emissions="poisson").data
    rows = [measure(Y, move) for move in MOVES]
    names = [f"kernel at lag {lag}" for lag in LAGS] + ["log joint"]
    ratios = {name: round(rows[0][name]["ess_per_second"] / rows[1][name]["ess_per_second"], 1) for name in names}
    for name, ratio in ratios.items():
        print(f"{name}: {ratio} times more effective draws per second")
    write("mixing", {
        "machine": machine(), "load_average_at_start": load, "U_seconds": round(unit_seconds(), 4),
        "chains": N_CHAINS, "burnin": N_BURNIN, "draws": N_SAMPLES, "moves": rows, "ratio": ratios,
    })  # fmt: skip


if __name__ == "__main__":
    main()
