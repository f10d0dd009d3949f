"""The paper's figure of the Poisson S-curve: X by four methods, one function, errors of F and R^2 of X in five runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import make_s_curve
from ..metrics import mse
from ..numerics.affine import map_affinely, r2_affine
from . import drawing, methods
from .functions import mean_functions
from .store import Result, Task

N_RUNS = 5
SHAPE, QUICK_SHAPE = (500, 100), (100, 30)
METHODS = {
    "map-gplvm": "MAP-GPLVM",
    "dla-gplvm": "DLA-GPLVM",
    "rflvm-map": "RFLVM, map",
    "rflvm-gibbs": "RFLVM, gibbs",
}
COLUMN = 0  # of the table, whose function is drawn


def fit(method: str, run: int, shape: tuple[int, int]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """One fit to the curve of a seed."""
    truth = make_s_curve(*shape, emissions="poisson", seed=run)
    if method.startswith("rflvm-"):
        engine = method.removeprefix("rflvm-")
        model = methods.fitted("poisson-rflvm", truth.data, 2, run, **methods.ENGINES[engine])
        F = mean_functions(model.draws_)
    else:
        model = methods.fitted(method, truth.data, 2, run)
        F = model.F_
    X = np.asarray(model.embedding_)
    values = {"method": method, "run": run, "R2": r2_affine(truth.X, X), "mse_F": mse(truth.F, F)}
    return values, {"X": X, "F": F[:, COLUMN]}


def tasks(quick: bool) -> list[Task]:
    """All fits."""
    shape = QUICK_SHAPE if quick else SHAPE
    return [
        Task(f"{method}-{run}", method, functools.partial(fit, method, run, shape))
        for method in METHODS
        for run in range(1 if quick else N_RUNS)
    ]


def draw(results: Sequence[Result], folder: Path, quick: bool) -> list[Path]:
    """The figure, of run 0 on the left and of all runs on the right."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    truth = make_s_curve(*(QUICK_SHAPE if quick else SHAPE), emissions="poisson", seed=0)
    first = {result.values["method"]: result for result in results if result.values["run"] == 0}
    by_method = {name: [r.values for r in results if r.values["method"] == name] for name in METHODS}
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(10.5, 5.2), layout="constrained")
        axes = figure.subplot_mosaic([["true", "map-gplvm", "dla-gplvm", "R2"], ["rflvm-map", "rflvm-gibbs", "f", "F"]])
        drawing.points(axes["true"], truth.X, truth.t, "true X")
        for name, result in first.items():
            title = f"{METHODS[name]}: $R^2$ {result.values['R2']:.3f}"
            drawing.points(axes[name], map_affinely(truth.X, result.arrays["X"]), truth.t, title)
        order = np.argsort(truth.t)
        ax = axes["f"]
        ax.plot(truth.t[order], truth.F[order, COLUMN], color="black", lw=1.2, label="true")
        for name, colour in zip(("dla-gplvm", "rflvm-gibbs"), drawing.COLOURS[1::2], strict=False):
            ax.plot(truth.t[order], first[name].arrays["F"][order], color=colour, lw=0.8, label=METHODS[name])
        ax.set(title="one function along the curve", xlabel="position along the curve", ylabel="$f_1$")
        ax.legend(fontsize=7)
        names = list(METHODS.values())
        for key, label, where in (("R2", "$R^2$ of X", "R2"), ("mse_F", "mean squared error of F", "F")):
            drawing.compare(axes[where], [[v[key] for v in by_method[m]] for m in METHODS], names, label)
        axes["R2"].set_ylim(min(0.8, min(v["R2"] for runs in by_method.values() for v in runs)) - 0.02, 1.0)
        return drawing.save(figure, folder, "figure-poisson")
