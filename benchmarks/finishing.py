"""Does a climb end by its gain? Twenty tables with default settings: the loaders, S-curves and other shapes.

    RFLVM_DATA=/path/to/data python benchmarks/finishing.py [case ...]

The first 100 photographs of each class of CIFAR-10 and the first 1000 digits stand for their data sets. ``small`` to
``tall`` are Poisson S-curves from 30 x 5 to 5000 x 200. Every fit runs in a process of its own. Times are CPU seconds
of the fit, compilation included, and of U in the same process, so that other work on the machine counts little.
Writes benchmarks/results/finishing.json, in which cases that are not named stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
from sklearn.utils import Bunch

FAMILIES = ("gaussian", "poisson", "negative_binomial", "binomial", "multinomial", "bernoulli")
SHAPES = {"small": (30, 5), "narrow": (200, 10), "wide": (100, 300), "long": (2000, 20), "tall": (5000, 200)}
REAL = (
    "bridges", "cifar10", "congress", "hippocampus", "mnist", "montreal", "newsgroups", "spam", "yale",
)  # fmt: skip
CASES = (*(f"s_curve_{family}" for family in FAMILIES), *SHAPES, *REAL)


def real(case: str) -> Bunch | None:
    """A data set of the folder that RFLVM_DATA names, if it is there."""
    import common

    from rflvm import datasets

    load = {"congress": datasets.load_congress109}.get(case) or getattr(datasets, f"load_{case}")
    few: dict[str, Any] = {"cifar10": {"n_per_class": 100}, "mnist": {"n_samples": 1000}}.get(case, {})
    return common.table(load, **few)


def one_fit(case: str) -> dict[str, Any]:
    """Fit a case in this process."""
    import common

    import rflvm
    from rflvm.datasets import make_s_curve

    family = "poisson"
    if case in REAL:
        found = real(case)
        if found is None:
            return {}
        Y = np.asarray(found.data, float)
    elif case in SHAPES:
        Y = make_s_curve(*SHAPES[case], emissions="poisson").data
    else:
        name = case.removeprefix("s_curve_")
        Y = make_s_curve(emissions=name).data
        family = rflvm.likelihoods.Binomial(trials=10) if name == "binomial" else name
    start = time.process_time()
    fit = rflvm.maximise(Y, family)
    seconds = time.process_time() - start
    unit = common.unit_seconds(time.process_time)
    row = {"case": case, "N": Y.shape[0], "J": Y.shape[1], "convergence": fit.convergence}
    row |= {"iterations": fit.n_iterations, "log_posterior": round(fit.log_posterior, 1), "start": fit.init}
    return row | {"U_seconds": round(unit, 3), "cold_U": round(seconds / unit, 1)}


def markdown(fits: list[dict[str, Any]]) -> str:
    """A table of the fits, and how many have converged."""
    lines = ["| table | rows x columns | ended | iterations | U |", "|---|---|---|---|---|"]
    lines += [
        f"| {fit['case'].replace('_', ' ')} | {fit['N']} x {fit['J']} | {fit['convergence']} | {fit['iterations']} | "
        f"{fit['cold_U']:.0f} |"
        for fit in fits
    ]
    converged = sum(fit["convergence"] == "converged" for fit in fits)
    return "\n".join(lines) + f"\n\n{converged} of {len(fits)} converged."


def main(cases: list[str]) -> None:
    """Run cases, and write what there is after each."""
    import common

    path = common.RESULTS / "finishing.json"
    rows = {row["case"]: row for row in json.loads(path.read_text())["fits"]} if path.exists() else {}
    for case in cases:
        command = [sys.executable, __file__, "--one", case]
        row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        if not row:
            print(f"{case}: skipped, RFLVM_DATA does not name a folder that has it")
            continue
        rows[case] = row
        print(*(f"{key} {value}" for key, value in row.items()), flush=True)
        fits = [rows[name] for name in CASES if name in rows]
        common.write("finishing", {"machine": common.machine(), "fits": fits})
    print(markdown(list(rows.values())))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one_fit(sys.argv[2])))
    else:
        main(sys.argv[1:] or list(CASES))
