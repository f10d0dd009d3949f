"""Multinomial rows by stick breaking (paper, appendix D; Linderman, Johnson & Adams 2015).

    y_nj | C_nj ~ Binomial(C_nj, sigmoid(f_nj)),  C_nj = C_n - sum_{i<j} y_ni,  j = 1..J-1

A row of J counts is J - 1 binomial cells, so everything between ``encode`` and ``decode`` is binomial.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .base import SuccessCounts, check_counts


@dataclasses.dataclass(frozen=True)
class Multinomial(SuccessCounts):
    """Rows of counts with a fixed total, for example words of a document.

    The order of the columns matters a little: the first sticks are compared with all later ones.
    A stick needs every count from its own column on, so in a row with missing cells the columns
    up to the last missing one are left out and the columns after it are used given their own
    total, which is their exact conditional law. Sticks with C_nj = 0 carry no information.
    """

    name: ClassVar[str] = "multinomial"
    row_totals: ClassVar[bool] = True
    decoder: ClassVar[str | None] = "multinomial"

    def check(self, Y, observed):
        check_counts(Y, observed, "multinomial")
        if Y.shape[1] < 2:
            raise ValueError("multinomial needs at least 2 columns (categories), got 1")

    def encode(self, Y, observed):
        from_here = np.logical_and.accumulate(observed[:, ::-1], axis=1)[:, ::-1]
        counts = np.where(from_here, Y, 0)
        remaining = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        return counts[:, :-1], from_here[:, :-1], np.where(from_here, remaining, 0)[:, :-1].astype(float)

    def stabilise(self, Y, offset, trials):
        return np.sqrt(Y)  # late sticks have few trials or none, so their shares say little

    def decode(self, sticks: Float[Array, "N J1"], trials: Float[Array, "N J1"]) -> Float[Array, "N J"]:
        """Counts of all J categories from binomial cells: the inverse of ``encode`` for complete rows."""
        return jnp.concatenate([sticks, (trials - sticks)[:, -1:]], axis=1)

    def totals(self, values):
        return values.sum(axis=1)

    def implied_totals(self, values, shares):
        observed = ~np.isnan(values)
        counted = np.where(observed, values, 0).sum(axis=1)
        return counted / np.maximum(np.where(observed, shares, 0).sum(axis=1), np.finfo(float).tiny)

    def respond(self, f, theta, trials):
        """Probabilities of the J categories, (N, J) from (N, J - 1) predictors."""
        log_stay = jnp.cumsum(jax.nn.log_sigmoid(-f), axis=1)
        before = jnp.concatenate([jnp.zeros_like(f[:, :1]), log_stay], axis=1)
        here = jnp.concatenate([jax.nn.log_sigmoid(f), jnp.zeros_like(f[:, :1])], axis=1)
        return jnp.exp(before + here)

    def draw_rows(self, key, f, theta, trials, totals):
        sticks, left = self.sample_sticks(key, f, totals, jnp.zeros(len(f), int))
        return self.decode(sticks, left)

    def draw_cells(self, key, f, theta, mask, trials):
        """The total of each row is that of its first stick that counts."""
        counted = jnp.ones(f.shape, bool) if mask is None else mask
        starts = jnp.argmax(counted, axis=1)
        totals = jnp.take_along_axis(trials, starts[:, None], axis=1)[:, 0]
        y, left = self.sample_sticks(key, f, jnp.where(counted.any(axis=1), totals, 0), starts)
        return jnp.where(counted, y, 0), jnp.where(counted, left, 0)

    def sample_sticks(
        self, key: Array, f: Float[Array, "N J1"], first_trials: Float[Array, " N"], starts: Int[Array, " N"]
    ) -> tuple[Any, Any]:
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
