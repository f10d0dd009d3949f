"""What every figure needs: the fit that is drawn, and axes, the given ones or those of a new figure."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..estimator import RFLVM
from ..fitted.fit import Fitted

SIZE = (5.6, 4.2)
LONGEST = 24  # letters of a name in a figure


def fit_of(model: RFLVM) -> Fitted:
    """The fit of a model; an error for a model that is not fitted."""
    check_is_fitted(model)
    return model.fitted_


def matplotlib() -> Any:
    """The package, which takes a second to import."""
    import matplotlib.pyplot

    return matplotlib


def axes(ax: Any) -> Any:
    """The axes, or new ones."""
    if ax is not None:
        return ax
    return matplotlib().pyplot.subplots(figsize=SIZE, layout="constrained")[1]


def short(name: str) -> str:
    """A name of the user's that fits a label: no control characters, and dollar signs that are not mathematics."""
    name = "".join(letter if letter.isprintable() else " " for letter in name[: 4 * LONGEST]).strip()
    return (name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}\u2026").replace("$", r"\$")


def dimension(d: int) -> str:
    """The name of a latent dimension, counted from 0."""
    return f"$x_{{{d + 1}}}$"


def name_dimensions(ax: Any, first: int, second: int) -> None:
    """Labels of a latent plane, with the same scale on both axes."""
    ax.set_xlabel(dimension(first))
    ax.set_ylabel(dimension(second), rotation=0, labelpad=10)
    ax.set_aspect("equal", adjustable="datalim")
