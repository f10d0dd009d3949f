"""X with a prior over time: single rows between their neighbours, and whole paths.

Rows of a Matern-3/2 process are no Markov chain, but with their velocities v they are (``model/dynamics.py``). V is
drawn given X, exactly. Then rows with even numbers move, each given the states of the rows before and after it, its own
v integrated out, and get a new v given their x; then those with odd numbers. A row moves by Langevin proposals as
in ``X.py``, its neighbours' Gaussian in place of N(0, I).

Slow directions, in which many rows move together, are left to HMC on whole paths: X + T e from e = 0, T T' being the
posterior covariance of paths whose rows have the information that they had in burn-in. T does not depend on X, so the
move is exact whatever it is. With beta integrated out (Gaussian) it is the only move.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...model import dynamics
from ...model.conjugate import log_evidence
from ...model.features import features
from ...model.joint import Data, Model, State, is_marginal, log_likelihood, per_axis
from ...model.rows import expand
from ...numerics import hmc
from .tuning import Tuning
from .X import adapt as adapt_rows
from .X import langevin

N_LEAPFROG = 4


class Info(NamedTuple):
    """Acceptance of rows and of whole paths, and the log density of the cells where the move ended."""

    acceptance: Float[Array, ""]
    of_paths: Float[Array, ""]
    value: Float[Array, ""]


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """Draw X: rows between their neighbours, unless beta is integrated out, and whole paths."""
    key_rows, key_paths = jax.random.split(key)
    acceptance = jnp.ones((), state.X.dtype)
    if not is_marginal(model):
        state, acceptance = _step_rows(key_rows, state, data, model, tuning)
    state, of_paths = _step_paths(key_paths, state, data, model, tuning)
    return state, Info(acceptance, of_paths, log_cells(state, data, model))


def log_cells(state: State, data: Data, model: Model) -> Float[Array, ""]:
    """log p(Y | X, W) with beta as it is, or integrated out."""
    if is_marginal(model):
        return log_evidence(features(state.X, state.W, data.covariates), data, model).sum()
    return log_likelihood(state, data, model)


def _transitions(state: State, data: Data, model: Model) -> dynamics.Transitions:
    assert model.dynamics is not None
    assert state.lengthscale is not None
    assert data.chronology is not None
    return dynamics.transitions(model.dynamics, per_axis(state.lengthscale, model.D), data.chronology)


def _step_rows(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Float[Array, ""]]:
    steps = _transitions(state, data, model)
    key_V, *keys = jax.random.split(key, 3)
    X, acceptance = state.X, []
    V = dynamics.draw_velocities(jax.random.normal(key_V, X.shape, X.dtype), X, steps)
    for first, key in zip((0, 1), keys, strict=True):
        chosen = slice(first, None, 2)
        if not len(X[chosen]):
            continue
        key_x, key_v = jax.random.split(key)
        between = jax.tree.map(lambda part: part[chosen], dynamics.between_neighbours(X, V, steps))  # noqa: B023
        some = jax.tree.map(lambda part: part[chosen], data._replace(chronology=None))  # noqa: B023
        at = lambda x, some=some, between=between: expand(x, state, some, model, between)  # noqa: E731
        local, accepted = langevin(key_x, at(X[chosen]), at, tuning.X_step)
        noise = jax.random.normal(key_v, local.X.shape, X.dtype) / jnp.sqrt(between.v_precision)
        X = X.at[chosen].set(local.X)
        V = V.at[chosen].set(between.v_mean + between.v_slope * local.X + noise)
        acceptance.append(accepted.mean())
    return state._replace(X=X), jnp.mean(jnp.stack(acceptance))


def _step_paths(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Float[Array, ""]]:
    assert model.dynamics is not None
    assert state.lengthscale is not None
    assert data.chronology is not None
    assert tuning.path is not None
    X, axes = state.X, per_axis(state.lengthscale, model.D)
    recursion = dynamics.innovations(model.dynamics, axes, data.chronology)
    known = dynamics.filtered(tuning.path.information, jnp.zeros_like(X), recursion.step)
    T = dynamics.factor(known)
    path = lambda e: X + dynamics.multiply(T, e)  # noqa: E731

    def log_density(e):
        moved = path(e)
        return log_cells(state._replace(X=moved), data, model) + dynamics.log_density(moved, recursion)

    start, unit_mass = jnp.zeros((len(X), 2 * model.D), X.dtype), jnp.ones((), X.dtype)
    e, info = hmc.step(key, start, log_density, tuning.path.step, N_LEAPFROG, unit_mass)
    return state._replace(X=path(e)), info.acceptance


def adapt(tuning: Tuning, info: Info, rate: Array) -> Tuning:
    """Tune both step sizes; a trajectory is at most a quarter turn where T fits."""
    assert tuning.path is not None
    step = jnp.minimum(hmc.adapt(tuning.path.step, info.of_paths, rate), jnp.pi / 2 / N_LEAPFROG)
    rows = hmc.Info(info.acceptance, info.value)
    return adapt_rows(tuning, rows, rate)._replace(path=tuning.path._replace(step=step))
