"""Weights of arrangements, by stacking of their predictive densities (Yao, Vehtari, Simpson & Gelman 2018).

Chains that show different pictures explore different modes, and how much of the posterior belongs to each they cannot
say. What can be compared is how well each mode predicts a cell that it has not seen. With p_ak the density of cell i
given all others under arrangement k, the weights maximise

    sum_i log sum_k w_k p_ik,    w_k >= 0,  sum_k w_k = 1.

p_ik comes from the draws by Pareto-smoothed importance sampling (PSIS-LOO; Vehtari, Simpson, Gelman, Yao & Gabry 2024),
whose diagnostic is the Pareto k of each cell: above 0.7 its density cannot be relied on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from ..model.draws import Draws
from ..model.joint import Data
from ..numerics.convergence import ess
from ..sampling import agreement
from .densities import densities_of_cells

N_CELLS, N_DRAWS = 20_000, 200  # observed cells, chosen at random, and draws of each arrangement that are looked at
N_AT_ONCE = 1000  # cells that are smoothed at once
UNRELIABLE = 0.7  # Pareto k
FEWEST = 5  # draws in the tail, to fit a Pareto distribution to it
TOLERANCE, N_ITERATIONS = 1e-7, 10_000  # of the weights


@dataclasses.dataclass(frozen=True)
class Arrangement:
    """Chains that show the same picture.

    Attributes
    ----------
    chains : tuple of int
        Their numbers, from 0.
    weight : float
        Share in the stacked predictive density.
    elpd : float
        Mean log density of a cell given all others; NaN where there is nothing to compare with.
    unreliable : float
        Share of the cells with a Pareto k above 0.7.
    """

    chains: tuple[int, ...]
    weight: float = 1.0
    elpd: float = np.nan
    unreliable: float = 0.0


def arrangements(draws: Draws, data: Callable[[], Data]) -> tuple[Arrangement, ...]:
    """The pictures that the chains show, the one with the largest weight first; ``data`` gives the table if need be."""
    groups = agreement.arrangements(draws["X"])
    if len(groups) == 1:
        return (Arrangement(groups[0]),)
    table = data()
    smoothed = [psis_loo(*_densities(draws, group, table)) for group in groups]
    elpd = np.stack([cells for cells, _ in smoothed], axis=1)
    weights = stacked(elpd)
    return tuple(
        Arrangement(groups[k], float(weights[k]), float(elpd[:, k].mean()), float((smoothed[k][1] > UNRELIABLE).mean()))
        for k in np.argsort(-weights, kind="stable")
    )


def _densities(draws: Draws, chains: tuple[int, ...], data: Data) -> tuple[Float[np.ndarray, "S I"], float]:
    """Log densities of some observed cells under evenly spaced draws, and the share of these that is effective."""
    observed = np.ones(data.Y.shape, bool) if data.mask is None else np.asarray(data.mask)
    cells = np.flatnonzero(observed)
    chosen = np.sort(np.random.default_rng(0).permutation(cells)[:N_CELLS])
    heights = draws["log_joint"][list(chains)]
    per_chain = max(1, N_DRAWS // len(chains))
    densities = densities_of_cells(draws, data, chains, per_chain, chosen)
    n_effective = max(ess(heights), 1.0)  # an interrupted run may have a single draw of each chain
    return densities, min(n_effective / len(densities), 1.0)


def stacked(elpd: Float[np.ndarray, "I K"]) -> Float[np.ndarray, " K"]:
    """The weights that maximise the stacked log density, by expectation maximisation: the objective is concave."""
    p = np.exp(elpd - elpd.max(axis=1, keepdims=True))
    w = np.full(p.shape[1], 1 / p.shape[1])
    for _ in range(N_ITERATIONS):
        shares = w * p
        new = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
        done = np.abs(new - w).max() < TOLERANCE
        w = new
        if done:
            break
    return w


def psis_loo(
    log_density: Float[np.ndarray, "S I"], share_effective: float = 1.0
) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Log density of each cell given all others, and its Pareto k.

    Parameters
    ----------
    log_density : array (S, I)
        Of each cell under each draw.
    share_effective : float
        Effective draws per draw.
    """
    n = log_density.shape[1]
    elpd, k = np.empty(n), np.empty(n)
    for start in range(0, n, N_AT_ONCE):
        part = log_density[:, start : start + N_AT_ONCE]
        log_weight, k[start : start + N_AT_ONCE] = _smoothed(-part, share_effective)
        elpd[start : start + N_AT_ONCE] = logsumexp(part + log_weight, axis=0)
    return elpd, k


def _smoothed(log_ratio: Float[np.ndarray, "S I"], share_effective: float) -> tuple[np.ndarray, np.ndarray]:
    """Normalised log weights with their largest replaced by quantiles of a Pareto distribution fitted to them."""
    S, n = log_ratio.shape
    log_weight = log_ratio - log_ratio.max(axis=0)
    n_tail = int(np.ceil(min(S / 5, 3 * np.sqrt(S / share_effective))))
    k = np.full(n, np.inf)
    if n_tail >= FEWEST:
        order = np.argsort(log_weight, axis=0, kind="stable")
        tail = order[-n_tail:]
        threshold = np.exp(np.take_along_axis(log_weight, order[-n_tail - 1][None], axis=0))
        above = np.exp(np.take_along_axis(log_weight, tail, axis=0)) - threshold
        varies = above[0] < above[-1]
        k[~varies] = -np.inf  # nothing to smooth
        k[varies], sigma = pareto_fit(above[:, varies])
        probability = (np.arange(n_tail) + 0.5)[:, None] / n_tail
        quantiles = threshold[:, varies] + _pareto_quantiles(probability, k[varies], sigma)
        smooth = log_weight[:, varies]
        np.put_along_axis(smooth, tail[:, varies], np.minimum(np.log(quantiles), 0), axis=0)
        log_weight[:, varies] = smooth
    return log_weight - logsumexp(log_weight, axis=0), k


def pareto_fit(x: Float[np.ndarray, "n I"]) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Shape k and scale of a generalised Pareto distribution for each column of sorted values.

    The estimator of Zhang & Stephens (2009): the posterior mean of b = -k / sigma on a grid, under a weak prior; then k
    is drawn towards 1/2 as by ten more observations.
    """
    n = len(x)
    n_grid = 30 + int(np.sqrt(n))
    grid = 1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    b = grid[:, None] / np.maximum(3 * x[int(n / 4 + 0.5) - 1], np.finfo(float).tiny) + 1 / x[-1]
    shape = np.log1p(-b[:, None] * x[None]).mean(axis=1)
    log_likelihood = n * (np.log(-b / shape) - shape - 1)
    mean_b = (np.exp(log_likelihood - logsumexp(log_likelihood, axis=0)) * b).sum(axis=0)
    k = np.log1p(-mean_b * x).mean(axis=0)
    sigma = -k / mean_b
    return (n * k + 5) / (n + 10), sigma


def _pareto_quantiles(probability: np.ndarray, k: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    flat = np.abs(k) < 1e-12
    safe = np.where(flat, 1, k)
    return sigma * np.where(flat, -np.log1p(-probability), np.expm1(-safe * np.log1p(-probability)) / safe)
