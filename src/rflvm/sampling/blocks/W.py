"""W: the frequencies. Replaces the paper's Eq. 10, whose proposals are almost never accepted.

Given beta, W can hardly move: the coefficients would have to follow. So beta is tied to W through
a Gaussian surrogate of its posterior, N(m_j(W), P(W)^{-1}) with

    P(W) = s Phi'Phi + B0^{-1} = L L',    m_j(W) = P^{-1} s Phi' t_j,

where the curvature s and the fitted table t are fixed after burn-in. In the coordinates
u_j = L'(beta_j - m_j) the posterior of u hardly depends on W, so W moves alone by HMC with u
fixed, nearly as if beta were integrated out, and beta = m(W) + L(W)^{-T} u follows. The change of
variables is exact, with Jacobian |L|^{-J}: a poor surrogate costs speed, not correctness. With the
conjugate Gaussian, beta and sigma^2 really are integrated out.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...likelihoods.base import sum_observed
from ...model import spectral
from ...model.conjugate import log_evidence, regression
from ...model.features import features, sincos
from ...model.joint import Data, Model, State, is_marginal, log_prior_beta, predictor
from ...numerics import hmc, linalg
from .tuning import Tuning

N_LEAPFROG = 3


class Info(NamedTuple):
    """Acceptance, the log density where the move ended, and the jitter of the Cholesky factor there."""

    acceptance: Float[Array, ""]
    value: Float[Array, ""]
    jitter: Float[Array, ""]


def log_prior(W: Float[Array, "H D"], state: State) -> Float[Array, ""]:
    """log p(W | z, mu, Sigma)."""
    return spectral.log_normal(W, state.mu[state.z], state.Sigma[state.z]).sum()


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """One HMC trajectory in W, beta following it or integrated out."""
    unit_mass, Z = jnp.ones((), state.W.dtype), data.covariates
    if is_marginal(model):

        def target(W):
            return log_evidence(features(state.X, W, Z), data, model).sum() + log_prior(W, state)

        W, info = hmc.step(key, state.W, target, tuning.W_step, N_LEAPFROG, unit_mass)
        return state._replace(W=W), Info(*info, regression(features(state.X, W, Z), data, model).jitter)

    scale = model.likelihood.coefficient_scale(state.theta)
    s = jnp.mean(tuning.curvature * scale)
    precision = jnp.diag(model.precision(len(state.beta), state.W.dtype))
    fitted = tuning.fitted - data.offset[:, None]

    def surrogate(W):
        Phi = features(state.X, W, Z)
        L, jitter = linalg.cholesky(s * (Phi.T @ Phi) + precision)
        inverse = linalg.solve_lower(L, jnp.eye(L.shape[0], dtype=L.dtype))
        Q = inverse @ Phi.T  # columns L^{-1} phi_n
        return L, jitter, inverse, Q, s * (Q @ fitted)  # the last is L'm

    L, _, _, _, centre = surrogate(state.W)
    u = L.T @ state.beta - centre

    def log_density(W):
        L, _, inverse, Q, centre = surrogate(W)
        v = centre + u  # L'beta
        cells = model.likelihood.log_factor(data.Y, Q.T @ v + data.offset[:, None], state.theta, data.trials)
        beta = inverse.T @ v
        log_jacobian = -beta.shape[1] * jnp.log(jnp.diagonal(L)).sum()
        log_beta = log_prior_beta(beta, state.theta, model).sum()
        return sum_observed(cells, data.mask) + log_beta + log_jacobian + log_prior(W, state)

    W, info = hmc.step(key, state.W, log_density, tuning.W_step, N_LEAPFROG, unit_mass)
    _, jitter, inverse, _, centre = surrogate(W)
    return state._replace(W=W, beta=inverse.T @ (centre + u)), Info(*info, jitter)


def step_prior(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """The paper's Eq. 10: propose each w_h from N(mu_{z_h}, Sigma_{z_h}), with beta fixed."""
    H, likelihood = model.H, model.likelihood
    key_proposal, key_accept = jax.random.split(key)
    noise = jax.random.normal(key_proposal, state.W.shape, state.W.dtype)
    proposals = spectral.from_noise(noise, state.mu[state.z], state.Sigma[state.z])
    log_u = jnp.log(jax.random.uniform(key_accept, (H,), state.W.dtype))

    def log_lik(F):
        return sum_observed(likelihood.log_factor(data.Y, F, state.theta, data.trials), data.mask)

    def wave(w, h):
        sine, cosine = sincos(state.X @ w)
        beta = state.beta / jnp.sqrt(jnp.asarray(H, w.dtype))
        return cosine[:, None] * beta[h][None] + sine[:, None] * beta[H + h][None]

    def propose(carry, inputs):
        W, F, current = carry
        h, w, log_u = inputs
        F_new = F - wave(W[h], h) + wave(w, h)
        new = log_lik(F_new)
        accept = log_u < new - current
        carry = (
            W.at[h].set(jnp.where(accept, w, W[h])),
            jnp.where(accept, F_new, F),
            jnp.where(accept, new, current),
        )
        return carry, jnp.exp(jnp.minimum(new - current, 0))

    def propose_marginal(carry, inputs):
        W, current = carry
        h, w, log_u = inputs
        W_new = W.at[h].set(w)
        new = log_evidence(features(state.X, W_new, data.covariates), data, model).sum()
        accept = log_u < new - current
        carry = (jnp.where(accept, W_new, W), jnp.where(accept, new, current))
        return carry, jnp.exp(jnp.minimum(new - current, 0))

    inputs = (jnp.arange(H), proposals, log_u)
    if is_marginal(model):
        start = (state.W, log_evidence(features(state.X, state.W, data.covariates), data, model).sum())
        (W, value), acceptance = lax.scan(propose_marginal, start, inputs)
    else:
        F = predictor(state, data)
        (W, _, value), acceptance = lax.scan(propose, (state.W, F, log_lik(F)), inputs)
    return state._replace(W=W), Info(acceptance.mean(), value, jnp.zeros_like(value))


def adapt(tuning: Tuning, info: Info, rate: Array) -> Tuning:
    """Tune the step size."""
    return tuning._replace(W_step=hmc.adapt(tuning.W_step, info.acceptance, rate))
