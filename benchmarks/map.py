"""The MAP engine: R^2 of X on the S-curves, 1-NN accuracy on real tables, time in U and peak memory.

    RFLVM_DATA=/path/to/data python benchmarks/map.py [curves | gaps | tables | speed]

S-curves: N = 500, J = 100, D = 2, M = 100, five seeds per family, default settings; ``gaps`` hides a fifth of the
cells of some of them. Real tables: default settings, accuracy of one nearest neighbour over five folds, shuffled, five
repeats; three seeds for the small ones.
``newsgroups_by_length`` has the logarithm of a post's number of words as its offset. ``many_rows`` is an S-curve of
20,000 rows and 50 columns, a twentieth of the cells missing, its functions made of 1000 features. Every fit runs in a
process of its own, so that its time is that of a cold start (import of the package and compilation included, making or
reading the table not) and its memory is its own; ``warm`` is a second fit in the same process, for the first seed.
``speed`` has CPU seconds in place of seconds, of the fit and of U, so that other work on the machine counts little, and
scikit-learn's t-SNE of the stabilised table in the same process; ``wide`` are 274 x 1000 overdispersed counts.
Writes benchmarks/results/map_curves.json, map_gaps.json, map_tables.json and map_speed.json.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SEEDS = range(5)
WITH_GAPS, SHARE = ("gaussian", "poisson", "binomial"), 0.2
EMISSIONS = ("gaussian", "poisson", "negative_binomial", "binomial", "multinomial", "bernoulli")
REAL = {
    ("montreal", "poisson"): range(3), ("montreal", "negative_binomial"): range(3), ("yale", "poisson"): range(3),
    ("congress", "poisson"): range(1), ("congress", "negative_binomial"): range(3), ("congress", "gaussian"): range(3),
    ("newsgroups", "poisson"): range(1), ("newsgroups_by_length", "poisson"): range(3), ("mnist", "poisson"): range(1),
    ("many_rows", "poisson"): range(1),
}  # fmt: skip
SPEED = (("s_curve", "poisson"), ("wide", "negative_binomial"), ("congress", "negative_binomial"))


def many_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table with gaps, and X."""
    from sklearn.datasets import make_s_curve

    rng = np.random.default_rng(seed)
    X = make_s_curve(20_000, random_state=seed)[0][:, [0, 2]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    angles = X @ rng.standard_normal((2, 1000))
    Phi = np.hstack([np.cos(angles), np.sin(angles)]) / 1000**0.5
    F = Phi @ rng.standard_normal((2000, 50))
    return np.where(rng.random(F.shape) < 0.05, np.nan, rng.poisson(np.exp(F))), X


def one_fit(case: str, emissions: str, seed: int) -> dict[str, Any]:
    """Fit a case in this process."""
    start = time.perf_counter()
    import rflvm

    seconds = time.perf_counter() - start
    import common

    from rflvm.datasets import make_s_curve
    from rflvm.metrics import knn_accuracy
    from rflvm.numerics.affine import r2_affine

    X = labels = offset = None
    family = rflvm.likelihoods.Binomial(trials=10) if emissions == "binomial" else emissions
    if case in ("s_curve", "gaps"):
        truth = make_s_curve(emissions=emissions, seed=seed)
        Y, X = truth.data, truth.X
        if case == "gaps":
            Y = np.where(np.random.default_rng(1000 + seed).random(Y.shape) < SHARE, np.nan, Y)
    elif case == "many_rows":
        Y, X = many_rows(seed)
    else:
        found = getattr(common, case.removesuffix("_by_length"))()
        if found is None:
            return {}
        Y, labels = found
        if case.endswith("_by_length"):
            length = Y.sum(axis=1)
            offset = np.log(length / length.mean())
    start = time.perf_counter()
    fit = rflvm.maximise(Y, family, seed=seed, offset=offset)
    cold = seconds + time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    unit = common.unit_seconds()
    row = {"case": case, "emissions": emissions, "seed": seed, "N": Y.shape[0], "J": Y.shape[1], "start": fit.init}
    row |= {"convergence": fit.convergence, "iterations": len(fit.trace), "peak_memory_GB": round(memory, 2)}
    row |= {"U_seconds": round(unit, 4), "cold_U": round(cold / unit, 1)}
    if X is not None:
        if case == "s_curve" and seed == 0:
            start = time.perf_counter()
            rflvm.maximise(Y, family, seed=seed)
            row["warm_U"] = round((time.perf_counter() - start) / unit, 1)
        row["R2"] = round(r2_affine(X, fit.X), 4)
    if labels is not None:
        row["accuracy_1nn"] = round(knn_accuracy(fit.X, labels).mean, 4)
    return row


def one_timing(case: str, emissions: str) -> dict[str, Any]:
    """CPU seconds of a fit, of a second one where that is cheap, and of t-SNE, in this process."""
    import common
    from sklearn.manifold import TSNE

    import rflvm
    from rflvm.datasets import make_s_curve

    if case == "congress":
        found = common.congress()
        if found is None:
            return {}
        Y = found[0]
    else:
        Y = make_s_curve(*((274, 1000) if case == "wide" else (500, 100)), emissions=emissions).data

    def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
        start = time.process_time()
        result = call()
        return time.process_time() - start, result

    cold, fit = seconds(lambda: rflvm.maximise(Y, emissions))
    warm = seconds(lambda: rflvm.maximise(Y, emissions))[0] if case == "s_curve" else None
    tsne, _ = seconds(lambda: TSNE().fit_transform(np.sqrt(Y)))
    unit = common.unit_seconds(time.process_time)
    row = {"case": case, "emissions": emissions, "N": Y.shape[0], "J": Y.shape[1], "convergence": fit.convergence}
    row |= {"iterations": fit.n_iterations, "log_posterior": round(fit.log_posterior, 1), "U_seconds": round(unit, 3)}
    row |= {"cold_U": round(cold / unit, 1), "tsne_U": round(tsne / unit, 1)}
    return row | ({"warm_U": round(warm / unit, 1)} if warm is not None else {})


def markdown(fits: list[dict[str, Any]]) -> str:
    """The timings of ``speed`` in words."""
    sentences = []
    for fit in fits:
        again = f", a second one {fit['warm_U']:.1f} U" if "warm_U" in fit else ""
        sentences.append(
            f"a first fit of {fit['N']} x {fit['J']} {fit['emissions'].replace('_', ' ')} counts takes "
            f"{fit['cold_U']:.0f} U ({fit['convergence']}, {fit['iterations']} iterations){again}, t-SNE "
            f"{fit['tsne_U']:.1f} U"
        )
    return "; ".join(sentences) + "."


def run(name: str, cases: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Run every case in its own process; what there is so far is written after each."""
    import common

    rows = []
    for case, *settings in cases:
        command = [sys.executable, __file__, case, *map(str, settings)]
        row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        if not row:
            print(f"{case}: skipped, RFLVM_DATA does not name a folder that has it")
            continue
        rows.append(row)
        print(*(f"{key} {value}" for key, value in row.items()), flush=True)
        common.write(name, {"machine": common.machine(), "fits": rows})
    return rows


def main(what: list[str]) -> None:
    """The S-curves, whole and with gaps, and the real tables, or some of them."""
    for part, name, case, families in (
        ("curves", "map_curves", "s_curve", EMISSIONS),
        ("gaps", "map_gaps", "gaps", WITH_GAPS),
    ):
        if part in what:
            rows = run(name, [(case, emissions, seed) for emissions in families for seed in SEEDS])
            for emissions in families:
                r2 = [row["R2"] for row in rows if row["emissions"] == emissions]
                print(f"{emissions}: R^2 at least {min(r2):.4f}, mean {np.mean(r2):.4f}")
    if "tables" in what:
        run("map_tables", [(*case, seed) for case, seeds in REAL.items() for seed in seeds])
    if "speed" in what:
        run("map_speed", list(SPEED))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(one_timing(sys.argv[1], sys.argv[2])))
    elif len(sys.argv) == 4:
        print(json.dumps(one_fit(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
    else:
        main(sys.argv[1:] or ["curves", "gaps", "tables", "speed"])
