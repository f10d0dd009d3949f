"""z: which mixture component each frequency belongs to (paper, Eq. 8)."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Int

from ...model import spectral
from ...model.joint import Data, Model, State
from .tuning import Tuning


class Info(NamedTuple):
    """Number of occupied components."""

    occupied: Int[Array, ""]


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """One pass over z_1..z_H; frequencies that open a component bring its parameters."""
    niw = model.prior.niw(model.D, state.W.dtype)
    z, mu, Sigma = spectral.sample_assignments(key, state.z, state.W, state.mu, state.Sigma, state.alpha, niw)
    return state._replace(z=z, mu=mu, Sigma=Sigma), Info((spectral.counts(z) > 0).sum())
