"""What the cells of a table of whole numbers say about their family, by rows that the other columns cannot tell apart.

A fifth of the columns at a time is judged by the other four: rows are alike when they are near each other in the
principal components of the other columns' standardised square roots, as far as these stand out of noise (the edge of
the Marchenko-Pastur law).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import betaln, log_ndtr

from ..numerics import linalg

_MAX_ROWS, _MAX_COLUMNS = 500, 200
_FOLDS, _NEIGHBOURS, _REPEATS = 5, 6, 3
_MIN_ROWS = 10  # for standard errors over rows
_R = np.logspace(-2, 8, 31)  # r of a negative binomial column; with the last it is Poisson for all purposes


class Part(NamedTuple):
    """The cells that are looked at: at most ``_MAX_ROWS`` rows and the ``_MAX_COLUMNS`` columns of largest means."""

    counts: Float[np.ndarray, "N J"]
    seen: Bool[np.ndarray, "N J"]


class Pairs(NamedTuple):
    """The cells of pairs of similar rows; no row is in two pairs of a column."""

    first: Float[np.ndarray, " P"]
    second: Float[np.ndarray, " P"]


def part_of(Y: np.ndarray, observed: np.ndarray, rng: np.random.Generator) -> Part:
    """The cells to look at."""
    rows = np.sort(rng.permutation(len(Y))[:_MAX_ROWS])
    means = np.sum(Y, axis=0, where=observed) / np.maximum(observed.sum(axis=0), 1)
    columns = np.sort(np.argsort(-means, kind="stable")[: min(_MAX_COLUMNS, np.count_nonzero(means))])
    seen = observed[np.ix_(rows, columns)]
    return Part(np.where(seen, Y[np.ix_(rows, columns)], 0), seen)


def overdispersion(Y: np.ndarray, observed: np.ndarray) -> tuple[float, float]:
    """The ratio of variance to mean among similar rows, and the limit up to which Poisson counts may have it.

    A column varies between rows under a Poisson latent variable model too, so each row is compared with the one
    that is most alike in the other columns. The two rows still differ in their rates, the more the fewer rows and
    columns there are. Therefore the same is done to Poisson tables whose rates are the means over ``_NEIGHBOURS`` such
    rows (over all rows if nothing stands out), and as these means are smoother than the rates the limit lies a margin
    above what those tables show.

    Measured with ``make_s_curve`` on seeds that had no part in setting the margin: of 200 tables of 100 x 10 the
    wrong family is chosen for 10 % when they are Poisson and for 0, 1, 1 and 26 % when they are negative binomial
    with r = 0.5, 2, 5 and 20; for none of 200 tables of 200 x 50, 100 of 500 x 100 and 50 of 1000 x 200, each.
    Poisson rows that differ in their exposure too (log-normal, deviation 0.7) are taken for negative binomial in
    68 % of tables of 100 x 10, 16 % of 200 x 50 and none of 500 x 100.
    """
    rng = np.random.default_rng(0)
    part = part_of(Y, observed, rng)
    N, J = part.counts.shape
    with linalg.one_blas_thread():
        ratio, rates = _spread(part, rng)
        drawn = (part._replace(counts=np.where(part.seen, rng.poisson(rates), 0)) for _ in range(_REPEATS))
        again = [_spread(other, rng)[0] for other in drawn]
    return ratio, float(np.mean(again)) * (1.1 + 4 / J + 5 / N)


def similar(Y: np.ndarray, observed: np.ndarray) -> tuple[Pairs, tuple[float, float]]:
    """Pairs of similar rows, and by how much a Gaussian predicts cells better than a negative binomial would.

    Each cell is predicted from the mean of its column over the similar rows, with a noise variance or with an r per
    column, whichever values are best. The first number is the gain of the Gaussian in the log probability of a cell,
    the second this gain in standard errors over rows; both are negative for counts. Of fewer than ``_MIN_ROWS`` rows
    there are no pairs and no gain. Columns that are constant say nothing.
    """
    rng = np.random.default_rng(0)
    part = part_of(Y, observed, rng)
    if len(part.counts) < _MIN_ROWS:
        return Pairs(np.zeros(0), np.zeros(0)), (0.0, 0.0)
    counts, seen = part
    column_mean = counts.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    varies = ((counts != column_mean) & seen).any(axis=0)
    means, first, second = np.zeros(counts.shape), [], []
    with linalg.one_blas_thread():
        for out, _, near in _folds(part, rng):
            y, there = counts[:, out][near[:, 1:]], seen[:, out][near[:, 1:]]
            # Half a row of the column's mean keeps the mean off zero.
            means[:, out] = (y.sum(axis=1) + column_mean[out] / 2) / (there.sum(axis=1) + 0.5)
            one, other = _disjoint(near)
            both = seen[one][:, out] & seen[other][:, out] & varies[out]
            first.append(counts[one][:, out][both])
            second.append(counts[other][:, out][both])
    return Pairs(np.concatenate(first), np.concatenate(second)), _gain(counts, seen & varies, means)


def underdispersion(pairs: Pairs, trials: float = np.inf) -> tuple[float, float]:
    """The variance in pairs relative to what binomial cells of these trials have, and its error in standard errors.

    Infinite trials are Poisson. Of two cells with the same mean, given their sum s, one is Binomial(s, 1/2) or
    hypergeometric, so the mean and the variance of their squared difference are known whatever the mean is. Rows that
    differ in their means, and counts that vary more, can only raise it: a ratio below 1 by many standard errors is no
    count of this family.
    """
    s = pairs.first + pairs.second
    with np.errstate(invalid="ignore"):
        share = s / (2 * trials)
        expected = s * (1 - share) / (2 - 1 / trials)
    weight = 1 / (1 + s / 2)  # or a few large columns would decide alone
    rarer = np.minimum(s, 2 * trials - s) if np.isfinite(trials) else s
    variance = 2 * expected**2 * (1 - 1 / np.maximum(rarer, 1))
    measured, usual = np.sum(weight * (pairs.first - pairs.second) ** 2 / 2), np.sum(weight * expected)
    error = np.sqrt(np.sum(weight**2 * variance))
    return (float(measured / usual), float((measured - usual) / error)) if error > 0 else (1.0, 0.0)


def larger_expected(values: Float[np.ndarray, " C"]) -> float:
    """How many cells above the largest value one would expect of counts without an upper bound, at least.

    Of counts without a bound the share of those at least m that are larger falls slowly with m: by a third from 1 to
    2 for rare Poisson counts, by less for others. Half of the share at the last level but one is taken.
    """
    top = values.max()
    at_top, below = np.count_nonzero(values == top), np.count_nonzero(values == top - 1)
    return at_top * at_top / (at_top + below) / 2


def _gain(counts: np.ndarray, seen: np.ndarray, means: np.ndarray) -> tuple[float, float]:
    """As ``similar`` has it."""
    deviation = np.abs(counts - means)
    # Not below that of rounding itself.
    noise = np.sum(deviation**2, axis=0, where=seen) / np.maximum(seen.sum(axis=0), 1)
    sd = np.sqrt(np.maximum(noise, 1 / 12))
    upper, lower = log_ndtr((0.5 - deviation) / sd), log_ndtr((-0.5 - deviation) / sd)
    with np.errstate(divide="ignore"):
        narrow = upper + np.log(-np.expm1(lower - upper))
    density = -0.5 * (deviation / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))
    gaussian = np.where(sd < 10, np.maximum(narrow, -1e3), density)
    best, negative_binomial = np.full(counts.shape[1], -np.inf), np.zeros(counts.shape)
    positive = np.maximum(means, 1e-300)
    for r in _R:
        cells = -np.log(counts + r) - betaln(r, counts + 1) - r * np.log1p(means / r) - counts * np.log1p(r / positive)
        total = np.sum(cells, axis=0, where=seen)
        negative_binomial = np.where(total > best, cells, negative_binomial)
        best = np.maximum(total, best)
    by_row = np.sum(gaussian - negative_binomial, axis=1, where=seen)
    error = by_row.std() / np.sqrt(len(by_row))
    return float(by_row.sum() / max(seen.sum(), 1)), float(by_row.mean() / error) if error > 0 else 0.0


def _spread(part: Part, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """Variance over mean in pairs of similar rows, and the mean of each cell over more of them.

    Cells weigh 1 / (1 + mean), or a few large columns would decide alone.
    """
    counts, seen = part
    variance = mean = 0.0
    rates = np.broadcast_to(counts.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), counts.shape).copy()
    for out, scores, near in _folds(part, rng):
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


def _folds(part: Part, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Which columns are judged, the scores of the rows in the other columns, and the neighbours by them."""
    counts, seen = part
    J = counts.shape[1]
    n = np.maximum(seen.sum(axis=0), 1)
    roots = np.sqrt(counts)
    white = np.where(seen, roots - roots.sum(axis=0) / n, 0)
    white /= np.sqrt(np.maximum((white**2).sum(axis=0) / n, 1e-12))
    fold = rng.permutation(np.arange(J) % _FOLDS)
    for out in (fold == f for f in range(min(_FOLDS, J))):
        scores = _scores(white[:, ~out])
        yield out, scores, _neighbours(scores, rng)


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


def _neighbours(scores: np.ndarray, rng: np.random.Generator) -> Int[np.ndarray, "N k"]:
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


def _disjoint(near: Int[np.ndarray, "N k"]) -> tuple[Int[np.ndarray, " P"], Int[np.ndarray, " P"]]:
    """Pairs of a row and the nearest of its neighbours that is not in a pair yet."""
    free, pairs = np.ones(len(near), bool), []
    for n, *others in near:
        partner = next((m for m in others if free[m]), None) if free[n] else None
        if partner is not None:
            free[[n, partner]] = False
            pairs.append((n, partner))
    one, other = np.array(pairs).T
    return one, other
