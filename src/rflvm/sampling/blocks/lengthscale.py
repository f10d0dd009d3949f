"""lengthscale: of the processes over time, by Metropolis, once with X held and once with its innovations held.

Given X the dimensions are independent, and a step costs O(N): log l_d moves by the density of the path alone. Where the
cells say little, X follows l closely and this is slow; there X = L(l) u is moved with u held, and the cells decide. The
density of u does not depend on l.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...model import dynamics
from ...model.joint import Data, Model, State, per_axis
from .path import log_cells
from .tuning import Tuning

N_MOVES = 4  # with X held, which are cheap
TARGET_ACCEPTANCE = 0.4  # of a random walk in few dimensions


class Info(NamedTuple):
    """Acceptance with X held and with its innovations held."""

    acceptance: Float[Array, "2"]


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """Draw the lengthscales of X."""
    key_held, key_following = jax.random.split(key)
    state, held = _step_path_held(key_held, state, data, model, tuning)
    state, following = _step_path_following(key_following, state, data, model, tuning)
    return state, Info(jnp.stack([held, following]))


def _step_path_held(key, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Float[Array, ""]]:
    prior, chronology = model.dynamics, data.chronology
    assert prior is not None
    assert chronology is not None
    assert tuning.path is not None
    assert state.lengthscale is not None
    width = tuning.path.lengthscale_steps[0]

    def log_density(logs):
        """log p(X | l) + log p(log l), for each lengthscale."""
        recursion = dynamics.innovations(prior, per_axis(jnp.exp(logs), model.D), chronology)
        squares = 0.5 * jnp.sum(dynamics.whiten(state.X, recursion) ** 2, axis=0)
        on_paths = -squares - jnp.sum(jnp.log(recursion.deviation), axis=0)
        on_paths = on_paths if len(logs) == model.D else jnp.sum(on_paths, keepdims=True)
        return on_paths + jax.vmap(lambda log: prior.log_prior(jnp.exp(log)[None], chronology) + log)(logs)

    def move(carry, key):
        logs, value = carry
        key_step, key_accept = jax.random.split(key)
        proposal = logs + width * jax.random.normal(key_step, logs.shape, logs.dtype)
        there = log_density(proposal)
        log_ratio = jnp.where(jnp.isnan(there), -jnp.inf, there - value)
        accept = jnp.log(jax.random.uniform(key_accept, logs.shape, logs.dtype)) < log_ratio
        moved = jnp.where(accept, proposal, logs), jnp.where(accept, there, value)
        return moved, jnp.exp(jnp.minimum(log_ratio, 0)).mean()

    logs = jnp.log(state.lengthscale)
    (logs, _), acceptance = lax.scan(move, (logs, log_density(logs)), jax.random.split(key, N_MOVES))
    return state._replace(lengthscale=jnp.exp(logs)), acceptance.mean()


def _step_path_following(key, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Float[Array, ""]]:
    prior, chronology, lengthscale = model.dynamics, data.chronology, state.lengthscale
    assert prior is not None
    assert chronology is not None
    assert tuning.path is not None
    assert lengthscale is not None
    key_step, key_accept = jax.random.split(key)
    noise = jax.random.normal(key_step, lengthscale.shape, lengthscale.dtype)
    proposal = lengthscale * jnp.exp(tuning.path.lengthscale_steps[1] * noise)
    recursion = lambda each: dynamics.innovations(prior, per_axis(each, model.D), chronology)  # noqa: E731
    X = dynamics.colour(dynamics.whiten(state.X, recursion(lengthscale)), recursion(proposal))
    moved = state._replace(X=X, lengthscale=proposal)

    def log_target(state, lengthscale):
        on_lengthscale = prior.log_prior(lengthscale, chronology) + jnp.sum(jnp.log(lengthscale))
        return log_cells(state, data, model) + on_lengthscale

    log_ratio = log_target(moved, proposal) - log_target(state, lengthscale)
    log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
    accept = jnp.log(jax.random.uniform(key_accept, (), X.dtype)) < log_ratio
    chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), moved, state)
    return chosen, jnp.exp(jnp.minimum(log_ratio, 0))


def adapt(tuning: Tuning, info: Info, rate: Array) -> Tuning:
    """Tune both widths."""
    assert tuning.path is not None
    widths = tuning.path.lengthscale_steps * jnp.exp(rate * (info.acceptance - TARGET_ACCEPTANCE))
    return tuning._replace(path=tuning.path._replace(lengthscale_steps=widths))
