"""Do ``transform`` and ``embedding_`` agree on the fitted rows, but for those that ``ambiguous_rows`` marks?

    RFLVM_DATA=/path/to/data python benchmarks/agreement.py

Default fits by "map" of S-curves (300 x 60, M = 100) of three families, one seed, and of the bridges of New York. The
distance of the two positions of a row is in posterior standard deviations of ``transform``, as a Mahalanobis distance
divided by the root of D. ``ratio`` is the median of the standard deviation of ``transform`` over ``embedding_std_``.
Writes benchmarks/results/agreement.json.
"""

from __future__ import annotations

import warnings
from typing import Any

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rflvm import RFLVM, datasets
from rflvm.fitted.rows import moments, read

FAMILIES, SEEDS = ("gaussian", "poisson", "bernoulli"), range(1)


def measured(Y: np.ndarray, likelihood: str, seed: int) -> dict[str, Any]:
    """Distances of marked and of other rows."""
    model = RFLVM(likelihood=likelihood, inference="map", random_state=seed).fit(Y)
    found = moments(model.fitted_, read(model.fitted_, Y))
    away = np.asarray(found.mean) - model.embedding_
    squares = np.einsum("nd,nde,ne->n", away, np.linalg.inv(np.asarray(found.covariance)), away)
    distance = np.sqrt(squares / away.shape[1])
    ratio = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2)).mean(axis=1) / model.embedding_std_.mean(axis=1)
    marked = model.ambiguous_rows(Y)
    row: dict[str, Any] = {"rows": len(Y), "marked": int(marked.sum())}
    for name, which in (("marked", marked), ("others", ~marked)):
        if which.any():
            row[f"{name}_within_one"] = round(float((distance[which] <= 1).mean()), 3)
            row[f"{name}_largest"] = round(float(distance[which].max()), 2)
            row[f"{name}_ratio"] = round(float(np.median(ratio[which])), 2)
    return row


def main() -> None:
    """All tables."""
    tables: dict[str, tuple[np.ndarray, str, int]] = {}
    for family in FAMILIES:
        for seed in SEEDS:
            tables[f"s_curve_{family}_{seed}"] = (
                datasets.make_s_curve(300, 60, emissions=family, seed=seed).data,
                family,
                seed,
            )
    bridges = common.table(datasets.load_bridges)
    if bridges is not None:
        tables["bridges"] = np.asarray(bridges.data, float), "negative_binomial", 0
    rows = []
    for name, arguments in tables.items():
        rows.append({"table": name} | measured(*arguments))
        print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    common.write("agreement", {"machine": common.machine(), "tables": rows})


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
