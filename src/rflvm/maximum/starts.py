"""Where X starts: candidates from the variance-stabilised table. And the intercepts that match the column means.

The start of X decides which mode is found. PCA keeps the large distances, t-SNE the neighbourhoods,
Isomap the distances along a curved sheet, kernel matching those that the model itself speaks of;
``competition.py`` lets them compete.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import randomized_svd

from ..model.joint import Data, Model, state_shapes
from . import gaps, matching
from .smoothing import smoothed

# Rows that the methods with neighbours look at, at most: their cost grows with the square of it, and the other rows
# are placed next to these. A choice without a measurement of its own; benchmarks/map.py (tables) fits 20,000 rows.
N_LANDMARKS = 2000

# Principal components in which neighbours are sought, as scikit-learn advises for t-SNE.
N_COMPONENTS = 50

# Neighbours in the graph of Isomap, and rows that the graph needs. A choice without a measurement.
N_ISOMAP_NEIGHBOURS = 15

# Landmarks whose mean position another row starts at. A choice without a measurement.
N_NEAREST = 5

# t-SNE: scikit-learn's perplexity, and half of its iterations, for a start need not be finished. Choices without a
# measurement.
PERPLEXITY = 30.0
N_TSNE_ITERATIONS = 500

# Standard deviation of the noise in a start by PCA, without which rows that are equal, or axes beyond the rank of the
# table, could never be told apart. A choice without a measurement.
PCA_NOISE = 1e-2

# Of the least squares with which effects of covariates are taken out before the starts look at the table: as much as
# one more row that says that there is none. A choice without a measurement.
EFFECT_PENALTY = 1.0


def stabilised(data: Data, model: Model) -> Float[np.ndarray, "N J"]:
    """The table on a scale where its noise is roughly even, offset and covariates taken out, gaps filled.

    With a prior over time it is smoothed as well: single rows of counts are mostly noise.
    """
    Y, offset, trials = _on_host(data)
    table = model.likelihood.stabilise(Y, offset, trials)
    if data.covariates is not None:
        table = without_effects(table, _mask_on_host(data), np.asarray(data.covariates, float))
    table = table if data.mask is None else gaps.filled(table, np.asarray(data.mask), model.D)
    if data.chronology is None:
        return table
    return smoothed(table, _mask_on_host(data).mean(axis=1), data.chronology)


def without_effects(
    table: Float[np.ndarray, "N J"], mask: Bool[np.ndarray, "N J"], Z: Float[np.ndarray, "N C"]
) -> Float[np.ndarray, "N J"]:
    """The table less the linear effects of covariates on each column, by least squares with ``EFFECT_PENALTY``."""
    design = np.column_stack([Z, np.ones(len(Z))])
    penalty = np.diag([EFFECT_PENALTY] * Z.shape[1] + [0.0])
    if mask.all():
        return table - Z @ np.linalg.solve(design.T @ design + penalty, design.T @ table)[:-1]
    products = (design[:, :, None] * design[:, None]).reshape(len(Z), -1)
    grams = (mask.T @ products).reshape(-1, *penalty.shape) + penalty
    return table - Z @ np.linalg.solve(grams, (np.where(mask, table, 0).T @ design)[..., None])[:, :-1, 0].T


def intercepts(data: Data, model: Model) -> Float[np.ndarray, " J"]:
    """The linear predictor that matches each column's mean when everything else is zero."""
    Y, offset, trials = _on_host(data)
    return model.likelihood.intercepts(Y, _mask_on_host(data), offset, trials)


def theta(data: Data, model: Model) -> dict[str, np.ndarray]:
    """The family's own parameters where a fit starts: as the family says, otherwise 1."""
    Y, offset, trials = _on_host(data)
    ones = {name: np.ones(shape.shape) for name, shape in state_shapes(data, model).theta.items()}
    return ones | model.likelihood.first_theta(Y, _mask_on_host(data), offset, trials)


def _mask_on_host(data: Data) -> np.ndarray:
    return np.ones(data.Y.shape, bool) if data.mask is None else np.asarray(data.mask)


def _on_host(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Cells (N, J), offset (N, 1) and trials as NumPy arrays in double precision."""
    trials = None if data.trials is None else np.asarray(data.trials, float)
    return np.asarray(data.Y, float), np.asarray(data.offset, float)[:, None], trials


def standardised(table: np.ndarray) -> np.ndarray:
    """Columns of mean zero and variance one; constant columns stay at zero."""
    scale = table.std(0)
    return (table - table.mean(0)) / np.where(scale > 1e-12, scale, 1)


def scaled(X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
    """Each axis with mean zero and variance one; a single row may be anywhere."""
    if len(X) == 1:
        return np.ones_like(X)
    return standardised(X)


def pca(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """The first D principal components, and a little noise, which is all there is where they are too few."""
    X = np.random.default_rng(seed).standard_normal((table.shape[0], D)) * PCA_NOISE
    rank = min(D, table.shape[0] - 1, table.shape[1])
    if rank > 0:
        X[:, :rank] += _principal_components(table, rank, seed)
    return X


def isomap(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """Distances along the graph of nearest neighbours."""
    from sklearn.manifold import Isomap  # more than half a second, for which models that are read do not wait

    scores = _principal_components(table, N_COMPONENTS, seed)
    with warnings.catch_warnings():
        # A graph in pieces is joined at its closest points, which is all that a start needs.
        warnings.simplefilter("ignore")
        return Isomap(n_neighbors=min(N_ISOMAP_NEIGHBOURS, len(table) - 1), n_components=D).fit_transform(scores)


def tsne(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """Neighbourhoods."""
    from sklearn.manifold import TSNE

    scores = _principal_components(table, N_COMPONENTS, seed)
    perplexity = min(PERPLEXITY, (len(table) - 1) / 3)
    method = TSNE(D, perplexity=perplexity, init="pca", max_iter=N_TSNE_ITERATIONS, random_state=seed)
    return method.fit_transform(scores)


def kernel(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """The best start by kernel matching."""
    return matched(table, D, seed)[0]


STARTS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "pca": pca, "isomap": isomap, "tsne": tsne, "kernel": kernel,
}  # fmt: skip


def matched(table: np.ndarray, D: int, seed: int) -> list[np.ndarray]:
    """Several starts by kernel matching, of different shapes, the best first."""
    rows, shapes = matching.matched(standardised(table), D, seed)
    return [extend(X, rows, table, seed) for X in shapes]


def possible(table: np.ndarray, D: int) -> list[str]:
    """The starts that can be made: the graphs of neighbours need a few rows, Barnes-Hut t-SNE D <= 3."""
    N, J = table.shape
    if max(N_ISOMAP_NEIGHBOURS, 3 * D) >= N or J <= D:
        return ["pca"]
    return [name for name in STARTS if name != "tsne" or D <= 3]


def candidates(table: np.ndarray, D: int, seed: int) -> dict[str, np.ndarray]:
    """All the starts that can be made, several of them by kernel matching."""
    names = possible(table, D)
    made = {name: embed(name, table, D, seed) for name in names if name != "kernel"}
    if "kernel" in names:
        made |= {f"kernel {i}": scaled(X) for i, X in enumerate(matched(table, D, seed), 1)}
    return made


def embed(name: str, table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """A start by its name, each axis scaled to mean zero and variance one."""
    names = possible(table, D)
    if name not in names:
        raise ValueError(
            f"init={name!r} cannot be made for a table of shape {table.shape} in {D} dimensions: "
            f"use {' or '.join(names)}"
        )
    if name == "pca":
        return scaled(pca(table, D, seed))
    rows = landmarks(len(table), seed)
    return scaled(extend(STARTS[name](table[rows], D, seed), rows, table, seed))


def landmarks(N: int, seed: int) -> np.ndarray:
    """The rows that the methods with neighbours look at: all, or ``N_LANDMARKS`` of them at random."""
    return np.sort(np.random.default_rng(seed).permutation(N)[:N_LANDMARKS])


def extend(X: np.ndarray, rows: np.ndarray, table: np.ndarray, seed: int) -> np.ndarray:
    """Positions of all rows from those of ``rows``: each other row goes to the mean of its nearest among them."""
    if len(rows) == len(table):
        return X
    scores = _principal_components(table, N_COMPONENTS, seed)
    neighbours = NearestNeighbors(n_neighbors=min(N_NEAREST, len(rows))).fit(scores[rows])
    everywhere = X[neighbours.kneighbors(scores, return_distance=False)].mean(axis=1)
    everywhere[rows] = X
    return everywhere


def _principal_components(table: np.ndarray, n: int, seed: int) -> np.ndarray:
    """The first n principal components, or as many as there are."""
    n = min(n, *table.shape)
    centred = table - table.mean(0)
    if min(table.shape) > 10 * n:  # few of many: a randomised decomposition is faster
        U, s, _ = randomized_svd(centred, n, random_state=seed)
    else:
        U, s, _ = np.linalg.svd(centred, full_matrices=False)
    return U[:, :n] * s[:n]
