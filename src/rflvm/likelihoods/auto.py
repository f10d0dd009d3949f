"""A family for a table, from the values of its cells. What tables of whole numbers need an estimate for is in
``evidence.py``: how much a column varies among rows that the other columns cannot tell apart.
"""

from __future__ import annotations

import numpy as np

from .base import LARGEST_COUNT, Likelihood, first_bad_cell
from .bernoulli import Bernoulli
from .binomial import Binomial
from .evidence import Pairs, larger_expected, overdispersion, similar, underdispersion
from .gaussian import Gaussian
from .negative_binomial import NegativeBinomial
from .ordinal import Ordinal
from .poisson import Poisson

# Less variable than a family: by this factor, and by so many standard errors, which counts with equal means in all
# rows exceed in 0.6 % of tables and others more rarely.
MIN_RATIO, MIN_ERRORS = 0.85, -2.5

# Whole numbers of at most so many sizes that are no counts are answers in order; more sizes are taken for measurements.
MOST_ANSWERS = 10

# Cells above the largest value that are expected and not there, of which a Poisson number is 0 in 1e-4 of tables.
MAX_MISSED = 9.2

# Standard errors by which a Gaussian must predict cells of similar rows better than a negative binomial to be taken
# where no upper bound speaks against counts, and to be mentioned. Rows of real tables are not independent.
MANY_ERRORS, SOME_ERRORS = 6.0, 3.0


def choose(Y: np.ndarray, observed: np.ndarray) -> tuple[Likelihood, str]:
    """A family that fits the observed cells, and why.

    Gaussian when a cell is negative or not whole, Bernoulli when all are 0 or 1. Other whole numbers are

    - binomial when they vary less among similar rows than Poisson counts can, 0 and the largest value are reached in
      half of the columns or more, and the variance is that of so many trials;
    - Gaussian when they vary less than Poisson counts can and are not binomial (ratings, rounded measurements);
    - Gaussian when they vary as much or more, and a Gaussian predicts cells from similar rows better than a negative
      binomial does: at all where the largest value is shared by so many cells that it must be a bound (grey levels),
      by ``MANY_ERRORS`` standard errors otherwise;
    - counts in all other cases, Poisson or negative binomial by ``evidence.overdispersion``.

    benchmarks/auto.py has how often each family is chosen for simulated tables of known families: of 841 Poisson and
    negative binomial tables none becomes another family than these two.

    Parameters
    ----------
    Y : ndarray of shape (N, J)
        The table.
    observed : ndarray of bool of shape (N, J)
        Which cells to look at.

    Returns
    -------
    Likelihood
        The family.
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
    values = Y[observed]
    low, high = int(values.min()), int(values.max())
    if high == 0:
        return Poisson(), "all cells are 0"
    if high == 1:
        return Bernoulli(), "all cells are 0 or 1"
    family, reason = _of_whole_numbers(Y, observed, high)
    if _equal_totals(Y, observed):
        reason += f"; every row has the total {Y[0].sum():g}: the multinomial likelihood would model the shares"
    return family, f"whole numbers from {low} to {high}; {reason}"


def _of_whole_numbers(Y: np.ndarray, observed: np.ndarray, high: int) -> tuple[Likelihood, str]:
    """Of those that are not all 0 or 1."""
    pairs, (gain, errors) = similar(Y, observed)
    if _less_variable(pairs):
        return _less_variable_than_counts(Y, observed, pairs, high)
    at_bound = np.count_nonzero(Y[observed] == high)
    bounded = larger_expected(Y[observed]) > MAX_MISSED
    bound = f"{at_bound} cells have the largest value, as if it were an upper bound"
    better = f"a Gaussian predicts cells from similar rows better than a negative binomial, by {gain:.2g} nats a cell"
    if errors > (0 if bounded else MANY_ERRORS):
        return Gaussian(), f"{bound}, and {better}" if bounded else better
    family, reason = _of_counts(Y, observed)
    if bounded:
        return family, f"{reason}; {bound}: if it is a known number of trials give likelihoods.Binomial(trials={high})"
    return family, f"{reason}; yet {better}: compare the two" if errors > SOME_ERRORS else reason


def _less_variable_than_counts(Y: np.ndarray, observed: np.ndarray, pairs: Pairs, high: int) -> tuple[Likelihood, str]:
    """Binomial where both ends are reached and the variance is binomial, else Gaussian."""
    ratio, _ = underdispersion(pairs)
    reason = f"among similar rows the variance is {ratio:.2g} times the mean, less than that of Poisson counts"
    at_ends = min(np.mean(((end == Y) & observed).any(axis=0)) for end in (0, high))
    share, _ = underdispersion(pairs, high)
    _, limit = overdispersion(Y, observed)
    if at_ends >= 0.5 and not _less_variable(pairs, high) and share <= limit:
        return Binomial(high), f"{reason} and {share:.2g} times that of successes out of {high} trials"
    return Gaussian(), f"{reason}; if they are out of a known number of trials give likelihoods.Binomial(trials=...)"


def _in_order(values: np.ndarray, reason: str) -> tuple[Likelihood, str]:
    """For whole numbers that are no counts: ordered answers where they are of few sizes, else measurements."""
    low, high = int(values.min()), int(values.max())
    if 2 <= high - low < MOST_ANSWERS:
        return Ordinal(low=low, high=high), f"{high - low + 1} ordered answers; {reason}"
    return Gaussian(), reason


def by_column(Y: np.ndarray, observed: np.ndarray) -> list[tuple[Likelihood, list[int], str]]:
    """A family for each column, by groups of columns: the family, its columns, and why.

    Columns with fractions or negative numbers are Gaussian, those of 0 and 1 Bernoulli. A column of whole numbers whose
    variance over all rows is less than its mean, which no mixture of Poisson counts has, is no count. What is left is
    judged together by ``choose``, by rows that the other columns of the group cannot tell apart.
    """
    groups: dict[str, list[int]] = {"real": [], "yes or no": [], "no count": [], "counts": []}
    for j in range(Y.shape[1]):
        groups[_kind(Y[observed[:, j], j])].append(j)
    found: list[tuple[Likelihood, list[int], str]] = []
    if groups["real"]:
        found.append((Gaussian(), groups["real"], "not all cells are counts"))
    if groups["yes or no"]:
        found.append((Bernoulli(), groups["yes or no"], "all cells are 0 or 1"))
    by_range: dict[tuple[Likelihood, str], list[int]] = {}
    for j in groups["no count"]:
        chosen = _in_order(Y[observed[:, j], j], "the variance is less than the mean, and that of counts never is")
        by_range.setdefault(chosen, []).append(j)
    found += [(family, columns, reason) for (family, reason), columns in by_range.items()]
    if groups["counts"]:
        columns = groups["counts"]
        family, reason = choose(Y[:, columns], observed[:, columns])
        found.append((family, columns, reason))
    return found


def _kind(values: np.ndarray) -> str:
    """Which group a column belongs to."""
    if not values.size or (np.floor(values) != values).any() or (values < 0).any() or (values >= LARGEST_COUNT).any():
        return "real"
    if values.max() <= 1:
        return "yes or no"
    mean = values.mean()
    ratio = values.var() / mean
    return "no count" if ratio < MIN_RATIO and (ratio - 1) / np.sqrt(2 / len(values)) < MIN_ERRORS else "counts"


def _of_counts(Y: np.ndarray, observed: np.ndarray) -> tuple[Likelihood, str]:
    ratio, limit = overdispersion(Y, observed)
    family, verdict = (NegativeBinomial(), "more than") if ratio > limit else (Poisson(), "within")
    return family, (
        f"among similar rows the variance is {ratio:.3g} times the mean, "
        f"{verdict} the {limit:.3g} that Poisson counts may reach"
    )


def _equal_totals(Y: np.ndarray, observed: np.ndarray) -> bool:
    """Whether all rows are complete and have one total, and there are so many that it is no accident."""
    totals = Y.sum(axis=1)
    return bool(observed.all() and len(Y) >= 10 and Y.shape[1] > 1 and np.ptp(Y, axis=0).any() and np.ptp(totals) == 0)


def _less_variable(pairs: Pairs, trials: float = np.inf) -> bool:
    """Whether cells vary less among similar rows than binomial ones of these trials, or Poisson ones, can."""
    ratio, errors = underdispersion(pairs, trials)
    return ratio < MIN_RATIO and errors < MIN_ERRORS
