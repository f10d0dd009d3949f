"""Chains side by side: several sweeps of each chain at a time, in processes of their own, by any backend of joblib.

Between two batches all chains are back, at the same sweep, and draws are recorded and written as in a run that goes one
chain after the other. Randomness depends on the chain and the number of the sweep alone and each chain is computed by
the same program, so the draws are the same, bit for bit, on machines of one kind with as many cores.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import joblib
import numpy as np

from ..numerics import linalg
from ..numerics.precision import precision
from .chain import Advanced, Chain, Task, advance_by

SECONDS = 2.0  # that a batch is to take: short enough to show progress, long beside what sending chains takes

Carry = Callable[[list[Chain], int, int], list[Advanced]]  # chains, from one sweep to another


class Batches:
    """How many sweeps to make before the chains come back, from how long the last ones took."""

    def __init__(self) -> None:
        self.n = 1

    def after(self, n: int, seconds: float) -> None:
        """Learn that ``n`` sweeps took so long; at most four times as many come next."""
        self.n = int(np.clip(SECONDS * n / max(seconds, 1e-9), 1, 4 * n))


@contextlib.contextmanager
def carrier(task: Task, n_jobs: int) -> Iterator[tuple[Carry, Batches]]:
    """How chains are advanced: here, sweep by sweep, or with more than one job elsewhere, some sweeps at a time."""
    batches = Batches()
    if n_jobs == 1:
        yield (
            lambda chains, start, stop: [advance_by(c, chains[c], start, stop, task) for c in range(len(chains))],
            batches,
        )
        return
    packed = cloudpickle.dumps(jax.tree.map(np.asarray, task.data)), cloudpickle.dumps(task._replace(data=None))
    dtype = str(task.data.Y.dtype)
    with joblib.Parallel(n_jobs=n_jobs) as pool:

        def carry(chains: list[Chain], start: int, stop: int) -> list[Advanced]:
            began = time.perf_counter()
            advanced: Any = pool(
                joblib.delayed(_elsewhere)(c, jax.tree.map(np.asarray, chains[c]), start, stop, packed, dtype)
                for c in range(len(chains))
            )
            batches.after(stop - start, time.perf_counter() - began)
            return list(advanced)

        yield carry, batches


def jobs(n_jobs: int | None, n_chains: int) -> int:
    """Processes to use: never more than chains; None is one, unless joblib's context says otherwise."""
    wanted: Any = n_jobs  # joblib's annotation leaves out None
    return max(1, min(joblib.effective_n_jobs(wanted), n_chains))


def _elsewhere(c: int, chain: Chain, start: int, stop: int, packed: tuple[bytes, bytes], dtype: str) -> Advanced:
    with precision(dtype), linalg.one_blas_thread():
        advanced = advance_by(c, jax.tree.map(jnp.asarray, chain), start, stop, _unpacked(packed, dtype))
        return jax.tree.map(np.asarray, advanced)


@functools.lru_cache(maxsize=1)
def _unpacked(packed: tuple[bytes, bytes], dtype: str) -> Task:
    """The task; kept from one batch to the next, so that what is compiled for it serves them all."""
    data, rest = (cloudpickle.loads(part) for part in packed)
    return rest._replace(data=jax.tree.map(jnp.asarray, data))
