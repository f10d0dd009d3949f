"""A maximisation in progress: its beginning, and the step from fixed to free frequencies."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model import laplace, spectral
from ..model.joint import Data, Model, State, state_shapes
from ..model.laplace import Mode
from ..numerics import quadrature
from ..numerics.compilation import compiled
from . import starts
from .lengthscales import first_path
from .objective import Parameters, Spectrum, frequencies, volume_weight

# Gibbs passes over the mixture each time that it is updated to W. Each begins where the last update ended, so few will
# do; a choice without a measurement.
N_MIXTURE_PASSES = 5

Convergence = Literal["converged", "iteration limit", "line search failed", "modes not found", "interrupted"]


@dataclasses.dataclass(frozen=True)
class Search:
    """A maximisation in progress: where it is, and what it has seen.

    Attributes
    ----------
    parameters : Parameters
        The highest point so far.
    mode : Mode or None
        The modes of beta there, as coefficients of Phi without the amplitude; None for the conjugate Gaussian.
    spectrum : Spectrum
        What is held constant.
    trace : list of float
        The objective after each iteration, of all climbs, and after each round of ``approach``.
    n_iterations : int
        Iterations so far.
    value : float
        The objective at ``parameters``; minus infinity before the first climb.
    convergence : str
        How the last climb ended: "converged", "iteration limit", "line search failed" (while still rising), "modes not
        found" (of beta, by Newton's method, in some column) or "interrupted".
    approximable : bool
        Whether rounds of ``approach`` are of use here, as far as is known.
    """

    parameters: Parameters
    mode: Mode | None
    spectrum: Spectrum
    trace: list[float]
    n_iterations: int = 0
    value: float = -np.inf
    convergence: Convergence = "iteration limit"
    approximable: bool = True

    def with_parameters(self, **values: Any) -> Search:
        """The search with some of its parameters replaced."""
        return dataclasses.replace(self, parameters=self.parameters._replace(**values))


def begin(seed: int, X: Float[np.ndarray, "N D"], data: Data, model: Model, learn_amplitude: bool) -> Search:
    """A search with an RBF kernel of lengthscale 1 and amplitude 1, from a start of X."""
    dtype, shapes = data.Y.dtype, state_shapes(data, model)
    zero = jnp.asarray(0.0, dtype)
    learned_theta = {} if model.likelihood.conjugate else starts.theta(data, model)
    parameters = Parameters(
        X=jnp.asarray(X, dtype),
        log_amplitude=zero if learn_amplitude else None,
        log_scale=zero,
        W=None,
        log_theta={name: jnp.asarray(np.log(value), dtype) for name, value in learned_theta.items()},
    )
    mode, information = _mode_at_intercepts(shapes, data, model)
    spectrum = _first_spectrum(seed, information, shapes, data, model)
    return Search(parameters, mode, spectrum._replace(path=first_path(X, information, data, model)), trace=[])


_start_mode = compiled(laplace.start, static_argnames="model")


def _mode_at_intercepts(shapes: State, data: Data, model: Model) -> tuple[Mode | None, float]:
    """Where Newton's method starts, and the information about F in all cells there (in units of the noise if Gaussian).

    All coefficients are 0 but the intercepts, which match the means of the columns.
    """
    if model.likelihood.conjugate:
        return None, float(data.Y.size if data.mask is None else data.mask.sum())
    beta = _zeros(shapes.beta)
    beta[-1] = starts.intercepts(data, model)
    theta = {name: jnp.asarray(value, data.Y.dtype) for name, value in starts.theta(data, model).items()}
    information = laplace.information(jnp.asarray(beta[-1]), theta, data, model)
    return _start_mode(data, model, jnp.asarray(beta)), float(information)


def _first_spectrum(seed: int, information: float, shapes: State, data: Data, model: Model) -> Spectrum:
    """Frequencies of an RBF kernel, all in one component N(0, I) of the mixture; alpha at its prior mean."""
    N, J = data.Y.shape
    dtype = data.Y.dtype
    return Spectrum(
        standard=jnp.asarray(quadrature.frequencies(model.H, model.D, seed), dtype),
        z=jnp.asarray(_zeros(shapes.z)),
        mu=jnp.asarray(_zeros(shapes.mu)),
        Sigma=jnp.asarray(_zeros(shapes.Sigma) + np.eye(model.D, dtype=dtype)),
        alpha=jnp.asarray(model.prior.alpha_shape / model.prior.alpha_rate, dtype),
        information=jnp.asarray(information / N, dtype),
        volume_weight=jnp.asarray(volume_weight(information, N, J), dtype),
    )


def _zeros(shape: Any) -> np.ndarray:
    """Zeros of the shape and dtype that ``state_shapes`` gives."""
    return np.zeros(shape.shape, shape.dtype)


def free_frequencies(key: Array, search: Search, model: Model) -> Search:
    """Free W: from the present frequencies, with the mixture prior updated to them."""
    W = frequencies(search.parameters, search.spectrum)
    spectrum = update_mixture(key, W, search.spectrum, model)
    return dataclasses.replace(search.with_parameters(log_scale=None, W=W), spectrum=spectrum)


@functools.partial(compiled, static_argnames="model")
def update_mixture(key: Array, W: Float[Array, "H D"], spectrum: Spectrum, model: Model) -> Spectrum:
    """Gibbs passes over z, (mu, Sigma) and alpha given W, then mu at its mean and Sigma at E[Sigma^{-1}]^{-1}."""
    prior = model.prior
    niw = prior.niw(model.D, W.dtype)
    shape, rate = (jnp.asarray(value, W.dtype) for value in (prior.alpha_shape, prior.alpha_rate))

    def gibbs_pass(carry, key):
        z, alpha = carry
        key_components, key_z, key_alpha = jax.random.split(key, 3)
        mu, Sigma = spectral.sample_niw(key_components, spectral.niw_posterior(niw, W, z))
        z, _, _ = spectral.sample_assignments(key_z, z, W, mu, Sigma, alpha, niw)
        return (z, spectral.sample_concentration(key_alpha, alpha, z, shape, rate)), None

    keys = jax.random.split(key, N_MIXTURE_PASSES)
    (z, alpha), _ = jax.lax.scan(gibbs_pass, (spectrum.z, spectrum.alpha), keys)
    posterior = spectral.niw_posterior(niw, W, z)
    Sigma = posterior.Psi / posterior.nu[:, None, None]
    return spectrum._replace(z=z, mu=posterior.m, Sigma=Sigma, alpha=alpha)
