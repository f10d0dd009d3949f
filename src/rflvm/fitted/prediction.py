"""Rows under a fit: the posterior of a row's position, its predictive density, and the prediction of its other cells.

A fit is a set of members, draws of (X, W, beta, theta). Given one of them the rows are independent,

    p(x* | y*, member) = prod_j L(y*_j; phi(x*)'beta_j) N(x*; 0, I) / p(y* | member),

and a row's posterior is the mixture of these over members. For a row of the table itself this is exact; a new row is
taken to leave the posterior of the functions unchanged. Each component is integrated by importance sampling. The
proposal is a mixture of three Student t distributions: around two modes, which Fisher scoring finds from the rows of
the table that are most like y*, and one as wide as the prior, for rows with little information. Its points are
quasi-random.

Positions and densities are those of the functions as they are, predictions of cells those of the functions held to the
range that the table knows (``members.py``). A cell is summarised by the posterior median of its conditional mean
E[y | f], over members and over the points of its row's position, or by the posterior mean of it, E[y | y*]. Where the
table does not determine f, the mean of exp(f) is a number from the tail; the median is the same whether it is taken of
f or of exp(f).

Every number is computed in blocks of rows of a fixed size and with the same points for every row, so that the answer
for a row does not depend on the rows beside it, to the last bit. With a prior over time sessions are in the place of
rows: ``paths.py``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from ..likelihoods.base import sum_observed
from ..model.features import effects
from ..model.joint import Data, Model, State
from ..model.rows import climb as climb_rows
from ..model.rows import row_values
from ..numerics import linalg, quantiles
from ..numerics.compilation import compiled
from .members import FREEDOM, N_POINTS, Members, held

SUMMARIES = ("median", "mean")  # of E[y | f] over members and points

N_STEPS = 6, 2  # of Fisher scoring, under the first member and under each other, which begins where the last one ended
N_DRAWS = 16  # of a row's cells, from each member
MIN_DISTANCE = 1.0  # between the two anchors at which the search for modes begins; x has unit prior variance
BLOCK_CELLS = 65_536
MEDIAN_CELLS = 512  # at once: their values, under all members and at all points, should stay in the processor's cache
ROUNDING = 1e-6  # relative rounding error of a sum of squares in single precision


class Placed(NamedTuple):
    """The posterior of each row's position under each member, as weighted points."""

    X: Float[Array, "S Q B D"]
    log_weight: Float[Array, "S Q B"]  # the mean of exp(log_weight) over Q is p(y* | member)


class Moments(NamedTuple):
    """Posterior mean and covariance of positions, and the log predictive density of the rows."""

    mean: Float[Array, "B D"]
    covariance: Float[Array, "B D D"]
    log_density: Float[Array, " B"]


def block_size(J: int) -> int:
    """Rows that are computed at once: a power of two, fixed by the number of columns."""
    return 2 ** max(4, min(9, int(math.log2(BLOCK_CELLS / max(J, 1)))))


def blocks(data: Data, *more: np.ndarray) -> Iterator[tuple[Data, int, *tuple[Array, ...]]]:
    """Blocks of rows of one size, the last padded with rows without observed cells; the number of true rows; more."""
    N, J = data.Y.shape
    mask = np.ones((N, J), bool) if data.mask is None else np.asarray(data.mask)
    for n, (block, *rest) in cut((data._replace(mask=mask), *more), N, block_size(J)):
        yield block, n, *rest


def cut(arrays: Any, N: int, size: int) -> Iterator[tuple[int, Any]]:
    """A tree of arrays with N rows in blocks of one size, the last padded with zeros, on the device.

    Each comes with its number of true rows; without any row there is one block, so that results have their shape.
    """
    for start in range(0, max(N, 1), size):
        n = min(size, N - start)
        part = lambda array, start=start, n=n: jnp.asarray(_padded(np.asarray(array)[start : start + n], size))  # noqa: E731
        yield n, jax.tree.map(part, arrays)


def _padded(part: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([part, np.zeros((size - len(part), *part.shape[1:]), part.dtype)])


def best_anchors(data: Data, members: Members, model: Model) -> Int[Array, "C B"]:
    """The anchors at whose F each row is most probable: the best, and the best at ``MIN_DISTANCE`` or more from it."""
    theta = {name: value.mean(axis=0) for name, value in members.theta.items()}

    given = data.offset[:, None]
    if data.covariates is not None:
        given += data.covariates @ effects(members.beta, model.H).mean(axis=0)

    def log_density(f):
        F = f[None] + given
        return sum_observed(model.likelihood.log_factor(data.Y, F, theta, data.trials), data.mask, axis=1)

    values = lax.map(log_density, members.F)
    best = jnp.argmax(values, axis=0)
    X = members.anchors[0]
    distant = jnp.sum((X[:, None] - X[best][None]) ** 2, axis=2) > MIN_DISTANCE**2
    return jnp.stack([best, jnp.argmax(jnp.where(distant, values, -jnp.inf), axis=0)])


@functools.partial(compiled, static_argnames="model")
def place(data: Data, members: Members, model: Model) -> Placed:
    """Weighted points of the posterior of each row's position, under each member."""
    starts = best_anchors(data, members, model)
    C, B = starts.shape
    repeated = _single(jax.tree.map(lambda part: jnp.concatenate([part] * C), data))

    def climb(member, shift, n_steps):
        """Fisher scoring from the best anchors, shifted as under the last member; single precision is enough."""
        W, beta, theta, anchors, _ = _single(member)
        anchor = anchors[starts].reshape(C * B, -1)
        local = climb_rows(_state(anchor + shift, W, beta, theta), repeated, model, n_steps)
        return local, local.X - anchor

    def under(shift, member):
        local, shift = climb(member, shift, N_STEPS[1])
        W, beta, theta, _, points = member
        local = jax.tree.map(lambda part: part.astype(W.dtype), local)
        D = local.X.shape[1]
        # Components of the proposal: around each mode and, last, as wide as the prior, which also replaces a mode where
        # single precision overflowed. The trace term keeps the metric positive definite in spite of rounding.
        eye = jnp.broadcast_to(jnp.eye(D), (1, B, D, D))
        metric = local.metric + ROUNDING * jnp.trace(local.metric, axis1=1, axis2=2)[:, None, None] * jnp.eye(D)[None]
        finite = jnp.isfinite(local.value) & jnp.isfinite(linalg.small_cholesky(metric)[-1][-1])
        centre = jnp.where(finite[:, None], local.X, 0).reshape(C, B, D)
        metric = jnp.where(finite[:, None, None], metric, jnp.eye(D)).reshape(C, B, D, D)
        centre, metric = jnp.concatenate([centre, jnp.zeros((1, B, D))]), jnp.concatenate([metric, eye])
        L = linalg.small_cholesky(metric)
        by_point = [[entry[:, None] for entry in row] for row in L]
        noise = jnp.broadcast_to(points.reshape(C + 1, N_POINTS, 1, D), (C + 1, N_POINTS, B, D))
        X = (centre[:, None] + linalg.small_solve_lower_transposed(by_point, noise)).reshape(-1, B, D)

        log_proposal = logsumexp(jnp.stack([_log_student(X, centre[c], L, c) for c in range(C + 1)]), axis=0)
        base = sum_observed(model.likelihood.log_base(data.Y, theta, data.trials), data.mask, axis=1)
        state = _state(local.X, W, beta, theta)
        target = lax.map(lambda X: row_values(X, state, data, model), X) + base[None] - D / 2 * math.log(2 * math.pi)
        return shift, Placed(X, target - log_proposal + math.log(C + 1))

    by_member = (members.W, members.beta, members.theta, members.anchors, members.points)
    _, shift = climb(jax.tree.map(lambda part: part[0], by_member), 0.0, N_STEPS[0])
    return lax.scan(under, shift, by_member)[1]


def _single(tree):
    return jax.tree.map(lambda part: part.astype(jnp.float32) if part.dtype == jnp.float64 else part, tree)


def _state(X: Array, W: Array, beta: Array, theta: dict[str, Array]) -> State:
    empty = jnp.zeros(0)
    return State(X, W, empty, empty, empty, empty, beta, theta)


def _log_student(X: Array, centre: Array, L: list[list[Array]], c: int) -> Array:
    """Log density of component c of the proposal, a Student t, at points (Q, B, D)."""
    D = X.shape[-1]
    away = X - centre[None]
    white = [sum(L[i][j][c][None] * away[..., i] for i in range(j, D)) for j in range(D)]
    square = sum(w**2 for w in white)
    constant = math.lgamma((FREEDOM + D) / 2) - math.lgamma(FREEDOM / 2) - D / 2 * math.log(FREEDOM * math.pi)
    return (constant + linalg.small_logdet(L)[c])[None] - (FREEDOM + D) / 2 * jnp.log1p(square / FREEDOM)


def weights(placed: Placed) -> Float[Array, "S Q B"]:
    """Self-normalised importance weights of the points; those of each member sum to 1/S."""
    return jax.nn.softmax(placed.log_weight, axis=1) / placed.log_weight.shape[0]


@compiled
def moments(placed: Placed) -> Moments:
    """Mean, covariance and density of a block of rows."""
    w = weights(placed)
    mean = jnp.einsum("sqb,sqbd->bd", w, placed.X)
    away = placed.X - mean[None, None]
    S, Q = w.shape[:2]
    return Moments(
        mean=mean,
        covariance=jnp.einsum("sqb,sqbd,sqbe->bde", w, away, away),
        log_density=logsumexp(placed.log_weight, axis=(0, 1)) - math.log(S * Q),
    )


@functools.partial(compiled, static_argnames="model")
def expected(placed: Placed, data: Data, members: Members, model: Model) -> Float[Array, "B K"]:
    """E[y | the observed cells of its row] for every cell of a block."""

    def under(inputs):
        member, X, w = inputs

        def add(total, point):
            F = held(point[0], member, data.covariates) + data.offset[:, None]
            return total + point[1][:, None] * model.likelihood.respond(F, member.theta, data.trials), None

        zero = jnp.zeros_like(model.likelihood.respond(data.Y, member.theta, data.trials))
        return lax.scan(add, zero, (X, w))[0]

    return lax.map(under, (members.functions, placed.X, weights(placed))).sum(axis=0)


@functools.partial(compiled, static_argnames="model")
def medians(placed: Placed, data: Data, members: Members, model: Model) -> Float[Array, "B K"]:
    """Posterior median of E[y | f] for every cell of a block, given the observed cells of its row.

    A few rows at a time: the values of a block under all members and at all points would be S Q times as large as it.
    """
    S, Q, B, D = placed.X.shape
    n = 2 ** max(0, min(int(math.log2(B)), int(math.log2(MEDIAN_CELLS / data.Y.shape[1]))))

    def of_rows(inputs):
        X, w, offset, *by_row = inputs
        trials, Z = (None if part is None else jnp.tile(part, (Q, 1)) for part in by_row)

        def under(inputs):
            member, X = inputs
            F = held(X.reshape(Q * n, D), member, Z) + jnp.tile(offset, Q)[:, None]
            return model.likelihood.respond(F, member.theta, trials).reshape(Q, n, -1)

        values = lax.map(under, (members.functions, X))
        median = quantiles.weighted_median(values.reshape(S * Q, n, -1), w.reshape(S * Q, n, 1))
        return _as_shares(median, model)

    apart = lambda part: part if part is None else part.reshape(B // n, n, *part.shape[1:])  # noqa: E731
    X = jnp.moveaxis(placed.X.reshape(S, Q, B // n, n, D), 2, 0)
    w = jnp.moveaxis(weights(placed).reshape(S, Q, B // n, n), 2, 0)
    by_row = (apart(part) for part in (data.offset, data.trials, data.covariates))
    return lax.map(of_rows, (X, w, *by_row)).reshape(B, -1)


def _as_shares(median: Float[Array, "B K"], model: Model) -> Float[Array, "B K"]:
    """Medians of the shares of a row's total, of a family that has it, divided by their sum; else as they are."""
    if not model.likelihood.row_totals:
        return median
    return median / jnp.maximum(median.sum(axis=1, keepdims=True), jnp.finfo(median.dtype).tiny)


@functools.partial(compiled, static_argnames="model")
def replicates(
    key: Array, placed: Placed, data: Data, totals: Float[Array, " B"], members: Members, model: Model
) -> Float[Array, "R B K"]:
    """Draws of every cell of a block given the observed cells of its row; ``totals`` as in ``Likelihood.draw_rows``."""
    key_where, key_cells = jax.random.split(key)
    S = len(members.W)
    # Stratified resampling of the points of a member, with the same uniforms for every row.
    u = (jnp.arange(N_DRAWS, dtype=float)[None] + jax.random.uniform(key_where, (S, N_DRAWS))) / N_DRAWS
    keys = jax.random.split(key_cells, (S, N_DRAWS))

    def under(inputs):
        member, X, log_weight, u, keys = inputs
        cumulative = jnp.cumsum(jax.nn.softmax(log_weight, axis=0), axis=0)

        def draw(inputs):
            u, key = inputs
            point = jnp.minimum(jnp.sum(cumulative < u, axis=0), len(X) - 1)
            x = jnp.take_along_axis(X, point[None, :, None], axis=0)[0]
            F = held(x, member, data.covariates) + data.offset[:, None]
            return draw_rows(key, F, member.theta, data.trials, totals, model)

        return lax.map(draw, (u, keys))

    drawn = lax.map(under, (members.functions, placed.X, placed.log_weight, u, keys))
    return drawn.reshape(S * N_DRAWS, *drawn.shape[2:])


def draw_rows(
    key: Array, F: Float[Array, "B J"], theta: dict[str, Array], trials: Array | None, totals: Array, model: Model
) -> Float[Array, "B K"]:
    """y given f, in the columns of the table, with the same random numbers for every row."""
    likelihood = model.likelihood

    def row(f, trials, total):
        f = f[None]
        return likelihood.draw_rows(key, f, theta, None if trials is None else trials[None], total[None])[0]

    return jax.vmap(row)(F, trials, totals)


@functools.partial(compiled, static_argnames="model")
def responses(
    X: Float[Array, "B D"], offset: Float[Array, " B"], trials: Array | None, covariates: Array | None,
    members: Members, model: Model,
) -> Float[Array, "S B K"]:  # fmt: skip
    """E[y | x] under each member."""

    def under(member):
        return model.likelihood.respond(held(X, member, covariates) + offset[:, None], member.theta, trials)

    return lax.map(under, members.functions)


@functools.partial(compiled, static_argnames=("model", "summary"))
def decode(
    X: Float[Array, "B D"],
    offset: Float[Array, " B"],
    trials: Array | None,
    covariates: Array | None,
    members: Members,
    model: Model,
    summary: str,
) -> Float[Array, "B K"]:
    """E[y | x] under the members, their median or mean."""
    values = responses(X, offset, trials, covariates, members, model)
    return values.mean(axis=0) if summary == "mean" else _as_shares(quantiles.median(values), model)


def generate(
    key: Array,
    offset: Float[np.ndarray, " n"],
    trials: Float[np.ndarray, "n J"] | None,
    covariates: Float[np.ndarray, "n C"] | None,
    totals: Float[np.ndarray, " n"],
    members: Members,
    model: Model,
) -> tuple[Float[np.ndarray, "n D"], Float[np.ndarray, "n K"]]:
    """New rows: positions from their prior, each under a member of its own, and cells given them."""
    key_X, key_member, key_cells = jax.random.split(key, 3)
    n = len(offset)
    X = np.asarray(jax.random.normal(key_X, (n, model.D), float))
    which = np.asarray(jax.random.randint(key_member, (n,), 0, len(members.W)))
    return X, generate_cells(key_cells, X, which, offset, trials, covariates, totals, members, model)


def generate_cells(
    key: Array,
    X: Float[np.ndarray, "n D"],
    which: Int[np.ndarray, " n"],
    offset: Float[np.ndarray, " n"],
    trials: Float[np.ndarray, "n J"] | None,
    covariates: Float[np.ndarray, "n C"] | None,
    totals: Float[np.ndarray, " n"],
    members: Members,
    model: Model,
) -> Float[np.ndarray, "n K"]:
    """Cells of rows at positions, each row under one member."""
    n = len(offset)
    keys = np.asarray(jax.random.key_data(jax.random.split(key, n)))
    size = block_size(members.beta.shape[2])
    parts = [
        np.asarray(cells_at(*block, members, model))[:n_true]
        for n_true, block in cut((keys, X, which, offset, trials, covariates, totals), n, size)
    ]
    return np.concatenate(parts)


@functools.partial(compiled, static_argnames="model")
def cells_at(
    key_data: Array,
    X: Float[Array, "B D"],
    which: Int[Array, " B"],
    offset: Float[Array, " B"],
    trials: Array | None,
    covariates: Array | None,
    totals: Float[Array, " B"],
    members: Members,
    model: Model,
) -> Float[Array, "B K"]:
    """Cells of rows at positions, each row under one member and with a key of its own."""

    def row(inputs):
        key, x, s, offset, trials, z, total = inputs
        member = jax.tree.map(lambda part: part[s], members.functions)
        trials = None if trials is None else trials[None]
        F = held(x[None], member, None if z is None else z[None]) + offset
        return draw_rows(jax.random.wrap_key_data(key), F, member.theta, trials, total[None], model)[0]

    return lax.map(row, (key_data, X, which, offset, trials, covariates, totals))
