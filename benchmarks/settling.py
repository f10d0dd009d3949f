"""Do default runs settle, and is the verdict right? Default fits of S-curves of each family.

    python benchmarks/settling.py poisson                  five curves of 500 x 100
    python benchmarks/settling.py all --seeds 10 11 12     other curves, all families

For each curve: why the run ended and after how many sweeps, R-hat and effective draws of positions and predictions, for
how many rows the chains agree, the arrangements with their weights, R^2 of the posterior mean with the true positions,
R^2 between the pictures of the chains, and CPU seconds, those of compilation among them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import combinations
from typing import Any

from common import RESULTS, machine, write

from rflvm import RFLVM, likelihoods
from rflvm.datasets import make_s_curve
from rflvm.numerics.affine import r2_affine

N, J = 500, 100
FAMILIES = ("gaussian", "poisson", "bernoulli", "binomial", "negative_binomial", "multinomial")
NAME = "settling"


def fit(family: str, seed: int) -> dict[str, Any]:
    """What a default fit of one curve says."""
    truth = make_s_curve(N, J, emissions=family, seed=seed)
    likelihood = likelihoods.Binomial(trials=10) if family == "binomial" else family
    start, warned = time.process_time(), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RFLVM(likelihood=likelihood, random_state=seed).fit(truth.data)
        warned = sorted({type(warning.message).__name__ for warning in caught})
    draws = model.fitted_.aligned
    pictures = draws["X"].mean(axis=1, dtype=float)
    between = [round(r2_affine(pictures[a], pictures[b]), 3) for a, b in combinations(range(len(pictures)), 2)]
    return {
        "family": family,
        "seed": seed,
        "ended": draws.ended,
        "sweeps": model.n_iter_,
        "convergence": model.convergence_,
        "warnings": warned,
        "diagnostics": {
            q.name: {"rhat": round(q.rhat, 3), "ess": round(q.ess), "rows that disagree": len(q.disagreeing)}
            for q in model.diagnostics_
        },
        "weights": [[list(one["chains"]), round(one["weight"], 3)] for one in model.arrangements_],
        "r2": round(r2_affine(truth.X, model.embedding_), 3),
        "r2 between chains": between,
        "CPU seconds": round(time.process_time() - start, 1),
    }


def main() -> None:
    """Fit, print and add to the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=[*FAMILIES, "all"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    arguments = parser.parse_args()
    path = RESULTS / f"{NAME}.json"
    results = json.loads(path.read_text()) if path.exists() else {"machine": machine(), "N": N, "J": J, "fits": []}
    for family in FAMILIES if arguments.family == "all" else [arguments.family]:
        for seed in arguments.seeds:
            result = fit(family, seed)
            print(result, flush=True)
            others = [one for one in results["fits"] if (one["family"], one["seed"]) != (family, seed)]
            results["fits"] = sorted([*others, result], key=lambda one: (FAMILIES.index(one["family"]), one["seed"]))
            write(NAME, results)


if __name__ == "__main__":
    main()
