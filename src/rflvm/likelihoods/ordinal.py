"""Ordered categories, such as ratings, by an ordered logit with cut points of its own for each column, learned.

    P(y_nj <= k) = sigmoid(c_jk - f_nj),    c_j1 = 0,  c_jk = c_j,k-1 + gap_j,k-1,    gap ~ Gamma(a0, rate b0)

for categories k = 1..K in order, the last of which takes the rest. The first cut point is zero, for the intercept in f
moves all of them. With a = f - c_j,k-1 > b = f - c_jk the probability of category k is

    sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)),

whose logarithm is concave in f; the last factor depends on the gap alone, and is the base of the density.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from scipy.special import logit

from ..numerics import scalars
from ..numerics.errors import InputError
from .base import Likelihood, first_bad_cell, softplus, sum_observed

# Beyond so many categories their order says little less than their distances, and each has a cut point to be learned.
MOST_CATEGORIES = 50

# Rounds of Metropolis steps for the gaps in each sweep. A choice without a measurement.
N_ROUNDS = 2


@dataclasses.dataclass(frozen=True)
class Ordinal(Likelihood):
    """Ratings and other ordered answers: whole numbers of which only the order counts.

    Parameters
    ----------
    low, high : int, optional
        The first and the last category; the categories are the whole numbers between them, in all columns. None: the
        smallest and the largest cell of the table that is fitted.
    a0, b0 : float
        Shape and rate of the gamma prior of each gap between two cut points, on the scale of f.
    """

    low: int | None = None
    high: int | None = None
    a0: float = 2.0
    b0: float = 1.0

    name: ClassVar[str] = "ordinal"
    theta_dimensions: ClassVar[dict[str, tuple[str, ...]]] = {"gaps": ("gap", "predictor")}
    decoder: ClassVar[str | None] = "ordinal"

    def __post_init__(self):
        for name in ("a0", "b0"):
            scalars.positive(name, getattr(self, name))
        for name in ("low", "high"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or int(value) != value):
                raise ValueError(f"ordinal {name} must be a whole number, got {value!r}")
        if self.low is not None and self.high is not None:
            _check_number(self.low, self.high)

    @property
    def _range(self) -> tuple[int, int]:
        if self.low is None or self.high is None:
            raise ValueError("the categories are not known yet: give likelihoods.Ordinal(low=..., high=...), or fit")
        return int(self.low), int(self.high)

    @property
    def n_categories(self) -> int:
        """K."""
        low, high = self._range
        return high - low + 1

    def learned_from(self, Y, observed):
        """With the categories of the table, where they were not given."""
        if self.low is not None and self.high is not None:
            return self
        values = Y[observed & np.isfinite(Y)]
        ends = (values.min(), values.max()) if values.size else (0, 0)
        low, high = (int(np.clip(np.floor(end), -(2**31), 2**31)) for end in ends)
        return dataclasses.replace(
            self, low=low if self.low is None else self.low, high=high if self.high is None else self.high
        )

    def check(self, Y, observed):
        fractional = observed & (np.floor(Y) != Y)
        if fractional.any():
            raise InputError(
                "ordinal needs whole numbers, got {cell}; {gaussian:for real-valued data use the gaussian likelihood}",
                cell=first_bad_cell(fractional, Y),
            )
        low, high = self._range
        _check_number(low, high)
        outside = observed & ((low > Y) | (high < Y))
        if outside.any():
            raise InputError(
                "ordinal needs categories from {low} to {high}, got {cell}; "
                "give likelihoods.Ordinal(low=..., high=...)",
                low=low,
                high=high,
                cell=first_bad_cell(outside, Y),
            )

    def _frequencies(self, Y: np.ndarray, mask: np.ndarray) -> Float[np.ndarray, "K J"]:
        """Share of each category in each column, kept off zero."""
        low, high = self._range
        counts = np.stack([((k == Y) & mask).sum(axis=0) for k in range(low, high + 1)]) + 0.5
        return counts / counts.sum(axis=0)

    def stabilise(self, Y, offset, trials):
        """The mean of a standard logistic variable between the cut points of a column that has no structure."""
        # Cells that are missing hold 0, which need not be a category.
        low, high = self._range
        share = self._frequencies(Y, np.ones(Y.shape, bool))
        middle = logit(np.cumsum(share, axis=0) - share / 2)
        category = np.clip(Y - low, 0, high - low).astype(int)
        return np.take_along_axis(middle, category, axis=0) - offset

    def intercepts(self, Y, mask, offset, trials):
        n = np.maximum(mask.sum(axis=0), 1)
        return -logit(self._frequencies(Y, mask)[0]) - np.where(mask, offset, 0).sum(axis=0) / n

    def first_theta(self, Y, mask, offset, trials):
        return {"gaps": np.diff(logit(np.cumsum(self._frequencies(Y, mask), axis=0)[:-1]), axis=0)}

    def _category(self, y):
        """Categories from 0 on; those of missing cells do not matter."""
        return jnp.clip(y - self._range[0], 0, self.n_categories - 1)

    def _above_and_below(self, y, f, gaps):
        """a and b of the module's docstring; where a category has no lower or upper end, plus or minus infinity."""
        k = self._category(y)
        lower = sum(jnp.where(k > i + 1, gap[None], 0) for i, gap in enumerate(gaps))
        upper = sum(jnp.where(k > i, gap[None], 0) for i, gap in enumerate(gaps))
        return k, f - lower, f - upper

    def log_factor(self, y, f, theta, trials):
        k, a, b = self._above_and_below(y, f, theta["gaps"])
        return -jnp.where(k > 0, softplus(-a), 0) - jnp.where(k < self.n_categories - 1, softplus(b), 0)

    def log_base(self, y, theta, trials):
        k = self._category(y)
        between = (jnp.where(k == i + 1, _log1mexp(gap)[None], 0) for i, gap in enumerate(theta["gaps"]))
        return sum(between, start=jnp.zeros_like(y))

    def _exceedances(self, f, theta) -> list[Array]:
        """P(y > k) for all categories but the last."""
        cuts = jnp.cumsum(theta["gaps"], axis=0)
        return [jax.nn.sigmoid(f), *(jax.nn.sigmoid(f - cut[None]) for cut in cuts)]

    def mean(self, f, theta, trials=None):
        return sum(self._exceedances(f, theta), start=jnp.full_like(f, self._range[0]))

    def variance(self, f, theta, trials=None):
        above = self._exceedances(f, theta)
        square = sum(((2 * k + 1) * p for k, p in enumerate(above)), start=jnp.zeros_like(f))
        return square - sum(above, start=jnp.zeros_like(f)) ** 2

    def sample(self, key, f, theta, trials=None):
        u = jax.random.uniform(key, f.shape, f.dtype)
        above = ((u < p).astype(f.dtype) for p in self._exceedances(f, theta))
        return sum(above, start=jnp.full_like(f, self._range[0]))

    def sample_theta(self, key, J, dtype):
        shape = (self.n_categories - 2, J)
        return {"gaps": jax.random.gamma(key, jnp.full(shape, self.a0, dtype), dtype=dtype) / self.b0}

    def log_prior_theta(self, theta):
        return self._log_prior_gaps(theta["gaps"]).sum()

    def _log_prior_gaps(self, gaps):
        constant = self.a0 * math.log(self.b0) - math.lgamma(self.a0)
        return jnp.sum(constant + (self.a0 - 1) * jnp.log(gaps) - self.b0 * gaps, axis=0)

    def decoder_parameters(self, theta, J):
        return {"gaps": theta["gaps"], "categories": np.tile(np.array(self._range)[:, None], J)}

    def update_theta(self, key, theta, y, f, mask):
        """Metropolis steps for the logarithm of one gap of every column after the other.

        The n cells between two cut points have about n units of information about the logarithm of their gap, as a
        Poisson count n has about the logarithm of its mean. So the steps have the same standard deviation whatever
        the gap is.
        """
        k = self._category(y)
        G = self.n_categories - 2
        within = jnp.stack([sum_observed((k == i + 1).astype(f.dtype), mask, axis=0) for i in range(G)])
        scale = 2.4 / jnp.sqrt(self.a0 + within)

        def log_density(log_gaps):
            at = {"gaps": jnp.exp(log_gaps)}
            cells = self.log_factor(y, f, at, None) + self.log_base(y, at, None)
            return sum_observed(cells, mask, axis=0) + self._log_prior_gaps(at["gaps"]) + log_gaps.sum(axis=0)

        def step(carry, inputs):
            log_gaps, here = carry
            key, i = inputs
            key_noise, key_accept = jax.random.split(key)
            noise = jax.random.normal(key_noise, here.shape, here.dtype)
            proposal = log_gaps.at[i].add(scale[i] * noise)
            there = log_density(proposal)
            accept = jnp.log(jax.random.uniform(key_accept, here.shape, here.dtype)) < there - here
            return (jnp.where(accept[None], proposal, log_gaps), jnp.where(accept, there, here)), None

        start = jnp.log(theta["gaps"])
        which = jnp.tile(jnp.arange(G), N_ROUNDS)
        inputs = (jax.random.split(key, len(which)), which)
        return {"gaps": jnp.exp(lax.scan(step, (start, log_density(start)), inputs)[0][0])}


def _check_number(low: int, high: int) -> None:
    if high - low < 2:
        raise InputError(
            "ordinal needs 3 categories or more, got {low} to {high}: give likelihoods.Ordinal(low=..., high=...), or "
            "use the bernoulli likelihood for two answers 0 and 1",
            low=low,
            high=high,
        )
    if high - low >= MOST_CATEGORIES:
        raise InputError(
            "ordinal takes at most {most} categories, got {low} to {high}: "
            "{gaussian:for numbers of many sizes use the gaussian likelihood}",
            most=MOST_CATEGORIES,
            low=low,
            high=high,
        )


def _log1mexp(gap: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """log(1 - exp(-gap)), also for small and for large gaps."""
    return jnp.where(gap < 0.7, jnp.log(-jnp.expm1(-jnp.minimum(gap, 1))), jnp.log1p(-jnp.exp(-jnp.maximum(gap, 0.1))))
