"""Effects of covariates on the columns, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..data import covariates
from ..model.features import effects
from ..numerics import scalars
from .fit import Fitted

LEVEL = 0.9


class Effects(NamedTuple):
    """What one unit of a number, or being in a category in comparison with an average row, adds to the predictor.

    Of counts it is the log of a factor, of real numbers it is in their units, of a yes/no answer the log of an odds
    ratio.

    Attributes
    ----------
    covariates : tuple of str
        "age", or "batch = A": what each row of the arrays is about.
    columns : tuple of str
        Names of the columns.
    mean, std : array (C, J)
        Posterior mean and standard deviation.
    lower, upper : array (C, J)
        Ends of the interval that has ``level`` of the posterior in it.
    level : float
    """

    covariates: tuple[str, ...]
    columns: tuple[str, ...]
    mean: Float[np.ndarray, "C J"]
    std: Float[np.ndarray, "C J"]
    lower: Float[np.ndarray, "C J"]
    upper: Float[np.ndarray, "C J"]
    level: float


def of_covariates(fitted: Fitted, level: float = LEVEL) -> Effects:
    """Effects on each linear predictor; of a multinomial table these are the sticks, one less than columns."""
    level = scalars.probability("level", level)
    about = fitted.about
    if not about.coding:
        raise ValueError("the model was fitted without covariates of the rows, which have effects: fit(Y, covariates=)")
    beta = fitted.draws.in_units()["beta"]
    gamma = covariates.in_units(about.coding, effects(beta, fitted.model.H)).reshape(-1, *_shape(fitted, beta))
    names = range(beta.shape[-1]) if about.columns is None else about.columns[: beta.shape[-1]]
    tails = [(1 - level) / 2, (1 + level) / 2]
    lower, upper = np.quantile(gamma, tails, axis=0)
    return Effects(
        covariates.labels(about.coding), tuple(map(str, names)), gamma.mean(0), gamma.std(0), lower, upper, level
    )


def _shape(fitted: Fitted, beta: np.ndarray) -> tuple[int, int]:
    return beta.shape[-2] - 2 * fitted.model.H - 1, beta.shape[-1]
