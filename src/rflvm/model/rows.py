"""One row given the functions: log p(y_n | x_n) + log p(x_n), its gradient and its Fisher information."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .features import features, features_and_slopes
from .joint import Data, Model, State


class Local(NamedTuple):
    """What a proposal needs to know about each row at a point."""

    X: Float[Array, "N D"]
    value: Float[Array, " N"]  # log p(y_n | x_n) + log p(x_n)
    gradient: Float[Array, "N D"]
    metric: Float[Array, "N D D"]


def row_values(X: Float[Array, "N D"], state: State, data: Data, model: Model) -> Float[Array, " N"]:
    """log p(y_n | x_n) + log p(x_n) of each row, up to a constant."""
    F = features(X, state.W) @ state.beta + data.offset[:, None]
    cells = model.likelihood.log_factor(data.Y, F, state.theta, data.trials)
    cells = cells if data.mask is None else jnp.where(data.mask, cells, 0)
    return cells.sum(axis=1) - 0.5 * jnp.sum(X**2, axis=1)


def expand(X: Float[Array, "N D"], state: State, data: Data, model: Model) -> Local:
    """Value, gradient and metric of each row."""
    Phi, slopes = features_and_slopes(X, state.W)
    F = Phi @ state.beta + data.offset[:, None]
    dF = slopes @ state.beta

    def log_factor(f):
        cells = model.likelihood.log_factor(data.Y, f, state.theta, data.trials)
        return cells if data.mask is None else jnp.where(data.mask, cells, 0)

    def slope(f):
        cells, pullback = jax.vjp(log_factor, f)
        return pullback(jnp.ones_like(cells))[0], cells

    G, dG, cells = jax.jvp(slope, (F,), (jnp.ones_like(F),), has_aux=True)
    weighted = dF * jnp.maximum(-dG, 0)[None]
    return Local(
        X=X,
        value=cells.sum(axis=1) - 0.5 * jnp.sum(X**2, axis=1),
        gradient=jnp.einsum("dnj,nj->nd", dF, G) - X,
        metric=jnp.einsum("dnj,enj->nde", dF, weighted) + jnp.eye(X.shape[1], dtype=X.dtype)[None],
    )
