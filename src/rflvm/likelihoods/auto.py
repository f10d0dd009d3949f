"""A family for a table, from the values of its cells. Only the choice between Poisson and negative binomial
needs an estimate: how much a column varies among rows that the other columns cannot tell apart.
"""

from __future__ import annotations

import numpy as np

from ..numerics import linalg
from .base import LARGEST_COUNT, Likelihood, first_bad_cell
from .bernoulli import Bernoulli
from .gaussian import Gaussian
from .negative_binomial import NegativeBinomial
from .poisson import Poisson

_MAX_ROWS, _MAX_COLUMNS = 500, 200
_FOLDS, _NEIGHBOURS, _REPEATS = 5, 6, 3


def choose(Y: np.ndarray, observed: np.ndarray) -> tuple[Likelihood, str]:
    """A family that fits the observed cells, and why.

    Parameters
    ----------
    Y : ndarray of shape (N, J)
        The table.
    observed : ndarray of bool of shape (N, J)
        Which cells to look at.

    Returns
    -------
    Likelihood
        Gaussian when a cell is negative or not whole, Bernoulli when all are 0 or 1, else Poisson or negative
        binomial by ``dispersion``.
    str
        The reason, one sentence.
    """
    if not observed.any():
        return Gaussian(), "no cell is observed"
    fractional = observed & ~((np.floor(Y) == Y) & (np.abs(Y) < LARGEST_COUNT))
    if fractional.any():
        return Gaussian(), f"not all cells are whole numbers: {first_bad_cell(fractional, Y)}"
    negative = observed & (Y < 0)
    if negative.any():
        return Gaussian(), f"not all cells are counts: {first_bad_cell(negative, Y)}"
    low, high = (int(bound(Y, where=observed, initial=start)) for bound, start in ((np.min, np.inf), (np.max, 0)))
    if high == 0:
        return Poisson(), "all cells are 0"
    if high == 1:
        return Bernoulli(), "all cells are 0 or 1"
    ratio, limit = dispersion(Y, observed)
    family, verdict = (NegativeBinomial(), "more than") if ratio > limit else (Poisson(), "within")
    return family, (
        f"whole numbers from {low} to {high}; among similar rows the variance is {ratio:.3g} times the mean, "
        f"{verdict} the {limit:.3g} that Poisson counts may reach"
    )


def dispersion(Y: np.ndarray, observed: np.ndarray) -> tuple[float, float]:
    """The ratio of variance to mean among similar rows, and the limit up to which Poisson counts may have it.

    A column varies between rows under a Poisson latent variable model too, so each row is compared with the one
    that is most alike in the other columns: nearest in the principal components of their standardised square
    roots, as far as these stand out of noise (the edge of the Marchenko-Pastur law); a fifth of the columns is
    judged by the other four. The two rows still differ in their rates, the more the fewer rows and columns there
    are. Therefore the same is done to Poisson tables whose rates are the means over ``_NEIGHBOURS`` such rows
    (over all rows if nothing stands out), and as these means are smoother than the rates the limit lies a margin
    above what those tables show.

    At most ``_MAX_ROWS`` rows and the ``_MAX_COLUMNS`` columns with the largest means are looked at.

    Measured with ``make_s_curve`` on seeds that had no part in setting the margin: of 200 tables of 100 x 10 the
    wrong family is chosen for 10 % when they are Poisson and for 0, 1, 1 and 26 % when they are negative binomial
    with r = 0.5, 2, 5 and 20; for none of 200 tables of 200 x 50, 100 of 500 x 100 and 50 of 1000 x 200, each.
    Poisson rows that differ in their exposure too (log-normal, deviation 0.7) are taken for negative binomial in
    68 % of tables of 100 x 10, 16 % of 200 x 50 and none of 500 x 100.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(Y))[:_MAX_ROWS])
    means = np.sum(Y, axis=0, where=observed) / np.maximum(observed.sum(axis=0), 1)
    columns = np.sort(np.argsort(-means, kind="stable")[: min(_MAX_COLUMNS, np.count_nonzero(means))])
    seen = observed[np.ix_(rows, columns)]
    counts = np.where(seen, Y[np.ix_(rows, columns)], 0)
    N, J = counts.shape
    with linalg.one_blas_thread():
        ratio, rates = _spread(counts, seen, rng)
        again = [_spread(np.where(seen, rng.poisson(rates), 0), seen, rng)[0] for _ in range(_REPEATS)]
    return ratio, float(np.mean(again)) * (1.1 + 4 / J + 5 / N)


def _spread(counts: np.ndarray, seen: np.ndarray, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """Variance over mean in pairs of similar rows, and the mean of each cell over more of them.

    Cells weigh 1 / (1 + mean), or a few large columns would decide alone.
    """
    J = counts.shape[1]
    n = np.maximum(seen.sum(axis=0), 1)
    roots = np.sqrt(counts)
    white = np.where(seen, roots - roots.sum(axis=0) / n, 0)
    white /= np.sqrt(np.maximum((white**2).sum(axis=0) / n, 1e-12))
    fold = rng.permutation(np.arange(J) % _FOLDS)
    variance = mean = 0.0
    rates = np.broadcast_to(counts.sum(axis=0) / n, counts.shape).copy()
    for out in (fold == f for f in range(min(_FOLDS, J))):
        scores = _scores(white[:, ~out])
        near = _neighbours(scores, rng)
        y, there = counts[:, out][near], seen[:, out][near]
        if len(counts) > 1:
            middle = (y[:, 0] + y[:, 1]) / 2
            weight = (there[:, 0] & there[:, 1]) / (1 + middle)
            variance += np.sum(weight * (y[:, 0] - y[:, 1]) ** 2 / 2)
            mean += np.sum(weight * middle)
        if scores.shape[1]:
            total = there.sum(axis=1)
            rates[:, out] = np.where(total > 0, y.sum(axis=1) / np.maximum(total, 1), rates[:, out])
    return float(variance / mean) if mean > 0 else 1.0, rates


def _scores(white: np.ndarray) -> np.ndarray:
    """The principal components that stand out, each as large as it would be without the noise."""
    N, J = white.shape
    edge = (1 + np.sqrt(J / N)) ** 2
    if J <= N:
        eigenvalues, V = np.linalg.eigh(white.T @ white / N)
        out = eigenvalues > edge
        return white @ (V[:, out] * np.sqrt(1 - edge / eigenvalues[out]))
    eigenvalues, U = np.linalg.eigh(white @ white.T / N)
    out = eigenvalues > edge
    return U[:, out] * np.sqrt(N * (eigenvalues[out] - edge))


def _neighbours(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each row the rows nearest to it, itself first; rows that are all alike are taken at random."""
    N = len(scores)
    scores = np.column_stack([scores, 1e-3 * rng.standard_normal(N)])
    squares = (scores**2).sum(axis=1)
    distance = squares[:, None] + squares - 2 * scores @ scores.T
    np.fill_diagonal(distance, -np.inf)
    k = min(_NEIGHBOURS, N)
    near = np.argpartition(distance, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(distance, near, axis=1), axis=1)
    return np.take_along_axis(near, order, axis=1)
