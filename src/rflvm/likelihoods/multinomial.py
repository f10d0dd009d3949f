"""Multinomial rows by stick breaking (paper, appendix D; Linderman, Johnson & Adams 2015).

    y_nj | C_nj ~ Binomial(C_nj, sigmoid(f_nj)),  C_nj = C_n - sum_{i<j} y_ni,  j = 1..J-1

A row of J counts is J - 1 binomial cells, so everything after ``encode`` is the binomial family.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .base import check_counts
from .binomial import Binomial


@dataclasses.dataclass(frozen=True, eq=False)
class Multinomial(Binomial):
    """Rows of counts with a fixed total, for example words of a document.

    The order of the columns matters a little: the first sticks are compared with all later ones.
    A stick needs every count from its own column on, so in a row with missing cells the columns
    up to the last missing one are left out and the columns after it are used given their own
    total, which is their exact conditional law. Sticks with C_nj = 0 carry no information.
    """

    trials: None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    name: ClassVar[str] = "multinomial"

    def __post_init__(self):
        if self.trials is not None:
            raise ValueError("multinomial takes its trials from the row totals of Y; do not give any")

    def check(self, Y, observed):
        check_counts(Y, observed, "multinomial")
        if Y.shape[1] < 2:
            raise ValueError("multinomial needs at least 2 columns (categories), got 1")

    def encode(self, Y, observed):
        from_here = np.logical_and.accumulate(observed[:, ::-1], axis=1)[:, ::-1]
        counts = np.where(from_here, Y, 0)
        remaining = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        return counts[:, :-1], from_here[:, :-1], np.where(from_here, remaining, 0)[:, :-1].astype(float)

    def decode(self, sticks, trials):
        """Counts of all J categories from binomial cells: the inverse of ``encode`` for complete rows."""
        return jnp.concatenate([sticks, (trials - sticks)[:, -1:]], axis=1)

    def probabilities(self, f):
        """Probabilities of the J categories, (N, J) from (N, J - 1) predictors."""
        log_stay = jnp.cumsum(jax.nn.log_sigmoid(-f), axis=1)
        before = jnp.concatenate([jnp.zeros_like(f[:, :1]), log_stay], axis=1)
        here = jnp.concatenate([jax.nn.log_sigmoid(f), jnp.zeros_like(f[:, :1])], axis=1)
        return jnp.exp(before + here)

    def sample_sticks(self, key, f, first_trials, starts):
        """Draw the binomial cells in order and the trials they leave.

        ``starts[n]`` is the first stick that counts in row n, ``first_trials[n]`` its trials.
        """

        def stick(remaining, inputs):
            key, j, fj = inputs
            trials = jnp.where(starts == j, first_trials, remaining)
            y = jax.random.binomial(key, trials, jax.nn.sigmoid(fj), dtype=fj.dtype)
            return trials - y, (y, trials)

        J1 = f.shape[1]
        inputs = (jax.random.split(key, J1), jnp.arange(J1), f.T)
        _, (y, trials) = lax.scan(stick, jnp.zeros_like(f[:, 0]), inputs)
        return y.T, trials.T
