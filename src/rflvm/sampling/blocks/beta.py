"""beta: the coefficients and intercepts, all columns at once, each given X, W and its own data.

Conjugate Gaussian: sigma_j^2 with beta_j integrated out, then beta_j (paper, appendix B).
Everything else: HMC in the coordinates where the prior and the mean information are the identity.
The paper's update of the logistic families, omega by Polya-gamma augmentation and then
beta_j ~ N(m_j, V_j) (Eq. 14), needs a Gram matrix and a Cholesky factor for each column, which costs
several times as much as the trajectory, for draws whose autocorrelation is no shorter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...model.conjugate import coefficients, regression
from ...model.features import features, linear_predictor
from ...model.joint import Data, Model, State
from ...numerics import hmc, linalg, polyagamma
from .tuning import Tuning

N_LEAPFROG = 5


class Info(NamedTuple):
    """Acceptance per column (one for exact draws) and the jitter of the Cholesky factors."""

    acceptance: Float[Array, " J"]
    jitter: Float[Array, ""]


def step(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """Draw sigma^2 and beta of the Gaussian exactly; move beta of any other family by HMC."""
    update = _conjugate if model.likelihood.conjugate else _hmc
    return update(key, state, data, model, tuning)


def _conjugate(key, state, data, model, tuning):
    key_sigma2, key_beta = jax.random.split(key)
    fit = regression(features(state.X, state.W, data.covariates), data, model)
    aN, bN = model.likelihood.noise_posterior(fit.n, fit.yy, jnp.sum(fit.half**2, axis=0))
    sigma2 = bN / jax.random.gamma(key_sigma2, aN, dtype=aN.dtype)
    white = fit.half + jnp.sqrt(sigma2)[None] * jax.random.normal(key_beta, fit.half.shape, fit.half.dtype)
    return state._replace(beta=coefficients(fit.L, white), theta={"sigma2": sigma2}), Info(
        jnp.ones_like(sigma2), fit.jitter
    )


def _hmc(key, state, data, model, tuning):
    Phi = features(state.X, state.W, data.covariates)
    prior = 1 / jnp.sqrt(model.precision(Phi.shape[1], Phi.dtype))
    # beta = B0^{1/2} V diag(scale_j) v with Phi B0 Phi' = Q Q', Q = Phi B0^{1/2} V: given X and W, v
    # has prior plus mean information equal to the identity. The scale uses the column's mean
    # curvature, which is fixed after burn-in, so the coordinates do not depend on beta.
    root = Phi * prior[None]
    eigenvalues, V = jnp.linalg.eigh(root.T @ root)
    Q = root @ V
    scale = 1 / jnp.sqrt(1 + jnp.maximum(eigenvalues, 0)[:, None] * tuning.curvature[None])
    u = V.T @ (state.beta / prior[:, None])

    def log_density(v):
        u = scale * v
        cells = model.likelihood.log_factor(data.Y, Q @ u + data.offset[:, None], state.theta, data.trials)
        cells = cells if data.mask is None else jnp.where(data.mask, cells, 0)
        return cells.sum(axis=0) - 0.5 * jnp.sum(u**2, axis=0)

    unit_mass = jnp.ones((), Phi.dtype)
    v, info = hmc.step(key, u / scale, log_density, tuning.beta_step, N_LEAPFROG, unit_mass)
    beta = prior[:, None] * (V @ (scale * v))
    return state._replace(beta=beta), Info(info.acceptance, jnp.zeros((), Phi.dtype))


def step_polya_gamma(key: Array, state: State, data: Data, model: Model, tuning: Tuning) -> tuple[State, Info]:
    """The paper's Eq. 14, for the logistic families."""
    likelihood = model.likelihood
    key_omega, key_beta = jax.random.split(key)
    Phi = features(state.X, state.W, data.covariates)
    psi = linear_predictor(Phi, state.beta, data.offset)
    a, b = likelihood.exponents(data.Y, state.theta, data.trials)
    omega = polyagamma.sample_one(key_omega, psi) if likelihood.unit_shape else polyagamma.sample(key_omega, b, psi)
    kappa = a - b / 2
    if data.mask is not None:
        omega, kappa = jnp.where(data.mask, omega, 0), jnp.where(data.mask, kappa, 0)
    precision = linalg.weighted_grams(Phi, omega) + jnp.diag(model.precision(Phi.shape[1], Phi.dtype))[None]
    rhs = Phi.T @ (kappa - omega * data.offset[:, None])
    beta, jitter = linalg.normal_from_precision(key_beta, precision, rhs)
    return state._replace(beta=beta), Info(jnp.ones(beta.shape[1], beta.dtype), jitter)


def adapt(tuning: Tuning, info: Info, rate: Array) -> Tuning:
    """Tune the step size of each column, up to a quarter turn per trajectory.

    In these coordinates the target is near a standard normal, so trajectories turn with period
    2 pi: a half turn is accepted as often, but merely changes signs.
    """
    quarter_turn = math.pi / 2 / N_LEAPFROG
    return tuning._replace(beta_step=jnp.minimum(hmc.adapt(tuning.beta_step, info.acceptance, rate), quarter_turn))
