"""How well a fit describes what is known: latent positions, labels, functions, the kernel, held-out cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from .data import checks, tables
from .data.covariates import learn
from .fitted.densities import cell_densities
from .model.draws import Draws
from .numerics.affine import r2_affine
from .numerics.precision import precision
from .numerics.units import log_scales

__all__ = [
    "Accuracy", "bits_per_spike", "kernel_mse", "knn_accuracy", "log_predictive_density", "mse", "r2_affine",
]  # fmt: skip


class Accuracy(NamedTuple):
    """Share of rows that were given their own label."""

    mean: float
    repeats: np.ndarray  # one entry per repeat: repeats.std(ddof=1) / sqrt(len(repeats)) is the standard error


def knn_accuracy(
    X: np.ndarray, labels: Any, *, n_neighbors: int = 1, n_folds: int = 5, n_repeats: int = 5, seed: int = 0
) -> Accuracy:
    """Accuracy of nearest neighbours in X, over folds (paper, section 3.2).

    Parameters
    ----------
    X : array (N, D)
        Positions of the rows.
    labels : array-like (N,)
        Numbers or strings.
    n_neighbors, n_folds, n_repeats : int
        Repeated stratified cross-validation. Labels with fewer rows than there are folds are put into the stratum of
        the most common label.
    seed : int
        Of the folds.

    Returns
    -------
    Accuracy
        The mean, and one entry per repeat.

    Examples
    --------
    >>> import numpy as np
    >>> from rflvm.metrics import knn_accuracy
    >>> X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 2))
    >>> knn_accuracy(X, ["left"] * 20 + ["right"] * 20).mean
    1.0
    """
    labels = np.asarray(labels)
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    strata = np.where(counts[which] < n_folds, counts.argmax(), which)
    folds = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed)
    splits = list(folds.split(X, strata))
    scores = cross_val_score(KNeighborsClassifier(n_neighbors), X, labels, cv=splits)
    repeats = scores.reshape(n_repeats, n_folds).mean(axis=1)
    return Accuracy(float(repeats.mean()), repeats)


def mse(truth: np.ndarray, estimate: np.ndarray, cells: np.ndarray | None = None) -> float:
    """Mean squared error, of Y in held-out cells or of F: arrays of one shape, ``cells`` True where it counts.

    Examples
    --------
    >>> import numpy as np
    >>> from rflvm.metrics import mse
    >>> mse(np.array([[1.0, 2.0]]), np.array([[1.0, 5.0]]), cells=np.array([[False, True]]))
    9.0
    """
    if truth.shape != estimate.shape or (cells is not None and (cells.shape != truth.shape or cells.dtype != bool)):
        raise ValueError(
            f"truth, estimate and cells (boolean) must have the same shape, got {truth.shape}, {estimate.shape}"
            + (f" and {cells.shape} of {cells.dtype}" if cells is not None else "")
        )
    squares = (truth - estimate) ** 2
    return float(np.mean(squares if cells is None else squares[cells]))


def kernel_mse(K: Float[np.ndarray, "N N"], X: Float[np.ndarray, "*S N D"], W: Float[np.ndarray, "*S H D"]) -> float:
    """Mean squared error of the kernel matrix, the mean of phi(X) phi(X)' over draws of X and W.

    The kernel does not change when X and W are rotated together, so draws need no alignment: ``draws["X"]`` and
    ``draws["W"]`` can be given as they are, and so can X and W of a MAP fit. The intercept is left out.

    Examples
    --------
    Many frequencies from a standard normal make the RBF kernel:

    >>> import numpy as np
    >>> from rflvm.metrics import kernel_mse
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(20, 2)), rng.normal(size=(5000, 2))
    >>> K = np.exp(-((X[:, None] - X) ** 2).sum(axis=-1) / 2)
    >>> kernel_mse(K, X, W) < 1e-3
    True
    """
    draws = list(zip(X.reshape(-1, *X.shape[-2:]), W.reshape(-1, *W.shape[-2:]), strict=True))
    estimate = np.zeros(K.shape)
    for x, w in draws:
        angles = x.astype(float) @ w.astype(float).T
        estimate += (np.cos(angles) @ np.cos(angles).T + np.sin(angles) @ np.sin(angles).T) / w.shape[0]
    return mse(K, estimate / len(draws))


def log_predictive_density(
    draws: Draws, Y: Any, held_out: np.ndarray, *, offset: Any = None, covariates: Any = None
) -> float:
    """Log density of held-out cells under the posterior, mean per cell: log (1/S) sum_s p(y | draw s).

    Parameters
    ----------
    draws : Draws
        From a table in which the held-out cells were missing; those with beta are used.
    Y : table (N, J)
        With the held-out cells filled in.
    held_out : array (N, J) of bool
        Which cells were held out.
    offset, covariates : optional
        As given to the fit.

    Examples
    --------
    >>> import numpy as np
    >>> import rflvm
    >>> from rflvm.metrics import log_predictive_density
    >>> Y = np.random.default_rng(0).poisson(3, (12, 5)).astype(float)
    >>> held_out = np.zeros(Y.shape, bool)
    >>> held_out[:3, 0] = True
    >>> draws = rflvm.sample(
    ...     np.where(held_out, np.nan, Y), "poisson", n_features=6, n_samples=6, n_burnin=4, init="pca"
    ... )
    >>> log_predictive_density(draws, Y, held_out) < 0
    True
    """
    values = _with_held_out(Y, held_out)
    likelihood = draws.model.likelihood
    if likelihood.row_totals:
        raise ValueError(
            f"the cells of a {likelihood.name} row are known together: a single one has no density of its own"
        )
    learned = learn(covariates, len(values), Y)
    Z = None if learned is None else learned.values
    with precision("float64"):
        data = checks.to_device(checks.check_rows(values, likelihood, offset, draws.units, Z), "float64")
        total, count = np.full(int(held_out.sum()), -np.inf), 0
        for densities in cell_densities(draws, data):
            total, count = np.logaddexp(total, densities[held_out]), count + 1
    return float(np.mean(total - log_scales(held_out, draws.units)[held_out]) - np.log(count))


def bits_per_spike(prediction: Draws | np.ndarray, Y: Any, held_out: np.ndarray, *, offset: Any = None) -> float:
    """What a prediction of held-out spike counts gains over the mean rates of the neurons, in bits per spike.

    The gain in log density over a Poisson with the mean of the column's other cells, over log 2 and the number of
    held-out spikes: co-smoothing as in the Neural Latents Benchmark. 0 is as good as the mean rates.

    Parameters
    ----------
    prediction : Draws or array (N, J)
        Draws from a table in which the held-out cells were missing, whose densities are averaged as in
        ``log_predictive_density``; or expected counts of another method, taken for the means of Poisson counts.
    Y : table (N, J)
        Counts, with the held-out cells filled in.
    held_out : array (N, J) of bool
        Which cells were held out. Every column of them needs other cells, with a spike among them.
    offset : array-like (N,) or None
        As given to the fit; for draws.

    Examples
    --------
    >>> import numpy as np
    >>> from rflvm.metrics import bits_per_spike
    >>> Y = np.array([[0.0], [4.0], [0.0], [4.0]])
    >>> held_out = np.array([[False], [False], [True], [True]])
    >>> round(bits_per_spike(np.array([[0.0], [0.0], [0.1], [4.0]]), Y, held_out), 2)
    0.96
    """
    values = _with_held_out(Y, held_out)
    shown = np.where(held_out, np.nan, values)
    columns = np.asarray(held_out.any(axis=0))
    silent = np.flatnonzero(columns & ~(np.nansum(shown, axis=0) > 0))
    if silent.size:
        raise ValueError(
            f"column {silent[0]} of Y has held-out cells and no spike in its other cells ({silent.size} such): there "
            "is no mean rate to compare with; leave it out"
        )
    spikes = values[held_out].sum()
    if not spikes > 0:
        raise ValueError("there is no spike in the held-out cells: bits per spike need at least one")
    means = np.broadcast_to(np.nanmean(np.where(columns[None], shown, 1), axis=0), values.shape)
    null = stats.poisson.logpmf(values[held_out], means[held_out]).sum()
    if isinstance(prediction, Draws):
        total = log_predictive_density(prediction, values, held_out, offset=offset) * held_out.sum()
    else:
        if prediction.shape != values.shape or not (prediction[held_out] >= 0).all():
            raise ValueError(
                f"prediction must be expected counts of shape {values.shape}, none of them negative; got shape "
                f"{prediction.shape}"
            )
        total = stats.poisson.logpmf(values[held_out], prediction[held_out]).sum()
    return float((total - null) / (np.log(2) * spikes))


def _with_held_out(Y: Any, held_out: np.ndarray) -> Float[np.ndarray, "N J"]:
    """The cells of a table in which those that were held out are known."""
    values = tables.read(Y).values
    if held_out.dtype != bool or held_out.shape != values.shape or not held_out.any():
        raise ValueError(
            f"held_out must be a boolean array of shape {values.shape}, True in at least one cell; got "
            f"{held_out.dtype} of shape {held_out.shape}"
        )
    if np.isnan(values[held_out]).any():
        n, j = np.argwhere(held_out & np.isnan(values))[0]
        raise ValueError(f"Y[{n}, {j}] is held out, but its value is missing: give the table with all held-out cells")
    return values
