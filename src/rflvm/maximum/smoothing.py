"""A table smoothed over time, for the starts of X."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from ..model.dynamics import Chronology

# Times over which the weight of a neighbour falls to 1/e, in median gaps, that are tried. The best is at an end of them
# only where rows change from one to the next, or hardly at all. A choice without a measurement.
WIDTHS = 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0

# Weight of the column's mean, for rows without neighbours; small beside 1, the weight of a whole row.
LONE = 1e-6


def smoothed(
    table: Float[np.ndarray, "N J"], weight: Float[np.ndarray, " N"], chronology: Chronology
) -> Float[np.ndarray, "N J"]:
    """Every row averaged with its neighbours in its session, as far as predicts a row best from its neighbours alone.

    ``weight`` is the share of a row that was observed.
    """
    gap, first = np.asarray(chronology.gap, float), np.asarray(chronology.first)
    own = np.column_stack([table, np.ones(len(table))]) * weight[:, None]
    lone = LONE * np.append(np.average(table, axis=0, weights=weight), 1)
    best, lowest_error = table, np.inf
    for width in WIDTHS:
        around = _around(own, np.exp(-gap / (width * float(chronology.typical))), first) + lone
        error = np.sum(weight[:, None] * (around[:, :-1] / around[:, -1:] - table) ** 2)
        if error < lowest_error:
            with_row = around + own
            best, lowest_error = with_row[:, :-1] / with_row[:, -1:], error
    return best


def _around(
    own: Float[np.ndarray, "N K"], decay: Float[np.ndarray, " N"], first: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, "N K"]:
    """Sums over the other rows of a session, each times its weight, by a recursion in either direction."""
    decay = np.where(first, 0, decay)[:, None]
    total = np.zeros_like(own)
    before, after = np.zeros((2, own.shape[1]))
    for n in range(1, len(own)):
        before = decay[n] * (before + own[n - 1])
        total[n] += before
    for n in range(len(own) - 2, -1, -1):
        after = decay[n + 1] * (after + own[n + 1])
        total[n] += after
    return total
