"""What the estimator promises: placing new rows, filling gaps, and a default fit in about a minute.

    python benchmarks/estimator.py [transform | imputation | default]

``transform``: 10,000 new rows of the Poisson S-curve (J = 100, M = 100) placed by a fit to 500, in U, warm; R^2 of
their positions with the affine map that is best for the 500. ``imputation``: a fifth of the cells of Gaussian and
Poisson S-curves (500 x 100) hidden, five seeds: mean squared error of the hidden cells' expectation, summarised by the
mean, against the true one, for the model with its default settings, for PCA on the table (square roots of counts) with
its gaps filled by EM, the number of components the best of 1 to 10 in hindsight, and for column means; and the share of
hidden cells in their 90 % predictive intervals. An interval of counts that includes its ends covers more than its
nominal probability, so the share is also counted with ties broken at random, which makes the nominal coverage exact.
``default``: seconds and U of ``RFLVM(likelihood="poisson").fit`` on 1000 x 100, with compilation, and what it says of
convergence.
Writes benchmarks/results/estimator_*.json.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import common
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rflvm import RFLVM
from rflvm.datasets import make_s_curve
from rflvm.fitted import prediction
from rflvm.fitted.rows import by_block, read
from rflvm.maximum import gaps
from rflvm.numerics.affine import r2_affine

SEEDS = range(5)
HIDDEN = 0.2
LEVEL = 0.9
RANKS = range(1, 11)


def transform() -> None:
    """New rows of one curve, whose functions are those of the fitted ones."""
    n_fitted, n_new = 500, 2000
    truth = make_s_curve(n_fitted + n_new, 100, emissions="poisson")
    model = RFLVM(likelihood="poisson", random_state=0).fit(truth.data[:n_fitted])
    rows = np.tile(truth.data[n_fitted:], (5, 1))
    unit = common.unit_seconds()
    seconds = common.median_seconds(lambda: model.transform(rows), 3)
    X = model.transform(truth.data[n_fitted:])
    design = lambda X: np.column_stack([X, np.ones(len(X))])  # noqa: E731
    affine = np.linalg.lstsq(design(model.embedding_), truth.X[:n_fitted], rcond=None)[0]
    residual = truth.X[n_fitted:] - design(X) @ affine
    r2 = 1 - np.sum(residual**2) / np.sum((truth.X[n_fitted:] - truth.X[n_fitted:].mean(axis=0)) ** 2)
    row = {
        "rows": len(rows),
        "U": round(seconds / unit, 1),
        "R2_fitted": round(r2_affine(truth.X[:n_fitted], model.embedding_), 4),
        "R2_new": round(float(r2), 4),
    }
    print(row)
    common.write("estimator_transform", {"machine": common.machine(), "U_seconds": round(unit, 4), **row})


def pca_imputation(Y: np.ndarray, hidden: np.ndarray, rank: int, counts: bool) -> np.ndarray:
    """Expectations by probabilistic PCA; a root of a count has a variance of a quarter, which its square lacks."""
    table = np.sqrt(Y) if counts else Y
    filled = gaps.completed(np.where(hidden, 0, table), ~hidden, rank)
    return filled**2 + 0.25 if counts else filled


def share_within(model: RFLVM, Y: np.ndarray, truth: np.ndarray, hidden: np.ndarray, seed: int) -> float:
    """Share of hidden cells in the middle 90 % of their replicates, ties broken at random."""
    key, rng = jax.random.key(seed), np.random.default_rng(seed)

    def place_among(placed: Any, block: Any, truth: Any) -> tuple[np.ndarray, np.ndarray]:
        totals = jnp.zeros(len(truth))
        drawn = prediction.replicates(key, placed, block, totals, model.fitted_.members, model.fitted_.model)
        return np.mean(drawn < truth, axis=0), np.mean(drawn == truth, axis=0)

    below, equal = by_block(model.fitted_, place_among, read(model.fitted_, Y).data, truth)
    rank = below + rng.random(truth.shape) * equal
    return float(np.mean(np.abs(rank - 0.5)[hidden] <= LEVEL / 2))


def imputation() -> None:
    """Both emissions, five seeds."""
    rows: list[dict[str, Any]] = []
    for emissions in ("gaussian", "poisson"):
        for seed in SEEDS:
            truth = make_s_curve(500, 100, emissions=emissions, seed=seed)
            expectation = np.exp(truth.F) if emissions == "poisson" else truth.F
            hidden = np.random.default_rng(1000 + seed).random(truth.data.shape) < HIDDEN
            Y = np.where(hidden, np.nan, truth.data)
            model = RFLVM(likelihood=emissions, random_state=seed).fit(Y)
            mean, lower, upper = model.predict_intervals(Y, LEVEL, summary="mean")
            error = lambda estimate: float(np.mean((estimate - expectation)[hidden] ** 2))  # noqa: B023, E731
            covered = (lower <= truth.data) & (truth.data <= upper)
            row = {
                "emissions": emissions,
                "seed": seed,
                "mse": error(mean),
                "mse_pca": min(error(pca_imputation(truth.data, hidden, k, emissions == "poisson")) for k in RANKS),
                "mse_column_means": error(np.broadcast_to(np.nanmean(Y, axis=0), Y.shape)),
                "coverage_90": float(covered[hidden].mean()),
                "coverage_90_ties_broken": share_within(model, Y, truth.data, hidden, seed),
                "convergence": model.convergence_,
            }
            rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
            common.write("estimator_imputation", {"machine": common.machine(), "tables": rows})


def default() -> None:
    """One fit with default settings."""
    unit = common.unit_seconds()
    truth = make_s_curve(1000, 100, emissions="poisson")
    start = time.perf_counter()
    model = RFLVM(likelihood="poisson", random_state=0).fit(truth.data)
    seconds = time.perf_counter() - start
    row = {
        "seconds": round(seconds, 1),
        "U": round(seconds / unit, 1),
        "R2": round(r2_affine(truth.X, model.embedding_), 4),
        "convergence": model.convergence_,
        "diagnostics": [[q.name, round(q.rhat, 3), round(q.ess, 1)] for q in model.diagnostics_],
    }
    print(row)
    common.write("estimator_default", {"machine": common.machine(), "U_seconds": round(unit, 4), **row})


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # it is in the results
    programs = {"default": default, "transform": transform, "imputation": imputation}
    for what in sys.argv[1:] or programs:
        programs[what]()
