"""The paper's figure of the Gaussian S-curve: X, one function, held-out error and the kernel against M.

M counts the inducing points of the GPLVM and the random features of the RFLVM. A fifth of the cells is held out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from ..datasets import make_s_curve
from ..metrics import kernel_mse, mse
from ..numerics.affine import map_affinely, r2_affine
from . import drawing, methods
from .functions import mean_functions
from .store import Result, Task

N_RUNS = 5
SHAPE, QUICK_SHAPE = (500, 100), (100, 30)
SIZES, QUICK_SIZES = (4, 10, 20, 50, 100), (10, 20)
METHODS = {"gplvm": "GPLVM", "gaussian-rflvm": "RFLVM"}
HELD_OUT = 0.2
GPLVM_EVALUATIONS = 100  # with gaps each takes seconds
COLUMN = 0  # of the table, whose function is drawn
SHOWN = 100  # about as many rows of the kernel matrices are drawn


def fit(method: str, M: int, run: int, shape: tuple[int, int]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """One fit to the curve of a seed."""
    truth = make_s_curve(*shape, emissions="gaussian", seed=run)
    hidden = np.random.default_rng(1000 + run).random(shape) < HELD_OUT
    Y = np.where(hidden, np.nan, truth.data)
    values: dict[str, Any] = {"method": method, "M": M, "run": run}
    arrays: dict[str, np.ndarray] = {}
    if method == "gplvm":
        model = methods.fitted(method, Y, 2, run, n_inducing=M, max_iter=GPLVM_EVALUATIONS)
        expected = F = model.F_
    else:
        model = methods.fitted(method, Y, 2, run, n_features=M, **methods.ENGINES["map"])
        expected, F = model.impute(Y, summary="mean"), mean_functions(model.draws_)
        X, W = np.asarray(model.draws_["X"], float), np.asarray(model.draws_["W"], float)
        values["mse_K"] = kernel_mse(rbf_kernel(truth.X, gamma=0.5), X, W)
        shown = np.argsort(truth.t)[:: max(1, len(truth.t) // SHOWN)]
        arrays["K"] = kernel_matrix(model.embedding_[shown], W[0, 0])
    X = np.asarray(model.embedding_)
    values |= {"R2": r2_affine(truth.X, X), "mse_Y": mse(truth.data, expected, hidden)}
    return values, {"X": X, "F": F[:, COLUMN], **arrays}


def kernel_matrix(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """phi(X) phi(X)' without the intercept."""
    angles = X @ W.T
    return (np.cos(angles) @ np.cos(angles).T + np.sin(angles) @ np.sin(angles).T) / len(W)


def tasks(quick: bool) -> list[Task]:
    """All fits."""
    shape = QUICK_SHAPE if quick else SHAPE
    return [
        Task(f"{method}-{M}-{run}", f"{method}-{M}", functools.partial(fit, method, M, run, shape))
        for method in METHODS
        for M in (QUICK_SIZES if quick else SIZES)
        for run in range(1 if quick else N_RUNS)
    ]


def draw(results: Sequence[Result], folder: Path, quick: bool) -> list[Path]:
    """X, a function and kernels of run 0; errors of all runs."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    truth = make_s_curve(*(QUICK_SHAPE if quick else SHAPE), emissions="gaussian", seed=0)
    sizes = sorted({result.values["M"] for result in results})
    first = {(r.values["method"], r.values["M"]): r for r in results if r.values["run"] == 0}
    largest = {method: first[method, sizes[-1]] for method in METHODS}
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(11, 5.2), layout="constrained")
        parts: Any = figure.subfigures(1, 3, width_ratios=[1.0, 1.2, 1.3])
        left, middle, right = parts
        for ax, (method, title) in zip(left.subplots(2, 1), METHODS.items(), strict=True):
            result = largest[method]
            X = map_affinely(truth.X, result.arrays["X"])
            drawing.points(ax, X, truth.t, f"{title}: $R^2$ of X {result.values['R2']:.3f}")
        above, below = middle.subplots(2, 1)
        order = np.argsort(truth.t)
        above.plot(truth.t[order], truth.F[order, COLUMN], color="black", lw=1.2, label="true")
        for colour, (method, title) in zip(drawing.COLOURS, METHODS.items(), strict=False):
            above.plot(truth.t[order], largest[method].arrays["F"][order], color=colour, lw=0.8, label=title)
            runs = np.array([[r.values["mse_Y"] for r in results if r.values["M"] == M and r.values["method"] == method]
                             for M in sizes])  # fmt: skip
            error = runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1]) if runs.shape[1] > 1 else 0.0
            below.errorbar(sizes, runs.mean(axis=1), error, color=colour, marker="o", ms=4, capsize=3, label=title)
        above.set(xlabel="position along the curve", ylabel="$f_1$")
        above.legend(fontsize=7)
        below.set(xlabel="M", ylabel="held-out error of Y", xscale="log", xticks=sizes, xticklabels=sizes)
        below.minorticks_off()
        below.legend(fontsize=7)
        shown = order[:: max(1, len(order) // SHOWN)]
        matrices = {"true": rbf_kernel(truth.X[shown], gamma=0.5)}
        matrices |= {f"M = {M}": first["gaussian-rflvm", M].arrays["K"] for M in sizes}
        axes = right.subplots(-(-len(matrices) // 2), 2, squeeze=False).ravel()
        for ax, (title, K) in zip(axes, matrices.items(), strict=False):
            ax.imshow(K, vmin=-0.2, vmax=1, cmap="viridis")
            ax.set(title=title, xticks=[], yticks=[])
        for ax in axes[len(matrices) :]:
            ax.axis("off")
        return drawing.save(figure, folder, "figure-gaussian")
