"""Where an engine starts: candidates for X from a variance-stabilised table, intercepts at the column
means, and the paper's start of a whole state.

The start of X decides which mode is found. PCA keeps the large distances, t-SNE the neighbourhoods,
Isomap the distances along a curved sheet, kernel matching those that the model itself speaks of;
``map.py`` lets them compete.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.manifold import TSNE, Isomap
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import randomized_svd

from ..model import laplace
from ..model.features import features
from ..model.joint import Data, Model, State, sample_prior
from ..numerics.affine import r2_affine
from ..numerics.compilation import compiled

N_LANDMARKS = 2000


_N_COMPONENTS = 50


_EM_ROUNDS = 20


_N_MATCHED, _N_MATCHINGS, _N_AT_ONCE, _N_KEPT, _SAME_SHAPE = 400, 64, 16, 8, 0.95


_N_STEPS, _RATE = 70, 0.1


def stabilised(data: Data, model: Model) -> np.ndarray:
    """The table on a scale where its noise is roughly even, offset taken out, gaps filled."""
    Y, offset, trials = _on_host(data)
    table = model.likelihood.stabilise(Y, offset, trials)
    return table if data.mask is None else filled(table, np.asarray(data.mask), model.D)


def standardised(table: np.ndarray) -> np.ndarray:
    """Columns of mean zero and variance one; constant columns stay at zero."""
    scale = table.std(0)
    return (table - table.mean(0)) / np.where(scale > 1e-12, scale, 1)


def filled(table: np.ndarray, mask: np.ndarray, rank: int) -> np.ndarray:
    """Missing cells filled with the rank that best predicts cells hidden from it; it is doubled as long as that helps.

    Smooth functions of D dimensions span many more: with rank D the filled cells would say that the rows lie on a
    plane, and the starts, which take them for observed, would believe it.
    """
    observed = np.flatnonzero(mask)
    hidden = np.random.default_rng(0).choice(observed, len(observed) // 10, replace=False)
    shown = mask.copy()
    shown.flat[hidden] = False
    rank, best, lowest = min(rank, min(table.shape) - 1), 0, np.inf
    while 0 < rank < min(table.shape):
        error = np.sum((completed(table, shown, rank) - table).flat[hidden] ** 2)
        if error >= lowest:
            break
        best, lowest, rank = rank, error, 2 * rank
    return completed(table, mask, best)


def completed(table: np.ndarray, mask: np.ndarray, rank: int) -> np.ndarray:
    """Missing cells at their expectation under probabilistic PCA of a rank, by EM from the column means."""
    table = np.where(mask, table, np.where(mask, table, 0).sum(0) / np.maximum(mask.sum(0), 1))
    for _ in range(_EM_ROUNDS if rank else 0):
        centre = table.mean(0)
        scores = table - centre
        wide = scores.shape[0] < scores.shape[1]
        scores = scores.T if wide else scores
        squares, axes = np.linalg.eigh(scores.T @ scores)  # of singular values, smallest first
        noise = np.mean(np.maximum(squares[:-rank], 0))
        shrinkage = np.maximum(1 - noise / np.maximum(squares[-rank:], 1e-300), 0)
        low_rank = (scores @ axes[:, -rank:] * shrinkage) @ axes[:, -rank:].T
        table = np.where(mask, table, centre + (low_rank.T if wide else low_rank))
    return table


def pca(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """The first D principal components; noise where there are too few."""
    X = np.random.default_rng(seed).standard_normal((table.shape[0], D)) * 1e-2
    rank = min(D, table.shape[0] - 1, table.shape[1])
    if rank > 0:
        X[:, :rank] += _scores(table, rank, seed)
    return X


def isomap(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """Distances along the graph of nearest neighbours."""
    scores = _scores(table, min(_N_COMPONENTS, *table.shape), seed)
    with warnings.catch_warnings():
        # A graph in pieces is joined at its closest points, which is all that a start needs.
        warnings.simplefilter("ignore")
        return Isomap(n_neighbors=min(15, len(table) - 1), n_components=D).fit_transform(scores)


def tsne(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """Neighbourhoods."""
    scores = _scores(table, min(_N_COMPONENTS, *table.shape), seed)
    perplexity = min(30.0, (len(table) - 1) / 3)
    return TSNE(D, perplexity=perplexity, init="pca", max_iter=500, random_state=seed).fit_transform(scores)


def kernel(table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """The best start by kernel matching."""
    return matched(table, D, seed)[0]


STARTS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "pca": pca, "isomap": isomap, "tsne": tsne, "kernel": kernel,
}  # fmt: skip


def matched(table: np.ndarray, D: int, seed: int) -> list[np.ndarray]:
    """X such that an RBF kernel of X has the correlations of the rows, from random starts, best first.

    Under the model the rows n and m of F have covariance k(x_n - x_m) over columns. The empirical
    covariances of the standardised columns, which know about distances between neighbourhoods too,
    are matched by least squares off the diagonal, first with one dimension to spare, in which a curve
    does not get stuck across itself. Random starts are made ``_N_AT_ONCE`` at a time, until at least half of all have
    ended in the shape of the best or there are ``_N_MATCHINGS``.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(table))[:_N_MATCHED])
    white = standardised(table)
    covariance = _centred(white[rows] @ white[rows].T / white.shape[1]).astype(np.float32)
    height = np.full(_N_AT_ONCE, max(0.5 * np.trace(covariance) / len(rows), 1e-12), np.float32)
    found, losses = np.zeros((0, len(rows), D)), np.zeros(0)
    while len(found) < _N_MATCHINGS:
        X = 0.3 * rng.standard_normal((_N_AT_ONCE, len(rows), D + 1))
        X, log_height, _ = _match(X.astype(np.float32), np.log(height), covariance)
        flat = np.stack([_principal(one, D) for one in np.asarray(X, float)])
        X, _, loss = _match(flat.astype(np.float32), log_height, covariance)
        found, losses = np.concatenate([found, np.asarray(X, float)]), np.append(losses, loss)
        best = found[np.argmin(losses)]
        if np.mean([r2_affine(best, one) > _SAME_SHAPE for one in found]) >= 0.5:
            break
    kept: list[np.ndarray] = []
    for one in found[np.argsort(losses)]:
        if len(kept) < _N_KEPT and all(r2_affine(other, one) < _SAME_SHAPE for other in kept):
            kept.append(one)
    return [extend(one, rows, table, seed) for one in kept]


@compiled
def _match(
    X: Float[Array, "B N D"], log_height: Float[Array, " B"], covariance: Float[Array, "N N"]
) -> tuple[Float[Array, "B N D"], Float[Array, " B"], Float[Array, " B"]]:
    """Adam on the squared differences, from each start; also what is left of them."""
    return jax.lax.map(lambda start: _match_one(start[0], start[1], covariance), (X, log_height), batch_size=2)


def _match_one(X: Float[Array, "N D"], log_height: Float[Array, ""], covariance: Float[Array, "N N"]):
    off_diagonal = 1 - jnp.eye(len(covariance), dtype=covariance.dtype)

    def slopes(X, log_height):
        squares = jnp.sum(X**2, axis=1)
        K = jnp.exp(log_height - 0.5 * jnp.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
        residual = (_centred(K) - covariance) * off_diagonal
        G = _centred(residual) * K
        return (-2 * (G.sum(axis=1)[:, None] * X - G @ X), G.sum()), 0.5 * jnp.sum(residual**2)

    def step(carry, t):
        position, first, second = carry
        gradient, loss = slopes(*position)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, second, gradient)
        rate = _RATE * jnp.minimum(1, 3 * (1 - t / _N_STEPS))
        move = lambda p, m, v: p - rate * m / (1 - 0.9 ** (t + 1)) / (jnp.sqrt(v / (1 - 0.99 ** (t + 1))) + 1e-8)  # noqa: E731
        return (jax.tree.map(move, position, first, second), first, second), loss

    zero = (jnp.zeros_like(X), jnp.zeros_like(log_height))
    times = jnp.arange(_N_STEPS, dtype=X.dtype)
    ((X, log_height), _, _), losses = jax.lax.scan(step, ((X, log_height), zero, zero), times)
    return X, log_height, losses[-1]


def _centred(A):
    """Rows and columns of a symmetric matrix with mean zero."""
    mean = A.mean(axis=0)
    return A - mean - mean[:, None] + mean.mean()


def _principal(X: np.ndarray, dimension: int) -> np.ndarray:
    centred = X - X.mean(0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:dimension].T


def possible(table: np.ndarray, D: int) -> list[str]:
    """The starts that can be made: the graphs of neighbours need a few rows, Barnes-Hut t-SNE D <= 3."""
    N, J = table.shape
    if max(15, 3 * D) >= N or J <= D:
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
    """The rows that the neighbour methods look at: all, or ``N_LANDMARKS`` of them at random."""
    return np.sort(np.random.default_rng(seed).permutation(N)[:N_LANDMARKS])


def extend(X: np.ndarray, rows: np.ndarray, table: np.ndarray, seed: int) -> np.ndarray:
    """Positions of all rows from those of some: each other row goes to the mean of its five nearest."""
    if len(rows) == len(table):
        return X
    scores = _scores(table, min(_N_COMPONENTS, *table.shape), seed)
    neighbours = NearestNeighbors(n_neighbors=min(5, len(rows))).fit(scores[rows])
    everywhere = X[neighbours.kneighbors(scores, return_distance=False)].mean(axis=1)
    everywhere[rows] = X
    return everywhere


def scaled(X: np.ndarray) -> np.ndarray:
    """Each axis with mean zero and variance one; a single row may be anywhere."""
    if len(X) == 1:
        return np.ones_like(X)
    return standardised(X)


def _scores(table: np.ndarray, n: int, seed: int) -> np.ndarray:
    centred = table - table.mean(0)
    if min(table.shape) > 10 * n:
        U, s, _ = randomized_svd(centred, n, random_state=seed)
    else:
        U, s, _ = np.linalg.svd(centred, full_matrices=False)
    return U[:, :n] * s[:n]


def intercepts(data: Data, model: Model) -> np.ndarray:
    """The linear predictor that matches each column's mean when everything else is zero."""
    Y, offset, trials = _on_host(data)
    mask = np.ones(Y.shape, bool) if data.mask is None else np.asarray(data.mask)
    return model.likelihood.intercepts(Y, mask, offset, trials)


def _on_host(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Cells (N, J), offset (N, 1) and trials as NumPy arrays in double precision."""
    trials = None if data.trials is None else np.asarray(data.trials)
    return np.asarray(data.Y, float), np.asarray(data.offset, float)[:, None], trials


def from_prior(key: Array, X: np.ndarray, data: Data, model: Model) -> State:
    """A state as the paper starts it: X given, beta at its mode given X, everything else from the prior."""
    dtype = data.Y.dtype
    state = _sample_prior(key, model, *data.Y.shape, dtype)
    beta = jnp.zeros_like(state.beta).at[-1].set(jnp.asarray(intercepts(data, model), dtype))
    theta = {name: jnp.ones_like(value) for name, value in state.theta.items()}
    state = state._replace(X=jnp.asarray(X, dtype), beta=beta, theta=theta)
    if model.likelihood.conjugate:
        return state  # the first sweep draws beta
    return state._replace(beta=_mode(state, data, model))


_sample_prior = compiled(sample_prior, static_argnums=(1, 2, 3, 4))


@functools.partial(compiled, static_argnames="model")
def _mode(state: State, data: Data, model: Model) -> Float[Array, "M J"]:
    per_column = {name: value for name, value in state.theta.items() if value.ndim}
    begin = laplace.start(data, model, state.beta)
    tolerance = 1e4 * float(jnp.finfo(state.X.dtype).eps)
    _, evidence = laplace.log_evidence(features(state.X, state.W), per_column, begin, data, model, tolerance)
    return laplace.Blocks(data.Y.shape[1]).join(evidence.mode.beta)
