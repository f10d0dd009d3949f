"""The MAP engine: maximise log p(X, W, theta | Y) with beta integrated out.

Integrated exactly for the Gaussian (Eq. 12), by Laplace's method otherwise (``laplace.py``). A joint
maximum that includes beta overfits; this one does not. Two kernels:

rbf        W = c E with E fixed (``quadrature.py``): an RBF kernel whose inverse lengthscale c is learned
learned    W free under the mixture prior; its z, (mu, Sigma) and alpha are updated between rounds

The maximiser is L-BFGS. X starts where ``starts.py`` says, and several starts can compete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np
from tqdm import tqdm

from .. import likelihoods
from ..data import checks
from ..model.joint import Data, Model, Prior
from ..numerics import linalg, memory_maps
from . import starts
from .climb import (
    climb_precisely,
)
from .competition import choose_start
from .objective import Kernel
from .result import Fit, finish
from .search import Search, free_frequencies

logger = logging.getLogger(__name__)


N_ROUNDS = 3


PROGRESS: Any = {"unit": "iteration", "bar_format": "{desc}{n_fmt} iterations [{elapsed}, {rate_fmt}{postfix}]"}


def find(
    data: Data, model: Model, kernel: Kernel, init: str | np.ndarray, n_iterations: int, seed: int,
    tell: Callable[[float], None] = lambda value: None, *, amplitude: bool = True,
) -> tuple[Search, Data, str]:  # fmt: skip
    """The whole maximisation: choose a start, climb, free W and climb again.

    Also the data in the precision in which the search ended, and the start's name.
    """
    search, name = choose_start(data, model, init, seed, tell, amplitude)
    search, data = climb_precisely(search, data, model, n_iterations, tell)
    if kernel == "learned":
        for key in jax.random.split(jax.random.key(seed), N_ROUNDS):
            if search.convergence == "interrupted":
                break
            search = free_frequencies(key, search, model)
            search, data = climb_precisely(search, data, model, n_iterations, tell)
    return search, data, name


def maximise(
    Y: np.ndarray,
    likelihood: str | likelihoods.Likelihood = "gaussian",
    *,
    n_components: int = 2,
    n_features: int = 100,
    kernel: Kernel = "rbf",
    init: str | np.ndarray = "auto",
    n_iterations: int = 40,
    seed: int = 0,
    mask: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    prior: Prior = Prior(),
    progress: bool = False,
    memory_budget: float = 1e9,
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
        Where X starts. "auto" lets all of them compete, first as if the table were Gaussian, then the best and
        t-SNE on the table itself, keeps the one with the highest posterior density and logs it.
    n_iterations : int
        At most so many L-BFGS iterations in each round.
    seed : int
        The same seed gives the same fit, bit for bit, on the same machine.
    mask, offset, prior
        As in ``sample``.
    progress : bool
        Show a progress bar.
    memory_budget : float
        Bytes that the factor of beta's covariance may take in the result.
    dtype : {"float32", "float64"}
        Precision of the matrices at the start; where single precision turns out to be too coarse, as with large
        counts, the search goes on in double. Sums over the table are in double precision either way.

    Returns
    -------
    Fit
        Interrupting (Ctrl-C) returns the best point found so far, once a start has been chosen.

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
    checks.check_choice("kernel", kernel, ("learned", "rbf"))
    checks.check_choice("dtype", dtype, ("float32", "float64"))
    table = checks.check_table(Y, family, mask, offset, D)
    X0 = checks.check_start(init, table.Y.shape[0], D, ("auto", *starts.STARTS))
    model = Model(family, D, H, prior)
    memory_maps.free_if_scarce()
    with jax.enable_x64(True), linalg.one_blas_thread():
        data = checks.to_device(table, dtype)
        with tqdm(disable=not progress, **PROGRESS) as line:

            def tell(value):
                line.update()
                line.set_postfix_str(f"log posterior {value:.1f}")

            search, data, name = find(data, model, kernel, X0, n_iterations, seed, tell)
        return finish(search, name, data, model, memory_budget)
