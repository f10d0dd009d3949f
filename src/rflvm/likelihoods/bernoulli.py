"""Yes/no observations with the logit link: Eq. 7 with a = y, b = 1."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from ..numerics.errors import InputError
from .base import Logistic, first_bad_cell


@dataclasses.dataclass(frozen=True)
class Bernoulli(Logistic):
    """Cells are 0 or 1, P(y = 1) = sigmoid(f)."""

    name: ClassVar[str] = "bernoulli"
    counts: ClassVar[bool] = True
    decoder: ClassVar[str | None] = "bernoulli"
    unit_shape: ClassVar[bool] = True

    def check(self, Y, observed):
        bad = observed & (Y != 0) & (Y != 1)
        if bad.any():
            raise InputError("bernoulli needs cells that are 0 or 1, got {cell}", cell=first_bad_cell(bad, Y))

    def exponents(self, y, theta, trials):
        return y, jnp.ones_like(y)

    def log_base(self, y, theta, trials):
        return jnp.zeros_like(y)

    def mean(self, f, theta, trials=None):
        return jax.nn.sigmoid(f)

    def variance(self, f, theta, trials=None):
        return jax.nn.sigmoid(f) * jax.nn.sigmoid(-f)

    def sample(self, key, f, theta, trials=None):
        return jax.random.bernoulli(key, jax.nn.sigmoid(f)).astype(f.dtype)
