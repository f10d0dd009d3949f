"""Blocks of rows checked, encoded for their family and padded to one size, in the type in which the table is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ...likelihoods import Likelihood
from ...numerics.errors import InputError, moved
from ...numerics.units import Units, standardised
from .. import checks
from .ahead import ahead
from .sources import Source

# Cells of a block, and the most rows: a few arrays of its shape are in memory at once, and a program that has run has
# done enough to be worth its call. Choices without a measurement.
BLOCK_CELLS, MOST_ROWS = 2**20, 2**13


class Block(NamedTuple):
    """A block of rows on the host, padded with rows without observed cells.

    Attributes
    ----------
    start, n : int
        Number of its first row in the table, and of its rows.
    Y : ndarray (B, J)
        Encoded cells, 0 where they do not count.
    mask : ndarray of bool (B, J) or None
        Which cells count; None where all do, those of padding included.
    offset : ndarray (B,)
        Of each row.
    trials : ndarray (B, J) or None
        Of each cell.
    """

    start: int
    n: int
    Y: np.ndarray
    mask: np.ndarray | None
    offset: np.ndarray
    trials: np.ndarray | None


def block_size(N: int, J: int) -> int:
    """Rows of a block: a power of two, fixed by the shape of the table."""
    most = 2 ** max(int(np.log2(BLOCK_CELLS / J)), 4)
    return min(most, MOST_ROWS, 2 ** max(int(np.ceil(np.log2(N))), 4))


@dataclasses.dataclass(frozen=True, eq=False)
class Encoder:
    """What turns rows as they were read into blocks.

    Attributes
    ----------
    likelihood : Likelihood
        The family.
    units : Units or None
        With which cells are standardised.
    offset : array (N,) or None
        As ``checks.check_offset`` gives it; None where there is none.
    exposures : array (J,) or None
        Usual counts of the columns, where the offset of a row is the log of its total relative to them.
    dtype : str
        Precision of what has to be a float: offsets, and cells that are standardised.
    empty_rows : bool
        Whether rows may have no observed cell.
    """

    likelihood: Likelihood
    units: Units | None
    offset: Float[np.ndarray, " N"] | None
    exposures: Float[np.ndarray, " J"] | None
    dtype: str
    empty_rows: bool = False

    def blocks(
        self, source: Source, size: int, start: int = 0, stop: int | None = None, *, checked: bool = False
    ) -> Iterator[Block]:
        """Rows of a table, read and encoded ahead of whoever asks; cells are checked unless they were before."""
        read = source.blocks(size, start, stop)
        yield from ahead(self(first, values, size, checked=checked) for first, values in read)

    def __call__(self, start: int, values: np.ndarray, size: int, *, checked: bool = False) -> Block:
        """One block, of rows from number ``start`` on; errors name rows as they are in the table."""
        try:
            return self._encoded(start, values, size, np.arange(start, start + len(values)), checked)
        except InputError as error:
            raise moved(error, lambda row: row + start) from None

    def of_rows(self, rows: np.ndarray, values: np.ndarray, size: int) -> Block:
        """One block of some rows, by their numbers in the table; its ``start`` is 0."""
        try:
            return self._encoded(0, values, size, rows, checked=False)
        except InputError as error:
            raise moved(error, lambda row: int(rows[row])) from None

    def _encoded(self, start: int, values: np.ndarray, size: int, rows: np.ndarray, checked: bool) -> Block:
        family = self.likelihood
        if family.trials_per_cell is not None:
            family = family.with_trials(family.trials_per_cell[rows])
        whole = values.dtype.kind != "f"
        observed = np.broadcast_to(np.True_, values.shape) if whole else ~np.isnan(values)
        if not checked:
            checks.check_cells(values, observed, family, empty_rows=self.empty_rows)
        offset = np.zeros(len(values)) if self.offset is None else self.offset[rows]
        if self.exposures is not None:
            offset = checks.log_exposures(values, observed, self.exposures)
        cells, counted, trials = family.encode(values, observed)
        if self.units is not None:
            cells = standardised(cells.astype(float), counted, offset, self.units).astype(self.dtype)
            offset = np.zeros_like(offset)
        mask = None if counted.all() else counted
        return Block(
            start=start,
            n=len(values),
            Y=_padded(_narrow(cells, self.dtype), size),
            mask=None if mask is None else _padded(mask, size),
            offset=_padded(offset.astype(self.dtype), size),
            trials=None if trials is None else _padded(trials.astype(self.dtype), size),
        )


def _narrow(cells: np.ndarray, dtype: str) -> np.ndarray:
    """Cells in a type that a device has; a type of numbers that is no wider than ``dtype`` stays."""
    return cells if cells.dtype.itemsize <= 4 and cells.dtype.kind != "b" else cells.astype(dtype)


def _padded(part: np.ndarray, size: int) -> np.ndarray:
    if len(part) == size:
        return part
    return np.concatenate([part, np.zeros((size - len(part), *part.shape[1:]), part.dtype)])
