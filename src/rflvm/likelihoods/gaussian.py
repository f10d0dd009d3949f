"""Gaussian observations with the conjugate normal-inverse-gamma prior (paper, Eqs. 6, 12 and appendix B).

y_nj ~ N(f_nj, sigma_j^2)    beta_j | sigma_j^2 ~ N(0, sigma_j^2 B0)    sigma_j^2 ~ InvGamma(a0, b0)

Here y_nj is a cell on the standard scale: less the offset of its row and the mean of its column, over the standard
deviation of its column. So the units in which a column was measured do not matter.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from ..numerics import scalars, units
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
        Shape and rate of the inverse-gamma prior of each sigma_j^2, the variance of the noise in units of the variance
        of column j.
    """

    marginal: bool = True
    a0: float = 1.0
    b0: float = 1.0

    name: ClassVar[str] = "gaussian"
    aliases: ClassVar[tuple[str, ...]] = ("normal",)
    conjugate: ClassVar[bool] = True
    theta_dimensions: ClassVar[dict[str, tuple[str, ...]]] = {"sigma2": ("predictor",)}
    decoder: ClassVar[str | None] = "gaussian"

    def __post_init__(self):
        scalars.flag("marginal", self.marginal)
        for name in ("a0", "b0"):
            scalars.positive(name, getattr(self, name))

    @property
    def integrates_coefficients(self):
        return self.marginal

    def suited_to(self, observed):
        # Gaps of its own give every column its own Gram matrix: beta sampled is then cheaper than beta integrated out.
        return dataclasses.replace(self, marginal=bool((observed == observed[:, :1]).all()))

    def units(self, Y, observed, offset):
        return units.mean_and_deviation(Y, observed, offset)

    def theta_in_units(self, theta, scale):
        return theta | {"sigma2": theta["sigma2"] * scale**2}

    def stabilise(self, Y, offset, trials):
        return Y - offset

    def intercepts(self, Y, mask, offset, trials):
        return np.where(mask, Y - offset, 0).sum(0) / np.maximum(mask.sum(0), 1)

    def log_factor(self, y, f, theta, trials):
        return -0.5 * (y - f) ** 2 / theta["sigma2"][None]

    def log_base(self, y, theta, trials):
        return jnp.broadcast_to(-0.5 * jnp.log(2 * math.pi * theta["sigma2"][None]), y.shape)

    def mean(self, f, theta, trials=None):
        return f

    def variance(self, f, theta, trials=None):
        return jnp.broadcast_to(theta["sigma2"][None], f.shape)

    def sample(self, key, f, theta, trials=None):
        return f + jnp.sqrt(theta["sigma2"][None]) * jax.random.normal(key, f.shape, f.dtype)

    def sample_theta(self, key, J, dtype):
        return {"sigma2": self.b0 / jax.random.gamma(key, jnp.full(J, self.a0, dtype), dtype=dtype)}

    def log_prior_theta(self, theta):
        sigma2 = theta["sigma2"]
        constant = self.a0 * math.log(self.b0) - math.lgamma(self.a0)
        return jnp.sum(constant - (self.a0 + 1) * jnp.log(sigma2) - self.b0 / sigma2)

    def coefficient_scale(self, theta):
        return theta["sigma2"]

    def noise_posterior(self, n, yy, explained):
        return self.a0 + n / 2, self.b0 + (yy - explained) / 2

    def log_evidence(self, n, logdet_ratio, yy, explained):
        aN, bN = self.noise_posterior(n, yy, explained)
        return (
            -n / 2 * math.log(2 * math.pi)
            + logdet_ratio / 2
            + self.a0 * math.log(self.b0)
            - aN * jnp.log(bN)
            + gammaln(aN)
            - math.lgamma(self.a0)
        )
