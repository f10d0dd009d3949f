"""A run of the streaming engine: growth on a sample, placing, epochs, and the positions at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import time
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..data.blocks.encoding import Encoder, block_size
from ..model.joint import Model
from . import epochs as visits
from . import held_out as density
from .checkpoints import Checkpoint, Progress, from_arrays
from .epochs import Rows, Totals
from .landmarks import Sample
from .placing import anchors_of
from .result import Epoch
from .shards import ALONE, BLOCKS_BETWEEN, Shards
from .update import update

logger = logging.getLogger(__name__)

# Epochs on the sample and on all rows, at least and at most; between the two they end when the density of the rows held
# out rises by less, in nats per cell. It is estimated with an error of some 1e-4. Choices without a measurement.
FEWEST, MOST_ON_SAMPLE, MOST_ON_ALL = {"sample": 6, "all": 2}, 20, 8
LEAST_GAIN = 1e-4

# Without rows held out epochs end when f moves by less than this at the anchors (root mean square).
LEAST_MOVE = 0.02


@dataclasses.dataclass(eq=False)
class Engine:
    """A run: what does not change while it goes.

    Attributes
    ----------
    sample, encoder, model, seed
        What is fitted, and how.
    bar : Any
        A progress bar.
    checkpoint : Checkpoint or None
        Where the first process writes the state.
    shards : Shards
        The processes that share the rows.
    """

    sample: Sample
    encoder: Encoder
    model: Model
    seed: int
    bar: Any
    checkpoint: Checkpoint | None
    shards: Shards

    def __post_init__(self) -> None:
        held = self.sample.held_out
        size = 2 ** int(np.ceil(np.log2(max(len(held), 1))))
        judged = self.encoder.of_rows(self.sample.rows[held], self.sample.values[held], size) if len(held) else None
        self.judged = None if judged is None else density.halve(judged, self.seed)

    def _table(self) -> Rows:
        """The rows of the table that this process visits."""
        source, sample = self.sample.source, self.sample
        N, J = source.shape
        size = block_size(N, J)
        first, last = self.shards.rows(N, size)

        def blocks(checked: bool) -> Iterator[Any]:
            return self.encoder.blocks(source, size, first, last, checked=checked)

        X = np.zeros((last - first, self.model.D), self.encoder.dtype)
        return Rows(blocks, size, sample.rows[sample.held_out], X, first, N)

    def _sample(self) -> Rows:
        """The rows of the sample, in memory."""
        sample, encoder = self.sample, self.encoder
        N, J = sample.values.shape
        size = block_size(N, J)

        def blocks(checked: bool) -> list[Any]:
            return [
                encoder.of_rows(sample.rows[n : n + size], sample.values[n : n + size], size)._replace(start=n)
                for n in range(0, N, size)
            ]

        return Rows(blocks, size, sample.held_out, np.zeros((N, self.model.D), encoder.dtype), 0, N)

    def _pass(self, what: str, rows: Rows, shards: Shards) -> Callable[[int], None]:
        """Begin to report a pass over rows; from time to time the processes look for each other."""
        self.bar.reset(total=len(rows.X))
        self.bar.set_description(what)
        looks, n_blocks = shards.looks(rows.N, rows.size), 0

        def report(n: int) -> None:
            nonlocal n_blocks
            n_blocks += 1
            if n_blocks % BLOCKS_BETWEEN == 0 and n_blocks // BLOCKS_BETWEEN <= looks:
                shards.look()
            self.bar.update(n)

        return report

    def _place(self, rows: Rows, progress: Progress, what: str, shards: Shards) -> None:
        anchors = anchors_of(progress.anchors, progress.functions, self.encoder.dtype)
        visits.place(rows, anchors, progress.functions, self.model, self._pass(what, rows, shards))

    def _save(self, progress: Progress, X: np.ndarray | None) -> None:
        """Write the state, with the positions of all rows; ``X`` has those of this process."""
        if self.checkpoint is None and self.shards.total == 1:
            return
        N, J = self.sample.source.shape
        whole = None if X is None else self.shards.joined(X, N, block_size(N, J))
        if self.checkpoint is not None:
            self.checkpoint.write(progress._replace(X=whole))

    def begin(self, start: Callable[[], Progress]) -> Progress:
        """Where a checkpoint is, or the landmarks with their functions grown to the sample: by the first process."""

        def first() -> dict[str, np.ndarray]:
            found = None if self.checkpoint is None else self.checkpoint.read()
            found = self._grown(start()) if found is None else found
            text = json.dumps(found.epochs).encode()
            return found.as_arrays() | {"epochs": np.frombuffer(text, np.uint8)}

        arrays = self.shards.from_first(first)
        epochs = tuple(Epoch(*fields) for fields in json.loads(arrays.pop("epochs").tobytes()))
        return from_arrays(arrays, epochs)

    def _grown(self, progress: Progress) -> Progress:
        if not self.sample.whole:
            rows = self._sample()
            progress, convergence = self._improve(rows, progress, MOST_ON_SAMPLE, "sample", ALONE)
            if convergence == "interrupted":
                raise KeyboardInterrupt
        logger.info("functions of the sample: %d rows", len(self.sample.rows))
        if self.checkpoint is not None:
            self.checkpoint.write(progress)
        return progress

    def placed(self, progress: Progress) -> tuple[Rows, Progress]:
        """The rows of this process beside anchors, or where a checkpoint has them."""
        rows = self._table()
        if progress.X is None:
            self._place(rows, progress, "placing", self.shards)
            logger.info("placed: %d rows", len(rows.X))
            self._save(progress, rows.X)
        else:
            rows.X[:] = progress.X[rows.first : rows.first + len(rows.X)]
        return rows, progress._replace(X=None)

    def improve(self, rows: Rows, progress: Progress, most: int) -> tuple[Progress, str]:
        """Epochs over all rows until those held out are not predicted better, and how they ended."""
        return self._improve(rows, progress, most, "all", self.shards)

    def _improve(self, rows: Rows, progress: Progress, most: int, where: str, shards: Shards) -> tuple[Progress, str]:
        while True:
            done = [epoch for epoch in progress.epochs if epoch.rows == where]
            if _is_settled(done, FEWEST[where]):
                return progress, "converged"
            if len(done) >= most:
                return progress, "epoch limit"
            try:
                if where == "sample":  # anew every time: rows at wrong modes would stay there
                    self._place(rows, progress, "placing a sample", shards)
                progress = self._epoch(rows, progress, where, len(done) + 1, shards)
            except KeyboardInterrupt:
                if progress.factor is None or shards.total > 1:
                    raise
                return progress, "interrupted"
            if where == "all":
                self._save(progress, rows.X)

    def _epoch(self, rows: Rows, progress: Progress, where: str, number: int, shards: Shards) -> Progress:
        started = time.perf_counter()
        report = self._pass(f"epoch {number}{' on a sample' if where == 'sample' else ''}", rows, shards)
        totals = shards.added(visits.epoch(rows, progress.functions, self.model, self.seed, report))
        arrays = shards.from_first(lambda: self._updated(progress, totals))
        turn, judged = arrays.pop("turn"), arrays.pop("judged")
        epoch = Epoch(
            rows=where,
            held_out=float(judged[0]),
            move=float(judged[1]),
            objective=float(totals.sums.objective / totals.sums.n),
            rows_per_second=rows.N / (time.perf_counter() - started),
        )
        logger.info(
            "epoch %d of %s: held out %.5f, objective %.4f per row", number, where, epoch.held_out, epoch.objective
        )
        self.bar.set_postfix_str(f"held out {epoch.held_out:.4f}")
        rows.X[:] = rows.X @ turn.astype(rows.X.dtype)
        return from_arrays(arrays, (*progress.epochs, epoch))

    def _updated(self, progress: Progress, totals: Totals) -> dict[str, np.ndarray]:
        """The functions after an epoch, and how they are judged."""
        before = progress.functions
        functions, turn, factor = update(before, totals, progress.anchors, self.model)
        anchors = progress.anchors @ turn
        F, was = functions.features(anchors) @ functions.beta, before.features(progress.anchors) @ before.beta
        value = np.nan
        if self.judged is not None:
            placing = anchors_of(anchors, functions, self.encoder.dtype)
            value = density.density(self.judged, placing, functions, self.model)
        judged = np.array([value, np.sqrt(np.mean((F - was) ** 2))])
        return Progress(functions, anchors, None, factor).as_arrays() | {"turn": turn, "judged": judged}

    def settle(self, rows: Rows, progress: Progress, out: str | PathLike | None) -> tuple[np.ndarray, np.ndarray]:
        """Positions and covariances of all rows at the end, the former in a file if one was named."""
        n, D = rows.X.shape
        covariance = np.empty((n, D * (D + 1) // 2), rows.X.dtype)
        alone = self.shards.total == 1
        with _positions(out if alone else None, rows.X) as X:
            report = self._pass("positions", rows, self.shards)
            for block, modes, triangles in visits.settle(rows, progress.functions, self.model, report):
                here = slice(block.start - rows.first, block.start - rows.first + block.n)
                X[here], covariance[here] = modes, triangles
        logger.info("positions: %d rows", n)
        X, covariance = (self.shards.joined(part, rows.N, rows.size) for part in (rows.X, covariance))
        if out is None or self.shards.rank > 0:
            return X, covariance
        if not alone:
            with _positions(out, X) as written:
                written[:] = X
        return np.load(out, mmap_mode="r"), covariance


def _is_settled(done: list[Epoch], fewest: int) -> bool:
    """Whether another epoch would bring little."""
    if len(done) < fewest:
        return False
    last, before = done[-1], done[-2]
    if np.isnan(last.held_out):
        return last.move < LEAST_MOVE
    return last.held_out - before.held_out < LEAST_GAIN


@contextlib.contextmanager
def _positions(out: str | PathLike | None, X: np.ndarray) -> Iterator[np.ndarray]:
    """Where positions are written: to the array, or to a file that takes its name when it is whole."""
    if out is None:
        yield X
        return
    path = Path(out)
    temporary = path.with_name(f".{path.name}.part")
    written = np.lib.format.open_memmap(temporary, mode="w+", dtype=X.dtype, shape=X.shape)
    try:
        yield written
        written.flush()
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
