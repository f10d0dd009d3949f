"""A family that is not of the package, as a user would write it: durations with an exponential distribution."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rflvm.likelihoods import Likelihood


@dataclasses.dataclass(frozen=True)
class Durations(Likelihood):
    """y > 0 with mean unit e^f and an exponential distribution."""

    unit: float = 1.0

    name: ClassVar[str] = "durations"
    log_link: ClassVar[bool] = True

    def check(self, Y, observed):
        if (observed & (Y <= 0)).any():
            raise ValueError("durations must be positive")

    def stabilise(self, Y, offset, trials):
        return np.log(np.maximum(Y, 1e-12)) - offset

    def intercepts(self, Y, mask, offset, trials):
        return np.log(Y.sum(0) / (np.where(mask, np.exp(offset), 0).sum(0) * self.unit))

    def log_factor(self, y, f, theta, trials):
        return -f - y / self.unit * jnp.exp(-f)

    def log_base(self, y, theta, trials):
        return jnp.full_like(y, -np.log(self.unit))

    def mean(self, f, theta, trials=None):
        return self.unit * jnp.exp(f)

    def variance(self, f, theta, trials=None):
        return self.mean(f, theta) ** 2

    def sample(self, key, f, theta, trials=None):
        return self.mean(f, theta) * jax.random.exponential(key, f.shape, f.dtype)
