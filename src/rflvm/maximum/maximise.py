"""The MAP engine: maximise log p(X, W, theta | Y) with beta integrated out.

Integrated exactly for the Gaussian (Eq. 12), by Laplace's method otherwise (``laplace.py``). A joint
maximum that includes beta overfits; this one does not. Two kernels:

rbf        W = c E with E fixed (``quadrature.py``): an RBF kernel whose inverse lengthscale c is learned
learned    W free under the mixture prior; its z, (mu, Sigma) and alpha are updated between rounds

The maximiser is L-BFGS. X starts where ``starts.py`` says, and several starts can compete.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax
import numpy as np
from tqdm import tqdm

from .. import likelihoods
from ..data import checks, footprint, memory
from ..model import dynamics as over_time
from ..model.dynamics import Matern
from ..model.joint import Data, Model, Prior
from ..numerics import linalg, memory_maps, scalars
from ..numerics.precision import precision
from . import starts
from .approach import approach
from .climb import MODE_TOLERANCE, OnIteration, climb_precisely, ignore
from .competition import Start, choose_start
from .lengthscales import renewed
from .objective import Kernel, evaluate
from .result import Fit, posterior, summarise
from .search import Search, free_frequencies

# Climbs with W free, each after the mixture prior was updated to W. A choice without a measurement of its own;
# benchmarks/kernels.py measures the learned kernel with it.
N_ROUNDS = 3

# Climbs of a fit with a prior over time, at most, its lengthscales being learned before each; the least number of
# iterations of one; and the change of all log lengthscales below which there is no further one. Choices without a
# measurement of their own; benchmarks/time.py measures the lengthscales that come of them.
N_SETTLING = 6
MIN_SETTLING = 10
SETTLED = 0.03

PROGRESS: Any = {"unit": "iteration", "bar_format": "{desc}{n_fmt} iterations [{elapsed}, {rate_fmt}{postfix}]"}


def find_maximum(
    data: Data, model: Model, kernel: Kernel, init: str | np.ndarray, n_iterations: int, seed: int,
    on_iteration: OnIteration = ignore, *, learn_amplitude: bool = True, n_others: int = 0,
) -> tuple[Search, Data, tuple[Start, ...], dict[str, Search]]:  # fmt: skip
    """The whole maximisation: choose a start, climb, free W and climb again.

    Parameters
    ----------
    data, model
        The table and the model.
    kernel, init, n_iterations, seed
        As in ``maximise``.
    on_iteration : callable
        Is called with the height after every iteration.
    learn_amplitude : bool
        Learn the amplitude of the kernel, or take the prior of beta as given.
    n_others : int
        How many searches of the competition to return besides the winner.

    Returns
    -------
    Search, Data, tuple of Start, dict of Search
        Where the maximisation ended, the data in the precision in which it ended, how the starts fared, the winner
        first, and where other searches were when the competition ended (``competition.others``).
    """
    n_first = n_iterations if kernel == "rbf" else n_iterations // 2
    n_race = n_first if model.dynamics is None else n_first // 2
    search, fared, others = choose_start(data, model, init, seed, n_race, on_iteration, learn_amplitude, n_others)
    if model.dynamics is not None:
        search, data = _settle(search, data, model, n_first, on_iteration)
    elif search.convergence != "converged":
        search, data = _climb_on(search, data, model, n_first, on_iteration)
    if kernel == "learned":
        for n_left, key in zip(range(N_ROUNDS, 0, -1), jax.random.split(jax.random.key(seed), N_ROUNDS), strict=True):
            if search.convergence == "interrupted":
                break
            search = free_frequencies(key, search, model)
            search = search if model.dynamics is None else _renewed(search, data, model)
            until = search.n_iterations + (n_iterations - search.n_iterations) // n_left
            search, data = _climb_on(search, data, model, until, on_iteration)
    return search, data, fared, others


def _climb_on(
    search: Search, data: Data, model: Model, n_iterations: int, on_iteration: OnIteration
) -> tuple[Search, Data]:
    """By the approximation and then by the objective itself, until so many iterations have been made in all."""
    search = approach(search, data, model, n_iterations - search.n_iterations, on_iteration)
    n_left = n_iterations - search.n_iterations
    if search.convergence in ("interrupted", "converged") or (n_left <= 0 and np.isfinite(search.value)):
        return search, data
    return climb_precisely(search, data, model, max(n_left, 1), on_iteration)


def _settle(
    search: Search, data: Data, model: Model, n_iterations: int, on_iteration: OnIteration
) -> tuple[Search, Data]:
    """Climbs, with the lengthscales of a prior over time learned before each, until they stay where they are."""
    if search.n_iterations == 0:
        search, data = _climb_on(search, data, model, n_iterations // N_SETTLING, on_iteration)
    for n_left in range(N_SETTLING, 0, -1):
        before = np.log(lengthscales(search))
        if search.convergence == "interrupted":
            break
        search = _renewed(search, data, model)
        until = search.n_iterations + max((n_iterations - search.n_iterations) // n_left, MIN_SETTLING)
        search, data = _climb_on(search, data, model, until, on_iteration)
        if search.convergence == "converged" and np.abs(np.log(lengthscales(search)) - before).max() < SETTLED:
            break
    return search, data


def _renewed(search: Search, data: Data, model: Model) -> Search:
    """The search with the lengthscales that are best where it is."""
    parameters, spectrum = search.parameters, search.spectrum
    tolerance = MODE_TOLERANCE[str(data.Y.dtype)]
    _, slope, _ = evaluate(parameters, search.mode, spectrum, data, model, tolerance)
    information = posterior(parameters, search.mode, spectrum, data, model).X_information
    path = renewed(parameters, slope.X, information, spectrum, data, model)
    return dataclasses.replace(
        search, spectrum=spectrum._replace(path=path), value=-np.inf, convergence="iteration limit"
    )


def lengthscales(search: Search) -> np.ndarray:
    """Of a prior over time."""
    assert search.spectrum.path is not None
    return np.asarray(search.spectrum.path.lengthscale, float)


def maximise(
    Y: np.ndarray | checks.Table,
    likelihood: str | likelihoods.Likelihood = "gaussian",
    *,
    n_components: int = 2,
    n_features: int = 100,
    kernel: Kernel = "rbf",
    init: str | np.ndarray = "auto",
    n_iterations: int = 500,
    seed: int = 0,
    mask: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    covariates: Any = None,
    prior: Prior = Prior(),
    dynamics: str | Matern | None = None,
    times: Any = None,
    sessions: Any = None,
    progress: bool = False,
    memory_budget: float = memory.BUDGET,
    dtype: Literal["float32", "float64"] = "float32",
) -> Fit:
    """Find the most probable X, W and theta of an RFLVM, beta integrated out.

    Parameters
    ----------
    Y : array_like (N, J)
        The table. NaN means missing.
    likelihood : str or Likelihood
        As in ``sample``.
    n_components, n_features : int
        D, and M = 2H, an even number of random features.
    kernel : {"rbf", "learned"}
        An RBF kernel with a learned scale, or frequencies free under their mixture prior.
    init : {"auto", "pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where X starts. "auto" lets all of them compete, first as if the table were Gaussian, then the best of them,
        PCA, t-SNE and kernel matching on the table itself, and keeps the one with the highest posterior density.
    n_iterations : int
        The largest number of L-BFGS iterations on the way from the start to the end, those of the competition on the
        table included. With W free the first half of them is for the RBF kernel.
    seed : int
        The same seed gives the same fit, bit for bit, on the same machine.
    mask, offset, covariates, prior
        As in ``sample``.
    dynamics : {None, "matern32", "ou"} or Matern
        A prior over time: rows of a session follow one another, and each latent dimension is a Gaussian process
        ("matern32" of paths with a velocity, "ou" of rough ones). Rows without any observed cell are allowed then.
    times : array (N,), optional
        Times of the rows, increasing within a session: numbers or dates. One unit from row to row unless given; a
        TsdFrame has its own.
    sessions : array, optional
        A label for each row, or the numbers of the rows at which sessions begin.
    progress : bool
        Show a progress bar.
    memory_budget : float
        Bytes that the factor of beta's covariance may take in the result.
    dtype : {"float32", "float64"}
        Precision of the matrices at the start; where single precision turns out to be too coarse the search goes
        on in double, and counts that single precision does not tell apart are in double from the start. Sums over
        the table are in double precision either way.

    Returns
    -------
    Fit
        Interrupting (Ctrl-C) returns the best point found so far, once a start has been chosen. The fit of a Gaussian
        table is on the standard scale: ``Fit.in_units`` has it in the units of the table.

    Examples
    --------
    >>> import rflvm
    >>> from rflvm.datasets import make_s_curve
    >>> Y = make_s_curve(60, 20, emissions="poisson").data
    >>> fit = rflvm.maximise(Y, "poisson", n_features=20, init="pca", n_iterations=200)
    >>> fit.X.shape, fit.convergence
    ((60, 2), 'converged')
    """
    family = likelihoods.get(likelihood)
    D, H = checks.check_dimensions(n_components, n_features)
    checks.check_integer("n_iterations", n_iterations, 1)
    seed = checks.check_integer("seed", seed, 0, checks.LARGEST_SEED)
    checks.check_choice("kernel", kernel, ("learned", "rbf"))
    checks.check_choice("dtype", dtype, ("float32", "float64"))
    scalars.flag("progress", progress)
    scalars.positive("memory_budget", memory_budget)
    process = over_time.get(dynamics, D)
    table, family = checks.table_and_family(Y, family, mask, offset, D, process, times, sessions, covariates)
    if table is not Y:
        size = footprint.size_of(table, family, D, H)
        footprint.check(size, footprint.of_maximum(size, memory_budget, n_draws=0))
    X0 = checks.check_start(init, table.Y.shape[0], D, ("auto", *starts.STARTS))
    model = Model(family, D, H, checks.check_prior(prior), process)
    memory_maps.free_if_scarce()
    with precision("float64"), linalg.one_blas_thread():
        data = checks.to_device(table, dtype if checks.single_suffices(table, family) else "float64")
        with tqdm(disable=not progress, **PROGRESS) as bar:

            def on_iteration(height):
                bar.update()
                bar.set_postfix_str(f"log posterior {height:.1f}")

            search, data, fared, _ = find_maximum(data, model, kernel, X0, n_iterations, seed, on_iteration)
        fit = summarise(search, fared, data, model, memory_budget)
    return dataclasses.replace(fit, units=table.units)
