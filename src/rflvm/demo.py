"""The paper's Poisson S-curve: simulate it, fit it, print R^2, draw true and inferred X."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from .datasets import make_s_curve
from .estimator import RFLVM
from .numerics.affine import map_affinely, r2_affine

N, J, M = 500, 100, 100
N_BURNIN, N_SAMPLES = 400, 600


def fit_s_curve(inference: Literal["gibbs", "map"] = "gibbs", progress: bool = True) -> tuple[RFLVM, Bunch]:
    """Simulate, fit and print what came out; the model and the truth."""
    truth = make_s_curve(N, J, emissions="poisson", lengthscale=1.0, seed=0)
    print(f"Poisson S-curve: {N} rows, {J} columns of counts, M = {M} features", flush=True)
    start = time.perf_counter()
    model = RFLVM(
        likelihood="poisson", inference=inference, n_features=M, n_burnin=N_BURNIN, n_samples=N_SAMPLES, n_chains=1,
        random_state=0, progress=progress,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page below says it too
        X = model.fit_transform(truth.data)
    seconds = time.perf_counter() - start
    what = "sweeps" if inference == "gibbs" else "iterations"
    print(f"{model.n_iter_} {what} in {seconds:.0f} s, compilation included")
    print(f"R^2 of X after the best affine map: {r2_affine(truth.X, X):.3f}\n")
    model.diagnose()
    return model, truth


def draw_s_curve(truth: Bunch, X: np.ndarray, path: Path) -> None:
    """Two panels: the true latent curve and the posterior mean mapped onto it."""
    from matplotlib.figure import Figure

    mapped = map_affinely(truth.X, X)
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes: Any = figure.subplots(1, 2, sharex=True, sharey=True)
    titles = "true X", f"inferred X ($R^2$ = {r2_affine(truth.X, X):.3f})"
    for ax, points, title in zip(axes, (truth.X, mapped), titles, strict=True):
        ax.scatter(*points.T, c=truth.t, s=10, cmap="viridis")
        ax.set_title(title)
        ax.set_xlabel("$x_1$")
        ax.set_aspect("equal")
    axes[0].set_ylabel("$x_2$")
    figure.savefig(path, dpi=150)


def report_s_curve(truth: Bunch, model: RFLVM, path: Path) -> None:
    """The report, rows coloured by their place on the curve."""
    from .report import write_report

    write_report(model, path, colours={"position along the curve": truth.t}, title="Poisson S-curve")
