"""Rows that meet the MAP engine first, and a larger sample on which the functions grow before all rows are visited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..data import checks, tables
from ..data.blocks.sources import Source
from ..likelihoods import Likelihood
from ..numerics.errors import InputError, moved
from .shards import ALONE, Shards

# Rows of the sample, at most, and its cells. The functions of so many rows differ little from those of all.
N_SAMPLE, SAMPLE_CELLS = 2**15, 2**24

# Rows of the sample that meet the MAP engine: as many as its starts look at (maximum/starts.py).
N_LANDMARKS = 2000

# Rows of the sample that are held out, one in HELD_OUT_SHARE up to so many; fewer than FEWEST would not tell.
N_HELD_OUT, HELD_OUT_SHARE, FEWEST = 1024, 20, 32


class Sample(NamedTuple):
    """Rows of a table, chosen at random.

    Attributes
    ----------
    source : Source
        The table.
    rows : array (S,)
        Their numbers in the table, in rising order.
    values : array (S, J)
        Their cells, in the type of the table.
    landmarks, held_out : array
        Places in the sample, in rising order.
    """

    source: Source
    rows: Int[np.ndarray, " S"]
    values: np.ndarray
    landmarks: Int[np.ndarray, " L"]
    held_out: Int[np.ndarray, " V"]

    @property
    def whole(self) -> bool:
        """Whether the sample is the table."""
        return len(self.rows) == self.source.shape[0]

    @property
    def landmark_rows(self) -> Int[np.ndarray, " L"]:
        """Numbers of the landmarks in the table."""
        return self.rows[self.landmarks]

    def landmark_values(self) -> Float[np.ndarray, "L J"]:
        """Cells of the landmarks, NaN where missing."""
        return tables.numeric("Y", self.values[self.landmarks], 2)

    def observed(self) -> np.ndarray:
        """Which cells of the sample are there."""
        if self.values.dtype.kind != "f":
            return np.broadcast_to(np.True_, self.values.shape)
        return ~np.isnan(self.values)


def take_sample(source: Source, seed: int, shards: Shards = ALONE) -> Sample:
    """Rows of a table that stand for all of them."""
    N, J = source.shape
    size = min(N, N_SAMPLE, max(SAMPLE_CELLS // J, 2 * N_LANDMARKS))
    rng = np.random.default_rng(seed)
    rows = np.arange(N) if size == N else np.sort(rng.choice(N, size, replace=False))
    order = rng.permutation(size)
    n_held_out = min(N_HELD_OUT, size // HELD_OUT_SHARE)
    n_held_out = n_held_out if n_held_out >= FEWEST else 0
    held_out, rest = order[:n_held_out], order[n_held_out:]
    values = shards.from_first(lambda: {"values": source.take(rows)})["values"]
    return Sample(source, rows, values, np.sort(rest[:N_LANDMARKS]), np.sort(held_out))


def landmark_table(
    sample: Sample, likelihood: Likelihood, offset: Float[np.ndarray, " N"] | None, exposure: bool, D: int
) -> tuple[checks.Table, Likelihood]:
    """The landmarks as a checked table, and the family for them; errors name rows as they are in the whole table."""
    rows, values = sample.landmark_rows, sample.landmark_values()
    family = likelihood
    if family.trials_per_cell is not None:
        family = family.with_trials(family.trials_per_cell[rows])
    try:
        table = checks.check_table(values, family, None, None if offset is None else offset[rows], D)
        if exposure:
            table = table._replace(offset=checks.log_totals(values, values))
    except InputError as error:
        raise moved(error, lambda row: int(rows[row])) from None
    return table, family
