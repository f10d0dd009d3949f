"""The scale that X and W share: X -> XA, W -> WA^{-1} leaves the likelihood as it is.

Along this direction the other blocks mix slowly, since X, W, mu and Sigma would have to move together.
Here they do: A = I + (c - 1)uu' stretches a random direction u, mu -> A^{-1}mu and
Sigma -> A^{-1} Sigma A^{-1} go along, and only the priors of X and of (mu, Sigma), with the
Jacobian c^{N - (D + 2)K} for K occupied components, decide. (The densities of the w_h and the
Jacobian of W cancel.) With a prior over time log p(X) is that of paths, and where each dimension has a lengthscale of
its own u is an axis: a mixture of rough and smooth paths would be refused.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...model import spectral
from ...model.joint import Data, Model, State, log_prior_latents
from .tuning import Tuning

N_MOVES = 4


class Info(NamedTuple):
    """Mean acceptance probability of the stretches."""

    acceptance: Float[Array, ""]


def stretched(state: State, u: Float[Array, " D"], log_c: Float[Array, ""]) -> State:
    """The state after A = I + (c - 1)uu'."""
    outer = u[:, None] * u[None]
    eye = jnp.eye(u.shape[0], dtype=u.dtype)
    A = eye + jnp.expm1(log_c) * outer
    inverse = eye + jnp.expm1(-log_c) * outer
    return state._replace(
        X=state.X @ A, W=state.W @ inverse, mu=state.mu @ inverse, Sigma=inverse @ state.Sigma @ inverse
    )


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """A few random-walk Metropolis stretches in log c."""
    N, D = state.X.shape
    niw = model.prior.niw(D, state.W.dtype)
    occupied = spectral.counts(state.z) > 0
    exponent = (N - (D + 2) * occupied.sum()).astype(state.W.dtype)
    # The prior of X alone gives log c a standard deviation of 1/sqrt(2N); 2.4 is optimal scaling.
    width = 2.4 / math.sqrt(2 * N + 2)

    def log_target(state):
        components = jnp.where(occupied, spectral.niw_log_density(niw, state.mu, state.Sigma), 0)
        if model.dynamics is None:
            return components.sum() - 0.5 * jnp.sum(state.X**2)
        return components.sum() + log_prior_latents(state.X, state.lengthscale, data.chronology, model.dynamics)

    def direction(key):
        u = jax.random.normal(key, (D,), state.W.dtype)
        if model.dynamics is None or model.dynamics.exchangeable:
            return u / jnp.linalg.norm(u)
        return jax.nn.one_hot(jnp.argmax(jnp.abs(u)), D, dtype=u.dtype)

    def move(carry, key):
        state, current = carry
        key_u, key_c, key_accept = jax.random.split(key, 3)
        log_c = width * jax.random.normal(key_c, (), state.W.dtype)
        new = stretched(state, direction(key_u), log_c)
        value = log_target(new)
        log_ratio = value - current + exponent * log_c
        accept = jnp.log(jax.random.uniform(key_accept, (), state.W.dtype)) < log_ratio
        state = jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, state)
        return (state, jnp.where(accept, value, current)), jnp.exp(jnp.minimum(log_ratio, 0))

    (state, _), acceptance = lax.scan(move, (state, log_target(state)), jax.random.split(key, N_MOVES))
    return state, Info(acceptance.mean())
