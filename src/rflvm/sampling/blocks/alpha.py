"""alpha: the concentration of the Dirichlet process (paper, Eq. 11)."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ...model import spectral
from ...model.joint import Data, Model, State
from .tuning import Tuning


class Info(NamedTuple):
    """Nothing to report: the draw is exact."""


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """Escobar & West's draw."""
    shape = jnp.asarray(model.prior.alpha_shape, state.alpha.dtype)
    rate = jnp.asarray(model.prior.alpha_rate, state.alpha.dtype)
    return state._replace(alpha=spectral.sample_concentration(key, state.alpha, state.z, shape, rate)), Info()
