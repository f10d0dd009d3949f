"""Draws around a maximum, from its Gaussian approximation and from the posterior of beta given X."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..likelihoods.base import sum_observed
from ..model import dynamics
from ..model.draws import Draws
from ..model.features import features, linear_predictor
from ..model.joint import Data, Model, log_prior_beta, per_axis
from ..numerics.compilation import compiled
from ..numerics.precision import precision
from .result import Fit

# Metropolis steps of ``refine_beta``. Choices without a measurement of their own; with them
# tests/maximum/test_draws.py holds means and standard deviations to those of integration on a grid.
N_WARMUP = 100  # steps before the first draw, in which the step size adapts
N_BETWEEN = 5  # steps from one draw to the next
TARGET_ACCEPTANCE = 0.4  # towards which the step size of a column adapts where independent draws are refused


def laplace_draws(fit: Fit, data: Data, n_draws: int, seed: int) -> Draws:
    """Draws around a fit: X from its Gaussian approximation, beta given the X of the fit; the rest as in the fit.

    Where the factor of beta's covariance was too large to keep, beta stays at its mean. ``data`` is in double
    precision.
    """
    rng = np.random.default_rng(seed)
    X = draw_positions(rng, fit, n_draws) if fit.lengthscale is None else _draw_paths(rng, fit, data, n_draws)
    return gathered(fit, X, _draw_beta(rng, fit, data, n_draws, seed))


def draw_positions(rng: np.random.Generator, fit: Fit, n_draws: int) -> Float[np.ndarray, "S N D"]:
    """X from its Gaussian approximation, of rows that are independent."""
    N, D = fit.X.shape
    L = np.linalg.cholesky(np.asarray(fit.X_covariance, float))
    return fit.X + np.einsum("nde,sne->snd", L, rng.standard_normal((n_draws, N, D)))


def _draw_paths(rng: np.random.Generator, fit: Fit, data: Data, n_draws: int) -> Float[np.ndarray, "S N D"]:
    """The same of whole paths, with a prior over time."""
    N, D = fit.X.shape
    with precision("float64"):
        known = jnp.asarray(fit.X_information, float), jnp.asarray(fit.lengthscale, float)
        noise = jnp.asarray(rng.standard_normal((n_draws, N, 2 * D)))
        return fit.X + np.asarray(_deviations(*known, noise, data, fit.model))


def gathered(fit: Fit, X: Float[np.ndarray, "S N D"], beta: Float[np.ndarray, "S M J"]) -> Draws:
    """Draws of X and beta, with the rest as in the fit."""
    constant = {"W": fit.W, "z": fit.z, "mu": fit.mu, "Sigma": fit.Sigma, "alpha": fit.alpha}
    constant |= {"log_joint": fit.log_posterior} | fit.theta
    constant |= {} if fit.lengthscale is None else {"lengthscale": fit.lengthscale}
    arrays = {name: np.repeat(np.asarray(value)[None], len(X), axis=0) for name, value in constant.items()}
    arrays |= {"X": X, "beta": beta}
    return Draws(fit.model, {name: chain[None] for name, chain in arrays.items()}, beta_thin=1, units=fit.units)


@functools.partial(compiled, static_argnames="model")
def _deviations(
    information: Float[Array, "N D D"], lengthscale: Float[Array, " L"], noise: Float[Array, "S N E"], data: Data,
    model: Model,
) -> Float[Array, "S N D"]:  # fmt: skip
    """Deviations of whole paths from the maximum, from standard normal numbers."""
    assert model.dynamics is not None
    assert data.chronology is not None
    steps = dynamics.transitions(model.dynamics, per_axis(lengthscale, model.D), data.chronology)
    T = dynamics.factor(dynamics.filtered(information, jnp.zeros_like(information[..., 0]), steps))
    return lax.map(lambda noise: dynamics.multiply(T, noise), noise)


def draw_normal(rng: np.random.Generator, fit: Fit, n_draws: int) -> Float[np.ndarray, "S M J"]:
    """Beta from its Gaussian approximation; at its mean, where the factor was too large to keep."""
    repeated = np.repeat(np.asarray(fit.beta, float)[None], n_draws, axis=0)
    if fit.beta_factor is None:
        return repeated
    noise = rng.standard_normal(repeated.shape) * np.sqrt(fit.beta_scale)
    if len(fit.beta_factor) == 1:  # one root serves all columns, and is not repeated for them: there may be many
        return repeated + np.linalg.inv(np.asarray(fit.beta_factor[0], float)).T @ noise
    for j, L in enumerate(fit.beta_factor):
        repeated[:, :, j] += np.linalg.solve(np.asarray(L, float).T, noise[:, :, j].T).T
    return repeated


def _draw_beta(rng: np.random.Generator, fit: Fit, data: Data, n_draws: int, seed: int) -> Float[np.ndarray, "S M J"]:
    """Beta given X: exactly for the conjugate Gaussian, else by Metropolis steps."""
    mean = np.asarray(fit.beta, float)
    repeated = np.repeat(mean[None], n_draws, axis=0)
    if fit.beta_factor is None:
        return repeated
    root = np.swapaxes(np.linalg.inv(np.asarray(fit.beta_factor, float)), 1, 2)
    if fit.model.likelihood.conjugate:
        noise = rng.standard_normal(repeated.shape) * np.sqrt(fit.beta_scale)
        # One root may serve all columns, and is not repeated for them: there may be many.
        if len(root) == 1:
            return repeated + root[0] @ noise
        return repeated + np.einsum("jab,sbj->saj", root, noise, optimize=True)
    root *= np.sqrt(fit.beta_scale)[:, None, None]
    with precision("float64"):
        X, W, mean, root = (jnp.asarray(part, float) for part in (fit.X, fit.W, mean, root))
        theta = {name: jnp.asarray(value, float) for name, value in fit.theta.items()}
        Phi = features(X, W, data.covariates)
        column_scale = jnp.ones(Phi.shape[1]).at[: 2 * len(W)].set(fit.amplitude)
        key = jax.random.key(seed)
        return np.asarray(refine_beta(key, mean, root, Phi, column_scale, theta, data, fit.model, n_draws))


@functools.partial(compiled, static_argnames=("model", "n_draws"))
def refine_beta(
    key: Array,
    mean: Float[Array, "M J"],
    root: Float[Array, "J M M"],
    Phi: Float[Array, "N M"],
    column_scale: Float[Array, " M"],
    theta: dict[str, Array],
    data: Data,
    model: Model,
    n_draws: int,
) -> Float[Array, "S M J"]:
    """Draws of beta given X by Metropolis steps that leave the Gaussian approximation N(mean, root root') invariant.

    With beta_j = mean_j + root_j v_j the proposal is preconditioned Crank-Nicolson, v -> sqrt(1 - s^2) v + s e, which
    leaves N(0, I) invariant. So the acceptance depends on the error of the approximation alone,
    log p(y_j, beta_j) + |v_j|^2 / 2. Where that is nearly constant, s is one and the draws are independent. In columns
    of hardly anything but zeros the approximation is as wide as the prior, and exp(f) of draws from it explodes.

    ``column_scale`` multiplies the prior standard deviation of each row of beta.
    """
    M, J = mean.shape

    def coefficients_at(v):
        return mean + jnp.einsum("jab,bj->aj", root, v)

    def log_error(v):
        beta = coefficients_at(v)
        F = linear_predictor(Phi, beta, data.offset)
        cells = model.likelihood.log_factor(data.Y, F, theta, data.trials)
        prior = log_prior_beta(beta / column_scale[:, None], theta, model)
        return sum_observed(cells, data.mask, axis=0) + prior + 0.5 * jnp.sum(v**2, axis=0)

    def step(carry, inputs):
        v, here, log_s = carry
        key, rate = inputs  # the rate of adaptation
        key_noise, key_accept = jax.random.split(key)
        s = jnp.minimum(jnp.exp(log_s), 1)[None]
        proposal = jnp.sqrt(1 - s**2) * v + s * jax.random.normal(key_noise, v.shape, v.dtype)
        there = log_error(proposal)
        log_ratio = jnp.where(jnp.isnan(there), -jnp.inf, there - here)
        accept = jnp.log(jax.random.uniform(key_accept, (J,), v.dtype)) < log_ratio
        log_s = jnp.minimum(log_s + rate * (jnp.exp(jnp.minimum(log_ratio, 0)) - TARGET_ACCEPTANCE), 0)
        return (jnp.where(accept[None], proposal, v), jnp.where(accept, there, here), log_s), None

    def draw(carry, key):
        keys = jax.random.split(key, N_BETWEEN)
        carry, _ = lax.scan(step, carry, (keys, jnp.zeros(N_BETWEEN, mean.dtype)))
        return carry, coefficients_at(carry[0])

    key_warmup, key_draws = jax.random.split(key)
    at_mean = jnp.zeros((M, J), mean.dtype)
    start = (at_mean, log_error(at_mean), jnp.zeros(J, mean.dtype))
    rates = 1 / jnp.sqrt(1 + jnp.arange(N_WARMUP, dtype=mean.dtype))
    warm, _ = lax.scan(step, start, (jax.random.split(key_warmup, N_WARMUP), rates))
    return lax.scan(draw, warm, jax.random.split(key_draws, n_draws))[1]
