"""A maximisation in progress: its beginning, and the step from fixed to free frequencies."""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..model import laplace, spectral
from ..model.joint import Data, Model, state_shapes
from ..model.laplace import Mode
from ..numerics import quadrature
from ..numerics.compilation import compiled
from . import starts
from .objective import Parameters, Spectrum, frequencies, stretch

N_MIXTURE_PASSES = 5


Convergence = Literal["converged", "iteration limit", "line search failed", "modes not found", "interrupted"]


@dataclasses.dataclass
class Search:
    """A maximisation in progress: where it is, and what it has seen."""

    parameters: Parameters
    mode: Mode | None  # of the coefficients with the amplitude in them
    spectrum: Spectrum
    trace: list[float]
    value: float = -np.inf
    convergence: Convergence = "iteration limit"


_start_mode = compiled(laplace.start, static_argnames="model")


def begin(seed: int, X: np.ndarray, data: Data, model: Model, amplitude: bool) -> Search:
    """A search with an RBF kernel from a start of X, with an amplitude to be learned or without."""
    dtype = data.Y.dtype
    shapes = state_shapes(data, model)
    zeros = lambda shape: np.zeros(shape.shape, shape.dtype)  # noqa: E731
    conjugate = model.likelihood.conjugate
    log_theta = {} if conjugate else {name: jnp.asarray(zeros(shape)) for name, shape in shapes.theta.items()}
    zero = jnp.asarray(0.0, dtype)
    parameters = Parameters(jnp.asarray(X, dtype), zero if amplitude else None, zero, None, log_theta)
    if conjugate:
        mode, information = None, data.Y.size if data.mask is None else data.mask.sum()
    else:
        beta = zeros(shapes.beta)
        beta[-1] = starts.intercepts(data, model)
        mode = _start_mode(data, model, jnp.asarray(beta))
        information = laplace.information(jnp.asarray(beta[-1]), data, model)
    as_array = jnp.asarray
    spectrum = Spectrum(
        standard=as_array(quadrature.frequencies(model.H, model.D, seed), dtype),
        z=as_array(zeros(shapes.z)),
        mu=as_array(zeros(shapes.mu)),
        Sigma=as_array(zeros(shapes.Sigma) + np.eye(model.D, dtype=dtype)),
        alpha=as_array(model.prior.alpha_shape / model.prior.alpha_rate, dtype),
        information=as_array(float(information) / len(X), dtype),
        stretch=as_array(stretch(float(information), *data.Y.shape), dtype),
    )
    return Search(parameters, mode, spectrum, [])


def free_frequencies(key: Array, search: Search, model: Model) -> Search:
    """Let W go: from the present frequencies, with the mixture updated to them."""
    W = frequencies(search.parameters, search.spectrum)
    spectrum = update_mixture(key, W, search.spectrum, model)
    parameters = search.parameters._replace(log_scale=None, W=W)
    return dataclasses.replace(search, parameters=parameters, spectrum=spectrum)


@functools.partial(compiled, static_argnames="model")
def update_mixture(key: Array, W: Array, spectrum: Spectrum, model: Model) -> Spectrum:
    """A few passes over z, (mu, Sigma) and alpha, then mu at its mean and Sigma at E[Sigma^{-1}]^{-1}."""
    prior = model.prior
    niw = prior.niw(model.D, W.dtype)
    shape, rate = (jnp.asarray(value, W.dtype) for value in (prior.alpha_shape, prior.alpha_rate))

    def one_pass(carry, key):
        z, alpha = carry
        key_components, key_z, key_alpha = jax.random.split(key, 3)
        mu, Sigma = spectral.sample_niw(key_components, spectral.niw_posterior(niw, W, z))
        z, _, _ = spectral.sample_assignments(key_z, z, W, mu, Sigma, alpha, niw)
        return (z, spectral.sample_concentration(key_alpha, alpha, z, shape, rate)), None

    keys = jax.random.split(key, N_MIXTURE_PASSES)
    (z, alpha), _ = jax.lax.scan(one_pass, (spectrum.z, spectrum.alpha), keys)
    posterior = spectral.niw_posterior(niw, W, z)
    Sigma = posterior.Psi / posterior.nu[:, None, None]
    return spectrum._replace(z=z, mu=posterior.m, Sigma=Sigma, alpha=alpha)
