"""Convergence of one scalar over several chains (Vehtari et al. 2021): split R-hat and effective sample size.

The effective sample size counts disagreement between chains: chains stuck in different places have few effective draws,
however fast each of them forgets its own past.
"""

from __future__ import annotations

import numpy as np


def _split(draws: np.ndarray) -> np.ndarray:
    chains, n = draws.shape
    half = n // 2
    return draws[:, : 2 * half].reshape(2 * chains, half)


def rhat(draws: np.ndarray) -> float:
    """Split R-hat of draws (chain, draw)."""
    halves = _split(np.asarray(draws, float))
    n = halves.shape[1]
    if n < 2:
        return float("inf")
    within = halves.var(axis=1, ddof=1).mean()
    between = n * halves.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def ess(draws: np.ndarray) -> float:
    """Effective number of draws (chain, draw), by Geyer's initial monotone sequence over split chains."""
    halves = _split(np.asarray(draws, float))
    m, n = halves.shape
    if n < 2:
        return float(m * n)
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    autocovariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n
    within = halves.var(axis=1, ddof=1).mean()
    total = (n - 1) / n * within + halves.mean(axis=1).var(ddof=1)
    if total == 0:
        return float(m * n)
    correlation = 1 - (within - autocovariance.mean(axis=0)) / total
    correlation[0] = 1.0
    pairs = correlation[: 2 * (n // 2)].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    pairs = pairs[: negative[0]] if negative.size else pairs
    tau = -1 + 2 * np.minimum.accumulate(pairs).sum()
    return float(m * n / max(tau, 1 / np.log10(m * n)))
