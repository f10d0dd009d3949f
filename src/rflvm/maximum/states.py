"""States in which the chains of the sampler start: at the maximum, or as in the paper."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..likelihoods.base import sum_observed
from ..model import laplace
from ..model.conjugate import coefficients
from ..model.features import features, linear_predictor
from ..model.joint import Data, Model, State, log_prior_beta, sample_prior
from ..numerics.compilation import compiled
from . import starts
from .objective import frequencies
from .result import posterior
from .search import Search, update_mixture

_coefficients = compiled(coefficients)  # batched LAPACK, which only a compiled program may call


def draw_state(key: Array, search: Search, data: Data, model: Model) -> State:
    """A state at the maximum: beta drawn from its Gaussian approximation, the mixture updated to W.

    In columns where the approximation is too wide to be drawn from (see ``draws.refine_beta``), beta is at the mode.
    """
    key_mixture, key_beta = jax.random.split(key)
    parameters = search.parameters
    W = frequencies(parameters, search.spectrum)
    mixture = update_mixture(key_mixture, W, search.spectrum, model)
    found = posterior(parameters, search.mode, search.spectrum, data, model)
    theta, approximation, column_scale = found.theta, found.coefficients, found.column_scale
    Phi = features(parameters.X, W, data.covariates)

    def log_density(beta):
        cells = model.likelihood.log_factor(data.Y, linear_predictor(Phi, beta, data.offset), theta, data.trials)
        return sum_observed(cells, data.mask, axis=0) + log_prior_beta(beta / column_scale[:, None], theta, model)

    mode, factor, scale = approximation.beta, approximation.factor, approximation.scale
    noise = jax.random.normal(key_beta, mode.shape, mode.dtype) * jnp.sqrt(scale)[None]
    drawn = mode + _coefficients(factor[0] if len(factor) == 1 else factor, noise)
    # A draw from a Gaussian of M dimensions has a log density M/2 below that of the mode, give or take sqrt(M/2).
    plausible = log_density(drawn) > log_density(mode) - len(mode)
    beta = jnp.where(plausible[None], drawn, mode)
    lengthscale = None if search.spectrum.path is None else search.spectrum.path.lengthscale
    return State(parameters.X, W, mixture.z, mixture.mu, mixture.Sigma, mixture.alpha, beta, theta, lengthscale)


_sample_prior = compiled(sample_prior, static_argnames=("model", "N", "J", "dtype", "n_covariates"))


def from_prior(key: Array, X: Float[np.ndarray, "N D"], data: Data, model: Model) -> State:
    """A state as the paper starts it: X given, beta at its mode given X, everything else from the prior."""
    dtype = data.Y.dtype
    state = _sample_prior(key, model, *data.Y.shape, dtype, data.chronology, data.n_covariates)
    beta = jnp.zeros_like(state.beta).at[-1].set(jnp.asarray(starts.intercepts(data, model), dtype))
    theta = {name: jnp.asarray(value, dtype) for name, value in starts.theta(data, model).items()}
    state = state._replace(X=jnp.asarray(X, dtype), beta=beta, theta=theta)
    if model.likelihood.conjugate:
        return state  # the first sweep draws beta
    return state._replace(beta=_mode_of_beta(state, data, model))


@functools.partial(compiled, static_argnames="model")
def _mode_of_beta(state: State, data: Data, model: Model) -> Float[Array, "M J"]:
    """The mode of beta given X, W and theta, from the intercepts of the state."""
    per_column = {name: value for name, value in state.theta.items() if value.ndim}
    start = laplace.start(data, model, state.beta)
    # Coarser than in ``climb``, for a chain moves away at once; a choice without a measurement.
    tolerance = 1e4 * float(jnp.finfo(state.X.dtype).eps)
    Phi = features(state.X, state.W, data.covariates)
    _, evidence = laplace.log_evidence(Phi, per_column, start, data, model, tolerance)
    return laplace.Blocks(data.Y.shape[1]).join(evidence.mode.beta)
