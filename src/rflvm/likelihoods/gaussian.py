"""Gaussian observations with the conjugate normal-inverse-gamma prior (paper, Eqs. 6, 12 and appendix B).

y_nj ~ N(f_nj, sigma_j^2)    beta_j | sigma_j^2 ~ N(0, sigma_j^2 B0)    sigma_j^2 ~ InvGamma(a0, b0)
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from .base import Likelihood


@dataclasses.dataclass(frozen=True)
class Gaussian(Likelihood):
    """Real-valued data.

    Parameters
    ----------
    marginal : bool
        Move X and W with beta and sigma^2 integrated out (Eq. 12). Mixes better; the work per
        step grows with the number of distinct columns of the mask, so with many missing cells
        and many columns ``marginal=False`` is faster.
    a0, b0 : float
        Shape and rate of the inverse-gamma prior of each sigma_j^2.
    """

    marginal: bool = True
    a0: float = 1.0
    b0: float = 1.0

    name: ClassVar[str] = "gaussian"

    def __post_init__(self):
        if not (self.a0 > 0 and self.b0 > 0):
            raise ValueError(f"Gaussian needs a0 > 0 and b0 > 0, got a0={self.a0}, b0={self.b0}")

    def log_factor(self, y, f, theta, trials):
        return -0.5 * (y - f) ** 2 / theta["sigma2"]

    def log_base(self, y, theta, trials):
        return jnp.broadcast_to(-0.5 * jnp.log(2 * math.pi * theta["sigma2"]), y.shape)

    def mean(self, f, theta, trials=None):
        return f

    def variance(self, f, theta, trials=None):
        return jnp.broadcast_to(theta["sigma2"], f.shape)

    def sample(self, key, f, theta, trials=None):
        return f + jnp.sqrt(theta["sigma2"]) * jax.random.normal(key, f.shape, f.dtype)

    def sample_theta(self, key, J, dtype):
        return {"sigma2": self.b0 / jax.random.gamma(key, jnp.full(J, self.a0, dtype), dtype=dtype)}

    def log_prior_theta(self, theta):
        sigma2 = theta["sigma2"]
        constant = self.a0 * math.log(self.b0) - math.lgamma(self.a0)
        return jnp.sum(constant - (self.a0 + 1) * jnp.log(sigma2) - self.b0 / sigma2)

    def coefficient_scale(self, theta):
        return theta["sigma2"]

    def log_evidence(self, n, logdet_ratio, yy, explained):
        """Log of Eq. 12 for each column: n cells, log |S_0| - log |S_N|, y'y and beta_N' S_N beta_N."""
        aN = self.a0 + n / 2
        bN = self.b0 + (yy - explained) / 2
        return (
            -n / 2 * math.log(2 * math.pi)
            + logdet_ratio / 2
            + self.a0 * math.log(self.b0)
            - aN * jnp.log(bN)
            + gammaln(aN)
            - math.lgamma(self.a0)
        )
