"""The MAP engine: R^2 of X on the S-curves, 1-NN accuracy on real tables, time in U and peak memory.

    RFLVM_DATA=/path/to/data python benchmarks/map.py

S-curves: N = 500, J = 100, D = 2, M = 100, five seeds per family, default settings. Real tables: Poisson,
default settings, accuracy of one nearest neighbour over five folds, shuffled, five repeats. Every fit
runs in a process of its own, so that its time is that of a cold start (import and compilation
included) and its memory is its own; ``warm`` is a second fit in the same process.
Writes benchmarks/results/map.json.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

SEEDS = range(5)
FAMILIES = ("gaussian", "poisson", "negative_binomial", "binomial", "multinomial", "bernoulli")
REAL = ("montreal", "mnist", "yale", "congress", "newsgroups")


def one_fit(case: str, seed: int) -> dict[str, Any]:
    """Fit a case, in this process, twice."""
    start = time.perf_counter()
    import common
    from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    import rflvm
    from rflvm.datasets import make_s_curve
    from rflvm.metrics import r2_affine

    truth = labels = None
    if case in FAMILIES:
        truth = make_s_curve(emissions=case, seed=seed)
        Y, family = truth.data, rflvm.likelihoods.Binomial(trials=10) if case == "binomial" else case
    else:
        found = getattr(common, case)()
        if found is None:
            return {}
        (Y, labels), family = found, "poisson"
    fit = rflvm.maximise(Y, family, seed=seed)
    cold = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    start = time.perf_counter()
    rflvm.maximise(Y, family, seed=seed)
    warm = time.perf_counter() - start
    unit = common.unit_seconds()
    row = {"case": case, "seed": seed, "N": Y.shape[0], "J": Y.shape[1], "start": fit.init}
    row |= {"convergence": fit.convergence, "iterations": len(fit.trace), "peak_memory_GB": round(memory, 2)}
    row |= {"U_seconds": round(unit, 4), "cold_U": round(cold / unit, 1), "warm_U": round(warm / unit, 1)}
    if truth is not None:
        row["R2"] = round(r2_affine(truth.X, fit.X), 4)
    else:
        folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0)
        row["accuracy_1nn"] = round(float(cross_val_score(KNeighborsClassifier(1), fit.X, labels, cv=folds).mean()), 4)
    return row


def main() -> None:
    """Run every case in its own process."""
    import common

    rows = []
    for case, seed in [(case, seed) for case in FAMILIES for seed in SEEDS] + [(case, 0) for case in REAL]:
        done = subprocess.run([sys.executable, __file__, case, str(seed)], capture_output=True, text=True, check=True)
        row = json.loads(done.stdout)
        if not row:
            print(f"{case}: skipped, RFLVM_DATA does not name a folder that has it")
            continue
        rows.append(row)
        print(*(f"{key} {value}" for key, value in row.items()), flush=True)
    summary = {
        family: {"min": min(r2), "mean": round(float(np.mean(r2)), 4)}
        for family in FAMILIES
        for r2 in [[row["R2"] for row in rows if row["case"] == family]]
    }
    print(json.dumps(summary, indent=1))
    common.write("map", {"machine": common.machine(), "R2_over_seeds": summary, "fits": rows})


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(one_fit(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
