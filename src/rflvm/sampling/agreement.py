"""Which chains show the same picture of the rows, and for which rows they agree on it: split R-hat of every row.

Two chains are in one arrangement if the best affine map of one mean picture explains the other, in either direction, or
if their mean pictures are no further apart than the draws of each scatter. R-hat and effective draws are of chains in
one arrangement, aligned to each other; between arrangements there is nothing to compare row by row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..maximum.competition import same_picture
from ..model.alignment import rotations
from ..numerics.convergence import esses, rhats

RHAT, ESS = 1.05, 100  # of positions and predictions: 95th percentile over rows at most, median over rows at least
QUANTILE = 0.95

Array = np.ndarray


class Agreement(NamedTuple):
    """How well chains agree about something of each row."""

    rhat: Float[Array, " N"]  # the largest over what is looked at of the row
    ess: Float[Array, " N"]  # the smallest

    @property
    def settled(self) -> bool:
        """Whether nothing needs to be done."""
        return self.worst <= RHAT and float(np.median(self.ess)) >= ESS

    @property
    def worst(self) -> float:
        """R-hat of all rows but the worst twentieth."""
        return float(np.quantile(self.rhat, QUANTILE, method="nearest"))


def arrangements(X: Float[Array, "C S N D"]) -> tuple[tuple[int, ...], ...]:
    """Chains that show the same picture, by number; the first chain is in the first arrangement."""
    pictures = [_turned(chain, chain[-1]) for chain in np.asarray(X, float)]
    pictures = [_turned(chain, chain.mean(axis=0)) for chain in pictures]
    groups: list[list[int]] = []
    for c, picture in enumerate(pictures):
        alike = next((group for group in groups if _alike(pictures[group[0]], picture)), None)
        if alike is None:
            groups.append([c])
        else:
            alike.append(c)
    return tuple(tuple(group) for group in groups)


def _alike(one: Float[Array, "S N D"], other: Float[Array, "S N D"]) -> bool:
    """Whether two chains show the same picture, or lie within each other's scatter, where there is little to see."""
    first, second = one.mean(axis=0), other.mean(axis=0)
    apart = np.mean((first - _turned(second, first)) ** 2)
    scatter = (one.var(axis=0).mean() + other.var(axis=0).mean()) / 2
    return bool(apart <= scatter) or same_picture(first, second)


def aligned(X: Float[Array, "C S N D"]) -> Float[Array, "C S N D"]:
    """Draws of one arrangement, turned onto the mean of all of them."""
    X = np.asarray(X, float)
    return _turned(X, _turned(X, X[-1, -1]).mean(axis=(0, 1)))


def _turned(X: Array, reference: Float[Array, "N D"]) -> Array:
    return X @ rotations(X, reference)


def of_predictors(F: Float[Array, "C S N K"]) -> Agreement:
    """Agreement about linear predictors, of the draws that have them: version 0.1 kept none."""
    return of_rows(F[:, np.isfinite(F).all(axis=(0, 2, 3))])


def of_rows(draws: Float[Array, "C S N K"]) -> Agreement:
    """Agreement about K scalars of each row: the largest R-hat and the smallest number of effective draws of them."""
    C, S, N, K = draws.shape
    flat = draws.reshape(C, S, N * K)
    return Agreement(rhats(flat).reshape(N, K).max(axis=1), esses(flat).reshape(N, K).min(axis=1))
