"""Negative binomial observations with a dispersion per column, learned (paper, appendix C).

    y_nj ~ NB(r_j, sigmoid(f_nj))    r_j ~ Gamma(a0, rate h)    h ~ Gamma(b0, rate g0)

Eq. 7 with a = y, b = y + r. Given f, r is drawn through the number of tables of a Chinese
restaurant (Zhou & Carin): l_nj ~ CRT(y_nj, r_j), then r_j and h are gamma.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from ..numerics import scalars
from .base import Logistic, check_counts, log_mean_intercepts, softplus, sum_observed

_CRT_HEAD = 8


@dataclasses.dataclass(frozen=True)
class NegativeBinomial(Logistic):
    """Counts more variable than Poisson: mean r e^f, variance mean * (1 + e^f).

    Parameters
    ----------
    a0 : float
        Shape of the gamma prior of each r_j.
    b0, g0 : float
        Shape and rate of the gamma prior of h, the rate of that prior.
    """

    a0: float = 1.0
    b0: float = 1.0
    g0: float = 1.0

    name: ClassVar[str] = "negative_binomial"
    aliases: ClassVar[tuple[str, ...]] = ("nb",)
    counts: ClassVar[bool] = True
    log_link: ClassVar[bool] = True
    theta_dimensions: ClassVar[dict[str, tuple[str, ...]]] = {"r": ("predictor",), "h": ()}
    decoder: ClassVar[str | None] = "negative_binomial"

    def __post_init__(self):
        for name in ("a0", "b0", "g0"):
            scalars.positive(name, getattr(self, name))

    def check(self, Y, observed):
        check_counts(Y, observed, "negative_binomial")

    def stabilise(self, Y, offset, trials):
        return np.sqrt(Y / np.exp(offset))

    def intercepts(self, Y, mask, offset, trials):
        return log_mean_intercepts(Y, mask, offset)

    def exponents(self, y, theta, trials):
        return y, y + theta["r"][None]

    def log_base(self, y, theta, trials):
        r = theta["r"][None]
        return gammaln(y + r) - gammaln(r) - gammaln(y + 1)

    def mean(self, f, theta, trials=None):
        return theta["r"][None] * jnp.exp(f)

    def variance(self, f, theta, trials=None):
        return theta["r"][None] * jnp.exp(f) * (1 + jnp.exp(f))

    def sample(self, key, f, theta, trials=None):
        key_rate, key_count = jax.random.split(key)
        rate = jax.random.gamma(key_rate, jnp.broadcast_to(theta["r"][None], f.shape), dtype=f.dtype)
        return jax.random.poisson(key_count, rate * jnp.exp(f)).astype(f.dtype)

    def sample_theta(self, key, J, dtype):
        key_h, key_r = jax.random.split(key)
        h = jax.random.gamma(key_h, jnp.asarray(self.b0, dtype), dtype=dtype) / self.g0
        return {"r": jax.random.gamma(key_r, jnp.full(J, self.a0, dtype), dtype=dtype) / h, "h": h}

    def log_prior_theta(self, theta):
        r, h = theta["r"], theta["h"]
        log_r = self.a0 * jnp.log(h) - math.lgamma(self.a0) + (self.a0 - 1) * jnp.log(r) - h * r
        log_h = self.b0 * math.log(self.g0) - math.lgamma(self.b0) + (self.b0 - 1) * jnp.log(h) - self.g0 * h
        return jnp.sum(log_r) + log_h

    def update_theta(self, key, theta, y, f, mask):
        key_tables, key_r, key_h = jax.random.split(key, 3)
        tables = sum_observed(sample_crt(key_tables, y, jnp.broadcast_to(theta["r"][None], y.shape)), mask, axis=0)
        exposure = sum_observed(softplus(f), mask, axis=0)
        gamma = jax.random.gamma(key_r, self.a0 + tables, dtype=f.dtype)
        r = jnp.maximum(gamma / (theta["h"] + exposure), jnp.finfo(f.dtype).tiny)
        shape_h = jnp.asarray(self.b0 + self.a0 * r.shape[0], f.dtype)
        h = jax.random.gamma(key_h, shape_h, dtype=f.dtype) / (self.g0 + jnp.sum(r))
        return {"r": r, "h": h}


def sample_crt(key: Array, y: Float[Array, "..."], r: Float[Array, "..."]) -> Float[Array, "..."]:
    """Number of tables of y customers: sum over i = 1..y of Bernoulli(r / (r + i - 1)), exactly.

    The first customers are tossed one by one. After them the probabilities fall with i, so the
    customers between two new tables are skipped: a candidate is found with the geometric law of
    the present probability p and kept with the ratio of its own probability to p. The work grows
    with r log(y / r), not with y.
    """
    key_head, key_tail = jax.random.split(key)
    i = jnp.arange(1, _CRT_HEAD + 1, dtype=y.dtype).reshape((-1,) + (1,) * y.ndim)
    u = jax.random.uniform(key_head, (_CRT_HEAD, *y.shape), y.dtype)
    tables = jnp.sum((i <= y[None]) & (u * (r[None] + i - 1) < r[None]), axis=0).astype(y.dtype)

    def more(carry):
        return jnp.any(carry[1] < y)

    def skip(carry):
        tables, i, key = carry
        key, key_u = jax.random.split(key)
        u, v = jax.random.uniform(key_u, (2, *y.shape), y.dtype, minval=jnp.finfo(y.dtype).tiny)
        # The next customer i + 1 opens a table with probability p = r / (r + i).
        jump = 1 + jnp.floor(jnp.log(u) / -jnp.log1p(r / i))
        candidate = jnp.minimum(i + jump, y + 1)
        keep = (candidate <= y) & (v * (r + candidate - 1) < r + i)
        return tables + keep.astype(y.dtype), candidate, key

    start = (tables, jnp.full_like(y, _CRT_HEAD), key_tail)
    return lax.while_loop(more, skip, start)[0]
