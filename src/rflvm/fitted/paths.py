"""Sessions under a fit with a prior over time: the posterior of a session's path, and what follows for its rows.

A session is the unit of independence: given a member, a draw of (W, beta, theta, lengthscale),

    p(X* | Y*, member) = p(Y* | X*, member) N(X*; 0, K) / p(Y* | member)

for all rows of a session together. It is taken for Gaussian around its maximum, which Fisher scoring finds with a
Kalman smoother as its linear solver, from the most probable sequence of anchors (rows of the table whose positions are
known). Whole paths are drawn from it, so that what follows for cells is what it is of independent rows.

A session is padded to a power of two with rows of which nothing is known, and its random numbers depend on that length
alone: its answer is the same alone and beside other sessions, to the last bit.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int
from scipy.special import logsumexp

from ..data.times import Timeline
from ..likelihoods.base import sum_observed
from ..model import dynamics
from ..model.dynamics import Chronology, Innovations
from ..model.features import effects
from ..model.joint import Data, Model, per_axis
from ..model.rows import cell_expansion
from ..numerics import linalg
from ..numerics.compilation import compiled
from . import prediction
from .members import Members
from .prediction import Moments

N_PATHS = 16  # draws of a session's path under each member, in pairs around the maximum
N_STEPS = 10, 4  # of Fisher scoring, under the first member and under each other, which begins where the last one ended
SHORTEST = 16  # rows to which a session is padded at least


class Session(NamedTuple):
    """The posterior of a session's path under each member, and rows' parts of its log density."""

    mean: Float[Array, "S B D"]
    covariance: Float[Array, "S B D D"]
    paths: Float[Array, "S Q B D"]
    log_density: Float[Array, "S B"]


def padded(data: Data, chronology: Chronology, rows: slice) -> tuple[Data, Chronology]:
    """A session, with rows of which nothing is known after it."""
    n = rows.stop - rows.start
    size = max(SHORTEST, 2 ** math.ceil(math.log2(n)))
    mask = np.ones(data.Y.shape, bool) if data.mask is None else np.asarray(data.mask)
    whole = data._replace(mask=mask, chronology=None)
    _, block = next(prediction.cut(jax.tree.map(lambda part: np.asarray(part)[rows], whole), n, size))
    gap = np.full(size, float(chronology.typical))
    gap[:n] = np.asarray(chronology.gap)[rows]
    return block, Chronology(jnp.asarray(gap), jnp.arange(size) == 0, chronology.typical)


@functools.partial(compiled, static_argnames="model")
def place(key: Array, data: Data, chronology: Chronology, members: Members, model: Model) -> Session:
    """The path of one session under each member."""
    B = len(data.Y)
    half = jax.random.normal(key, (N_PATHS // 2, B, 2 * model.D), data.Y.dtype)
    noise = jnp.concatenate([half, -half])
    anchor = _best_sequence(data, chronology, members, model)

    def under(shift, member, n_steps):
        W, beta, theta, anchors, lengthscale = member
        assert model.dynamics is not None
        recursion = dynamics.innovations(model.dynamics, per_axis(lengthscale, model.D), chronology)
        expand = lambda X: cell_expansion(X, W, beta, theta, data, model)  # noqa: E731
        X = _climb(anchors[anchor] + shift, expand, recursion, n_steps)
        base = sum_observed(model.likelihood.log_base(data.Y, theta, data.trials), data.mask, axis=1)
        mean, covariance, known, log_density = _approximation(X, expand, recursion)
        T = dynamics.factor(known)
        paths = X[None] + lax.map(lambda e: dynamics.multiply(T, e), noise)
        return X - anchors[anchor], Session(mean, covariance, paths, log_density + base)

    assert members.lengthscale is not None
    by_member = (members.W, members.beta, members.theta, members.anchors, members.lengthscale)
    shift, _ = under(jnp.zeros((B, model.D), data.Y.dtype), jax.tree.map(lambda part: part[0], by_member), N_STEPS[0])
    return lax.scan(lambda shift, member: under(shift, member, N_STEPS[1]), shift, by_member)[1]


def _best_sequence(data: Data, chronology: Chronology, members: Members, model: Model) -> Int[Array, " B"]:
    """The most probable anchors of all rows together, one after the other as a Markov chain (Viterbi).

    Steps between anchors have the density of steps of the path, widened by the distance of anchors from each other.
    """
    theta = {name: value.mean(axis=0) for name, value in members.theta.items()}

    given = data.offset[:, None]
    if data.covariates is not None:
        given += data.covariates @ effects(members.beta, model.H).mean(axis=0)

    def log_cells(f):
        F = f[None] + given
        return sum_observed(model.likelihood.log_factor(data.Y, F, theta, data.trials), data.mask, axis=1)

    assert model.dynamics is not None
    assert members.lengthscale is not None
    emission = lax.map(log_cells, members.F).T
    X, lengthscale = members.anchors[0], per_axis(members.lengthscale.mean(axis=0), model.D)
    squares = jnp.sum((X[:, None] - X[None]) ** 2, axis=2)
    spacing = jnp.mean(jnp.min(squares + jnp.diag(jnp.full(len(X), jnp.inf)), axis=1))
    spacing = jnp.where(jnp.isfinite(spacing), spacing, 1)
    keep = dynamics.transitions(model.dynamics, lengthscale, chronology).xx

    def forward(value, inputs):
        rho, emission = inputs
        variance = 1 - rho**2 + spacing
        away = jnp.sum((X[None] - rho[None, None] * X[:, None]) ** 2 / variance[None, None], axis=2)
        through = value[:, None] - 0.5 * away - 0.5 * jnp.sum(jnp.log(variance))
        return jnp.max(through, axis=0) + emission, jnp.argmax(through, axis=0)

    first = -0.5 * jnp.sum(X**2, axis=1) + emission[0]
    last, before = lax.scan(forward, first, (keep[1:], emission[1:]))
    end = jnp.argmax(last)
    _, sequence = lax.scan(lambda at, before: (before[at], before[at]), end, before, reverse=True)
    return jnp.append(sequence, end)


def _climb(X: Float[Array, "B D"], expand, recursion: Innovations, n_steps: int) -> Float[Array, "B D"]:
    """Steps of Fisher scoring for a whole path, shortened where they do not go up."""

    def at(X):
        local = expand(X)
        return local, local.value.sum() + dynamics.log_density(X, recursion)

    def step(carry, _):
        X, local, value, length = carry
        natural = jnp.einsum("nde,ne->nd", local.metric, X) + local.gradient
        target, _ = dynamics.smoothed(dynamics.filtered(local.metric, natural, recursion.step))
        there = X + length * (target - X)
        local_there, value_there = at(there)
        better = value_there > value
        keep = lambda new, old: jnp.where(better, new, old)  # noqa: E731
        length = jnp.where(better, jnp.minimum(2 * length, 1), length / 4)
        return (*jax.tree.map(keep, (there, local_there, value_there), (X, local, value)), length), None

    local, value = at(X)
    return lax.scan(step, (X, local, value, jnp.ones((), X.dtype)), length=n_steps)[0][0]


def _approximation(X: Float[Array, "B D"], expand, recursion: Innovations):
    """The Gaussian around a maximum, and the log density of the session in parts, one for each row."""
    local, D = expand(X), X.shape[1]
    natural = jnp.einsum("nde,ne->nd", local.metric, X) + local.gradient
    known = dynamics.filtered(local.metric, natural, recursion.step)
    _, covariance = dynamics.smoothed(known)
    half_logdet = lambda P: linalg.small_logdet(linalg.small_cholesky(P[:, :D, :D]))  # noqa: E731
    log_volume = half_logdet(known.covariance) - half_logdet(known.predicted)
    whitened = dynamics.whiten(X, recursion)
    return X, covariance, known, local.value - 0.5 * jnp.sum(whitened**2, axis=1) + log_volume


def first_rows(session: Session, n: int) -> Session:
    """The true rows of a padded session, on the host."""
    session = jax.tree.map(np.asarray, session)
    paths = session.paths[:, :, :n]
    return Session(session.mean[:, :n], session.covariance[:, :n], paths, session.log_density[:, :n])


def moments(session: Session) -> Moments:
    """Mean and covariance of positions, and each row's log density given the rows of its session before it.

    The parts of a session add up to its log predictive density.
    """
    S = len(session.mean)
    mean = session.mean.mean(axis=0)
    away = session.mean - mean[None]
    covariance = session.covariance.mean(axis=0) + np.einsum("snd,sne->nde", away, away) / S
    so_far: Any = logsumexp(np.cumsum(session.log_density, axis=1), axis=0)
    return Moments(mean, covariance, np.diff(so_far - math.log(S), prepend=0.0))  # pyright: ignore[reportArgumentType]


def generate(key: Array, timeline: Timeline, members: Members, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Positions on new paths, and the member of each row, one for a whole session."""
    assert model.dynamics is not None
    assert members.lengthscale is not None
    key_member, key_noise = jax.random.split(key)
    n_sessions = int(timeline.session[-1]) + 1
    each = np.asarray(jax.random.randint(key_member, (n_sessions,), 0, len(members.W)))
    X = []
    for number, rows in enumerate(timeline.slices):
        gap = jnp.asarray(timeline.gap[rows])
        chronology = Chronology(gap, jnp.arange(len(gap)) == 0, jnp.asarray(timeline.typical))
        noise = jax.random.normal(jax.random.fold_in(key_noise, number), (len(gap), model.D), float)
        lengthscale = jnp.asarray(members.lengthscale[each[number]])
        X.append(np.asarray(_colour(noise, lengthscale, chronology, model)))
    return np.concatenate(X), each[timeline.session]


@functools.partial(compiled, static_argnames="model")
def _colour(
    noise: Float[Array, "B D"], lengthscale: Float[Array, " L"], chronology: Chronology, model: Model
) -> Float[Array, "B D"]:
    assert model.dynamics is not None
    return dynamics.colour(noise, dynamics.innovations(model.dynamics, per_axis(lengthscale, model.D), chronology))
