"""(mu, Sigma): the parameters of the mixture components (paper, Eq. 9)."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array

from ...model import spectral
from ...model.joint import Data, Model, State
from .tuning import Tuning


class Info(NamedTuple):
    """Nothing to report: the draw is exact."""


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """Draw every slot from its NIW conditional; an empty slot gets a draw from the prior."""
    niw = spectral.niw_posterior(model.prior.niw(model.D, state.W.dtype), state.W, state.z)
    mu, Sigma = spectral.sample_niw(key, niw)
    return state._replace(mu=mu, Sigma=Sigma), Info()
