"""What every figure needs: the fit that is drawn, and axes, the given ones or those of a new figure."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..estimator import RFLVM
from ..fitted.fit import Fitted

SIZE = (5.6, 4.2)


def fit_of(model: RFLVM) -> Fitted:
    """The fit of a model; an error for a model that is not fitted."""
    check_is_fitted(model)
    return model.fitted_


def matplotlib(what: str = "a figure") -> Any:
    """The package, or an error that says how to get it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(f"{what} needs matplotlib: pip install 'rflvm[plots]'") from error
    return matplotlib


def axes(ax: Any) -> Any:
    """The axes, or new ones."""
    if ax is not None:
        return ax
    return matplotlib().pyplot.subplots(figsize=SIZE, layout="constrained")[1]


def dimension(d: int) -> str:
    """The name of a latent dimension, counted from 0."""
    return f"$x_{{{d + 1}}}$"


def name_dimensions(ax: Any, first: int, second: int) -> None:
    """Labels of a latent plane, with the same scale on both axes."""
    ax.set_xlabel(dimension(first))
    ax.set_ylabel(dimension(second), rotation=0, labelpad=10)
    ax.set_aspect("equal", adjustable="datalim")
