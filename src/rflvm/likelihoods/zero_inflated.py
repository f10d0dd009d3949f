"""Counts with more zeros than their family has: some cells are zero whatever f is.

    y_nj = 0 with probability pi_j, else y_nj ~ Poisson(e^f_nj) or NB(r_j, sigmoid(f_nj))    pi_j ~ Beta(a_zero, b_zero)

What is kept is odds_j = pi_j / (1 - pi_j), a positive number. Given f, which zeros are such is drawn first; pi_j then
has a beta distribution, and the parameters of the counts are drawn as usual from the other cells.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..numerics import scalars
from .base import Likelihood, check_counts, log_mean_intercepts, sum_observed
from .negative_binomial import NegativeBinomial
from .poisson import Poisson

# Where a fit starts: one cell in five is zero whatever f is.
FIRST_ODDS = 0.25


class ZeroInflated(Likelihood):
    """What the two families have in common; ``counts_family`` is that of the cells that are not zero anyway."""

    counts: ClassVar[bool] = True
    log_link: ClassVar[bool] = True
    concave: ClassVar[bool] = False
    a_zero: float
    b_zero: float

    @property
    def counts_family(self) -> Likelihood:
        """The family of the counts."""
        raise NotImplementedError(f"{type(self).__name__} does not define counts_family")

    def check(self, Y, observed):
        check_counts(Y, observed, self.name)

    def stabilise(self, Y, offset, trials):
        return np.sqrt(Y / np.exp(offset))

    def intercepts(self, Y, mask, offset, trials):
        return log_mean_intercepts(Y, mask, offset) + math.log1p(FIRST_ODDS)

    def first_theta(self, Y, mask, offset, trials):
        return {"odds": np.full(Y.shape[1], FIRST_ODDS)}

    def log_factor(self, y, f, theta, trials):
        """Of a zero all of log(pi + (1 - pi) p(0 | f)), less log(1 - pi)."""
        zero = jnp.zeros_like(y)
        log_zero = self.counts_family.log_prob(zero, f, theta, trials)
        log_odds = jnp.log(theta["odds"])[None] + jnp.zeros_like(f)
        return jnp.where(y == 0, jnp.logaddexp(log_odds, log_zero), self.counts_family.log_factor(y, f, theta, trials))

    def log_base(self, y, theta, trials):
        of_count = self.counts_family.log_base(jnp.maximum(y, 1), theta, trials)
        return jnp.where(y == 0, 0, of_count) - jnp.log1p(theta["odds"])[None]

    def mean(self, f, theta, trials=None):
        return self.counts_family.mean(f, theta, trials) / (1 + theta["odds"])[None]

    def variance(self, f, theta, trials=None):
        mean, odds = self.counts_family.mean(f, theta, trials), theta["odds"][None]
        return self.counts_family.variance(f, theta, trials) / (1 + odds) + mean**2 * odds / (1 + odds) ** 2

    def sample(self, key, f, theta, trials=None):
        key_zero, key_count = jax.random.split(key)
        odds = theta["odds"][None]
        zero = jax.random.uniform(key_zero, f.shape, f.dtype) < odds / (1 + odds)
        return jnp.where(zero, 0, self.counts_family.sample(key_count, f, theta, trials))

    def sample_theta(self, key, J, dtype):
        key_zero, key_counts = jax.random.split(key)
        odds = _odds(key_zero, jnp.full(J, self.a_zero, dtype), jnp.full(J, self.b_zero, dtype))
        return {"odds": odds} | self.counts_family.sample_theta(key_counts, J, dtype)

    def log_prior_theta(self, theta):
        """The prior of pi, times dpi / dodds = (1 + odds)^-2."""
        a, b, odds = self.a_zero, self.b_zero, theta["odds"]
        constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        log_odds = constant + (a - 1) * jnp.log(odds) - (a + b) * jnp.log1p(odds)
        return jnp.sum(log_odds) + self.counts_family.log_prior_theta(theta).astype(odds.dtype)

    def update_theta(self, key, theta, y, f, mask):
        key_which, key_zero, key_counts = jax.random.split(key, 3)
        log_zero = self.counts_family.log_prob(jnp.zeros_like(y), f, theta, None)
        odds = theta["odds"][None]
        always = (y == 0) & (jax.random.uniform(key_which, y.shape, f.dtype) * (odds + jnp.exp(log_zero)) < odds)
        a = self.a_zero + sum_observed(always.astype(f.dtype), mask, axis=0)
        b = self.b_zero + sum_observed((~always).astype(f.dtype), mask, axis=0)
        counted = ~always if mask is None else mask & ~always
        of_counts = {name: value for name, value in theta.items() if name != "odds"}
        return {"odds": _odds(key_zero, a, b)} | self.counts_family.update_theta(key_counts, of_counts, y, f, counted)


@dataclasses.dataclass(frozen=True)
class ZeroInflatedPoisson(ZeroInflated):
    """Poisson counts, of which a share of each column is zero whatever its mean.

    Parameters
    ----------
    a_zero, b_zero : float
        The beta prior of this share.
    """

    a_zero: float = 1.0
    b_zero: float = 1.0

    name: ClassVar[str] = "zero_inflated_poisson"
    aliases: ClassVar[tuple[str, ...]] = ("zip",)
    theta_dimensions: ClassVar[dict[str, tuple[str, ...]]] = {"odds": ("predictor",)}
    decoder: ClassVar[str | None] = "zero_inflated_poisson"

    def __post_init__(self):
        for name in ("a_zero", "b_zero"):
            scalars.positive(name, getattr(self, name))

    @property
    def counts_family(self):
        return Poisson()


@dataclasses.dataclass(frozen=True)
class ZeroInflatedNegativeBinomial(ZeroInflated):
    """Negative binomial counts, of which a share of each column is zero whatever its mean.

    Parameters
    ----------
    a_zero, b_zero : float
        The beta prior of this share.
    a0, b0, g0 : float
        The priors of the dispersions, as of ``NegativeBinomial``.
    """

    a_zero: float = 1.0
    b_zero: float = 1.0
    a0: float = 1.0
    b0: float = 1.0
    g0: float = 1.0

    name: ClassVar[str] = "zero_inflated_negative_binomial"
    aliases: ClassVar[tuple[str, ...]] = ("zinb",)
    theta_dimensions: ClassVar[dict[str, tuple[str, ...]]] = {"odds": ("predictor",), "r": ("predictor",), "h": ()}
    decoder: ClassVar[str | None] = "zero_inflated_negative_binomial"

    def __post_init__(self):
        for field in dataclasses.fields(self):
            scalars.positive(field.name, getattr(self, field.name))

    @property
    def counts_family(self):
        return NegativeBinomial(self.a0, self.b0, self.g0)


def _odds(key, a, b):
    """pi / (1 - pi) of a pi ~ Beta(a, b): the ratio of two gamma variates, kept off zero and infinity."""
    key_a, key_b = jax.random.split(key)
    tiny = float(jnp.finfo(a.dtype).tiny) ** 0.25
    one, other = jax.random.gamma(key_a, a, dtype=a.dtype), jax.random.gamma(key_b, b, dtype=a.dtype)
    return jnp.maximum(one, tiny) / jnp.maximum(other, tiny)
