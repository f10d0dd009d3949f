"""The streaming engine: landmarks by the MAP engine, then visits to every row and one update of the functions each.

docs/design/streaming.md has the mathematics: which objective an epoch improves, and what is approximated.
"""

from __future__ import annotations

import dataclasses
import logging
from os import PathLike
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
from .checkpoints import Checkpoint, Progress, digest
from .engine import MOST_ON_ALL, Engine
from .functions import of_fit, unpacked
from .landmarks import Sample, landmark_table, take_sample
from .placing import anchor_positions
from .result import StreamFit
from .shards import present

logger = logging.getLogger(__name__)

# The words of the MAP engine for how a run ended.
_ENDS: dict[str, Any] = {
    "converged": "converged",
    "epoch limit": "iteration limit",
    "interrupted": "interrupted",
}


def stream(
    Y: Any,
    likelihood: str | Likelihood = "gaussian",
    *,
    n_components: int = 2,
    n_features: int = 100,
    kernel: Kernel = "rbf",
    init: str = "auto",
    n_iterations: int = 500,
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
    shards = present(checkpoint)
    sample = Y if isinstance(Y, Sample) else take_sample(open_table(Y, layer), seed, shards)
    family = likelihoods.get(likelihood).learned_from(sample.values, sample.observed())
    if exposure is not None:
        checks.check_exposure(exposure, family)
        checks.refuse_offset(offset)
    N, J = sample.source.shape
    shards.check(N, block_size(N, J))
    offset = None if offset is None else checks.check_offset(offset, N, family)
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
    leading = shards.rank == 0
    bar: Any = tqdm(disable=not (progress and leading), unit="row", unit_scale=True)
    with lock.held(checkpoint if leading else None), precision(dtype), one_blas_thread(), bar:
        engine = Engine(
            sample=sample,
            encoder=Encoder(family, table.units, offset, usual, dtype),
            model=Model(family, D, H, prior),
            seed=seed,
            bar=bar,
            checkpoint=None if checkpoint is None or not leading else Checkpoint(checkpoint, identity),
            shards=shards,
        )

        def start() -> Progress:
            fit = maximise(table, landmark_family, **settings)
            logger.info("landmarks: %d rows, %s", len(table.Y), fit.convergence)
            return Progress(of_fit(fit), anchor_positions(fit.X, seed))

        rows, found = engine.placed(engine.begin(start))
        found, convergence = engine.improve(rows, found, max_epochs)
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
