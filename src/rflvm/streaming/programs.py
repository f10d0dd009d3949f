"""What is computed of a block of rows, given the functions. Row by row, and sums over rows: nothing else.

A visit to row n takes one step of Fisher scoring towards the mode m_n of log p(y_n | x) + log p(x), where G_n is the
information, prior included, and draws x~_n = m_n + G_n^{-1/2} e_n from q_n = N(m_n, G_n^{-1}). The noise e_n depends on
the number of the row alone, so it is the same in every epoch and wherever the row is computed.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, UInt

from ..likelihoods.base import sum_observed
from ..model.features import features, linear_predictor
from ..model.joint import Data, Model, State
from ..model.rows import Local, expand, row_values, scoring_direction
from ..numerics import linalg
from ..numerics.compilation import compiled
from .functions import packed

# Steps of Fisher scoring of a row that has just been placed: so many beside each of two anchors, and more from where it
# is then more probable. Every visit takes a step more. And steps of every row at the very end, from where the last
# visit left it. Choices without a measurement of their own.
N_FIRST_STEPS, N_PLACING_STEPS, N_LAST_STEPS = 1, 4, 2

# A step is no longer than LONGEST, and of its whole and its LENGTHS the best is taken, or none: of counts a whole step
# often overshoots, and rows that stayed where they are would draw the functions to themselves.
LONGEST, LENGTHS = 1.0, (1.0, 0.125)

# How far apart the two anchors are, at least.
MIN_DISTANCE = 0.5


class Anchors(NamedTuple):
    """Positions beside which rows are placed.

    Attributes
    ----------
    X : array (A, D)
        Positions; the first C of them are looked at first.
    F : array (A, J)
        What the functions are there.
    near : array (C, K)
        For each of the first C, the K positions that are nearest to it.
    """

    X: Float[Array, "A D"]
    F: Float[Array, "A J"]
    near: Int[Array, "C K"]


class Sums(NamedTuple):
    """Sums over rows of an epoch.

    Attributes
    ----------
    gradient : array (M, J)
        sum_n phi(x~_n) g_nj, g being the derivative of the log density of a cell: that of the objective in beta.
    square : array (D, D)
        sum_n m_n m_n' + G_n^{-1}.
    objective : array ()
        sum_n log p(y_n | x~_n), as far as it depends on x, less the divergence of q_n from the prior of x_n.
    n : array ()
        Rows that count.
    """

    gradient: Float[Array, "M J"]
    square: Float[Array, "D D"]
    objective: Float[Array, ""]
    n: Float[Array, ""]


class Curvature(NamedTuple):
    """Sums over a subsample of the rows.

    Attributes
    ----------
    gram : array (J, M, M)
        sum_n w_nj phi(x~_n) phi(x~_n)', lower triangles, w being the curvature of a cell.
    slope, bend : array (P, J) and (P, P, J)
        First and second derivatives of the log density in the logarithms of the family's P parameters of each column.
    n : array ()
        Rows that count.
    """

    gram: Float[Array, "J M M"]
    slope: Float[Array, "P J"]
    bend: Float[Array, "P P J"]
    n: Float[Array, ""]


def on_device(data: Data, dtype: Any) -> Data:
    """A block whose cells are in the type of their table, as numbers to compute with."""
    cast = lambda part: None if part is None else part.astype(dtype)  # noqa: E731
    return data._replace(Y=cast(data.Y), offset=cast(data.offset), trials=cast(data.trials))


def beside_anchors(data: Data, anchors: Anchors, theta: dict[str, Array], model: Model) -> Float[Array, "2 B D"]:
    """Of the anchors near the best two of the first, the one at which each row is most probable, and a distant one."""

    def log_density(F):
        cells = model.likelihood.log_factor(data.Y, F + data.offset[:, None], theta, data.trials)
        return sum_observed(cells, data.mask, axis=1)

    B, J = data.Y.shape
    log_prior = -0.5 * jnp.sum(anchors.X**2, axis=1)
    C = len(anchors.near)
    coarse = lax.map(lambda f: log_density(jnp.broadcast_to(f[None], (B, J))), anchors.F[:C]) + log_prior[:C, None]
    best = jnp.argmax(coarse, axis=0)
    second = jnp.argmax(jnp.where(jnp.arange(C)[:, None] == best[None], -jnp.inf, coarse), axis=0)
    candidates = jnp.concatenate([anchors.near[best], anchors.near[second]], axis=1).T
    values = lax.map(lambda which: log_density(anchors.F[which]) + log_prior[which], candidates)
    X = anchors.X[candidates]
    top = _pick(X, jnp.argmax(values, axis=0))
    distant = jnp.sum((X - top[None]) ** 2, axis=2) > MIN_DISTANCE**2
    return jnp.stack([top, _pick(X, jnp.argmax(jnp.where(distant, values, -jnp.inf), axis=0))])


def _pick(X: Float[Array, "K B D"], which: Int[Array, " B"]) -> Float[Array, "B D"]:
    return jnp.take_along_axis(X, which[None, :, None], axis=0)[0]


def climb(X: Float[Array, "B D"], state: State, data: Data, model: Model, n_steps: int) -> Local:
    """A few steps of Fisher scoring for each row, each of the best length of a few."""

    def step(local, _):
        direction = scoring_direction(local)
        size = jnp.sqrt(jnp.sum(direction**2, axis=1, keepdims=True))
        direction = direction * jnp.minimum(1, LONGEST / jnp.maximum(size, jnp.finfo(size.dtype).tiny))
        best, height = local.X, local.value
        for length in LENGTHS:
            there = local.X + length * direction
            value = row_values(there, state, data, model)
            better = value > height
            best, height = jnp.where(better[:, None], there, best), jnp.where(better, value, height)
        return expand(best, state, data, model), None

    return lax.scan(step, expand(X, state, data, model), length=n_steps)[0]


def modes(data: Data, anchors: Anchors, state: State, model: Model) -> list[Local]:
    """Where a few steps lead from each of two anchors."""
    starts = beside_anchors(data, anchors, state.theta, model)
    return [climb(start, state, data, model, N_FIRST_STEPS) for start in starts]


@functools.partial(compiled, static_argnames="model")
def place(data: Data, anchors: Anchors, state: State, model: Model) -> tuple[Float[Array, "B D"], Float[Array, "B T"]]:
    """Modes of a block of rows, found from the anchors, and their covariances (lower triangles)."""
    data = on_device(data, state.W.dtype)
    one, other = modes(data, anchors, state, model)
    start = jnp.where((other.value > one.value)[:, None], other.X, one.X)
    local = climb(start, state, data, model, N_PLACING_STEPS)
    return local.X, packed(covariances(local))


@functools.partial(compiled, static_argnames="model")
def settle(
    X: Float[Array, "B D"], data: Data, state: State, model: Model
) -> tuple[Float[Array, "B D"], Float[Array, "B T"]]:
    """Modes of a block of rows that were found before, and their covariances (lower triangles)."""
    local = climb(X, state, on_device(data, state.W.dtype), model, N_LAST_STEPS)
    return local.X, packed(covariances(local))


def covariances(local: Local) -> Float[Array, "B D D"]:
    """G_n^{-1}."""
    L = linalg.small_cholesky(local.metric)
    D = local.X.shape[1]
    columns = [
        linalg.small_solve_lower_transposed(L, linalg.small_solve_lower(L, jnp.zeros_like(local.X).at[:, d].set(1)))
        for d in range(D)
    ]
    return jnp.stack(columns, axis=2)


@functools.partial(compiled, static_argnames=("model", "n_draws"))
def visit(
    X: Float[Array, "B D"], numbers: UInt[Array, " B"], weight: Float[Array, " B"], data: Data, state: State,
    key: Array, model: Model, n_draws: int,
) -> tuple[Float[Array, "B D"], Float[Array, "S B D"], Sums]:  # fmt: skip
    """New modes of a block of rows, draws around them, and sums over the rows, of which those of weight 0 do not count.

    ``numbers`` are those of the rows in the table.
    """
    dtype = state.W.dtype
    data = on_device(data, dtype)
    local = climb(X, state, data, model, 1)
    L, S = linalg.small_cholesky(local.metric), covariances(local)
    noise = jax.vmap(lambda n: jax.random.normal(jax.random.fold_in(key, n), (n_draws, X.shape[1]), dtype))(numbers)
    counted = weight[:, None] > 0

    def at_draw(total, e):
        x = local.X + linalg.small_solve_lower_transposed(L, e)
        Phi = features(x, state.W)
        F = linear_predictor(Phi, state.beta, data.offset)
        cells, slope, _ = model.likelihood.slope_and_curvature(data.Y, F, state.theta, data.trials)
        counts = counted if data.mask is None else counted & data.mask
        slope, cells = jnp.where(counts, slope, 0), jnp.where(counts, cells, 0)
        return jax.tree.map(jnp.add, total, (Phi.T @ slope / n_draws, cells.sum() / n_draws)), x

    zero = jnp.zeros((), dtype)
    (gradient, fit), draws = lax.scan(at_draw, (jnp.zeros_like(state.beta), zero), jnp.moveaxis(noise, 1, 0))
    square = jnp.einsum("b,bd,be->de", weight, local.X, local.X) + jnp.einsum("b,bde->de", weight, S)
    D = X.shape[1]
    divergence = 0.5 * jnp.trace(square) + jnp.sum(weight * (linalg.small_logdet(L) - D / 2))
    return local.X, draws, Sums(gradient, square, fit - divergence, weight.sum())


@functools.partial(compiled, static_argnames="model")
def curvature(X: Float[Array, "B D"], weight: Float[Array, " B"], data: Data, state: State, model: Model) -> Curvature:
    """Curvatures of the log density at draws of the positions of some rows, those of weight 0 left out."""
    data = on_device(data, state.W.dtype)
    Phi = features(X, state.W)
    F = linear_predictor(Phi, state.beta, data.offset)
    counts = weight[:, None] > 0 if data.mask is None else (weight[:, None] > 0) & data.mask
    w = model.likelihood.slope_and_curvature(data.Y, F, state.theta, data.trials)[2]
    gram = linalg.weighted_grams(Phi, jnp.where(counts, w, 0))
    own = {name: jnp.log(value) for name, value in state.theta.items() if value.ndim}
    stacked = stack(own)

    def log_density(log_theta):
        theta = state.theta | {name: jnp.exp(value) for name, value in unstack(log_theta, own).items()}
        cells = model.likelihood.log_prob(data.Y, F, theta, data.trials)
        return jnp.sum(jnp.where(counts, cells, 0))

    if not own:
        J = data.Y.shape[1]
        return Curvature(gram, jnp.zeros((0, J), F.dtype), jnp.zeros((0, 0, J), F.dtype), weight.sum())
    # A column's density depends on its own parameters only: along ones in all columns a derivative has all of them.
    gradient = jax.grad(log_density)
    along = lambda e: jax.jvp(gradient, (stacked,), (jnp.broadcast_to(e[:, None], stacked.shape),))[1]  # noqa: E731
    bend = lax.map(along, jnp.eye(len(stacked), dtype=stacked.dtype))
    return Curvature(gram, gradient(stacked), bend, weight.sum())


def stack(theta: dict[str, Array]) -> Float[Array, "P J"]:
    """Parameters of shapes (J,) and (K, J) under one another."""
    parts = [value if value.ndim == 2 else value[None] for value in theta.values()]
    return jnp.concatenate(parts) if parts else jnp.zeros((0, 0))


def unstack(stacked: Float[Array, "P J"], like: dict[str, Array]) -> dict[str, Array]:
    """The same by name, in the shapes of ``like``."""
    parts, first = {}, 0
    for name, value in like.items():
        n = value.shape[0] if value.ndim == 2 else 1
        parts[name] = stacked[first : first + n].reshape(value.shape)
        first += n
    return parts
