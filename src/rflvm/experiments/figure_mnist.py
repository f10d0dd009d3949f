"""The paper's figure of MNIST: digits at their latent positions, over a histogram of the draws of X for RFLVM."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import load_mnist
from ..fitted.summaries import latent_draws
from ..metrics import knn_accuracy
from ..plots.latent import paste
from . import drawing, methods
from .images import Images, quarter
from .store import Result, Task

METHODS = {"dla-gplvm": "DLA-GPLVM", "poisson-rflvm": "Poisson RFLVM, gibbs"}
SAMPLER: dict[str, Any] = {**methods.ENGINES["gibbs"], "n_chains": 2, "n_samples": 500}  # 1000 draws, as in the paper
QUICK_SAMPLER: dict[str, Any] = {**SAMPLER, "n_burnin": 20, "n_samples": 30}
QUICK_ROWS = 150
N_BINS = 150
SIZE = 0.035


def load(quick: bool) -> Images:
    """A thousand digits; for a quick look fewer of them, and smaller."""
    table = load_mnist(random_state=0)
    images = Images(table.data, table.target, (28, 28))
    return quarter(images, QUICK_ROWS) if quick else images


def fit(method: str, quick: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Positions, and for the sampler how often each place was drawn."""
    images = load(quick)
    settings = (QUICK_SAMPLER if quick else SAMPLER) if method in methods.RFLVMS else methods.SETTINGS[method]
    model = methods.fitted(method, images.data, 2, 0, **settings)
    X = np.asarray(model.embedding_, float)
    arrays = {"X": X}
    if method in methods.RFLVMS:
        draws = latent_draws(model.fitted_).reshape(-1, 2)
        arrays["counts"], arrays["edges_x"], arrays["edges_y"] = np.histogram2d(*draws.T, bins=N_BINS)
    return {"method": method, "accuracy": knn_accuracy(X, images.target).mean}, arrays


def tasks(quick: bool) -> list[Task]:
    """One fit of each method."""
    return [Task(method, method, functools.partial(fit, method, quick)) for method in METHODS]


def draw(results: Sequence[Result], folder: Path, quick: bool) -> list[Path]:
    """Digits in random order, without those that would overlap."""
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm
    from matplotlib.figure import Figure

    ink = LinearSegmentedColormap.from_list("ink", [(0, 0, 0, 0), (0, 0, 0, 1)])  # the draws show through
    images = load(quick)
    pixels = images.data.reshape(-1, *images.shape)
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(11, 5.4), layout="constrained")
        for ax, result in zip(figure.subplots(1, 2), results, strict=True):
            values, arrays = result
            if "counts" in arrays:
                shown = np.ma.masked_equal(arrays["counts"].T, 0)
                edges, norm = (arrays["edges_x"], arrays["edges_y"]), PowerNorm(0.5)
                mesh = ax.pcolormesh(*edges, shown, norm=norm, cmap="YlOrRd", rasterized=True)
                figure.colorbar(mesh, ax=ax, label="draws of $X$ in a bin", shrink=0.5, pad=0.01)
            paste(ax, arrays["X"], pixels, SIZE, ink)
            ax.set(title=f"{METHODS[values['method']]}: accuracy of 1-NN {values['accuracy']:.3f}", aspect="equal")
            ax.set(xlabel="$x_1$", ylabel="$x_2$")
        return drawing.save(figure, folder, "figure-mnist")
