"""Poisson observations with the log link (paper, Eq. 6b): y_nj ~ Poisson(exp(f_nj))."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from .base import Likelihood, check_counts, log_mean_intercepts


@dataclasses.dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts whose variance equals their mean. A per-row offset is a log exposure."""

    name: ClassVar[str] = "poisson"
    counts: ClassVar[bool] = True
    log_link: ClassVar[bool] = True
    decoder: ClassVar[str | None] = "poisson"

    def check(self, Y, observed):
        check_counts(Y, observed, "poisson")

    def stabilise(self, Y, offset, trials):
        return np.sqrt(Y / np.exp(offset))

    def intercepts(self, Y, mask, offset, trials):
        return log_mean_intercepts(Y, mask, offset)

    def log_factor(self, y, f, theta, trials):
        return y * f - jnp.exp(f)

    def log_base(self, y, theta, trials):
        return -gammaln(y + 1)

    def mean(self, f, theta, trials=None):
        return jnp.exp(f)

    def variance(self, f, theta, trials=None):
        return jnp.exp(f)

    def sample(self, key, f, theta, trials=None):
        return jax.random.poisson(key, jnp.exp(f)).astype(f.dtype)
