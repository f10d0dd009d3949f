"""What the figures share: size and type, colours of methods, files as PNG and PDF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..plots.colours import COLOURS as PALETTE

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.dpi": 200,
}
COLOURS = tuple(PALETTE[i] for i in (0, 4, 2, 3, 1, 5))  # neighbours differ most


def points(ax: Any, X: np.ndarray, colour: np.ndarray, title: str, size: float = 6) -> None:
    """A latent space; ``colour`` has the name of one for each row, or numbers."""
    cmap = "viridis" if np.issubdtype(colour.dtype, np.number) else None
    ax.scatter(*X.T, c=colour, s=size, cmap=cmap, linewidths=0)
    ax.set(title=title, aspect="equal")
    ax.set_axis_off()


def compare(
    ax: Any, values: Sequence[Sequence[float]], names: Sequence[str], label: str, colours: Sequence[str] = COLOURS
) -> None:
    """Runs of each method as points, their mean as a bar with its standard error."""
    for k, (runs, colour) in enumerate(zip(values, colours, strict=False)):
        error = np.std(runs, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0.0
        ax.bar(k, np.mean(runs), yerr=error, color=colour, alpha=0.5, width=0.7, capsize=3)
        ax.scatter(np.linspace(k - 0.15, k + 0.15, len(runs)) if len(runs) > 1 else [k], runs, color=colour, s=9)
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    ax.set_ylabel(label)


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """The files of a figure."""
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "pdf")]
    for path in paths:
        figure.savefig(path)
    return paths
