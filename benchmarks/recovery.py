"""How well X comes back: the sampler after the MAP engine, and what limits yes/no answers.

    python benchmarks/recovery.py [sampler | bernoulli]

``sampler``: R^2 of X after the best affine map on the paper's S-curve (N = 500, J = 100, D = 2, M = 100), five seeds,
of the MAP and of the posterior mean after 1000 + 1000 sweeps that start there, or at the true X and everything else
from the prior; Poisson and Bernoulli. ``bernoulli``: R^2 of the MAP for other N, J and M and from the true X, three
seeds. ``known`` is what could be had if the functions were known: the mean of each row's posterior over the positions
of all other rows, given the true F. Writes benchmarks/results/recovery_sampler.json and
recovery_bernoulli.json.
"""

from __future__ import annotations

import sys
from typing import Any

import common
import numpy as np
from scipy.special import softmax

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.model.alignment import mean_latents
from rflvm.numerics.affine import r2_affine

N, J, M = 500, 100, 100
SETTINGS = [(N, J, M), (1000, J, M), (2000, J, M), (N, 150, M), (N, 200, M), (N, 400, M), (N, J, 50), (N, J, 200)]


def known(truth: Any, emissions: str) -> float:
    """R^2 of the mean of each row's posterior over the others' positions, given the functions."""
    total = np.exp(truth.F) if emissions == "poisson" else np.logaddexp(0, truth.F)
    log_density = truth.data @ truth.F.T - total.sum(axis=1)
    np.fill_diagonal(log_density, -np.inf)
    return r2_affine(truth.X, softmax(log_density, axis=1) @ truth.X)


def sampler() -> None:
    """Posterior means."""
    rows: list[dict[str, Any]] = []
    for emissions in ("poisson", "bernoulli"):
        for seed in range(5):
            truth = make_s_curve(N, J, emissions=emissions, seed=seed)
            row: dict[str, Any] = {"emissions": emissions, "seed": seed, "known": known(truth, emissions)}
            row["map"] = r2_affine(truth.X, rflvm.maximise(truth.data, emissions, n_features=M, seed=seed).X)
            inits: dict[str, Any] = {"map": "map", "truth": truth.X}
            for start, init in inits.items():
                draws = rflvm.sample(truth.data, emissions, n_features=M, seed=seed, init=init)
                row[f"sampler from {start}"] = r2_affine(truth.X, mean_latents(draws))
            _add(rows, row, "recovery_sampler")


def bernoulli() -> None:
    """The MAP against N, J, M and the start."""
    rows: list[dict[str, Any]] = []
    for n, j, m in SETTINGS:
        for seed in range(3):
            truth = make_s_curve(n, j, emissions="bernoulli", seed=seed)
            row: dict[str, Any] = {"N": n, "J": j, "M": m, "seed": seed, "known": known(truth, "bernoulli")}
            for start, init in (("auto", "auto"), ("truth", truth.X)):
                fit = rflvm.maximise(truth.data, "bernoulli", n_features=m, seed=seed, init=init, n_iterations=100)
                row |= {f"map from {start}": r2_affine(truth.X, fit.X), f"height from {start}": float(fit.trace[-1])}
            _add(rows, row, "recovery_bernoulli")


def _add(rows: list[dict[str, Any]], row: dict[str, Any], name: str) -> None:
    rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
    print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    common.write(name, {"machine": common.machine(), "tables": rows})


if __name__ == "__main__":
    for what in sys.argv[1:] or ("sampler", "bernoulli"):
        {"sampler": sampler, "bernoulli": bernoulli}[what]()
