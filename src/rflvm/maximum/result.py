"""What a fit carries: positions with covariances, frequencies, the posterior of the coefficients."""

from __future__ import annotations

import dataclasses
import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model import laplace
from ..model.conjugate import coefficients, regression
from ..model.joint import Data, Model
from ..model.laplace import Mode
from ..numerics import linalg
from ..numerics.compilation import compiled
from .objective import Parameters, Spectrum, basis, frequencies
from .search import Convergence, Search

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Fit:
    """What the MAP engine found, enough to predict, to embed new rows and to say how sure it is.

    Attributes
    ----------
    X, X_covariance : array (N, D), (N, D, D)
        Latent positions, and the covariance of each given the others: the inverse of its prior
        precision plus the information of its cells, each with the variance that beta leaves added.
    W, z, mu, Sigma, alpha
        Frequencies and their mixture.
    amplitude : float
        What the prior standard deviation of the coefficients was multiplied by.
    beta, beta_factor, beta_scale : array (M, J), (J or 1, M, M), (J,)
        Posterior of the coefficients: mean, and covariance ``beta_scale_j (L_j L_j')^{-1}``. One factor
        serves all columns of a Gaussian table without gaps. ``beta_factor`` is None when it would
        not fit the memory budget.
    theta : dict
        The family's own parameters.
    trace : array
        The objective after each iteration.
    convergence : str
        "converged", "iteration limit", "line search failed", "modes not found" (of beta, by Newton's method,
        in some column) or "interrupted".
    init : str
        The start of X that was used.
    """

    model: Model
    X: np.ndarray
    X_covariance: np.ndarray
    W: np.ndarray
    z: np.ndarray
    mu: np.ndarray
    Sigma: np.ndarray
    alpha: float
    amplitude: float
    beta: np.ndarray
    beta_factor: np.ndarray | None
    beta_scale: np.ndarray
    theta: dict[str, np.ndarray]
    trace: np.ndarray
    convergence: Convergence
    init: str


def finish(search: Search, init: str, data: Data, model: Model, memory_budget: float) -> Fit:
    """Everything that a fit carries, at the end of a search."""
    parameters = search.parameters
    theta, found, times, covariance = posterior(parameters, search.mode, search.spectrum, data, model)
    keep = found.factor.size * found.factor.dtype.itemsize <= memory_budget
    if not keep:
        logger.info("the factor of beta's covariance would take %.0f MB and is left out", found.factor.nbytes / 1e6)
    as_array = np.asarray
    return Fit(
        model=model,
        X=as_array(parameters.X),
        X_covariance=as_array(covariance),
        W=as_array(frequencies(parameters, search.spectrum)),
        z=as_array(search.spectrum.z),
        mu=as_array(search.spectrum.mu),
        Sigma=as_array(search.spectrum.Sigma),
        alpha=float(search.spectrum.alpha),
        amplitude=float(times[0]),
        beta=as_array(found.beta),
        beta_factor=as_array(found.factor) if keep else None,
        beta_scale=as_array(found.scale),
        theta={name: as_array(value) for name, value in theta.items()},
        trace=np.array(search.trace),
        convergence=search.convergence,
        init=init,
    )


@functools.partial(compiled, quick=True, static_argnames="model")
def posterior(
    parameters: Parameters, mode: Mode | None, spectrum: Spectrum, data: Data, model: Model
) -> tuple[dict[str, Array], laplace.Details, Float[Array, " M"], Float[Array, "N D D"]]:
    """theta, the posterior of beta given it, what the amplitude multiplied, and the covariance of each row of X."""
    Phi, slopes, times = basis(parameters, spectrum)
    if mode is None:
        found = _gaussian_details(Phi, data, model)
        theta = {"sigma2": found.scale}
    else:
        theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items()}
        per_column = {name: value for name, value in theta.items() if value.ndim}
        found = laplace.details(Phi, per_column, laplace.rescaled(mode, 1 / times), data, model)
    covariance = _row_covariances(slopes, found)
    scaled = found._replace(beta=times[:, None] * found.beta, factor=found.factor / times[:, None])
    return theta, scaled, times, covariance


def _gaussian_details(Phi: Float[Array, "N M"], data: Data, model: Model) -> laplace.Details:
    """The normal-inverse-gamma posterior, with sigma_j^2 at E[sigma_j^{-2}]^{-1}."""
    fit = regression(Phi, data, model)
    aN, bN = model.likelihood.noise_posterior(fit.n, fit.yy, jnp.sum(fit.half**2, axis=0))
    sigma2 = bN / aN
    L = fit.L if fit.L.ndim == 3 else fit.L[None]
    half = jax.vmap(lambda L: linalg.solve_lower(L, Phi.T))(L)
    observed = jnp.ones_like(data.Y) if data.mask is None else data.mask.astype(Phi.dtype)
    return laplace.Details(
        beta=coefficients(fit.L, fit.half),
        factor=L,
        scale=sigma2,
        curvature=observed / sigma2,
        leverage=jnp.broadcast_to(jnp.sum(half**2, axis=1).T, observed.shape) * sigma2,
    )


def _row_covariances(slopes: Float[Array, "D N M"], found: laplace.Details) -> Float[Array, "N D D"]:
    """(I + sum_j (1/D_nj + s_nj)^{-1} (df_nj/dx)(df_nj/dx)')^{-1} of each row."""
    dF = slopes @ found.beta
    information = found.curvature / (1 + found.curvature * found.leverage)
    metric = jnp.einsum("dnj,nj,enj->nde", dF, information, dF) + jnp.eye(dF.shape[0], dtype=dF.dtype)
    return jnp.linalg.inv(metric)
