"""Is the competition of starts fair? ``init="auto"`` beside each start by itself, with default settings otherwise.

    RFLVM_DATA=/path/to/data python benchmarks/competition.py [case [seed ...]]

``sources`` is a simulated table of 340 x 200 overdispersed counts: three sources in seven known proportions, the sizes
of rows varying tenfold, with the logarithm of the size as offset. ``newsgroups`` has word counts, ``many_rows`` is an
S-curve of 20,000 x 50 Poisson counts, a twentieth of them missing (``map.py``). ``lead`` is the log posterior from
"auto" less that of the best single start, and ``fair`` says that it is not below by more than 5 nats or 1e-5 of the
height, whichever is larger. Writes benchmarks/results/competition.json, in which runs that are not named stay.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

SEEDS = range(5)
CASES = {"sources": "negative_binomial", "newsgroups": "poisson", "many_rows": "poisson"}
STARTS = ("pca", "isomap", "tsne", "kernel")
PROPORTIONS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 3, 0], [3, 0, 3], [0, 3, 3], [2, 2, 2]], float)


def sources(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, the logarithm of each row's size, and the proportions of each row."""
    rng = np.random.default_rng(seed)
    profiles = np.exp(rng.normal(0, 1, 200) + rng.normal(0, 1, (3, 200)))
    proportions = PROPORTIONS[np.arange(340) % 7] / PROPORTIONS[np.arange(340) % 7].sum(axis=1, keepdims=True)
    size = 10 ** rng.uniform(-0.5, 0.5, 340)
    rates = 3 * size[:, None] * (proportions @ (profiles / profiles.mean(axis=1, keepdims=True)))
    return rng.poisson(rates * rng.gamma(3, 1 / 3, rates.shape)).astype(float), np.log(size), proportions


def one_run(case: str, seed: int) -> dict[str, Any]:
    """All starts on one table."""
    import common
    import map as engine

    import rflvm
    from rflvm.numerics.affine import r2_affine

    truth = offset = None
    if case == "sources":
        Y, offset, truth = sources(seed)
    elif case == "many_rows":
        Y, truth = engine.many_rows(seed)
    else:
        found = common.newsgroups()
        if found is None:
            return {}
        Y = found[0]
    row: dict[str, Any] = {"case": case, "seed": seed, "log_posterior": {}, "convergence": {}, "R2": {}}
    for init in ("auto", *STARTS):
        fit = rflvm.maximise(Y, CASES[case], seed=seed, offset=offset, init=init)
        row["log_posterior"][init] = round(fit.log_posterior, 1)
        row["convergence"][init] = fit.convergence
        if truth is not None:
            row["R2"][init] = round(r2_affine(truth, fit.X), 3)
        if init == "auto":
            row["start"] = fit.init
    heights = row["log_posterior"]
    best = max(heights[name] for name in STARTS)
    row["lead"] = round(heights["auto"] - best, 1)
    return row | {"fair": bool(row["lead"] >= -max(5, 1e-5 * abs(best)))}


def markdown(runs: list[dict[str, Any]]) -> str:
    """What "auto" is ahead by, in words."""
    sentences = []
    for case in CASES:
        leads = [run["lead"] for run in runs if run["case"] == case]
        fair = sum(run["fair"] for run in runs if run["case"] == case)
        if leads:
            listed = ", ".join(f"{lead:.1f}" for lead in leads)
            of = f"{fair} of {len(leads)} seeds"
            sentences.append(f'{case}, "auto" less the best single start: {listed} nats, fair on {of}.')
    return " ".join(sentences).replace("_", " ")


def main(runs: list[tuple[str, int]]) -> None:
    """Run them, and write what there is after each."""
    import common

    path = common.RESULTS / "competition.json"
    done = json.loads(path.read_text())["runs"] if path.exists() else []
    for case, seed in runs:
        command = [sys.executable, __file__, "--one", case, str(seed)]
        row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        if not row:
            print(f"{case}: skipped, RFLVM_DATA does not name a folder that has it")
            continue
        done = [other for other in done if (other["case"], other["seed"]) != (case, seed)] + [row]
        print(*(f"{key} {value}" for key, value in row.items()), flush=True)
        common.write("competition", {"machine": common.machine(), "runs": done})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one_run(sys.argv[2], int(sys.argv[3]))))
    else:
        cases, seeds = sys.argv[1:2] or list(CASES), [int(seed) for seed in sys.argv[2:]] or list(SEEDS)
        main([(case, seed) for case in cases for seed in seeds])
