"""The paper's figures of images: Yale's latent space with generated faces, that of CIFAR-10, generated digits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import load_cifar10, load_mnist, load_yale
from ..plots.latent import paste
from . import drawing, methods
from .images import Images, quarter
from .store import Result, Task

QUICK_ROWS = 100
N_TILES = 12  # along the longer side of the latent plane
ROWS, TILES = "rows at their latent positions", "generated at the mean row of each square"


def _yale() -> Images:
    table = load_yale()
    return Images(table.data, table.target, (32, 32))


def _cifar10() -> Images:
    table = load_cifar10(random_state=0)
    return Images(table.data, table.target, (20, 20))


def _mnist() -> Images:
    table = load_mnist(random_state=0)
    return Images(table.data, table.target, (28, 28))


LOADERS: dict[str, Callable[[], Images]] = {"yale": _yale, "cifar10": _cifar10, "mnist": _mnist}
PANELS = (("yale", ROWS, "Yale"), ("yale", TILES, "Yale"), ("cifar10", ROWS, "CIFAR-10"), ("mnist", TILES, "MNIST"))


def load(dataset: str, quick: bool) -> Images:
    """All images of a data set; for a quick look fewer of them, and smaller."""
    images = LOADERS[dataset]()
    return quarter(images, QUICK_ROWS) if quick else images


def tiles(X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The squares of a grid over the plane that have rows: their centres, and the mean positions of their rows.

    Images are generated at the mean positions and drawn at the centres. Away from rows the data do not determine the
    functions, and the posterior mean of a count is dominated by the few draws in which it is enormous.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    side = (high - low).max() / n
    squares, of_row, sizes = np.unique(
        np.minimum((X - low) // side, n - 1), axis=0, return_inverse=True, return_counts=True
    )
    sums = np.zeros_like(squares)
    np.add.at(sums, of_row.ravel(), X)
    return low + side * (squares + 0.5), sums / sizes[:, None]


def fit(dataset: str, quick: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Positions of the rows, and the expected image at the mean position of those in each square."""
    model = methods.fitted("poisson-rflvm", load(dataset, quick).data, 2, 0)
    X = np.asarray(model.embedding_, float)
    centres, means = tiles(X, N_TILES)
    return {"dataset": dataset}, {"X": X, "tiles": centres, "generated": np.asarray(model.inverse_transform(means))}


def tasks(quick: bool) -> list[Task]:
    """One fit of each data set."""
    return [Task(dataset, dataset, functools.partial(fit, dataset, quick)) for dataset in LOADERS]


def draw(results: Sequence[Result], folder: Path, quick: bool) -> list[Path]:
    """Four latent planes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    by_dataset = {result.values["dataset"]: result.arrays for result in results}
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(10, 10), layout="constrained")
        for ax, (dataset, kind, name) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
            images, arrays = load(dataset, quick), by_dataset[dataset]
            data, points = (images.data, arrays["X"]) if kind == ROWS else (arrays["generated"], arrays["tiles"])
            pixels = np.clip(data, images.data.min(), images.data.max()).reshape(-1, *images.shape)
            paste(ax, points, pixels, 0.06 if kind == ROWS else 0.95 / N_TILES, "gray_r" if name == "MNIST" else "gray")
            ax.set(title=f"{name}, {kind}", xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
        return drawing.save(figure, folder, "figure-faces")
