"""A small table as a file, and short runs: chains start at PCA, and the report is a stub that remembers its call."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rflvm.sampling import run

SHORT = {"fit": {"features": 6, "samples": 40, "burnin": 10}}


def write_table(path: Path, seed: int = 0, n: int = 30, gaps: bool = True) -> None:
    """Counts with row names, a class, and two gaps."""
    rng = np.random.default_rng(seed)
    cells = rng.poisson(3, size=(n, 6)).astype(str)
    if gaps:
        cells[2, 3], cells[3, 1] = "", "NA"
    lines = ["name,party," + ",".join(f"w{j}" for j in range(6))]
    lines += [f"r{i},{'DR'[i % 2]}," + ",".join(row) for i, row in enumerate(cells)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def short():
    """What makes a run short; the calls of the report."""
    calls: list[dict[str, Any]] = []
    starter = run._starter

    def write_report(model: Any, path: Path, **options: Any) -> None:
        calls.append(options)
        Path(path).write_text("<html>")

    with pytest.MonkeyPatch.context() as patch:
        stub: Any = types.ModuleType("rflvm.report")
        stub.write_report = write_report
        patch.setitem(__import__("sys").modules, "rflvm.report", stub)
        patch.setattr(run, "_starter", lambda init, *others: starter("pca", *others))
        yield calls
