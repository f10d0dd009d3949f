"""X: the latent positions (the paper takes their MAP; here they are sampled).

Given W and beta the rows are independent, so all rows move at once and each accepts on its own. A
proposal is a Langevin step in the metric of the row's Fisher information,

    x* ~ N(x + eps^2/2 G(x)^{-1} grad, eps^2 G(x)^{-1}),   G(x) = I + sum_j c_nj (df_nj/dx)(df_nj/dx)',

with c = -d^2 log p / df^2 (>= 0): for a row whose posterior is near Gaussian, eps near 1 makes
nearly independent draws, whatever its scale and shape. With beta integrated out (Gaussian) the
rows are dependent and X moves by HMC on the evidence.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...model.conjugate import log_evidence
from ...model.features import features
from ...model.joint import Data, Model, State, is_marginal
from ...model.rows import Local, expand, row_values, scoring_direction
from ...numerics import hmc, linalg
from ...numerics.hmc import Info
from .tuning import Tuning

N_PROPOSALS = 2
N_LEAPFROG = 4
N_HALVINGS = 8


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """Draw X: Langevin proposals per row, or HMC on all of X when beta is integrated out."""
    if is_marginal(model):
        unit_mass = jnp.ones((), state.X.dtype)

        def target(X):
            return log_evidence(features(X, state.W, data.covariates), data, model).sum() - 0.5 * jnp.sum(X**2)

        X, info = hmc.step(key, state.X, target, tuning.X_step, N_LEAPFROG, unit_mass)
        return state._replace(X=X), info

    start = expand(state.X, state, data, model)
    local, acceptance = langevin(key, start, lambda X: expand(X, state, data, model), tuning.X_step)
    return state._replace(X=local.X), Info(acceptance.mean(), local.value.sum())


def langevin(
    key: Array, start: Local, at: Callable[[Float[Array, "N D"]], Local], epsilon: Float[Array, ""]
) -> tuple[Local, Float[Array, " K"]]:
    """A few Langevin proposals for each row, and the mean acceptance of each; ``at`` expands all rows at a point."""

    def drift(local: Local):
        L = linalg.small_cholesky(local.metric)
        half = linalg.small_solve_lower(L, local.gradient)
        return L, local.X + 0.5 * epsilon**2 * linalg.small_solve_lower_transposed(L, half)

    def log_proposal(X, L, mean):
        away = X - mean
        white = jnp.stack([sum(L[i][j] * away[:, i] for i in range(j, len(L))) for j in range(len(L))])
        return -0.5 * jnp.sum(white**2, axis=0) / epsilon**2 + sum(jnp.log(row[-1]) for row in L)

    def propose(here: Local, key):
        key_noise, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_noise, here.X.shape, here.X.dtype)
        L, mean = drift(here)
        there = at(mean + epsilon * linalg.small_solve_lower_transposed(L, noise))
        log_ratio = there.value - here.value + log_proposal(here.X, *drift(there)) - log_proposal(there.X, L, mean)
        log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
        accept = jnp.log(jax.random.uniform(key_accept, log_ratio.shape, log_ratio.dtype)) < log_ratio
        chosen = jax.tree.map(
            lambda new, old: jnp.where(accept.reshape((-1,) + (1,) * (new.ndim - 1)), new, old), there, here
        )
        return chosen, jnp.exp(jnp.minimum(log_ratio, 0)).mean()

    return lax.scan(propose, start, jax.random.split(key, N_PROPOSALS))


def step_map(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """The paper's step: move each row uphill, by a Fisher-scoring step halved until it improves.

    Not a draw: the chain then does not have the posterior as its stationary distribution.
    """
    here = expand(state.X, state, data, model)
    direction = scoring_direction(here)

    def halve(i, carry):
        X, value, done = carry
        trial = here.X + 0.5**i * direction
        trial_value = row_values(trial, state, data, model)
        better = ~done & (trial_value > here.value)
        return jnp.where(better[:, None], trial, X), jnp.where(better, trial_value, value), done | better

    start = (here.X, here.value, jnp.zeros(here.X.shape[0], bool))
    X, value, done = lax.fori_loop(0, N_HALVINGS, halve, start)
    return state._replace(X=X), Info(done.mean(dtype=X.dtype), value.sum())


def adapt(tuning: Tuning, info: Info, rate: Array) -> Tuning:
    """Tune the step size; never beyond eps = 1.5, where the proposal overshoots."""
    return tuning._replace(X_step=jnp.minimum(hmc.adapt(tuning.X_step, info.acceptance, rate), 1.5))
