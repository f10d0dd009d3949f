"""Rows divided among processes: each reads and visits its own, and sums over rows are added up once per epoch.

The processes are those of JAX's distributed runtime (``jax.distributed.initialize``), on one host or several. Blocks
are the same however many processes there are, and what they sum is added in double precision, so that a fit does not
depend on their number but for rounding.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

from ..numerics.errors import InputError

# Blocks after which the processes look whether all of them are still there, while each is busy with its own rows.
BLOCKS_BETWEEN = 16


class Shards(NamedTuple):
    """The processes that share the rows.

    Attributes
    ----------
    rank, total : int
        Number of this process, and how many there are.
    remedy : str
        What to do when one of them is lost.
    """

    rank: int
    total: int
    remedy: str

    def check(self, N: int, size: int) -> None:
        """Raise unless there is a block for every process."""
        n_blocks = -(-N // size)
        if n_blocks < self.total:
            raise InputError(
                "{Y} has {rows} rows, which are {blocks} block(s) of {size}, and there are {processes} processes: "
                "start fewer of them",
                rows=N,
                blocks=n_blocks,
                size=size,
                processes=self.total,
            )

    def rows(self, N: int, size: int) -> tuple[int, int]:
        """The first row of this process, and the first that is not its own any more: whole blocks."""
        n_blocks = -(-N // size)
        first, last = (n_blocks * rank // self.total * size for rank in (self.rank, self.rank + 1))
        return min(first, N), min(last, N)

    def looks(self, N: int, size: int) -> int:
        """How often the processes look for each other in a pass: each of them as often."""
        return -(-N // size) // self.total // BLOCKS_BETWEEN

    def added(self, tree: Any) -> Any:
        """Arrays in double precision, summed over processes in their order."""
        if self.total == 1:
            return tree
        return jax.tree.map(lambda leaf: self._gathered(np.asarray(leaf, float)).sum(axis=0), tree)

    def joined(self, part: np.ndarray, N: int, size: int) -> np.ndarray:
        """What each process has of its own rows, under one another."""
        if self.total == 1:
            return part
        longest = max(np.diff(self._replace(rank=rank).rows(N, size))[0] for rank in range(self.total))
        padded = np.concatenate([part, np.zeros((longest - len(part), *part.shape[1:]), part.dtype)])
        parts = self._gathered(padded)
        ends = [self._replace(rank=rank).rows(N, size) for rank in range(self.total)]
        return np.concatenate([own[: last - first] for own, (first, last) in zip(parts, ends, strict=True)])

    def look(self) -> None:
        """Whether all processes are there; this one ends if not."""
        if self.total > 1:
            self._gathered(np.zeros(1))

    def from_first(self, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Arrays by name that the first process makes, for all of them."""
        if self.total == 1:
            return make()
        buffer = io.BytesIO()
        if self.rank == 0:
            np.savez(buffer, **make())  # pyright: ignore[reportArgumentType]
        content = np.frombuffer(buffer.getvalue(), np.uint8)
        size = int(self._gathered(np.array([float(len(content))]))[0, 0])
        padded = np.zeros(size, np.uint8)
        padded[: len(content)] = content
        whole = self._gathered(padded)[0]
        with np.load(io.BytesIO(whole.tobytes()), allow_pickle=False) as arrays:
            return dict(arrays)

    def _gathered(self, array: np.ndarray) -> np.ndarray:
        """The array of every process, in their order."""
        try:
            with jax.enable_x64(True):
                return np.asarray(multihost_utils.process_allgather(array, tiled=False))
        except Exception as error:  # of several kinds, by where JAX notices
            why = str(error).splitlines()[0][:120]
            print(f"rflvm: process {self.rank}: another process was lost ({why}); {self.remedy}", file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)  # at an ordinary exit JAX would wait for the lost process


ALONE = Shards(0, 1, "")


def present(checkpoint: Any) -> Shards:
    """The processes of JAX's distributed runtime, if it was initialised; else this one alone."""
    remedy = "nothing was written: give checkpoint= a folder that all processes see"
    if checkpoint is not None:
        remedy = f"run it again, with as many processes as you like, to go on from {checkpoint}"
    return Shards(jax.process_index(), jax.process_count(), remedy)
