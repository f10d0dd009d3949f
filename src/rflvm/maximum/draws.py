"""Draws around a maximum: from its Gaussian approximation, and as states in which chains start."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..likelihoods.base import sum_observed
from ..model.conjugate import coefficients
from ..model.draws import Draws
from ..model.features import features
from ..model.joint import Data, Model, State, log_prior_beta
from ..numerics.compilation import compiled
from .objective import frequencies
from .result import Fit, posterior
from .search import Search, update_mixture

N_REFINE_WARMUP, N_REFINE, REFINE_ACCEPTANCE = 100, 5, 0.4  # Metropolis steps before and between draws of beta


def laplace_draws(fit: Fit, data: Data, n_draws: int, seed: int) -> Draws:
    """Draws around a fit: X from its Gaussian approximation, beta given the X of the fit; the rest as found.

    Where the factor of beta's covariance was too large to keep, beta stays at its mean.
    """
    rng = np.random.default_rng(seed)
    N, D = fit.X.shape
    L = np.linalg.cholesky(np.asarray(fit.X_covariance, float))
    X = fit.X + np.einsum("nde,sne->snd", L, rng.standard_normal((n_draws, N, D)))
    mean = np.asarray(fit.beta, float)
    beta = np.repeat(mean[None], n_draws, axis=0)
    if fit.beta_factor is not None:
        root = np.swapaxes(np.linalg.inv(np.asarray(fit.beta_factor, float)), 1, 2)
        root = np.broadcast_to(root, (mean.shape[1], *root.shape[1:])) * np.sqrt(fit.beta_scale)[:, None, None]
        if fit.model.likelihood.conjugate:
            beta += np.einsum("jab,sbj->saj", root, rng.standard_normal(beta.shape), optimize=True)
        else:
            beta = _draw_beta(fit, root, data, n_draws, seed)
    found = {"W": fit.W, "z": fit.z, "mu": fit.mu, "Sigma": fit.Sigma, "alpha": fit.alpha, "log_joint": fit.trace[-1]}
    arrays = {name: np.repeat(np.asarray(value)[None], n_draws, axis=0) for name, value in (found | fit.theta).items()}
    arrays |= {"X": X, "beta": beta}
    return Draws(fit.model, {name: one_chain[None] for name, one_chain in arrays.items()}, beta_thin=1)


def _draw_beta(fit: Fit, root: np.ndarray, data: Data, n_draws: int, seed: int) -> np.ndarray:
    with jax.enable_x64(True):
        double = lambda part: jnp.asarray(part, float)  # noqa: E731
        Phi = features(double(fit.X), double(fit.W))
        times = jnp.ones(Phi.shape[1]).at[:-1].set(fit.amplitude)
        theta = {name: double(value) for name, value in fit.theta.items()}
        key = jax.random.key(seed)
        return np.asarray(refine_beta(key, double(fit.beta), double(root), Phi, times, theta, data, fit.model, n_draws))


@functools.partial(compiled, static_argnames=("model", "n_draws"))
def refine_beta(
    key: Array,
    mean: Float[Array, "M J"],
    root: Float[Array, "J M M"],
    Phi: Float[Array, "N M"],
    times: Float[Array, " M"],
    theta: dict[str, Array],
    data: Data,
    model: Model,
    n_draws: int,
) -> Float[Array, "S M J"]:
    """Draws of beta given X: Metropolis steps that would leave the Gaussian N(mean, root root') as it is.

    With beta_j = mean_j + root_j v_j the step v -> sqrt(1 - s^2) v + s e leaves N(0, I) as it is, so only what
    the Gaussian misses, log p(y_j, beta_j) + |v_j|^2 / 2, decides. Where it misses little, s is one and the draws are
    independent. In columns of hardly anything but zeros it is as wide as the prior, and exp(f) of its draws explodes.
    """
    M, J = mean.shape

    def coefficients_at(v):
        return mean + jnp.einsum("jab,bj->aj", root, v)

    def missed(v):
        beta = coefficients_at(v)
        F = Phi @ beta + data.offset[:, None]
        cells = model.likelihood.log_factor(data.Y, F, theta, data.trials)
        prior = log_prior_beta(beta / times[:, None], theta, model)
        return sum_observed(cells, data.mask, axis=0) + prior + 0.5 * jnp.sum(v**2, axis=0)

    def step(carry, inputs):
        v, here, log_s = carry
        key, rate = inputs
        key_noise, key_accept = jax.random.split(key)
        s = jnp.minimum(jnp.exp(log_s), 1)
        new = jnp.sqrt(1 - s**2) * v + s * jax.random.normal(key_noise, v.shape, v.dtype)
        there = missed(new)
        ratio = jnp.where(jnp.isnan(there), -jnp.inf, there - here)
        accept = jnp.log(jax.random.uniform(key_accept, (J,), v.dtype)) < ratio
        log_s = jnp.minimum(log_s + rate * (jnp.exp(jnp.minimum(ratio, 0)) - REFINE_ACCEPTANCE), 0)
        return (jnp.where(accept, new, v), jnp.where(accept, there, here), log_s), None

    def draw(carry, key):
        keys = jax.random.split(key, N_REFINE)
        carry, _ = lax.scan(step, carry, (keys, jnp.zeros(N_REFINE, mean.dtype)))
        return carry, coefficients_at(carry[0])

    key_warm, key_draws = jax.random.split(key)
    start = (jnp.zeros((M, J), mean.dtype), missed(jnp.zeros((M, J), mean.dtype)), jnp.zeros(J, mean.dtype))
    rates = 1 / jnp.sqrt(1 + jnp.arange(N_REFINE_WARMUP, dtype=mean.dtype))
    warm, _ = lax.scan(step, start, (jax.random.split(key_warm, N_REFINE_WARMUP), rates))
    return lax.scan(draw, warm, jax.random.split(key_draws, n_draws))[1]


def draw_state(key: Array, search: Search, data: Data, model: Model) -> State:
    """A state of the sampler at the maximum: beta drawn, the mixture updated to W.

    In columns where the Gaussian approximation is too wide to be drawn from (see ``refine_beta``), beta is at the mode.
    """
    key_mixture, key_beta = jax.random.split(key)
    parameters = search.parameters
    W = frequencies(parameters, search.spectrum)
    mixture = update_mixture(key_mixture, W, search.spectrum, model)
    theta, found, times, _ = posterior(parameters, search.mode, search.spectrum, data, model)
    Phi = features(parameters.X, W)

    def log_density(beta):
        cells = model.likelihood.log_factor(data.Y, Phi @ beta + data.offset[:, None], theta, data.trials)
        return sum_observed(cells, data.mask, axis=0) + log_prior_beta(beta / times[:, None], theta, model)

    noise = jax.random.normal(key_beta, found.beta.shape, found.beta.dtype) * jnp.sqrt(found.scale)
    factor = found.factor[0] if len(found.factor) == 1 else found.factor
    drawn = found.beta + coefficients(factor, noise)
    # A draw from a Gaussian of M dimensions has a log density M/2 below that of the mode, give or take sqrt(M/2).
    beta = jnp.where(log_density(drawn) > log_density(found.beta) - len(times), drawn, found.beta)
    return State(parameters.X, W, mixture.z, mixture.mu, mixture.Sigma, mixture.alpha, beta, theta)
