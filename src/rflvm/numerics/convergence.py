"""Convergence of scalars over several chains (Vehtari et al. 2021): split R-hat and effective sample size.

The effective sample size counts disagreement between chains: chains stuck in different places have few effective draws,
however fast each of them forgets its own past.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

N_AT_ONCE = 2**22  # numbers that are transformed at once


def rhat(draws: np.ndarray) -> float:
    """Split R-hat of draws (chain, draw) of one scalar."""
    return float(rhats(np.asarray(draws)[..., None])[0])


def ess(draws: np.ndarray) -> float:
    """Effective number of draws (chain, draw) of one scalar."""
    return float(esses(np.asarray(draws)[..., None])[0])


def rhats(draws: np.ndarray) -> Float[np.ndarray, " K"]:
    """Split R-hat of draws (chain, draw, scalar) of each scalar."""
    return _by_parts(_rhats, draws)


def esses(draws: np.ndarray) -> Float[np.ndarray, " K"]:
    """Effective number of draws (chain, draw, scalar) of each scalar, by Geyer's initial monotone sequence."""
    return _by_parts(_esses, draws)


def _by_parts(function, draws: np.ndarray) -> np.ndarray:
    """A function of draws (half-chain, draw, scalar) of some scalars at a time, chains split in halves."""
    C, n, K = draws.shape
    half = n // 2
    size = max(1, N_AT_ONCE // max(C * n, 1))
    values = np.zeros(K)
    for k in range(0, K, size):
        part = np.asarray(draws[:, : 2 * half, k : k + size], float)
        values[k : k + size] = function(part.reshape(2 * C, half, part.shape[2]))
    return values


def _rhats(halves: Float[np.ndarray, "m n K"]) -> Float[np.ndarray, " K"]:
    n = halves.shape[1]
    if n < 2:
        return np.full(halves.shape[2], np.inf)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = n * halves.mean(axis=1).var(axis=0, ddof=1)
    never = np.where(between == 0, 1.0, np.inf)  # of what does not vary within chains
    variance = (n - 1) / n * within + between / n
    return np.where(within > 0, np.sqrt(variance / np.where(within > 0, within, 1)), never)


def _esses(halves: Float[np.ndarray, "m n K"]) -> Float[np.ndarray, " K"]:
    m, n, K = halves.shape
    if n < 2:
        return np.full(K, float(m * n))
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    autocovariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    total = (n - 1) / n * within + halves.mean(axis=1).var(axis=0, ddof=1)
    correlation = 1 - (within - autocovariance.mean(axis=0)) / np.where(total > 0, total, 1)
    correlation[0] = 1.0
    pairs = correlation[: 2 * (n // 2)].reshape(-1, 2, K).sum(axis=1)
    initial = np.logical_and.accumulate(pairs > 0, axis=0)
    tau = -1 + 2 * np.where(initial, np.minimum.accumulate(pairs, axis=0), 0).sum(axis=0)
    return np.where(total > 0, m * n / np.maximum(tau, 1 / np.log10(m * n)), float(m * n))
