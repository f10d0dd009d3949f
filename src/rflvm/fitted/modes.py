"""Rows with two modes: whose observed cells agree with two places in the picture.

``embedding_`` of a maximum has one of the two, with the spread around it; ``transform`` has the mean over both, which
may be at neither. Which rows these are is read off the weighted points of a row's posterior (``prediction.py``): along
the direction in which they vary most they are cut in two where the two parts are tightest (Otsu's threshold). There are
two modes if each part has a share of the weight that counts and the parts lie far apart, in the picture and relative to
their own spread.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from ..model.joint import Data
from . import prediction
from .fit import Fitted
from .rows import by_block

MIN_SHARE = 0.1  # of the weight, in the lesser of two modes
# Between the means of two modes, in root mean squares of their standard deviations. The halves of a Gaussian cloud are
# 2.6 of them apart, those of a uniform one 3.5; two Gaussian clouds that many apart have hardly anything in between.
MIN_SEPARATION = 5.0
MIN_DISTANCE = 0.5  # between them, where X has unit prior variance: in a picture closer ones are one place


def two_modes(fitted: Fitted, data: Data | None = None) -> Bool[np.ndarray, " n"]:
    """Rows, by default of the fitted table, whose posterior, given their cells and the functions, has two modes."""

    def of_block(placed: prediction.Placed, block: object) -> np.ndarray:
        S, Q, B, D = placed.X.shape
        w = np.asarray(prediction.weights(placed)).reshape(S * Q, B)
        return in_two_parts(np.asarray(placed.X).reshape(S * Q, B, D), w)

    return by_block(fitted, of_block, fitted.data() if data is None else data)


def in_two_parts(X: Float[np.ndarray, "Q B D"], w: Float[np.ndarray, "Q B"]) -> Bool[np.ndarray, " B"]:
    """Whether weighted points lie in two parts, of each of B clouds; the weights of each sum to one."""
    away = X - np.einsum("qb,qbd->bd", w, X)
    axis = np.linalg.eigh(np.einsum("qb,qbd,qbe->bde", w, away, away))[1][:, :, -1]
    along = np.einsum("qbd,bd->qb", away, axis)
    order = np.argsort(along, axis=0)
    t, w = np.take_along_axis(along, order, axis=0), np.take_along_axis(w, order, axis=0)
    # Weight, sum and sum of squares of the lower part at each possible cut, and of all points.
    share, total, squares = (np.cumsum(part, axis=0) for part in (w, w * t, w * t**2))
    rest = 1 - share
    with np.errstate(divide="ignore", invalid="ignore"):
        lower, upper = total / share, (total[-1] - total) / rest
        within = squares[-1] - share * lower**2 - rest * upper**2  # variance around the means of the two parts
        cuts = np.minimum(share, rest) >= MIN_SHARE
        cut = np.argmin(np.where(cuts, within, np.inf), axis=0)[None]
        at_cut = lambda part: np.take_along_axis(part, cut, axis=0)[0]  # noqa: E731
        apart = at_cut(upper) - at_cut(lower)
        clear = apart > MIN_SEPARATION * np.sqrt(np.maximum(at_cut(within), 0))
    return at_cut(cuts) & clear & (apart > MIN_DISTANCE)
