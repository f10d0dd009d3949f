"""Are predictions sane? A fifth of the cells hidden, at random or in blocks, and what a default fit says of them.

    RFLVM_DATA=/path/to/data python benchmarks/held_out.py [TABLE MASK SEED]

``random`` hides cells independently; ``blocks`` hides a run of consecutive rows in two fifths of the columns, half of
the rows where the number of columns allows it, as for an instrument that was installed late. The fit is
``RFLVM(likelihood="auto", inference="map")`` with its defaults. Squared errors of hidden cells are on the scale on
which the noise of the chosen family is roughly even (square roots of counts): of ``impute`` with its default summary
and with the mean, of the column mean on that scale, and of probabilistic PCA of rank D on that scale, gaps filled by
EM. ``above`` counts the imputed cells above ten times the largest observed cell of their column, of counts at least
one, ``truth_above`` the hidden cells that are. ``coverage`` is the share of hidden cells in their 90 % predictive
intervals, ties of counts broken at random, which makes the nominal coverage exact. ``marked`` is the share of hidden
cells that ``uncertain_cells`` marks; errors that end in ``_unmarked`` are those of the others.

``free`` has ``mse``, ``above`` and ``coverage`` of the same fit with functions that are not held to the ranges that the
table knows of them. With RFLVM_FITS=FOLDER fits are kept there, and one that is there is not made again
(``fit_seconds`` is then null).

Every case runs in a process of its own. Those in the result file that were measured with this version are not run
again; a named case is. Bars: ``mse`` below the column mean's and PCA's, ``above`` 0, coverage from 86 to 94 %.
Writes benchmarks/results/held_out.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from estimator import share_within
from sklearn.exceptions import ConvergenceWarning

import rflvm
from rflvm import RFLVM, datasets
from rflvm.fitted.rows import unheld
from rflvm.maximum import gaps

SHARE, BLOCK_COLUMNS, LEVEL, MANY_TIMES = 0.2, 0.4, 0.9, 10
MASKS, SEEDS = ("random", "blocks"), range(1)
S_CURVES = ("poisson", "gaussian", "negative_binomial")
TABLES = ("montreal", "bridges", *(f"s_curve_{emissions}" for emissions in S_CURVES), "yale", "mnist", "congress")
KEYS = ("table", "mask", "seed")
FREE = ("mse", "above", "coverage")


def table(name: str, seed: int) -> np.ndarray | None:
    """The whole table of a case; None if RFLVM_DATA names no folder that has it."""
    if name.startswith("s_curve_"):
        return datasets.make_s_curve(emissions=name.removeprefix("s_curve_"), seed=seed).data
    if name == "bridges":
        found = common.table(datasets.load_bridges)
        return None if found is None else np.asarray(found.data, float)
    found = getattr(common, name)()
    return None if found is None else np.asarray(found[0], float)


def hidden_cells(shape: tuple[int, int], mask: str, seed: int) -> np.ndarray:
    """Which cells are hidden; a row of which nothing would be left is left whole."""
    rng = np.random.default_rng(1000 + seed)
    N, J = shape
    if mask == "random":
        hidden = rng.random(shape) < SHARE
    else:
        n_columns = max(1, round(BLOCK_COLUMNS * J))
        n_rows = round(SHARE * N * J / n_columns)
        hidden = np.zeros(shape, bool)
        for j in rng.permutation(J)[:n_columns]:
            start = rng.integers(N - n_rows + 1)
            hidden[start : start + n_rows, j] = True
    hidden[hidden.all(axis=1)] = False
    return hidden


def measured(model: RFLVM, truth: np.ndarray, hidden: np.ndarray, seed: int) -> dict[str, Any]:
    """What a fit to the cells that are not hidden says of the others."""
    family, offset = model.likelihood_, np.zeros((len(truth), 1))
    scale = lambda cells: family.stabilise(cells, offset, None)  # noqa: E731
    Y = np.where(hidden, np.nan, truth)
    shown = np.where(hidden, 0, scale(truth))
    column_mean = np.broadcast_to(shown.sum(axis=0) / (~hidden).sum(axis=0), shown.shape)
    square = lambda estimate: (estimate - scale(truth)) ** 2  # noqa: E731
    filled = model.impute(Y)
    marked = model.uncertain_cells(Y, LEVEL)
    rest, largest = hidden & ~marked, np.maximum(np.nanmax(Y, axis=0), 1 if family.counts else 0)
    return {
        "likelihood": family.name,
        "convergence": model.convergence_,
        "mse": square(scale(filled))[hidden].mean(),
        "mse_mean": square(scale(model.impute(Y, summary="mean")))[hidden].mean(),
        "mse_column_mean": square(column_mean)[hidden].mean(),
        "mse_pca": square(gaps.completed(shown, ~hidden, model.n_components))[hidden].mean(),
        "above": int((filled > MANY_TIMES * largest)[hidden].sum()),
        "truth_above": int((truth > MANY_TIMES * largest)[hidden].sum()),
        "coverage": share_within(model, Y, truth, hidden, seed),
        "marked": marked[hidden].mean(),
        "mse_unmarked": square(scale(filled))[rest].mean() if rest.any() else None,
        "mse_column_mean_unmarked": square(column_mean)[rest].mean() if rest.any() else None,
    }


def one_case(name: str, mask: str, seed: int) -> dict[str, Any]:
    """Hide, fit and measure in this process."""
    truth = table(name, seed)
    if truth is None:
        return {}
    hidden = hidden_cells(truth.shape, mask, seed)
    model, seconds = fitted(np.where(hidden, np.nan, truth), f"{name}_{mask}_{seed}.npz", seed)
    row: dict[str, Any] = {"table": name, "mask": mask, "seed": seed, "N": truth.shape[0], "J": truth.shape[1]}
    row |= {"version": rflvm.__version__, "fit_seconds": seconds}
    row |= measured(model, truth, hidden, seed)
    model.fitted_ = unheld(model.fitted_)
    row["free"] = {key: value for key, value in measured(model, truth, hidden, seed).items() if key in FREE}
    return rounded(row)


def fitted(Y: np.ndarray, name: str, seed: int) -> tuple[RFLVM, float | None]:
    """A default fit and its seconds, or the one that was kept."""
    kept = Path(os.environ["RFLVM_FITS"], name) if "RFLVM_FITS" in os.environ else None
    if kept is not None and kept.exists():
        return rflvm.load(kept), None
    start = time.perf_counter()
    model = RFLVM(likelihood="auto", inference="map", random_state=seed).fit(Y)
    seconds = round(time.perf_counter() - start, 1)
    if kept is not None:
        model.save(kept)
    return model, seconds


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers to four digits."""
    digits = lambda value: float(f"{value:.4g}") if isinstance(value, float) else value  # noqa: E731
    return {key: rounded(value) if isinstance(value, dict) else digits(value) for key, value in row.items()}


def meets(row: dict[str, Any]) -> dict[str, bool]:
    """Which bars a case meets."""
    return {
        "below column mean": row["mse"] < row["mse_column_mean"],
        "below PCA": row["mse"] < row["mse_pca"],
        "none above": row["above"] == 0,
        "coverage": 0.86 <= row["coverage"] <= 0.94,
    }


def main(wanted: list[str]) -> None:
    """All cases that are not in the result file, or one."""
    path = common.RESULTS / "held_out.json"
    rows = json.loads(path.read_text())["cases"] if path.exists() else []
    kept = {tuple(row[key] for key in KEYS): row for row in rows if row["version"] == rflvm.__version__}
    cases = [(name, mask, seed) for name in TABLES for mask in MASKS for seed in SEEDS]
    todo = [(wanted[0], wanted[1], int(wanted[2]))] if wanted else [case for case in cases if case not in kept]
    for case in todo:
        command = [sys.executable, __file__, "--here", *map(str, case)]
        row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        if not row:
            print(f"{case[0]}: skipped, RFLVM_DATA does not name a folder that has it")
            continue
        kept[case] = row
        print(*(f"{key} {value}" for key, value in row.items()), flush=True)
        ordered = [kept[case] for case in cases if case in kept] + [kept[case] for case in kept if case not in cases]
        common.write("held_out", {"machine": common.machine(), "cases": ordered})
    for case, row in kept.items():
        missed = [bar for bar, met in meets(row).items() if not met]
        print(*case, "misses: " + ", ".join(missed) if missed else "meets all bars")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # it is in the results
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(one_case(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main(sys.argv[1:])
