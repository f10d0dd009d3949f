"""One row given the functions: log p(y_n | x_n) + log p(x_n), its gradient and its Fisher information."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..numerics import linalg
from .dynamics import Conditional
from .features import features, linear_predictor, slope_coefficients
from .joint import Data, Model, State


class Local(NamedTuple):
    """What a proposal needs to know about each row at a point."""

    X: Float[Array, "N D"]
    value: Float[Array, " N"]  # log p(y_n | x_n) + log p(x_n), up to a constant
    gradient: Float[Array, "N D"]
    metric: Float[Array, "N D D"]


def row_values(X: Float[Array, "N D"], state: State, data: Data, model: Model) -> Float[Array, " N"]:
    """log p(y_n | x_n) + log p(x_n) of each row, up to a constant."""
    F = linear_predictor(features(X, state.W, data.covariates), state.beta, data.offset)
    cells = model.likelihood.log_factor(data.Y, F, state.theta, data.trials)
    cells = cells if data.mask is None else jnp.where(data.mask, cells, 0)
    return cells.sum(axis=1) - 0.5 * jnp.sum(X**2, axis=1)


def expand(X: Float[Array, "N D"], state: State, data: Data, model: Model, prior: Conditional | None = None) -> Local:
    """Value, gradient and metric of each row, its prior N(0, I) or what its neighbours in time make of it."""
    cells = cell_expansion(X, state.W, state.beta, state.theta, data, model)
    if prior is not None:
        away = X - prior.mean
        return Local(
            X=X,
            value=cells.value - 0.5 * jnp.sum(prior.precision * away**2, axis=1),
            gradient=cells.gradient - prior.precision * away,
            metric=cells.metric + jax.vmap(jnp.diag)(prior.precision),
        )
    return Local(
        X=X,
        value=cells.value - 0.5 * jnp.sum(X**2, axis=1),
        gradient=cells.gradient - X,
        metric=cells.metric + jnp.eye(X.shape[1], dtype=X.dtype)[None],
    )


def cell_expansion(
    X: Float[Array, "N D"], W: Float[Array, "H D"], beta: Float[Array, "M J"], theta: dict[str, Array], data: Data,
    model: Model,
) -> Local:  # fmt: skip
    """The same of the cells of each row alone, without a prior."""
    F, dF = _predictor_and_slopes(X, W, beta, data)
    cells, G, curvature = _slope_and_curvature(F, theta, data, model)
    information = jnp.einsum("dnj,enj->nde", dF, dF * curvature[None])
    return Local(X, cells.sum(axis=1), jnp.einsum("dnj,nj->nd", dF, G), information)


def information(
    X: Float[Array, "N D"], W: Float[Array, "H D"], beta: Float[Array, "M J"], theta: dict[str, Array], data: Data,
    model: Model,
) -> Float[Array, "N D D"]:  # fmt: skip
    """The metric of each row at X: its prior precision plus the Fisher information of its cells."""
    cells = cell_expansion(X, W, beta, theta, data, model)
    return cells.metric + jnp.eye(X.shape[1], dtype=X.dtype)[None]


def _predictor_and_slopes(
    X: Float[Array, "N D"], W: Float[Array, "H D"], beta: Float[Array, "M J"], data: Data
) -> tuple[Float[Array, "N J"], Float[Array, "D N J"]]:
    """F and its derivatives, in one product."""
    together = jnp.concatenate([beta, *slope_coefficients(beta, W)], axis=1)
    F, *dF = jnp.split(features(X, W, data.covariates) @ together, 1 + X.shape[1], axis=1)
    return F + data.offset[:, None], jnp.stack(dF)


def _slope_and_curvature(F, theta, data: Data, model: Model):
    parts = model.likelihood.slope_and_curvature(data.Y, F, theta, data.trials)
    return parts if data.mask is None else tuple(jnp.where(data.mask, part, 0) for part in parts)


def scoring_direction(local: Local) -> Float[Array, "N D"]:
    """G(x)^{-1} grad of each row: the step of Fisher scoring, Newton's method with the information as its Hessian."""
    L = linalg.small_cholesky(local.metric)
    return linalg.small_solve_lower_transposed(L, linalg.small_solve_lower(L, local.gradient))


def climb(state: State, data: Data, model: Model, n_steps: int) -> Local:
    """A few steps of Fisher scoring for each row, from ``state.X``, shortened where they do not go up."""
    start = expand(state.X, state, data, model)

    def step(carry, _):
        here, length = carry
        there = expand(here.X + length[:, None] * scoring_direction(here), state, data, model)
        better = there.value > here.value
        keep = lambda new, old: jnp.where(better.reshape((-1,) + (1,) * (new.ndim - 1)), new, old)  # noqa: E731
        return (jax.tree.map(keep, there, here), jnp.where(better, jnp.minimum(2 * length, 1), length / 4)), None

    return lax.scan(step, (start, jnp.ones(len(state.X), state.X.dtype)), length=n_steps)[0][0]
