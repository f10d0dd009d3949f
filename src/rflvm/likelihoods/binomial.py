"""Binomial observations with the logit link: Eq. 7 with a = y, b = trials."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from .base import Logistic, check_counts, first_bad_cell


@dataclasses.dataclass(frozen=True, eq=False)
class Binomial(Logistic):
    """y successes out of a known number of trials, with success probability sigmoid(f).

    Parameters
    ----------
    trials : int or array_like
        One number, one per column (J,), or one per cell (N, J).
    """

    trials: int | np.ndarray

    name: ClassVar[str] = "binomial"

    def __post_init__(self):
        trials = np.asarray(self.trials)
        if not (np.issubdtype(trials.dtype, np.number) and np.isfinite(trials).all()):
            raise ValueError("binomial trials must be finite numbers")
        if (trials < 0).any() or (trials != np.floor(trials)).any():
            raise ValueError(f"binomial trials must be whole numbers >= 0, got {trials.min():g} to {trials.max():g}")

    def _per_cell(self, shape: tuple[int, ...]) -> np.ndarray:
        trials = np.asarray(self.trials, float)
        allowed = {(): True, (shape[1],): True, shape: True}
        if trials.shape not in allowed:
            raise ValueError(
                f"binomial trials must be one number, one per column ({shape[1]},) or one per cell {shape}, "
                f"got shape {trials.shape}"
            )
        return np.broadcast_to(trials, shape)

    def check(self, Y, observed):
        check_counts(Y, observed, "binomial")
        bad = observed & (self._per_cell(Y.shape) < np.where(observed, Y, 0))
        if bad.any():
            raise ValueError(f"binomial needs y <= trials, got {first_bad_cell(bad, Y)}")

    def encode(self, Y, observed):
        return np.where(observed, Y, 0), observed, self._per_cell(Y.shape)

    def exponents(self, y, theta, trials):
        return y, trials

    def log_base(self, y, theta, trials):
        return log_choose(trials, y)

    def mean(self, f, theta, trials=None):
        return trials * jax.nn.sigmoid(f)

    def variance(self, f, theta, trials=None):
        return trials * jax.nn.sigmoid(f) * jax.nn.sigmoid(-f)

    def sample(self, key, f, theta, trials=None):
        return jax.random.binomial(key, trials, jax.nn.sigmoid(f), dtype=f.dtype)


def log_choose(n, k):
    """log of the binomial coefficient."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + jnp.zeros_like(k)
