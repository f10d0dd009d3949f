"""theta: the family's own parameters given F: r and h of the negative binomial (paper, appendix C).

The Gaussian's sigma^2 is drawn together with beta, in ``blocks/beta.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array

from ...model.joint import Data, Model, State, predictor
from .tuning import Tuning


class Info(NamedTuple):
    """Nothing to report: the draw is exact."""


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """Draw theta from its conditional."""
    if not state.theta:
        return state, Info()
    F = predictor(state, data)
    return state._replace(theta=model.likelihood.update_theta(key, state.theta, data.Y, F, data.mask)), Info()
