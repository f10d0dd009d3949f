"""The paper's figure of place cells: three latent dimensions mapped onto the rat's positions in a W-shaped maze."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import load_hippocampus
from ..metrics import knn_accuracy
from ..numerics.affine import map_affinely, r2_affine
from . import drawing, methods
from .store import Result, Task

N_RUNS = 5
QUICK_ROWS = 150
METHODS = {"dla-gplvm": "DLA-GPLVM", "rflvm-map": "RFLVM, map", "rflvm-gibbs": "RFLVM, gibbs"}
ARMS, BARS = drawing.COLOURS[:3], drawing.COLOURS[3:]  # colours that mean a place are not those of a method


def load(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, positions and regions; for a quick look every k-th bin, at least ``QUICK_ROWS`` of them."""
    table = load_hippocampus()
    thinned = slice(None, None, len(table.data) // QUICK_ROWS if quick else 1)
    data, positions, regions = table.data[thinned], table.positions[thinned], table.target[thinned]
    active = data.sum(axis=1) > 0
    return data[active], positions[active], regions[active]


def fit(method: str, runs: Sequence[int], quick: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """One fit that serves one or more runs, each with folds of its own."""
    Y, positions, regions = load(quick)
    if method.startswith("rflvm-"):
        settings = methods.ENGINES[method.removeprefix("rflvm-")]
        model = methods.fitted("poisson-rflvm", Y, 3, runs[0], **settings)
    else:
        model = methods.fitted(method, Y, 3, runs[0])
    X = np.asarray(model.embedding_)
    accuracy = [knn_accuracy(X, regions, n_repeats=1, seed=run).mean for run in runs]
    R2 = [r2_affine(positions, X)] * len(runs)
    return {"method": method, "runs": list(runs), "accuracy": accuracy, "R2": R2}, {"X": X}


def tasks(quick: bool) -> list[Task]:
    """All fits; one serves all runs where the method has no seed."""
    every = range(1 if quick else N_RUNS)
    return [
        Task(f"{method}-{runs[0]}", method, functools.partial(fit, method, runs, quick))
        for method in METHODS
        for runs in ([every] if method in methods.SEEDLESS else [[run] for run in every])
    ]


def draw(results: Sequence[Result], folder: Path, quick: bool) -> list[Path]:
    """Positions, the latent spaces of run 0 after the best affine map, accuracy and R^2 of all runs."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    _, positions, regions = load(quick)
    first = {result.values["method"]: result for result in results if 0 in result.values["runs"]}
    by_method = {name: [r.values for r in results if r.values["method"] == name] for name in METHODS}
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        shapes = ["positions", *METHODS]
        axes = figure.subplot_mosaic([[*shapes, "accuracy"], [*shapes, "R2"]])
        for name in shapes:
            X = map_affinely(positions, first[name].arrays["X"]) if name in METHODS else positions
            drawing.points(axes[name], X, np.array(ARMS)[regions], METHODS.get(name, "position of the rat"))
        handles = [Line2D([], [], color=colour, marker="o", ls="", ms=4) for colour in ARMS]
        axes["positions"].legend(
            handles, ["left arm", "centre", "right arm"], loc="upper center", bbox_to_anchor=(0.5, 0)
        )
        for key, label in (("accuracy", "accuracy of 1-NN"), ("R2", "$R^2$ of positions")):
            runs = [[value for values in by_method[name] for value in values[key]] for name in METHODS]
            drawing.compare(axes[key], runs, list(METHODS.values()), label, BARS)
        axes["accuracy"].set_xticklabels([])
        return drawing.save(figure, folder, "figure-hippocampus")
