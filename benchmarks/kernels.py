"""An RBF kernel or learned frequencies? The MAP engine with both, on simulated and real tables.

    RFLVM_DATA=/path/to/data python benchmarks/kernels.py

Poisson, default settings, a tenth of the cells held out at random. ``s_curve``: the kernel is RBF. ``waves``: the same
curve, but the functions have the kernel exp(-|d|^2 / 8) cos(2 d_1) cos(2 d_2), which no RBF kernel is. R^2 of X after
the best affine map, or the accuracy of one nearest neighbour over five folds, shuffled, five repeats; the mean log
density of the held-out cells, each integrated over the posterior of f given X. Writes benchmarks/results/kernels.json.
"""

from __future__ import annotations

from typing import Any

import common
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from scipy.stats import poisson

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.metrics import knn_accuracy
from rflvm.model.features import features
from rflvm.numerics.affine import r2_affine

KERNELS = ("rbf", "learned")
CASES = {
    "s_curve": range(3), "waves": range(3), "montreal": range(3), "yale": range(3), "congress": range(1),
    "newsgroups": range(1),
}  # fmt: skip
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)


def waves(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table whose functions oscillate, and X."""
    X = make_s_curve(seed=seed).X
    lags = X[:, None] - X[None]
    K = np.exp(-np.sum(lags**2, axis=-1) / 8) * np.cos(2 * lags).prod(axis=-1)
    rng = np.random.default_rng(seed)
    F = np.linalg.cholesky(K + 1e-8 * np.eye(len(X))) @ rng.standard_normal((len(X), 100))
    return rng.poisson(np.exp(F)).astype(float), X


def table(case: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Y, and the true X or the classes."""
    if case == "s_curve":
        truth = make_s_curve(seed=seed)
        return truth.data, truth.X
    return waves(seed) if case == "waves" else getattr(common, case)()


def held_out_density(fit: rflvm.Fit, Y: np.ndarray, held_out: np.ndarray) -> float:
    """Mean of log E[p(y | f)] over the held-out cells, f normal given X and W."""
    Phi = np.asarray(features(jnp.asarray(fit.X), jnp.asarray(fit.W)))
    assert fit.beta_factor is not None
    densities = []
    for j in range(Y.shape[1]):
        rows = held_out[:, j]
        half = solve_triangular(fit.beta_factor[j], Phi[rows].T, lower=True)
        f = Phi[rows] @ fit.beta[:, j] + np.sqrt(np.sum(half**2, axis=0)) * POINTS[:, None]
        terms = poisson.logpmf(Y[rows, j], np.exp(f))
        densities.append(logsumexp(terms, axis=0, b=WEIGHTS[:, None] / WEIGHTS.sum()))
    return float(np.concatenate(densities).mean())


def main() -> None:
    """Every table with both kernels."""
    rows: list[dict[str, Any]] = []
    for case, seeds in CASES.items():
        for seed in seeds:
            found = table(case, seed)
            if found is None:
                print(f"{case}: skipped, RFLVM_DATA does not name a folder that has it")
                continue
            Y, about = found
            held_out = np.random.default_rng(1000 + seed).random(Y.shape) < 0.1
            for kernel in KERNELS:
                fit = rflvm.maximise(np.where(held_out, np.nan, Y), "poisson", kernel=kernel, seed=seed)
                row: dict[str, Any] = {"case": case, "seed": seed, "kernel": kernel, "start": fit.init}
                if case in ("s_curve", "waves"):
                    row["R2"] = round(r2_affine(about, fit.X), 4)
                else:
                    row["accuracy_1nn"] = round(knn_accuracy(fit.X, about).mean, 4)
                row["held_out"] = round(held_out_density(fit, Y, held_out), 4)
                row["log_posterior"] = round(float(fit.trace[-1]), 1)
                row["iterations"] = len(fit.trace)
                rows.append(row)
                print(*(f"{key} {value}" for key, value in row.items()), flush=True)
                common.write("kernels", {"machine": common.machine(), "fits": rows})


if __name__ == "__main__":
    main()
