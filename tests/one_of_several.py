"""A process of several that fit a table together: python one_of_several.py ADDRESS COUNT RANK FOLDER [WAIT].

The table is y.npy of the folder. With WAIT the process stops in its second epoch over all rows, to be
killed there.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import rflvm
from rflvm.data.blocks import encoding
from rflvm.streaming import engine, landmarks, shards

SETTINGS: dict[str, Any] = {"n_features": 20, "init": "pca", "n_iterations": 30, "max_epochs": 3}
SIZES = {"N_LANDMARKS": 150, "N_SAMPLE": 400, "SAMPLE_CELLS": 2**20, "HELD_OUT_SHARE": 10}
MOST_ROWS = 64  # of a block


def main(address: str, count: str, rank: str, folder: str, *wait: str) -> None:
    """Fit the table."""
    for name, size in SIZES.items():
        setattr(landmarks, name, size)
    encoding.MOST_ROWS, shards.BLOCKS_BETWEEN = MOST_ROWS, 2
    if wait:
        engine.visits.epoch = _stops_in_the_second(engine.visits.epoch, Path(folder) / "waiting")
    jax.distributed.initialize(address, int(count), int(rank))
    out = Path(folder)
    fit = rflvm.stream(out / "y.npy", "poisson", **SETTINGS, checkpoint=out / "run", out=out / "x.npy")
    np.savez(out / f"fit-{rank}.npz", X=fit.X, covariance=fit.covariance, held_out=fit.held_out)


def _stops_in_the_second(visit: Any, sign: Path) -> Any:
    calls = []

    def epoch(rows: Any, *arguments: Any) -> Any:
        calls.append(rows.N)
        if SIZES["N_SAMPLE"] < rows.N and calls.count(rows.N) == 2:
            sign.touch()
            time.sleep(600)
        return visit(rows, *arguments)

    return epoch


if __name__ == "__main__":
    main(*sys.argv[1:])
