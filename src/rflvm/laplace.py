"""log p(Y | X, W, theta) with beta integrated out by Laplace's method, column by column.

    log p(y_j | Phi, theta_j) ~ log p(y_j | f_j, theta_j) + log p(beta_j) + M/2 log 2 pi - 1/2 log |P_j|

at the mode beta_j of the first two terms, with f_j = Phi beta_j + offset, P_j = Phi' D_j Phi + B0^{-1}
and D_j = diag(-d^2 log p / df^2). The gradient follows the mode as Phi and theta change (implicit
differentiation): with g = d log p / df, s_nj = phi_n' P_j^{-1} phi_n, q = -1/2 s dD/df and
v_j = P_j^{-1} Phi' q_j, it is the gradient of

    sum_nj [log p(y | f) - 1/2 s D(f) + (Phi v) g(f)] - 1/2 sum_j tr(P_j^{-1} Phi' D_j Phi)

in Phi and theta, where f = Phi beta and s, v, beta, P^{-1} and the last D are held.
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

from . import linalg
from .model import Data, Model, log_prior_beta, state_shapes

COLUMN_BLOCK = 256
_STEPS_PER_FACTOR = 6
_MAX_STEPS = 60


class Mode(NamedTuple):
    """Where the last evaluation found the mode: the warm start of the next one, in column blocks."""

    beta: Float[Array, "B M J"]
    inverse: Float[Array, "B J M M"]  # P_j^{-1}


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


class Evidence(NamedTuple):
    """What one evaluation gives besides its value."""

    mode: Mode
    steps: Int[Array, ""]  # largest number of steps that a block took to its mode
    decrement: Float[Array, ""]  # largest Newton decrement left, about twice the log density to gain


def start(data: Data, model: Model, beta: Float[Array, "M J"]) -> Mode:
    """A mode to start from: the given coefficients, and the prior's covariance."""
    blocks = Blocks(data.Y.shape[1])
    B0 = jnp.diag(1 / model.prior.precision(beta.shape[0], beta.dtype))
    return Mode(blocks.cut(beta, 0), jnp.broadcast_to(B0, (blocks.count, blocks.width, *B0.shape)))


def log_evidence(
    Phi: Float[Array, "N M"], theta: dict[str, Array], mode: Mode, data: Data, model: Model, tolerance: float
) -> tuple[Float[Array, ""], Evidence]:
    """sum_j log p(y_j | Phi, theta_j); differentiable in Phi and theta, the latter of shape (J,) each.

    The mode is found to a Newton decrement below ``tolerance``, from the given one.
    """
    blocks = Blocks(data.Y.shape[1])

    def forward(Phi, theta, mode, columns, offset):
        def block(dPhi, inputs):
            out = _integrate(Phi, *inputs, offset=offset, model=model, tolerance=tolerance)
            return dPhi + out.Phi_slope, out._replace(Phi_slope=jnp.zeros(()))

        inputs = (columns, {name: blocks.cut(value, 1) for name, value in theta.items()}, mode)
        dPhi, out = lax.scan(block, jnp.zeros_like(Phi), inputs)
        dtheta = {name: blocks.join(value) for name, value in out.theta_slope.items()}
        evidence = Evidence(Mode(out.beta, out.inverse), out.steps.max(), out.decrement.max())
        # Summed in double precision, for a maximiser looks at small differences of a large sum.
        total = jnp.sum(out.values.astype(jnp.result_type(float)))
        return (total, evidence), (dPhi, dtheta)

    def backward(slopes, cotangent):
        dPhi, dtheta = jax.tree.map(lambda slope: cotangent[0].astype(slope.dtype) * slope, slopes)
        return dPhi, dtheta, None, None, None

    integrated = jax.custom_vjp(lambda *arguments: forward(*arguments)[0])
    integrated.defvjp(forward, backward)
    return integrated(Phi, theta, mode, blocks.columns(data), data.offset)


def _log_prob(F, theta, columns: Columns, model: Model):
    """log p(y | f, theta) of each cell, 0 where it is missing."""
    cells = model.likelihood.log_prob(columns.Y, F, theta, columns.trials)
    return cells if columns.mask is None else jnp.where(columns.mask, cells, 0)


@functools.partial(jax.jit, static_argnames="model")
def information(intercepts: Float[Array, " J"], data: Data, model: Model) -> Float[Array, ""]:
    """Sum of D over the observed cells where F is the intercepts and theta is one."""
    theta = {name: jnp.ones(shape.shape, shape.dtype) for name, shape in state_shapes(data, model).theta.items()}
    columns = Columns(data.Y, data.mask, data.trials)
    return _slope_and_curvature(intercepts + data.offset[:, None], theta, columns, model)[1].sum()


def _slope_and_curvature(F, theta, columns: Columns, model: Model):
    """g and D of each cell."""
    slope = jax.grad(lambda F: _log_prob(F, theta, columns, model).sum())
    g, second = jax.jvp(slope, (F,), (jnp.ones_like(F),))
    return g, jnp.maximum(-second, 0)


class _Block(NamedTuple):
    values: Float[Array, " J"]
    Phi_slope: Any
    theta_slope: dict[str, Array]
    beta: Float[Array, "M J"]
    inverse: Float[Array, "J M M"]
    steps: Int[Array, ""]
    decrement: Float[Array, ""]


def _integrate(Phi, columns: Columns, theta, mode: Mode, *, offset, model: Model, tolerance: float) -> _Block:
    """Value and gradient of one block of columns."""
    precision = model.prior.precision(Phi.shape[1], Phi.dtype)

    log_prob = functools.partial(_log_prob, columns=columns, model=model)
    slope_and_curvature = functools.partial(_slope_and_curvature, columns=columns, model=model)

    def factor(F):
        _, curvature = slope_and_curvature(F, theta)
        L, _ = linalg.cholesky(linalg.weighted_grams(Phi, curvature) + jnp.diag(precision))
        return curvature, L, linalg.inverse_from_cholesky(L)

    def predictor(beta):
        return Phi @ beta + offset[:, None]

    beta, steps, decrement = _find_mode(Phi, mode, predictor, log_prob, factor, theta, precision, tolerance)
    F = predictor(beta)
    curvature, L, inverse = factor(F)
    M = Phi.shape[1]
    values = (
        log_prob(F, theta).sum(axis=0)
        + log_prior_beta(beta, theta, model)
        + M / 2 * math.log(2 * math.pi)
        - jnp.log(jnp.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    )

    dtrace, leverage = linalg.trace_slopes(Phi, curvature, inverse)
    q = jax.grad(lambda F: -0.5 * jnp.sum(leverage * slope_and_curvature(F, theta)[1]))(F)
    v = linalg.multiply_columns(inverse, Phi.T @ q)

    def held(F, theta, Phi_v):
        g, D = slope_and_curvature(F, theta)
        return jnp.sum(log_prob(F, theta) - 0.5 * leverage * D + Phi_v * g)

    dF, dtheta, g = jax.grad(held, argnums=(0, 1, 2))(F, theta, Phi @ v)
    dPhi = dF @ beta.T + g @ v.T - 0.5 * dtrace
    return _Block(values, dPhi, dtheta, beta, inverse, steps, decrement)


class _Search(NamedTuple):
    beta: Float[Array, "M J"]
    value: Float[Array, " J"]
    gradient: Float[Array, "M J"]
    direction: Float[Array, "M J"]
    inverse: Float[Array, "J M M"]
    length: Float[Array, " J"]
    decrement: Float[Array, " J"]
    steps: Int[Array, ""]


def _find_mode(Phi, mode: Mode, predictor, log_prob, factor, theta, precision, tolerance):
    """Newton's method for all columns, with the last evaluation's P^{-1} for as long as it serves.

    A column begins at its last mode or, where that has become a bad guess because Phi changed much, without
    features. A step that does not improve its column is cut to a quarter. After ``_STEPS_PER_FACTOR`` steps without
    convergence P^{-1} is computed anew.
    """

    def evaluate(beta):
        F = predictor(beta)
        value, pullback = jax.vjp(lambda F: log_prob(F, theta).sum(axis=0), F)
        (g,) = pullback(jnp.ones_like(value))
        return (
            value - 0.5 * jnp.sum(precision[:, None] * beta**2, axis=0),
            Phi.T @ g - precision[:, None] * beta,
        )

    def aim(search: _Search) -> _Search:
        direction = linalg.multiply_columns(search.inverse, search.gradient)
        return search._replace(direction=direction, decrement=jnp.sum(direction * search.gradient, axis=0))

    def advance(search: _Search) -> _Search:
        trial = search.beta + search.length * search.direction
        value, gradient = evaluate(trial)
        slack = 10 * jnp.finfo(value.dtype).eps * jnp.abs(search.value)
        better = value >= search.value - slack
        pick = lambda new, old: jnp.where(better, new, old)  # noqa: E731
        search = search._replace(
            beta=pick(trial, search.beta),
            value=pick(value, search.value),
            gradient=pick(gradient, search.gradient),
            length=jnp.where(better, jnp.minimum(2 * search.length, 1), search.length / 4),
            steps=search.steps + 1,
        )
        stale = search.steps % _STEPS_PER_FACTOR == 0
        inverse, length = lax.cond(
            stale,
            lambda: (factor(predictor(search.beta))[2], jnp.ones_like(search.length)),
            lambda: (search.inverse, search.length),
        )
        return aim(search._replace(inverse=inverse, length=length))

    def unfinished(search: _Search):
        return (search.steps < _MAX_STEPS) & jnp.any(search.decrement > tolerance)

    flat = jnp.zeros_like(mode.beta).at[-1].set(mode.beta[-1])
    last, anew = ((beta, *evaluate(beta)) for beta in (mode.beta, flat))
    beta, value, gradient = (jnp.where(last[1] >= anew[1], old, new) for old, new in zip(last, anew, strict=True))
    zero = jnp.zeros_like(value)
    search = _Search(beta, value, gradient, gradient, mode.inverse, zero + 1, zero, jnp.zeros((), jnp.int32))
    search = lax.while_loop(unfinished, advance, aim(search))
    return search.beta, search.steps, search.decrement.max()


class Details(NamedTuple):
    """The posterior of beta and what rows have at stake in it."""

    beta: Float[Array, "M J"]
    factor: Float[Array, "K M M"]  # Cholesky factor of P_j, one for all columns (K = 1) or one each
    scale: Float[Array, " J"]  # the covariance of beta_j is scale_j P_j^{-1}
    curvature: Float[Array, "N J"]  # D
    leverage: Float[Array, "N J"]  # phi_n' P_j^{-1} phi_n, the variance of f_nj that beta leaves


@functools.partial(jax.jit, static_argnames="model")
def details(Phi: Float[Array, "N M"], theta: dict[str, Array], mode: Mode, data: Data, model: Model) -> Details:
    """Everything at a mode that was found."""
    blocks = Blocks(data.Y.shape[1])
    precision = jnp.diag(model.prior.precision(Phi.shape[1], Phi.dtype))

    def block(inputs):
        columns, theta, mode = inputs
        F = Phi @ mode.beta + data.offset[:, None]
        curvature = _slope_and_curvature(F, theta, columns, model)[1]
        L, _ = linalg.cholesky(linalg.weighted_grams(Phi, curvature) + precision)
        _, leverage = linalg.trace_slopes(Phi, curvature, linalg.inverse_from_cholesky(L))
        return L, curvature, leverage

    inputs = (blocks.columns(data), {name: blocks.cut(value, 1) for name, value in theta.items()}, mode)
    L, curvature, leverage = lax.map(block, inputs)
    factor = L.reshape(-1, *L.shape[2:])[: blocks.J]
    scale = jnp.ones(blocks.J, Phi.dtype)
    return Details(blocks.join(mode.beta), factor, scale, blocks.join(curvature), blocks.join(leverage))
