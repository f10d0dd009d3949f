"""One visit to every row of a table, in blocks, and sums over the rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..data.blocks.encoding import Block
from ..model.joint import Data, Model
from . import programs
from .functions import Functions
from .programs import Anchors, Curvature

# Rows of the subsample from which curvatures are taken, at most twice as many; and rows whose curvatures are computed
# at once. The curvature sets the length of a step and the spread of beta, not where the steps lead.
N_CURVATURE, CURVATURE_ROWS = 2**15, 2**12

# Draws of the position of a row in each epoch, as many as make up this number of draws in all, at most MOST_DRAWS: of
# few rows a single draw each would leave noise in beta that its posterior standard deviation does not tell of.
N_DRAWS, MOST_DRAWS = 2**18, 8

OnRows = Callable[[int], Any]  # is called with a number of rows that are done


@dataclasses.dataclass(eq=False)
class Rows:
    """The rows of a table, or of a sample of it, that this process visits.

    Attributes
    ----------
    blocks : callable
        Gives the blocks from the first to the last; with ``checked=True`` cells are not checked again.
    size : int
        Rows of a block.
    held_out : array of int
        Rows that do not count, in rising order.
    X : array (n, D)
        Modes of the rows' positions as they were last seen. Written to.
    first, N : int
        Number of the first of these rows, and of rows in all processes.
    """

    blocks: Callable[..., Iterable[Block]]
    size: int
    held_out: np.ndarray
    X: Float[np.ndarray, "n D"]
    first: int
    N: int

    @property
    def n_draws(self) -> int:
        """Draws of the position of each row."""
        return int(np.clip(N_DRAWS // self.N, 1, MOST_DRAWS))

    def positions(self, block: Block) -> np.ndarray:
        """Modes of the rows of a block, padded."""
        here = self.X[block.start - self.first :][: block.n]
        return np.concatenate([here, np.zeros((self.size - block.n, here.shape[1]), here.dtype)])

    def keep(self, block: Block, X: Any) -> None:
        """New modes of the rows of a block."""
        self.X[block.start - self.first :][: block.n] = np.asarray(X)[: block.n]

    def weights(self, block: Block) -> np.ndarray:
        """1 for the rows of a block that count, 0 for others and for padding."""
        weight = np.zeros(self.size, self.X.dtype)
        weight[: block.n] = 1
        first, last = np.searchsorted(self.held_out, (block.start, block.start + block.n))
        weight[self.held_out[first:last] - block.start] = 0
        return weight


class Totals(NamedTuple):
    """The sums of an epoch, a ``Sums`` and a ``Curvature`` of arrays in double precision on the host."""

    sums: Any
    curvature: Any


def place(rows: Rows, anchors: Anchors, functions: Functions, model: Model, on_rows: OnRows) -> None:
    """Find the modes of all rows from the anchors. Cells are checked on the way."""
    state = functions.state(str(rows.X.dtype))
    for block in rows.blocks(checked=False):
        X, _ = programs.place(data_of(block), anchors, state, model)
        rows.keep(block, X)
        on_rows(block.n)


def epoch(rows: Rows, functions: Functions, model: Model, seed: int, on_rows: OnRows) -> Totals:
    """Visit every row once."""
    state, key = functions.state(str(rows.X.dtype)), jax.random.key(seed)
    subsample = _Subsample(rows, seed, lambda *parts: programs.curvature(*parts, state, model))
    total: Any = None
    for block in rows.blocks(checked=True):
        data, weight = data_of(block), rows.weights(block)
        numbers = jnp.asarray(block.start + np.arange(rows.size), jnp.uint32)
        new, draws, sums = programs.visit(
            jnp.asarray(rows.positions(block)), numbers, jnp.asarray(weight), data, state, key, model, rows.n_draws
        )
        rows.keep(block, new)
        total = _added(total, sums)
        subsample.add(np.asarray(draws[0]), weight, block)
        on_rows(block.n)
    return Totals(total, subsample.total())


def settle(
    rows: Rows, functions: Functions, model: Model, on_rows: OnRows
) -> Iterator[tuple[Block, np.ndarray, np.ndarray]]:
    """Modes and packed covariances of all rows, block by block, under functions that do not change any more."""
    state = functions.state(str(rows.X.dtype))
    for block in rows.blocks(checked=True):
        modes, covariance = programs.settle(jnp.asarray(rows.positions(block)), data_of(block), state, model)
        rows.keep(block, modes)
        yield block, np.asarray(modes)[: block.n], np.asarray(covariance)[: block.n]
        on_rows(block.n)


def data_of(block: Block) -> Data:
    """A block on the device, cells in the type of the table."""
    as_array = lambda part: None if part is None else jnp.asarray(part)  # noqa: E731
    return Data(jnp.asarray(block.Y), as_array(block.mask), jnp.asarray(block.offset), as_array(block.trials))


def _added(total: Any, part: Any) -> Any:
    """A tree of sums in double precision on the host, with another added to it."""
    doubles = jax.tree.map(lambda leaf: np.asarray(leaf, float), part)
    if total is None:
        return jax.tree.map(np.array, doubles)
    return jax.tree.map(lambda one, other: np.add(one, other, out=one) if one.ndim else one + other, total, doubles)


class _Subsample:
    """Rows of every block, chosen at random, whose curvatures are summed when there are enough of them.

    The share is a power of two, so that a block always gives as many rows.
    """

    def __init__(self, rows: Rows, seed: int, curvature: Callable[..., Curvature]):
        self.seed, self.curvature = seed, curvature
        share = 2 ** max(int(np.log2(rows.N / N_CURVATURE)), 0)
        self.n = max(rows.size // share, 1)
        n_blocks = -(-rows.N // rows.size)
        self.n_at_once = max(min(CURVATURE_ROWS // self.n, n_blocks), 1)
        self.waiting: list[tuple[np.ndarray, np.ndarray, Block]] = []
        self.sums: Any = None

    def add(self, X: np.ndarray, weight: np.ndarray, block: Block) -> None:
        """Draws of the positions of the rows of a block, and the block."""
        chosen = np.sort(np.random.default_rng([self.seed, block.start]).permutation(len(X))[: self.n])
        arrays: Any = [None if part is None else part[chosen] for part in block[2:]]
        self.waiting.append((X[chosen], weight[chosen], Block(0, self.n, *arrays)))
        if len(self.waiting) == self.n_at_once:
            self._compute()

    def total(self) -> Curvature:
        """The sums, with what is still waiting."""
        if self.waiting:
            self._compute()
        return self.sums

    def _compute(self) -> None:
        X, weight, blocks = zip(*self.waiting, strict=True)
        self.waiting = []
        n = self.n * self.n_at_once
        Y, mask, offset, trials = zip(*(block[2:] for block in blocks), strict=True)
        if any(part is not None for part in mask):
            mask = tuple(np.ones(y.shape, bool) if part is None else part for part, y in zip(mask, Y, strict=True))
        joined: Any = [None if parts[0] is None else _joined(parts, n) for parts in (Y, mask, offset, trials)]
        data = data_of(Block(0, n, *joined))
        part = self.curvature(jnp.asarray(_joined(X, n)), jnp.asarray(_joined(weight, n)), data)
        self.sums = _added(self.sums, part)


def _joined(parts: Any, n: int) -> np.ndarray:
    """Arrays under one another, and zeros up to n rows."""
    array = np.concatenate(parts)
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]), array.dtype)])
