"""Missing cells filled by probabilistic PCA, for what needs a whole table: the starts of X."""

from __future__ import annotations

import numpy as np

# One in this number of observed cells is hidden to choose the rank. A choice without a measurement.
ONE_HIDDEN_IN = 10

# Rounds of EM. A choice without a measurement of its own; benchmarks/map.py (gaps) and benchmarks/estimator.py
# (imputation) measure what the filling does.
N_EM_ROUNDS = 20


def filled(table: np.ndarray, mask: np.ndarray, rank: int) -> np.ndarray:
    """Missing cells filled with the rank that best predicts cells hidden from it; it is doubled as long as that helps.

    Smooth functions of D dimensions span many more: with rank D the filled cells would say that the rows lie on a
    plane, and the starts, which take them for observed, would believe it.
    """
    observed = np.flatnonzero(mask)
    hidden = np.random.default_rng(0).choice(observed, len(observed) // ONE_HIDDEN_IN, replace=False)
    shown = mask.copy()
    shown.flat[hidden] = False
    rank, best_rank, lowest_error = min(rank, min(table.shape) - 1), 0, np.inf
    while 0 < rank < min(table.shape):
        error = np.sum((completed(table, shown, rank) - table).flat[hidden] ** 2)
        if error >= lowest_error:
            break
        best_rank, lowest_error, rank = rank, error, 2 * rank
    return completed(table, mask, best_rank)


def completed(table: np.ndarray, mask: np.ndarray, rank: int) -> np.ndarray:
    """Missing cells at their expectation under probabilistic PCA of a rank, by EM from the column means."""
    table = np.where(mask, table, np.where(mask, table, 0).sum(0) / np.maximum(mask.sum(0), 1))
    for _ in range(N_EM_ROUNDS if rank else 0):
        table = np.where(mask, table, _low_rank(table, rank))
    return table


def _low_rank(table: np.ndarray, rank: int) -> np.ndarray:
    """The expectation of every cell under probabilistic PCA fitted to a whole table."""
    centre = table.mean(0)
    deviations = table - centre
    wide = deviations.shape[0] < deviations.shape[1]
    deviations = deviations.T if wide else deviations  # the smaller of the two Gram matrices has all singular values
    squares, axes = np.linalg.eigh(deviations.T @ deviations)  # squared singular values, smallest first
    noise = np.mean(np.maximum(squares[:-rank], 0))
    shrinkage = np.maximum(1 - noise / np.maximum(squares[-rank:], 1e-300), 0)
    expected = (deviations @ axes[:, -rank:] * shrinkage) @ axes[:, -rank:].T
    return centre + (expected.T if wide else expected)
