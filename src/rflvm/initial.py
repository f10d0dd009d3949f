"""Where the sampler starts: X at PCA (as in the paper, on variance-stabilised data), intercepts at
the column means, coefficients at their mode given X, everything else at a draw from the prior.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from . import linalg
from .features import features
from .likelihoods import Gaussian, Logistic
from .model import Data, Model, State, log_prior_beta, sample_prior

_NEWTON_STEPS = 12
_HALVINGS = 6


def stabilised(data: Data, model: Model) -> np.ndarray:
    """The table on a scale where its noise is roughly even, missing cells at their column mean."""
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
    if data.mask is None:
        return table
    mask = np.asarray(data.mask)
    mean = np.where(mask, table, 0).sum(0) / np.maximum(mask.sum(0), 1)
    return np.where(mask, table, mean)


def pca(table: np.ndarray, D: int) -> np.ndarray:
    """The first D principal components, each scaled to variance one; noise where there are too few."""
    centred = table - table.mean(0)
    U, s, _ = np.linalg.svd(centred, full_matrices=False)
    X = np.zeros((table.shape[0], D))
    rank = min(D, int(np.sum(s > 1e-10 * max(s[0], 1e-300))))
    X[:, :rank] = U[:, :rank] * np.sqrt(table.shape[0])
    X[:, rank:] = 0.01 * np.random.default_rng(0).standard_normal((table.shape[0], D - rank))
    return X


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


def newton(beta: Float[Array, "M J"], state: State, data: Data, model: Model) -> Float[Array, "M J"]:
    """A few damped Newton steps per column towards the mode of beta given X, W and theta."""
    Phi = features(state.X, state.W)
    precision = jnp.diag(model.prior.precision(Phi.shape[1], Phi.dtype))

    def cells(F):
        values = model.likelihood.log_factor(data.Y, F, state.theta, data.trials)
        return values if data.mask is None else jnp.where(data.mask, values, 0)

    def value(beta):
        return cells(Phi @ beta + data.offset[:, None]).sum(0) + log_prior_beta(beta, state.theta, model)

    def iterate(beta, _):
        F = Phi @ beta + data.offset[:, None]
        slope, second = jax.jvp(jax.grad(lambda F: cells(F).sum()), (F,), (jnp.ones_like(F),))
        gradient = Phi.T @ slope - jnp.diag(precision)[:, None] * beta
        L, _ = linalg.cholesky(linalg.weighted_grams(Phi, jnp.maximum(-second, 0)) + precision)
        direction = linalg.solve_lower_transposed(L, linalg.solve_lower(L, gradient.T[..., None]))[..., 0].T
        current = value(beta)

        def halve(i, carry):
            best, done = carry
            trial = beta + 0.5**i * direction
            better = ~done & (value(trial) >= current)
            return jnp.where(better, trial, best), done | better

        beta, _ = lax.fori_loop(0, _HALVINGS, halve, (beta, jnp.zeros(beta.shape[1], bool)))
        return beta, None

    return lax.scan(iterate, beta, None, length=_NEWTON_STEPS)[0]


def start(key: Array, data: Data, model: Model, X: np.ndarray | None = None) -> State:
    """The state before the first sweep."""
    dtype = data.Y.dtype
    N, J = data.Y.shape
    state = jax.jit(sample_prior, static_argnums=(1, 2, 3, 4))(key, model, N, J, dtype)
    X = pca(stabilised(data, model), model.D) if X is None else X
    beta = jnp.zeros_like(state.beta).at[-1].set(jnp.asarray(intercepts(data, model), dtype))
    theta = {name: jnp.ones_like(value) for name, value in state.theta.items()}
    state = state._replace(X=jnp.asarray(X, dtype), beta=beta, theta=theta)
    if not isinstance(model.likelihood, Gaussian):
        beta = jax.jit(newton, static_argnums=3)(beta, state, data, model)
    return state._replace(beta=beta)
