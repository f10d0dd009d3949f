"""log p(Y | X, W, theta) with beta integrated out by Laplace's method, column by column.

    log p(y_j | Phi, theta_j) ~ log p(y_j | f_j, theta_j) + log p(beta_j) + M/2 log 2 pi - 1/2 log |P_j|

at the mode beta_j of the first two terms, with f_j = Phi beta_j + offset, P_j = Phi' D_j Phi + B0^{-1}
and D_j = diag(-d^2 log p / df^2). The gradient follows the mode as Phi and theta change (implicit
differentiation): with g = d log p / df, s_nj = phi_n' P_j^{-1} phi_n, q = -1/2 s dD/df and
v_j = P_j^{-1} Phi' q_j, it is the gradient of

    sum_nj [log p(y | f) - 1/2 s D(f) + (Phi v) g(f)] - 1/2 sum_j tr(P_j^{-1} Phi' D_j Phi)

in Phi and theta, where f = Phi beta and s, v, beta, P^{-1} and the last D are constants.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped

from ..numerics import linalg
from ..numerics.compilation import compiled
from .features import linear_predictor
from .joint import Data, Model, log_prior_beta

# Chosen on the tables of ``benchmarks/map.py`` by the time of a whole fit; none was measured by itself.
COLUMN_BLOCK = 256  # columns whose factors are in memory at once
_STEPS = 12  # towards the mode with one P^{-1}
_SHARED_STEPS = 36  # with that of a curvature that columns share
_ROUNDS = 12  # in which a column may have its P^{-1} computed anew
_WORST = 32  # columns that have it computed at once, those with the largest decrement
_DAMPING = 0.1  # of the first step of these, as a share of the column's mean curvature
_RADIUS = 4.0  # first trust radius: the largest change of a cell of F
_CORRECTIONS = 6  # steps of conjugate gradients towards v where D is not the second derivative
_SLACK = 1e-6  # by which a step may lower the log density, for rounding


class Mode(NamedTuple):
    """Where the last evaluation found the mode: the warm start of the next one, in column blocks."""

    beta: Float[Array, "B M J"]
    inverse: Float[Array, "B J M M"]  # P_j^{-1}, or something near it
    F: Float[Array, "B N J"]


def rescaled(mode: Mode, scale: Float[Array, " M"]) -> Mode:
    """The mode with each coefficient multiplied by its scale, as when its feature is divided by it."""
    inverse = mode.inverse * scale[None, None, :, None] * scale[None, None, None]
    return mode._replace(beta=mode.beta * scale[None, :, None], inverse=inverse)


class Columns(NamedTuple):
    """The table in blocks of columns; columns that fill up the last block have no observed cell."""

    Y: Float[Array, "B N J"]
    mask: Bool[Array, "B N J"] | None
    trials: Float[Array, "B N J"] | None


@dataclasses.dataclass(frozen=True)
class Blocks:
    """How J columns are cut into equal blocks of at most ``COLUMN_BLOCK``.

    Memory: about 3 J M^2 numbers for the modes' inverses (old, new and one at work), and within a
    block 2 COLUMN_BLOCK M^2 for its factors and as much as min(N, 2048) M^2 for the feature products.
    """

    J: int

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.J // COLUMN_BLOCK)

    @property
    def width(self) -> int:
        """Columns per block."""
        return -(-self.J // self.count)

    def cut(self, array: Shaped[Array, "*R J"], fill: float) -> Array:
        """Cut the last axis into blocks, which become the first axis."""
        padding = [(0, 0)] * (array.ndim - 1) + [(0, self.count * self.width - self.J)]
        padded = jnp.pad(array, padding, constant_values=fill)
        return jnp.moveaxis(padded.reshape(*array.shape[:-1], self.count, self.width), -2, 0)

    def join(self, blocks: Float[Array, "B *R J"]) -> Array:
        """The inverse of ``cut``."""
        joined = jnp.moveaxis(blocks, 0, -2)
        return joined.reshape(*joined.shape[:-2], -1)[..., : self.J]

    def columns(self, data: Data) -> Columns:
        """The table in blocks."""
        whole = self.count * self.width == self.J
        mask = data.mask if data.mask is not None or whole else jnp.ones(data.Y.shape, bool)
        return Columns(
            Y=self.cut(data.Y, 0),
            mask=None if mask is None else self.cut(mask, False),
            trials=None if data.trials is None else self.cut(data.trials, 0),
        )


class SharedCurvature(NamedTuple):
    """Curvatures u_n w_j of rank one in place of those of the cells, for determinants that cost next to nothing.

    One decomposition serves all columns: with Phi' diag(u) Phi = V^{-T} diag(s) V^{-1} and V' B0^{-1} V = I, P_j is
    V^{-T} diag(1 + w_j s) V^{-1}.
    """

    rows: Float[Array, " N"]  # u, of mean 1
    columns: Float[Array, " J"]  # w


class Evidence(NamedTuple):
    """What one evaluation gives besides its value."""

    mode: Mode
    steps: Int[Array, ""]  # largest number of steps that a block made before that
    rounds: Int[Array, ""]  # largest number of times that a block computed P^{-1} for some of its columns anew
    renewed: Float[Array, ""]  # how often it did so for each column, on average over its columns
    decrement: Float[Array, ""]  # largest Newton decrement left, about twice the log density to gain
    arrived: Bool[Array, ""]  # whether it is within the tolerance for every column


def start(data: Data, model: Model, beta: Float[Array, "M J"]) -> Mode:
    """A mode to start from: the given coefficients, the prior's covariance, and F without features."""
    blocks = Blocks(data.Y.shape[1])
    B0 = jnp.diag(1 / model.precision(beta.shape[0], beta.dtype))
    inverse = jnp.broadcast_to(B0, (blocks.count, blocks.width, *B0.shape))
    return Mode(blocks.cut(beta, 0), inverse, blocks.cut(beta[-1:] + data.offset[:, None], 0))


def log_evidence(
    Phi: Float[Array, "N M"], theta: dict[str, Array], mode: Mode, data: Data, model: Model, tolerance: float,
    shared: SharedCurvature | None = None,
) -> tuple[Float[Array, ""], Evidence]:  # fmt: skip
    """sum_j log p(y_j | Phi, theta_j); differentiable in Phi and theta, the latter of shape (J,) or (K, J) each.

    The mode is found from the given one, to a Newton decrement below ``tolerance`` times one plus the size of
    the column's log density. With ``shared`` the determinants are approximated, and inverses of the mode are computed
    anew only for columns whose mode cannot be found with the old one: a small part of the work.
    """
    blocks = Blocks(data.Y.shape[1])
    integrate = _integrate if shared is None else _maximise

    def forward(Phi, theta, mode, shared, columns, offset):
        # Computed once, not anew inside each matrix product.
        Phi, mode = lax.optimization_barrier((Phi, mode))

        def block(dPhi, inputs):
            out = integrate(Phi, *inputs, offset=offset, model=model, tolerance=tolerance)
            return dPhi + out.Phi_slope, out._replace(Phi_slope=jnp.zeros(()))

        inputs = (columns, {name: blocks.cut(value, 1) for name, value in theta.items()}, mode)
        dPhi, out = lax.scan(block, jnp.zeros_like(Phi), inputs)
        dtheta = {name: blocks.join(value) for name, value in out.theta_slope.items()}
        evidence = Evidence(
            mode=Mode(out.beta, out.inverse, out.F),
            steps=out.steps.max(),
            rounds=out.rounds.max(),
            renewed=out.rounds.max().astype(Phi.dtype) * (min(blocks.width, _WORST) / blocks.width),
            decrement=out.decrement.max(),
            arrived=out.arrived.all(),
        )
        # Summed in double precision, for a maximiser looks at small differences of a large sum.
        total = jnp.sum(out.values.astype(jnp.result_type(float)))
        if shared is not None:
            Phi, total = lax.optimization_barrier((Phi, total))  # one batched LAPACK call after the other
            half_logdet, slope = _shared_determinants(Phi, shared, model)
            total, dPhi = total - half_logdet.astype(total.dtype), dPhi - slope
        return (total, evidence), (dPhi, dtheta)

    def backward(slopes, cotangent):
        dPhi, dtheta = jax.tree.map(lambda slope: cotangent[0].astype(slope.dtype) * slope, slopes)
        return dPhi, dtheta, None, None, None, None

    integrated = jax.custom_vjp(lambda *arguments: forward(*arguments)[0])
    integrated.defvjp(forward, backward)
    return integrated(Phi, theta, mode, shared, blocks.columns(data), data.offset)


def share_curvature(theta: dict[str, Array], mode: Mode, data: Data, model: Model) -> SharedCurvature:
    """Curvatures of rank one with the same totals of rows and columns as those of the cells at a mode."""
    columns = Columns(data.Y, data.mask, data.trials)
    return _shared(_slope_and_curvature(Blocks(data.Y.shape[1]).join(mode.F), theta, columns, model)[1])


def _shared(curvature: Float[Array, "N J"]) -> SharedCurvature:
    per_row = curvature.mean(axis=1)
    return SharedCurvature(per_row / _positive(per_row.mean()), curvature.mean(axis=0))


def _decomposed(
    Phi: Float[Array, "N M"], rows: Float[Array, " N"], precision: Float[Array, " M"]
) -> tuple[Float[Array, " M"], Float[Array, "M M"]]:
    """s and V of ``SharedCurvature``, in double precision: s spans as many decades as single precision has."""
    root = jnp.sqrt(precision)
    gram = (Phi.T @ (Phi * rows[:, None]) / root[:, None] / root[None]).astype(jnp.result_type(float))
    s, V = jnp.linalg.eigh(gram)
    return jnp.maximum(s, 0), V / root[:, None].astype(V.dtype)


def _shared_determinants(
    Phi: Float[Array, "N M"], shared: SharedCurvature, model: Model
) -> tuple[Float[Array, ""], Float[Array, "N M"]]:
    """1/2 sum_j log |P_j| with curvatures of rank one, and its derivative in Phi."""
    precision = model.precision(Phi.shape[1], Phi.dtype)
    s, V = _decomposed(Phi, shared.rows, precision)
    s, w = s[None], shared.columns.astype(s.dtype)[:, None]
    half_logdet = 0.5 * (jnp.sum(jnp.log1p(w * s)) + len(w) * jnp.sum(jnp.log(precision.astype(s.dtype))))
    inverse = (V * jnp.sum(w / (1 + w * s), axis=0)[None]) @ V.T
    return half_logdet, (Phi * shared.rows[:, None]) @ inverse.astype(Phi.dtype)


def _log_factor(F, theta, columns: Columns, model: Model):
    """The part of log p(y | f, theta) that depends on f, of each cell, 0 where it is missing."""
    return _observed(model.likelihood.log_factor(columns.Y, F, theta, columns.trials), columns)


def _log_base(theta, columns: Columns, model: Model):
    """The rest of it."""
    return _observed(model.likelihood.log_base(columns.Y, theta, columns.trials), columns)


def _observed(cells, columns: Columns):
    return cells if columns.mask is None else jnp.where(columns.mask, cells, 0)


@functools.partial(compiled, static_argnames="model")
def information(intercepts: Float[Array, " J"], theta: dict[str, Array], data: Data, model: Model) -> Float[Array, ""]:
    """Sum of D over the observed cells where F is the intercepts."""
    columns = Columns(data.Y, data.mask, data.trials)
    return _slope_and_curvature(intercepts[None] + data.offset[:, None], theta, columns, model)[1].sum()


def _slope_and_curvature(F, theta, columns: Columns, model: Model):
    """g and D of each cell."""
    _, g, D = model.likelihood.slope_and_curvature(columns.Y, F, theta, columns.trials)
    return _observed(g, columns), _observed(D, columns)


class _Block(NamedTuple):
    values: Float[Array, " J"]
    Phi_slope: Any
    theta_slope: dict[str, Array]
    beta: Float[Array, "M J"]
    inverse: Float[Array, "J M M"]
    F: Float[Array, "N J"]
    steps: Int[Array, ""]
    rounds: Int[Array, ""]
    decrement: Float[Array, ""]
    arrived: Bool[Array, ""]


def _integrate(Phi, columns: Columns, theta, mode: Mode, *, offset, model: Model, tolerance: float) -> _Block:
    """Value and gradient of one block of columns."""
    precision = model.precision(Phi.shape[1], Phi.dtype)
    log_factor = functools.partial(_log_factor, columns=columns, model=model)
    log_base = functools.partial(_log_base, columns=columns, model=model)
    slope_and_curvature = functools.partial(_slope_and_curvature, columns=columns, model=model)
    base = log_base(theta)
    beta, _, *effort = _find_mode(Phi, columns, theta, base, mode, offset, model, tolerance)
    F = linear_predictor(Phi, beta, offset)
    _, curvature = slope_and_curvature(F, theta)
    L, inverse = _factor(Phi, curvature, precision)
    M = Phi.shape[1]
    values = (
        (log_factor(F, theta) + base).sum(axis=0)
        + log_prior_beta(beta, theta, model)
        + M / 2 * math.log(2 * math.pi)
        - jnp.log(jnp.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    )

    dtrace, leverage = linalg.trace_slopes(Phi, curvature, inverse)
    q = jax.grad(lambda F: -0.5 * jnp.sum(leverage * slope_and_curvature(F, theta)[1]))(F)
    v = linalg.multiply_columns(inverse, Phi.T @ q)
    if not model.likelihood.concave:
        v = _corrected(v, Phi, q, jax.jvp(lambda F: slope_and_curvature(F, theta)[0], (F,), (jnp.ones_like(F),))[1],
                       inverse, precision)  # fmt: skip

    def with_constants(F, theta, Phi_v):  # the expression of the module's docstring, its constants held
        g, D = slope_and_curvature(F, theta)
        return jnp.sum(log_factor(F, theta) + log_base(theta) - 0.5 * leverage * D + Phi_v * g)

    dF, dtheta, g = jax.grad(with_constants, argnums=(0, 1, 2))(F, theta, Phi @ v)
    dPhi = dF @ beta.T + g @ v.T - 0.5 * dtrace
    return _Block(values, dPhi, dtheta, beta, inverse, F, *effort)


def _corrected(v, Phi, q, second, inverse, precision):
    """v of the module's docstring where D is not -d^2 log p / df^2, given that second derivative of each cell.

    The mode follows Phi with the Hessian of the log density, of which P_j is only near: conjugate gradients with P_j as
    the preconditioner, all columns at once.
    """

    def hessian(v):
        return precision[:, None] * v - Phi.T @ (second * (Phi @ v))

    def step(carry, _):
        v, residual, direction, size = carry
        along = hessian(direction)
        length = size / _positive(jnp.sum(direction * along, axis=0))
        v, residual = v + length[None] * direction, residual - length[None] * along
        near = linalg.multiply_columns(inverse, residual)
        new_size = jnp.sum(residual * near, axis=0)
        return (v, residual, near + (new_size / _positive(size))[None] * direction, new_size), None

    residual = Phi.T @ q - hessian(v)
    near = linalg.multiply_columns(inverse, residual)
    start = (v, residual, near, jnp.sum(residual * near, axis=0))
    return lax.scan(step, start, length=_CORRECTIONS)[0][0]


def _positive(x):
    return jnp.maximum(x, jnp.finfo(x.dtype).tiny)


def _maximise(Phi, columns: Columns, theta, mode: Mode, *, offset, model: Model, tolerance: float) -> _Block:
    """Value and gradient of one block of columns at the modes, without determinants.

    The inverses are those with which Newton's method ended: near enough to begin with the next time.
    """
    base = _log_base(theta, columns, model)
    beta, inverse, *effort = _find_mode(Phi, columns, theta, base, mode, offset, model, tolerance)

    def log_density(F, theta):
        return _log_factor(F, theta, columns, model) + _log_base(theta, columns, model)

    F = linear_predictor(Phi, beta, offset)
    cells, pullback = jax.vjp(log_density, F, theta)
    dF, dtheta = pullback(jnp.ones_like(cells))
    values = cells.sum(axis=0) + log_prior_beta(beta, theta, model)
    return _Block(values, dF @ beta.T, dtheta, beta, inverse, F, *effort)


def _factor(Phi, weights, precision):
    """Cholesky factor and inverse of Phi' diag(weights_j) Phi + B0^{-1} for each column."""
    L, _ = linalg.cholesky(linalg.weighted_grams(Phi, weights) + jnp.diag(precision)[None])
    return L, linalg.inverse_from_cholesky(L)


class _Search(NamedTuple):
    beta: Float[Array, "M J"]
    F: Float[Array, "N J"]
    value: Float[Array, " J"]
    gradient: Float[Array, "M J"]
    curvature: Float[Array, "N J"]  # D
    decrement: Float[Array, " J"]


def _find_mode(Phi, columns: Columns, theta, base, mode: Mode, offset, model: Model, tolerance):
    """Conjugate gradients for all columns, then Newton's method for the worst; what was found, and the effort.

    A column begins at its last mode, or without features where that is better. The steps are preconditioned by the
    last evaluation's P_j^{-1}, good where X has moved little, and then by that of a curvature that columns share, which
    is made anew. Columns that have not arrived after them are taken ``_WORST`` at a time, with P_j^{-1} anew each time.
    Their first step is a weighted least squares fit of the features to the last F, which may be near the new mode where
    Phi has changed much. It is damped: ``_DAMPING`` of the column's mean curvature is added to the weights, so that
    cells with little information stay.
    """
    J = mode.beta.shape[1]
    precision = model.precision(Phi.shape[1], Phi.dtype)
    worst = min(J, _WORST)

    def problem(which):
        cells, own, rest = jax.tree.map(lambda part: part[..., which], (columns, theta, base))
        return _Problem(Phi, offset[:, None], cells, own, rest, precision, model)

    def arrived(search: _Search):
        return search.decrement <= tolerance * (1 + jnp.abs(search.value))

    def together(search: _Search):
        shared = _shared(search.curvature)
        s, V = (part.astype(Phi.dtype) for part in _decomposed(Phi, shared.rows, precision))
        scale = 1 / (1 + s[:, None] * shared.columns[None])
        return _conjugate_gradients(search, lambda g: V @ (scale * (V.T @ g)), _SHARED_STEPS, every, arrived)

    def unfinished(carry):
        search, _, _, _, rounds = carry
        return (rounds < _ROUNDS * -(-J // worst)) & ~jnp.all(arrived(search))

    def refine(carry):
        search, inverses, anchor, damping, rounds = carry
        _, which = lax.top_k(jnp.where(arrived(search), -1, search.decrement), worst)
        chosen = problem(which)
        part = _Search(*(field[..., which] for field in search))
        F = anchor[:, which]
        g, curvature = _slope_and_curvature(F, chosen.theta, chosen.columns, model)
        weights = curvature + (damping[which] * curvature.mean(axis=0))[None]
        _, inverse = _factor(Phi, weights, precision)
        beta = linalg.multiply_columns(inverse, Phi.T @ (weights * (F - chosen.offset) + g))
        newton = functools.partial(linalg.multiply_columns, inverse)
        part, _ = _conjugate_gradients(_better(part, chosen.begin(beta)), newton, _STEPS, chosen, arrived)
        search = _Search(*(field.at[..., which].set(new) for field, new in zip(search, part, strict=True)))
        inverses = inverses.at[which].set(inverse)
        return search, inverses, anchor.at[:, which].set(part.F), damping.at[which].set(0), rounds + 1

    every = problem(jnp.arange(J))
    flat = jnp.zeros_like(mode.beta).at[-1].set(mode.beta[-1])
    last = functools.partial(linalg.multiply_columns, mode.inverse)
    search = _better(every.begin(mode.beta), every.begin(flat))
    search, steps = _conjugate_gradients(search, last, _STEPS, every, arrived)
    none = jnp.zeros((), jnp.int32)
    search, more = lax.cond(jnp.all(arrived(search)), lambda search: (search, none), together, search)
    begin = (search, mode.inverse, mode.F, jnp.full_like(search.value, _DAMPING), none)
    search, inverses, _, _, rounds = lax.while_loop(unfinished, refine, begin)
    return search.beta, inverses, steps + more, rounds, search.decrement.max(), arrived(search).all()


class _Problem(NamedTuple):
    """The log posterior of the coefficients of some columns."""

    Phi: Float[Array, "N M"]
    offset: Float[Array, "N 1"]
    columns: Columns
    theta: dict[str, Array]
    base: Float[Array, "N J"]  # what does not change with the coefficients; added cell by cell, where it cancels
    precision: Float[Array, " M"]
    model: Model

    def at(self, beta: Float[Array, "M J"], F: Float[Array, "N J"]) -> _Search:
        """A search at given coefficients and the F that belongs to them."""
        cells = _log_factor(F, self.theta, self.columns, self.model)
        g, curvature = _slope_and_curvature(F, self.theta, self.columns, self.model)
        pull = self.precision[:, None] * beta
        value = (cells + self.base).sum(axis=0) - 0.5 * jnp.sum(pull * beta, axis=0)
        return _Search(beta, F, value, self.Phi.T @ g - pull, curvature, jnp.full_like(value, jnp.inf))

    def begin(self, beta: Float[Array, "M J"]) -> _Search:
        """A search that begins at given coefficients."""
        return self.at(beta, self.Phi @ beta + self.offset)


def _better(one: _Search, other: _Search) -> _Search:
    """The better of two for each column; the other where the one is not a number."""
    better = other.value > jnp.where(jnp.isnan(one.value), -jnp.inf, one.value)
    return _Search(*(jnp.where(better, new, old) for new, old in zip(other, one, strict=True)))


def _conjugate_gradients(
    search: _Search, precondition, n_steps: int, problem: _Problem, arrived
) -> tuple[_Search, Int[Array, ""]]:
    """At most so many steps of conjugate gradients, preconditioned by something near P_j^{-1}.

    With P_j^{-1} itself the first is Newton's. With that of another X or beta, each step makes up for part of the
    difference, and is as long as the present curvature along it says. No cell of F moves by more than a radius, which
    doubles after a step that improved its column and is cut to a quarter of the step after one that did not: a large
    count where little was expected would otherwise send F where exp(F) overflows. Also the number of steps made.
    """
    tiny = jnp.finfo(search.value.dtype).tiny

    def aim(search: _Search):
        direction = precondition(search.gradient)
        return direction, search._replace(decrement=jnp.sum(direction * search.gradient, axis=0))

    def advance(carry):
        search, direction, radius, step = carry
        change = problem.Phi @ direction
        largest = jnp.abs(change).max(axis=0)
        bend = jnp.sum(search.curvature * change**2, axis=0) + problem.precision @ direction**2
        length = jnp.sum(direction * search.gradient, axis=0) / jnp.maximum(bend, tiny)
        length = jnp.minimum(length, radius / jnp.maximum(largest, tiny))
        trial = problem.at(search.beta + length[None] * direction, search.F + length[None] * change)
        slack = _SLACK + 10 * jnp.finfo(trial.value.dtype).eps * jnp.abs(search.value)  # what rounding may hide
        better = trial.value >= search.value - slack
        last, search = search, _Search(*(jnp.where(better, new, old) for new, old in zip(trial, search, strict=True)))
        ahead, search = aim(search)
        # Polak and Ribiere's, between zero and Fletcher and Reeves'; a step that was refused begins anew.
        turn = search.decrement - jnp.sum(ahead * last.gradient, axis=0)
        share = jnp.clip(turn, 0, search.decrement) / jnp.maximum(last.decrement, tiny)
        direction = ahead + jnp.where(better, share, 0)[None] * direction
        return search, direction, jnp.where(better, 2 * radius, length * largest / 4), step + 1

    def unfinished(carry):
        search, _, _, step = carry
        return (step < n_steps) & ~jnp.all(arrived(search))

    direction, search = aim(search)
    radius = jnp.full_like(search.value, _RADIUS)
    start = (search, direction, radius, jnp.zeros((), jnp.int32))
    search, _, _, step = lax.while_loop(unfinished, advance, start)
    return search, step


class Details(NamedTuple):
    """The Gaussian approximation of the posterior of beta, and what each cell says of f and has of it left open."""

    beta: Float[Array, "M J"]
    factor: Float[Array, "K M M"]  # Cholesky factor of P_j, one for all columns (K = 1) or one each
    scale: Float[Array, " J"]  # the covariance of beta_j is scale_j P_j^{-1}
    curvature: Float[Array, "N J"]  # D
    leverage: Float[Array, "N J"]  # phi_n' P_j^{-1} phi_n, the variance of f_nj that beta leaves


def details(Phi: Float[Array, "N M"], theta: dict[str, Array], mode: Mode, data: Data, model: Model) -> Details:
    """Everything at a mode that was found."""
    blocks = Blocks(data.Y.shape[1])
    precision = model.precision(Phi.shape[1], Phi.dtype)

    def block(inputs):
        columns, theta, mode = inputs
        F = linear_predictor(Phi, mode.beta, data.offset)
        curvature = _slope_and_curvature(F, theta, columns, model)[1]
        L, inverse = _factor(Phi, curvature, precision)
        _, leverage = linalg.trace_slopes(Phi, curvature, inverse)
        return L, curvature, leverage

    inputs = (blocks.columns(data), {name: blocks.cut(value, 1) for name, value in theta.items()}, mode)
    L, curvature, leverage = lax.map(block, inputs)
    factor = L.reshape(-1, *L.shape[2:])[: blocks.J]
    scale = jnp.ones(blocks.J, Phi.dtype)
    return Details(blocks.join(mode.beta), factor, scale, blocks.join(curvature), blocks.join(leverage))
