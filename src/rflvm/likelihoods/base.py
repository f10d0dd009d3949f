"""What every observation family provides: the observation part of Eq. 5, y_nj ~ L(g(f_nj), theta_j).

A family is a small frozen object. Its methods work cell by cell on arrays of one shape: ``y``, the
linear predictor ``f`` (offset included), the family's own parameters ``theta`` (a dict of arrays
with one entry per column, empty for most families) and ``trials`` (None for most families).
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float

Theta = dict[str, Array]
Trials = Any  # Float[Array, "N J"], or None for families without trials


class Likelihood:
    """Base of all families; the methods that raise are what a new family must write."""

    name: ClassVar[str]

    def check(self, Y: np.ndarray, observed: np.ndarray) -> None:
        """Raise ValueError when an observed cell is outside the family's support."""

    def encode(self, Y: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The table as the sampler sees it: cells, which of them count, and trials per cell."""
        return np.where(observed, Y, 0), observed, None

    def log_factor(
        self, y: Float[Array, "N J"], f: Float[Array, "N J"], theta: Theta, trials: Trials
    ) -> Float[Array, "N J"]:
        """The part of the log density of each cell that depends on f."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_factor")

    def log_base(self, y: Float[Array, "N J"], theta: Theta, trials: Trials) -> Float[Array, "N J"]:
        """The rest of the log density of each cell."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_base")

    def log_prob(
        self,
        y: Float[Array, "N J"],
        f: Float[Array, "N J"],
        theta: Theta,
        trials: Trials = None,
    ) -> Float[Array, "N J"]:
        """Log density (or log probability) of each cell."""
        return self.log_factor(y, f, theta, trials) + self.log_base(y, theta, trials)

    def mean(self, f: Float[Array, "N J"], theta: Theta, trials: Trials = None) -> Float[Array, "N J"]:
        """E[y | f]."""
        raise NotImplementedError(f"{type(self).__name__} does not define mean")

    def variance(self, f: Float[Array, "N J"], theta: Theta, trials: Trials = None) -> Float[Array, "N J"]:
        """Var[y | f]."""
        raise NotImplementedError(f"{type(self).__name__} does not define variance")

    def sample(self, key: Array, f: Float[Array, "N J"], theta: Theta, trials: Trials = None) -> Float[Array, "N J"]:
        """Draw y given f."""
        raise NotImplementedError(f"{type(self).__name__} does not define sample")

    def sample_theta(self, key: Array, J: int, dtype: DTypeLike) -> Theta:
        """Draw the family's own parameters from their prior."""
        return {}

    def log_prior_theta(self, theta: Theta) -> Float[Array, ""]:
        """Log prior density of the family's own parameters."""
        return jnp.zeros(())

    def update_theta(
        self,
        key: Array,
        theta: Theta,
        y: Float[Array, "N J"],
        f: Float[Array, "N J"],
        mask: Bool[Array, "N J"] | None,
    ) -> Theta:
        """Draw theta from its conditional given f (a Gibbs step)."""
        return theta

    def coefficient_scale(self, theta: Theta) -> Float[Array, " J"] | float:
        """Factor on the prior variance of beta_j: sigma_j^2 for the conjugate Gaussian, else 1."""
        return 1.0


class Logistic(Likelihood):
    """Families of Eq. 7, (e^f)^a / (1 + e^f)^b, open to Polya-gamma augmentation.

    A family gives ``exponents``; kappa = a - b/2 and omega ~ PG(b, f) follow (Eq. 14).
    """

    unit_shape: ClassVar[bool] = False  # b = 1 in every cell, which has a faster exact sampler

    def exponents(
        self, y: Float[Array, "N J"], theta: Theta, trials: Trials
    ) -> tuple[Float[Array, "N J"], Float[Array, "N J"]]:
        """(a, b) of Eq. 7."""
        raise NotImplementedError(f"{type(self).__name__} does not define exponents")

    def log_factor(
        self, y: Float[Array, "N J"], f: Float[Array, "N J"], theta: Theta, trials: Trials
    ) -> Float[Array, "N J"]:
        a, b = self.exponents(y, theta, trials)
        return a * f - b * softplus(f)


@jax.custom_jvp
def softplus(f: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """log(1 + e^f) without overflow; its derivative is the sigmoid, also at 0."""
    return jnp.maximum(f, 0) + jnp.log1p(jnp.exp(-jnp.abs(f)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    return softplus(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


def sum_observed(values: Float[Array, "N J"], mask: Bool[Array, "N J"] | None, axis: int | None = None) -> Array:
    """Sum over observed cells: all of them when there is no mask."""
    return jnp.sum(values if mask is None else jnp.where(mask, values, 0), axis=axis)


def first_bad_cell(bad: np.ndarray, Y: np.ndarray) -> str:
    """Name the first offending cell of a table for an error message."""
    n, j = (int(i[0]) for i in np.nonzero(bad))
    return f"Y[{n}, {j}] = {Y[n, j]:g} ({int(bad.sum())} such cell{'s' if bad.sum() > 1 else ''})"


def check_counts(Y: np.ndarray, observed: np.ndarray, family: str) -> None:
    """Raise unless every observed cell is a whole number >= 0."""
    negative = observed & (Y < 0)
    if negative.any():
        raise ValueError(f"{family} needs counts >= 0, got {first_bad_cell(negative, Y)}")
    fractional = observed & (np.floor(Y) != Y)
    if fractional.any():
        raise ValueError(
            f"{family} needs whole numbers, got {first_bad_cell(fractional, Y)}; "
            "for real-valued data use the gaussian likelihood"
        )
