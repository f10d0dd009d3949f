"""The streaming engine: landmarks by the MAP engine, then visits to every row and one update of the functions each.

docs/design/streaming.md has the mathematics: which objective an epoch improves, and what is approximated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from .. import likelihoods
from ..data import checks, footprint, memory
from ..data.blocks.encoding import Encoder, block_size
from ..data.blocks.sources import open_table
from ..files import lock
from ..likelihoods import Likelihood
from ..maximum.maximise import maximise
from ..maximum.objective import Kernel
from ..maximum.result import Fit
from ..model.joint import Model, Prior
from ..numerics import memory_maps, scalars
from ..numerics.linalg import one_blas_thread
from ..numerics.precision import precision
from . import epochs as visits
from . import held_out as density
from .checkpoints import Checkpoint, Progress, digest
from .epochs import Rows
from .functions import of_fit, unpacked
from .landmarks import Sample, landmark_table, take_sample
from .placing import anchor_positions, anchors_of
from .result import Epoch, StreamFit
from .update import update

logger = logging.getLogger(__name__)

# Epochs on the sample and on all rows, at most and at least; and the gain in nats per cell of the rows held out below
# which they end. A prototype had nothing to gain from a fourth epoch on a million rows.
MOST_ON_SAMPLE, MOST_ON_ALL, FEWEST, LEAST_GAIN = 20, 8, 2, 1e-4

# Without rows held out epochs end when f moves by less than this at the anchors (root mean square).
LEAST_MOVE = 0.02


def stream(
    Y: Any,
    likelihood: str | Likelihood = "gaussian",
    *,
    n_components: int = 2,
    n_features: int = 100,
    kernel: Kernel = "rbf",
    init: str = "auto",
    n_iterations: int = 150,
    max_epochs: int = MOST_ON_ALL,
    seed: int = 0,
    offset: Any = None,
    exposure: Literal["total"] | None = None,
    prior: Prior = Prior(),
    layer: str | None = None,
    out: str | PathLike | None = None,
    checkpoint: str | PathLike | None = None,
    progress: bool = False,
) -> StreamFit:
    """Fit an RFLVM to a table of any length, of which a few blocks of rows are in memory at a time.

    Parameters
    ----------
    Y : table, str or PathLike
        A table that gives its rows in blocks: an array, a memory map, a Zarr array, a dataset of HDF5, an array of
        Dask, a sparse matrix of SciPy, an AnnData (backed or not), a data frame, anything else with ``shape`` that can
        be cut into rows; or the path of a file (.npy, .npz, .zarr, .parquet or a folder of such files, .h5ad). NaN
        means missing.
    likelihood, n_components, n_features, kernel, prior
        As in ``maximise``.
    init, n_iterations
        Of the MAP engine, which 2000 random rows meet first.
    max_epochs : int
        The largest number of visits to every row after it has been placed. Epochs end before when rows that are held
        out are not predicted better any more.
    seed : int
        The same seed gives the same fit, bit for bit, on the same machine.
    offset : array (N,), optional
        As in ``sample``.
    exposure : {None, "total"}
        "total": the offset of a row is the log of its total relative to the means of its columns among the 2000 rows.
    layer : str, optional
        Of an AnnData.
    out : path, optional
        A file (.npy) that the positions are written to as they are made, in place of memory.
    checkpoint : path, optional
        A folder to which the state is written after every epoch. The same call goes on where a killed one ended, to the
        same fit, bit for bit.
    progress : bool
        Show a progress bar.

    Returns
    -------
    StreamFit
        Interrupting (Ctrl-C) an epoch over all rows ends with the functions of the last one that was finished.

    Examples
    --------
    >>> import rflvm
    >>> from rflvm.datasets import make_s_curve
    >>> Y = make_s_curve(300, 10, emissions="poisson").data.astype("uint16")
    >>> fit = rflvm.stream(Y, "poisson", n_features=20, init="pca", n_iterations=40, max_epochs=3)
    >>> fit.X.shape, fit.covariance.shape
    ((300, 2), (300, 3))
    """
    D, H = checks.check_dimensions(n_components, n_features)
    checks.check_integer("n_iterations", n_iterations, 1)
    checks.check_integer("max_epochs", max_epochs, 1)
    seed = checks.check_seed(seed)
    checks.check_choice("kernel", kernel, ("learned", "rbf"))
    scalars.flag("progress", progress)
    prior = checks.check_prior(prior)
    memory_maps.free_if_scarce()
    sample = Y if isinstance(Y, Sample) else take_sample(open_table(Y, layer), seed)
    family = likelihoods.get(likelihood).learned_from(sample.values, sample.observed())
    if exposure is not None:
        checks.check_exposure(exposure, family)
        checks.refuse_offset(offset)
    N = sample.source.shape[0]
    offset = None if offset is None else checks.check_offset(offset, N, log_link=family.log_link)
    table, landmark_family = landmark_table(sample, family, offset, exposure is not None, D)
    size = footprint.size_of(table, family, D, H)._replace(N=N)
    footprint.check(size, footprint.of_stream(size, len(table.Y), sample.values.nbytes, out is None))
    dtype = "float32" if checks.single_suffices(table, family) else "float64"
    usual = None if exposure is None else checks.usual_counts(sample.landmark_values())
    asked = {
        "n_components": D, "n_features": n_features, "kernel": kernel, "init": init, "n_iterations": n_iterations,
        "seed": seed, "prior": dataclasses.asdict(prior),
    }  # fmt: skip
    identity = asked | {
        "likelihood": family.identity(table.Y, table.observed), "Y": [*sample.source.shape, digest(sample.values)],
        "offset": digest(offset), "exposure": exposure,
    }  # fmt: skip
    settings: dict[str, Any] = {name: value for name, value in asked.items() if name != "prior"} | {"prior": prior}
    bar: Any = tqdm(disable=not progress, unit="row", unit_scale=True)
    with lock.held(checkpoint), precision(dtype), one_blas_thread(), bar:
        engine = _Engine(
            sample=sample,
            encoder=Encoder(family, table.units, offset, usual, dtype),
            model=Model(family, D, H, prior),
            kernel=kernel,
            seed=seed,
            bar=bar,
            checkpoint=None if checkpoint is None else Checkpoint(checkpoint, identity),
        )
        found = None if engine.checkpoint is None else engine.checkpoint.read()
        if found is None:
            start = maximise(table, landmark_family, **settings)
            logger.info("landmarks: %d rows, %s", len(table.Y), start.convergence)
            found = engine.grow(Progress(of_fit(start), anchor_positions(start.X, seed)))
        rows, found = engine.placed(found)
        found, convergence = engine.improve(rows, found, max_epochs, "all")
        X, covariance = engine.settle(rows, found, out)
    landmarks = _landmarks(sample, X, covariance, found, Model(landmark_family, D, H, prior), convergence)
    return StreamFit(
        X=X,
        covariance=covariance,
        landmarks=dataclasses.replace(landmarks, units=table.units),
        rows=sample.landmark_rows,
        values=sample.landmark_values(),
        offset=table.offset,
        anchors=found.anchors,
        epochs=found.epochs,
        convergence=convergence,
    )


@dataclasses.dataclass(eq=False)
class _Engine:
    """A run: what does not change while it goes."""

    sample: Sample
    encoder: Encoder
    model: Model
    kernel: Kernel
    seed: int
    bar: Any
    checkpoint: Checkpoint | None

    def __post_init__(self) -> None:
        held = self.sample.held_out
        size = 2 ** int(np.ceil(np.log2(max(len(held), 1))))
        judged = self.encoder.of_rows(self.sample.rows[held], self.sample.values[held], size) if len(held) else None
        self.judged = None if judged is None else density.halve(judged, self.seed)

    def _rows(self, whole: bool) -> Rows:
        """All rows of the table, or those of the sample, without positions."""
        sample, encoder = self.sample, self.encoder
        source = sample.source
        N = source.shape[0] if whole else len(sample.rows)
        size = block_size(N, source.shape[1])

        def of_table(checked: bool) -> Iterator[Any]:
            return encoder.blocks(source, size, checked=checked)

        def of_sample(checked: bool) -> list[Any]:
            return [
                encoder.of_rows(sample.rows[n : n + size], sample.values[n : n + size], size)._replace(start=n)
                for n in range(0, N, size)
            ]

        X = np.zeros((N, self.model.D), self.encoder.dtype)
        held_out = sample.rows[sample.held_out] if whole else sample.held_out
        return Rows(of_table if whole else of_sample, size, held_out, X)

    def _pass(self, what: str, rows: Rows) -> Any:
        """Begin to report a pass over rows."""
        self.bar.reset(total=len(rows.X))
        self.bar.set_description(what)
        return self.bar.update

    def _place(self, rows: Rows, progress: Progress, what: str) -> None:
        anchors = anchors_of(progress.anchors, progress.functions, self.encoder.dtype)
        visits.place(rows, anchors, progress.functions, self.model, self._pass(what, rows))

    def _save(self, progress: Progress) -> None:
        if self.checkpoint is not None:
            self.checkpoint.write(progress)

    def grow(self, progress: Progress) -> Progress:
        """The functions of the landmarks become those of the sample, if there are rows beyond it."""
        if not self.sample.whole:
            rows = self._rows(whole=False)
            self._place(rows, progress, "placing a sample")
            progress, convergence = self.improve(rows, progress, MOST_ON_SAMPLE, "sample")
            if convergence == "interrupted":
                raise KeyboardInterrupt
        logger.info("functions of the sample: %d rows", len(self.sample.rows))
        self._save(progress)
        return progress

    def placed(self, progress: Progress) -> tuple[Rows, Progress]:
        """All rows beside anchors, or where a checkpoint has them."""
        rows = self._rows(whole=True)
        if progress.X is None:
            self._place(rows, progress, "placing")
            logger.info("placed: %d rows", len(rows.X))
            progress = progress._replace(X=rows.X)
            self._save(progress)
        else:
            rows.X[:] = progress.X
        return rows, progress._replace(X=rows.X)

    def improve(self, rows: Rows, progress: Progress, most: int, where: str) -> tuple[Progress, str]:
        """Epochs until the rows held out are not predicted better, and how they ended."""
        while True:
            done = [epoch for epoch in progress.epochs if epoch.rows == where]
            if _is_settled(done):
                return progress, "converged"
            if len(done) >= most:
                return progress, "epoch limit"
            try:
                progress = self._epoch(rows, progress, where, len(done) + 1)
            except KeyboardInterrupt:
                if progress.factor is None:
                    raise
                return progress, "interrupted"
            if where == "all":
                self._save(progress)

    def _epoch(self, rows: Rows, progress: Progress, where: str, number: int) -> Progress:
        started = time.perf_counter()
        report = self._pass(f"epoch {number}{' on a sample' if where == 'sample' else ''}", rows)
        before = progress.functions
        totals = visits.epoch(rows, before, self.model, self.seed, report)
        functions, turn, factor = update(before, totals, progress.anchors, self.model, self.kernel)
        anchors = progress.anchors @ turn
        F, was = functions.features(anchors) @ functions.beta, before.features(progress.anchors) @ before.beta
        value = np.nan
        if self.judged is not None:
            value = density.density(
                self.judged, anchors_of(anchors, functions, self.encoder.dtype), functions, self.model
            )
        epoch = Epoch(
            rows=where,
            held_out=value,
            move=float(np.sqrt(np.mean((F - was) ** 2))),
            objective=float(totals.sums.objective / totals.sums.n),
            rows_per_second=len(rows.X) / (time.perf_counter() - started),
        )
        logger.info("epoch %d of %s: held out %.5f, objective %.4f per row", number, where, value, epoch.objective)
        self.bar.set_postfix_str(f"held out {value:.4f}")
        rows.X[:] = rows.X @ turn.astype(rows.X.dtype)
        return Progress(functions, anchors, rows.X if where == "all" else None, factor, (*progress.epochs, epoch))

    def settle(self, rows: Rows, progress: Progress, out: str | PathLike | None) -> tuple[np.ndarray, np.ndarray]:
        """Positions and covariances of all rows at the end, the former in a file if one was named."""
        N, D = rows.X.shape
        covariance = np.empty((N, D * (D + 1) // 2), rows.X.dtype)
        with _positions(out, rows.X) as X:
            report = self._pass("positions", rows)
            for block, modes, triangles in visits.settle(rows, progress.functions, self.model, report):
                X[block.start : block.start + block.n] = modes
                covariance[block.start : block.start + block.n] = triangles
        logger.info("positions: %d rows", N)
        return rows.X if out is None else np.load(out, mmap_mode="r"), covariance


# The words of the MAP engine for how a run ended.
_ENDS: dict[str, Any] = {
    "converged": "converged",
    "epoch limit": "iteration limit",
    "interrupted": "interrupted",
}


def _is_settled(done: list[Epoch]) -> bool:
    """Whether another epoch would bring little."""
    if len(done) < FEWEST:
        return False
    if np.isnan(done[-1].held_out):
        return done[-1].move < LEAST_MOVE
    return done[-1].held_out - done[-2].held_out < LEAST_GAIN


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


def _landmarks(
    sample: Sample, X: np.ndarray, covariance: np.ndarray, progress: Progress, model: Model, convergence: str
) -> Fit:
    """The landmarks under the functions of all rows."""
    rows, functions = sample.landmark_rows, progress.functions
    kept = progress.factor is not None and progress.factor.nbytes <= memory.BUDGET
    trace = np.array([epoch.objective for epoch in progress.epochs])
    return Fit(
        model=model,
        X=np.array(X[rows]),
        X_covariance=unpacked(covariance[rows], model.D),
        W=functions.W,
        z=functions.z,
        mu=functions.mu,
        Sigma=functions.Sigma,
        alpha=float(functions.alpha),
        amplitude=float(functions.amplitude),
        beta=functions.beta,
        beta_factor=progress.factor if kept else None,
        beta_scale=np.ones(functions.beta.shape[1]),
        theta=functions.theta,
        log_posterior=float(trace[-1] * len(X)),
        n_iterations=len(progress.epochs),
        trace=trace,
        convergence=_ENDS[convergence],
        init="landmarks",
        starts=(),
    )
