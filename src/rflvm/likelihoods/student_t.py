"""Student t noise: real numbers of which some are far off, with degrees of freedom that are learned or given.

y_nj ~ f_nj + sigma_j t(nu_j)    sigma_j^2 ~ InvGamma(a0, b0)    nu_j ~ Gamma(2, rate 0.1)

The noise is a mixture of normal ones, y_nj ~ N(f_nj, sigma_j^2 / l_nj) with l_nj ~ Gamma(nu_j/2, rate nu_j/2), through
which sigma_j^2 is drawn. As for the Gaussian, y_nj is a cell on a standard scale; location and scale of a column are
its median and median absolute deviation, which a few wild cells do not move.
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

from ..numerics import scalars, units
from .base import Likelihood, sum_observed

# Gamma prior of the degrees of freedom: mean 20, and little mass near 0, where the noise has no scale (Juarez & Steel,
# 2010, Model-based clustering of non-Gaussian panel data based on skew-t distributions).
NU_SHAPE, NU_RATE = 2.0, 0.1

# Where a fit starts: heavier tails than most tables have, so that wild cells do not lead it astray.
FIRST_NU, FIRST_SIGMA2 = 4.0, 0.5

# Cells beyond this, in units of the column's scale, are moved to it before the starts look at the table.
CLIP = 3.0

# Metropolis steps for log nu. An observation has about a tenth of a unit of information about it where nu is near 4;
# every other step is a wide one, for columns that know less. Choices without a measurement.
N_NU_STEPS, NU_INFORMATION = 4, 0.1


@dataclasses.dataclass(frozen=True)
class StudentT(Likelihood):
    """Real-valued data with outliers.

    Parameters
    ----------
    freedom : float, optional
        Degrees of freedom of the noise, if they are known: 4 is a common choice, 1 is the Cauchy distribution. None:
        learned, for each column its own.
    a0, b0 : float
        Shape and rate of the inverse-gamma prior of each sigma_j^2, in units of the squared scale of column j.
    """

    freedom: float | None = None
    a0: float = 1.0
    b0: float = 1.0

    name: ClassVar[str] = "student_t"
    aliases: ClassVar[tuple[str, ...]] = ("t",)
    theta_dimensions: ClassVar[dict[str, tuple[str, ...]]] = {"sigma2": ("predictor",), "nu": ("predictor",)}
    decoder: ClassVar[str | None] = "student_t"

    def __post_init__(self):
        for name in ("a0", "b0") if self.freedom is None else ("freedom", "a0", "b0"):
            scalars.positive(name, getattr(self, name))

    def units(self, Y, observed, offset):
        return units.median_and_deviation(Y, observed, offset)

    def theta_in_units(self, theta, scale):
        return theta | {"sigma2": theta["sigma2"] * scale**2}

    def stabilise(self, Y, offset, trials):
        return np.clip(Y - offset, -CLIP, CLIP)

    def intercepts(self, Y, mask, offset, trials):
        return np.nanmedian(np.where(mask, Y - offset, np.nan), axis=0)

    def first_theta(self, Y, mask, offset, trials):
        J = Y.shape[1]
        nu = {} if self.freedom is not None else {"nu": np.full(J, FIRST_NU)}
        return {"sigma2": np.full(J, FIRST_SIGMA2)} | nu

    def _scale_and_freedom(self, theta):
        sigma2 = theta["sigma2"][None]
        return sigma2, theta["nu"][None] if self.freedom is None else jnp.full_like(sigma2, self.freedom)

    def log_factor(self, y, f, theta, trials):
        sigma2, nu = self._scale_and_freedom(theta)
        return -0.5 * (nu + 1) * jnp.log1p((y - f) ** 2 / (nu * sigma2))

    def log_base(self, y, theta, trials):
        sigma2, nu = self._scale_and_freedom(theta)
        return jnp.broadcast_to(log_gamma_ratio(0.5 * nu) - 0.5 * jnp.log(math.pi * nu * sigma2), y.shape)

    def slope_and_curvature(self, y, f, theta, trials):
        """The curvature is the Fisher information (nu + 1) / (nu + 3) / sigma^2, which a cell has on average.

        That of a cell by itself is negative where it is far off. With a constant, the gradient of Laplace's
        approximation is exact, for nothing in its determinant depends on the mode.
        """
        sigma2, nu = self._scale_and_freedom(theta)
        slope = (nu + 1) * (y - f) / (nu * sigma2 + (y - f) ** 2)
        information = (nu + 1) / ((nu + 3) * sigma2)
        return self.log_factor(y, f, theta, trials), slope, jnp.broadcast_to(information, f.shape)

    def mean(self, f, theta, trials=None):
        """The centre of the noise, also for nu <= 1, where it has no mean."""
        return f

    def variance(self, f, theta, trials=None):
        """Infinite for nu <= 2."""
        sigma2, nu = self._scale_and_freedom(theta)
        return jnp.broadcast_to(jnp.where(nu > 2, sigma2 * nu / jnp.where(nu > 2, nu - 2, 1), jnp.inf), f.shape)

    def sample(self, key, f, theta, trials=None):
        sigma2, nu = self._scale_and_freedom(theta)
        return f + jnp.sqrt(sigma2) * jax.random.t(key, jnp.broadcast_to(nu, f.shape), f.shape, f.dtype)

    def sample_theta(self, key, J, dtype):
        key_sigma2, key_nu = jax.random.split(key)
        sigma2 = self.b0 / jax.random.gamma(key_sigma2, jnp.full(J, self.a0, dtype), dtype=dtype)
        if self.freedom is not None:
            return {"sigma2": sigma2}
        return {"sigma2": sigma2, "nu": jax.random.gamma(key_nu, jnp.full(J, NU_SHAPE, dtype), dtype=dtype) / NU_RATE}

    def log_prior_theta(self, theta):
        sigma2 = theta["sigma2"]
        constant = self.a0 * math.log(self.b0) - math.lgamma(self.a0)
        log_sigma2 = jnp.sum(constant - (self.a0 + 1) * jnp.log(sigma2) - self.b0 / sigma2)
        return log_sigma2 if self.freedom is not None else log_sigma2 + jnp.sum(_log_prior_nu(theta["nu"]))

    def decoder_parameters(self, theta, J):
        return {"nu": np.full_like(theta["sigma2"], self.freedom or 0.0)} | theta

    def update_theta(self, key, theta, y, f, mask):
        """nu with the l_nj integrated out, by Metropolis steps; then l_nj given nu, and sigma^2 given those."""
        key_nu, key_l, key_sigma2 = jax.random.split(key, 3)
        if self.freedom is None:
            theta = theta | {"nu": self._draw_nu(key_nu, theta, y, f, mask)}
        sigma2, nu = self._scale_and_freedom(theta)
        square = (y - f) ** 2
        shape = jnp.broadcast_to(0.5 * (nu + 1), y.shape)
        weight = jax.random.gamma(key_l, shape, dtype=f.dtype) / (0.5 * (nu + square / sigma2))
        n = sum_observed(jnp.ones_like(y), mask, axis=0)
        rate = self.b0 + 0.5 * sum_observed(weight * square, mask, axis=0)
        return theta | {"sigma2": rate / jax.random.gamma(key_sigma2, self.a0 + 0.5 * n, dtype=f.dtype)}

    def _draw_nu(self, key: Array, theta, y, f, mask) -> Float[Array, " J"]:
        """Metropolis steps for log nu, every column by itself."""
        n = sum_observed(jnp.ones_like(y), mask, axis=0)
        narrow = 2.4 / jnp.sqrt(1 + NU_INFORMATION * n)

        def log_density(log_nu):
            at = theta | {"nu": jnp.exp(log_nu)}
            cells = self.log_factor(y, f, at, None) + self.log_base(y, at, None)
            return sum_observed(cells, mask, axis=0) + _log_prior_nu(at["nu"]) + log_nu

        def step(carry, inputs):
            log_nu, here = carry
            key, scale = inputs
            key_noise, key_accept = jax.random.split(key)
            proposal = log_nu + scale * jax.random.normal(key_noise, log_nu.shape, log_nu.dtype)
            there = log_density(proposal)
            accept = jnp.log(jax.random.uniform(key_accept, here.shape, here.dtype)) < there - here
            return (jnp.where(accept, proposal, log_nu), jnp.where(accept, there, here)), None

        start = jnp.log(theta["nu"])
        scales = jnp.stack([narrow, jnp.ones_like(narrow)] * (N_NU_STEPS // 2))
        keys = jax.random.split(key, N_NU_STEPS)
        return jnp.exp(lax.scan(step, (start, log_density(start)), (keys, scales))[0][0])


def _log_prior_nu(nu: Float[Array, " J"]) -> Float[Array, " J"]:
    return NU_SHAPE * math.log(NU_RATE) - math.lgamma(NU_SHAPE) + (NU_SHAPE - 1) * jnp.log(nu) - NU_RATE * nu


def log_gamma_ratio(a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """log Gamma(a + 1/2) - log Gamma(a), also where both are large and their difference would be rounding.

    Stirling's series of the ratio at a + 12, and the recursion down to a.
    """
    shift = 12
    b = a + shift
    q = 1 / (b * b)
    series = 0.5 * jnp.log(b) - (1 / 8 - q * (1 / 192 - q * (1 / 640 - q * 17 / 14336))) / b
    return series - sum(jnp.log1p(0.5 / (a + i)) for i in range(shift))
