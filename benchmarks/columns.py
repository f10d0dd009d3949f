"""What columns are: mixed tables, ordered answers and outliers, each against the families that one would take instead.

    python benchmarks/columns.py [covariates | mixed | ordinal | outliers]

All with ``rflvm.maximise``, M = 100, five seeds; R^2 is that of X after the best affine map.

``outliers``: Gaussian S-curves (300 x 60, noise 0.5) of which 5 % of the cells are replaced by N(0, 10^2). ``ordinal``:
answers from 1 to 5 with uneven cut points, N(0, 1.5^2) for each column, of 1.5 F plus logistic noise, F from an S-curve
(500 x 50 and 500 x 150), a tenth of the cells held out; their log density given the others, with the Gaussian's
integrated from half a category below to half a category above (of the first and the last from minus and to plus
infinity).
``mixed``: S-curves of 300 rows with 20 Gaussian, 20 Poisson and 20 Bernoulli columns, against each third alone and all
as if Gaussian.
``covariates``: S-curves (300 x 60) of Gaussian (noise 0.5), Poisson and Bernoulli cells; the same with rows of three
batches, whose effects on F are N(0, 1) for each column, with the batches ignored and given.
Writes benchmarks/results/columns_*.json.
"""

from __future__ import annotations

import sys
from typing import Any

import common
import numpy as np
from scipy import stats

import rflvm
from rflvm import RFLVM, likelihoods
from rflvm.datasets import make_s_curve
from rflvm.fitted.summaries import members_in_units, predictors_by_member
from rflvm.numerics.affine import r2_affine

SEEDS = range(5)


def outliers() -> None:
    """Student t noise where a twentieth of the cells are wild."""
    rows: list[dict[str, Any]] = []
    for seed in SEEDS:
        truth = make_s_curve(300, 60, emissions="gaussian", seed=seed)
        rng = np.random.default_rng(100 + seed)
        wild = rng.random(truth.data.shape) < 0.05
        Y = np.where(wild, rng.normal(0, 10, wild.shape), truth.data)
        row: dict[str, Any] = {"seed": seed}
        for name, family, table in (
            ("gaussian without outliers", "gaussian", truth.data),
            ("gaussian", "gaussian", Y),
            ("student_t", "student_t", Y),
            ("student_t, nu = 4", likelihoods.StudentT(freedom=4.0), Y),
            ("student_t without outliers", "student_t", truth.data),
        ):
            row[name] = r2_affine(truth.X, rflvm.maximise(table, family, seed=seed).X)
        _add(rows, row, "columns_outliers")


def answers(J: int, seed: int) -> tuple[Any, np.ndarray]:
    """An S-curve, and answers from 1 to 5 that follow it."""
    truth = make_s_curve(500, J, emissions="gaussian", seed=seed)
    rng = np.random.default_rng(100 + seed)
    cuts = np.sort(rng.normal(0, 1.5, (4, J)), axis=0)
    level = 1.5 * truth.F + rng.logistic(size=truth.F.shape)
    return truth, 1.0 + (level[None] > cuts[:, None]).sum(axis=0)


def ordinal() -> None:
    """Cut points that are learned, against equal steps and against successes out of four trials."""
    rows: list[dict[str, Any]] = []
    for J in (50, 150):
        for seed in SEEDS:
            truth, Y = answers(J, seed)
            hidden = np.random.default_rng(200 + seed).random(Y.shape) < 0.1
            row: dict[str, Any] = {"columns": J, "seed": seed}
            for name, family, low in (
                ("gaussian", "gaussian", 0.0),
                ("binomial", likelihoods.Binomial(trials=4), 1.0),
                ("ordinal", likelihoods.Ordinal(low=1, high=5), 0.0),
            ):
                model = _fitted(np.where(hidden, np.nan, Y - low), family, seed)
                row[f"R^2, {name}"] = r2_affine(truth.X, model.embedding_)
                row[f"log density, {name}"] = _log_density(model, Y - low, hidden)
            _add(rows, row, "columns_ordinal")


def _fitted(Y: np.ndarray, family: Any, seed: int) -> RFLVM:
    return RFLVM(likelihood=family, inference="map", kernel="rbf", random_state=seed).fit(Y)


def _log_density(model: RFLVM, Y: np.ndarray, hidden: np.ndarray) -> float:
    """Mean log probability of hidden whole numbers at the positions of their rows, averaged over members."""
    family: Any = model.likelihood_
    fitted = model.fitted_
    F = predictors_by_member(fitted, model.embedding_)
    members = members_in_units(fitted)
    total = []
    for s, f in enumerate(F):
        theta = {name: np.asarray(value[s]) for name, value in members.theta.items()}
        if family.name == "gaussian":
            sd = np.sqrt(theta["sigma2"])
            upper = stats.norm.cdf(np.where(Y.max() == Y, np.inf, Y + 0.5), f, sd)
            total.append(upper - stats.norm.cdf(np.where(Y.min() == Y, -np.inf, Y - 0.5), f, sd))
        else:
            trials = family.trials_for(*Y.shape)
            total.append(np.exp(np.asarray(family.log_prob(Y, f, theta, trials))))
    return float(np.log(np.maximum(np.mean(total, axis=0), 1e-12))[hidden].mean())


def covariates() -> None:
    """A batch effect on every column: without it, ignored, and given as a covariate."""
    rows: list[dict[str, Any]] = []
    for family in ("gaussian", "poisson", "bernoulli"):
        for seed in SEEDS:
            truth = make_s_curve(300, 60, emissions=family, seed=seed)
            rng = np.random.default_rng(100 + seed)
            batch = rng.integers(0, 3, 300)
            F = truth.F + rng.normal(size=(3, 60))[batch]
            Y = {
                "gaussian": lambda rng=rng, F=F: F + 0.5 * rng.normal(size=F.shape),
                "poisson": lambda rng=rng, F=F: rng.poisson(np.exp(F)).astype(float),
                "bernoulli": lambda rng=rng, F=F: (rng.random(F.shape) < 1 / (1 + np.exp(-F))).astype(float),
            }[family]()
            row: dict[str, Any] = {"family": family, "seed": seed}
            for name, table, given in (
                ("no batches", truth.data, None), ("ignored", Y, None), ("given", Y, batch.astype(str)),
            ):  # fmt: skip
                row[name] = r2_affine(truth.X, rflvm.maximise(table, family, covariates=given, seed=seed).X)
            _add(rows, row, "columns_covariates")


def mixed() -> None:
    """A third of the columns of each family, together, alone, and all as if Gaussian."""
    rows: list[dict[str, Any]] = []
    for seed in SEEDS:
        truth = make_s_curve(300, 60, emissions="gaussian", seed=seed)
        rng = np.random.default_rng(100 + seed)
        F = truth.F
        Y = np.concatenate([
            F[:, :20] + 0.5 * rng.normal(size=(300, 20)), rng.poisson(np.exp(F[:, 20:40])),
            rng.random((300, 20)) < 1 / (1 + np.exp(-F[:, 40:])),
        ], axis=1)  # fmt: skip
        thirds = {"gaussian": range(20), "poisson": range(20, 40), "bernoulli": range(40, 60)}
        row: dict[str, Any] = {"seed": seed}
        for name, columns in thirds.items():
            row[f"{name} alone"] = r2_affine(truth.X, rflvm.maximise(Y[:, columns], name, seed=seed).X)
        row["all as gaussian"] = r2_affine(truth.X, rflvm.maximise(Y, "gaussian", seed=seed).X)
        row["mixed"] = r2_affine(truth.X, rflvm.maximise(Y, thirds, seed=seed).X)  # pyright: ignore[reportArgumentType]
        _add(rows, row, "columns_mixed")


def _add(rows: list[dict[str, Any]], row: dict[str, Any], name: str) -> None:
    rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
    print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    common.write(name, {"machine": common.machine(), "tables": rows})


if __name__ == "__main__":
    programs = {"covariates": covariates, "mixed": mixed, "ordinal": ordinal, "outliers": outliers}
    for what in sys.argv[1:] or programs:
        programs[what]()
