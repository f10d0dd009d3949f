"""Where an engine starts: candidates for X from a variance-stabilised table, intercepts at the column
means, and the paper's start of a whole state.

The start of X decides which mode is found. PCA keeps the large distances, t-SNE the neighbourhoods,
Isomap the distances along a curved sheet; ``map.py`` lets them compete.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, Isomap
from sklearn.neighbors import NearestNeighbors

from . import laplace
from .features import features
from .likelihoods import Gaussian, Logistic
from .model import Data, Model, State, sample_prior

N_LANDMARKS = 2000
_N_COMPONENTS = 50
_EM_ROUNDS = 20


def stabilised(data: Data, model: Model) -> np.ndarray:
    """The table on a scale where its noise is roughly even, offset taken out, gaps filled."""
    Y = np.asarray(data.Y, float)
    offset = np.asarray(data.offset, float)[:, None]
    name = model.likelihood.name
    if name in ("poisson", "negative_binomial"):
        table = np.sqrt(Y / np.exp(offset))
    elif data.trials is not None:
        trials = np.asarray(data.trials)
        table = np.arcsin(np.sqrt((Y + 3 / 8) / (trials + 3 / 4)))
    elif name == "gaussian":
        table = Y - offset
    else:
        table = Y
    return table if data.mask is None else filled(table, np.asarray(data.mask), model.D)


def filled(table: np.ndarray, mask: np.ndarray, rank: int) -> np.ndarray:
    """Missing cells at their expectation under probabilistic PCA, by EM from the column means."""
    mean = np.where(mask, table, 0).sum(0) / np.maximum(mask.sum(0), 1)
    table = np.where(mask, table, mean)
    rank = min(rank, min(table.shape) - 1)
    if rank < 1:
        return table
    for _ in range(_EM_ROUNDS):
        centre = table.mean(0)
        U, s, Vt = np.linalg.svd(table - centre, full_matrices=False)
        noise = np.mean(s[rank:] ** 2)
        shrunk = np.maximum(s[:rank] ** 2 - noise, 0) / np.maximum(s[:rank], 1e-300)
        table = np.where(mask, table, centre + (U[:, :rank] * shrunk) @ Vt[:rank])
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


STARTS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {"pca": pca, "isomap": isomap, "tsne": tsne}


def candidates(table: np.ndarray, D: int) -> list[str]:
    """The starts that can be made for a table: the neighbour graphs need a few rows, Barnes-Hut t-SNE D <= 3."""
    N, J = table.shape
    names = ["pca"]
    if max(15, 3 * D) < N and J > D:
        names += ["isomap", "tsne"] if D <= 3 else ["isomap"]
    return names


def embed(name: str, table: np.ndarray, D: int, seed: int) -> np.ndarray:
    """A start by its name, each axis scaled to mean zero and variance one.

    Of more than ``N_LANDMARKS`` rows as many are embedded by the neighbour methods, and each other row
    goes to the mean of the five that it is nearest to.
    """
    N = len(table)
    if name == "pca" or N <= N_LANDMARKS:
        X = STARTS[name](table, D, seed)
    else:
        chosen = np.random.default_rng(seed).permutation(N)[:N_LANDMARKS]
        scores = _scores(table, min(_N_COMPONENTS, *table.shape), seed)
        nearest = NearestNeighbors(n_neighbors=5).fit(scores[chosen]).kneighbors(scores, return_distance=False)
        landmarks = STARTS[name](table[chosen], D, seed)
        X = landmarks[nearest].mean(axis=1)
        X[chosen] = landmarks
    X = X - X.mean(0)
    scale = X.std(0)
    return X / np.where(scale > 1e-12, scale, 1)


def _scores(table: np.ndarray, n: int, seed: int) -> np.ndarray:
    return PCA(n, svd_solver="auto", random_state=seed).fit_transform(table)


def intercepts(data: Data, model: Model) -> np.ndarray:
    """The linear predictor that matches each column's mean when everything else is zero."""
    Y, name = np.asarray(data.Y, float), model.likelihood.name
    mask = np.ones(Y.shape, bool) if data.mask is None else np.asarray(data.mask)
    n = np.maximum(mask.sum(0), 1)
    offset = np.asarray(data.offset, float)[:, None]
    if name in ("poisson", "negative_binomial"):
        return np.log((Y.sum(0) + 0.5) / (np.where(mask, np.exp(offset), 0).sum(0) + 0.5))
    if isinstance(model.likelihood, Logistic):
        total = n if data.trials is None else np.where(mask, np.asarray(data.trials), 0).sum(0)
        rate = (Y.sum(0) + 0.5) / (total + 1)
        return np.log(rate / (1 - rate)) - np.where(mask, offset, 0).sum(0) / n
    if name == "gaussian":
        return np.where(mask, Y - offset, 0).sum(0) / n
    return np.zeros(Y.shape[1])


def from_prior(key: Array, X: np.ndarray, data: Data, model: Model) -> State:
    """A state as the paper starts it: X given, beta at its mode given X, everything else from the prior."""
    dtype = data.Y.dtype
    state = jax.jit(sample_prior, static_argnums=(1, 2, 3, 4))(key, model, *data.Y.shape, dtype)
    beta = jnp.zeros_like(state.beta).at[-1].set(jnp.asarray(intercepts(data, model), dtype))
    theta = {name: jnp.ones_like(value) for name, value in state.theta.items()}
    state = state._replace(X=jnp.asarray(X, dtype), beta=beta, theta=theta)
    if isinstance(model.likelihood, Gaussian):
        return state
    return state._replace(beta=jax.jit(_mode, static_argnames="model")(state, data, model))


def _mode(state: State, data: Data, model: Model) -> Float[Array, "M J"]:
    per_column = {name: value for name, value in state.theta.items() if value.ndim}
    begin = laplace.start(data, model, state.beta)
    _, evidence = laplace.log_evidence(features(state.X, state.W), per_column, begin, data, model, 1e-2)
    return laplace.Blocks(data.Y.shape[1]).join(evidence.mode.beta)
