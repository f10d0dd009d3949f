"""What a fit carries: positions with covariances, frequencies, the posterior of the coefficients."""

from __future__ import annotations

import dataclasses
import functools
import logging
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model import dynamics, laplace
from ..model.conjugate import coefficients, regression
from ..model.dynamics import Innovations
from ..model.joint import Data, Model
from ..model.laplace import Mode
from ..numerics import linalg, units
from ..numerics.compilation import compiled
from ..numerics.units import Units
from .competition import Start
from .objective import Parameters, Spectrum, frequencies, recursion, scaled_features
from .search import Convergence, Search

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Fit:
    """The maximum of the posterior, and enough around it to predict, to embed new rows and to say how sure it is.

    If the table has units, coefficients, the family's parameters and the objective are those of the standardised table;
    ``in_units`` has the first two in the units of the table.

    Attributes
    ----------
    model : Model
        The likelihood, the sizes D and H (M = 2H + 1 columns of features, and more with covariates) and the prior.
    X : array (N, D)
        Latent positions.
    X_covariance : array (N, D, D)
        Covariance of each position given the others: the inverse of its prior precision plus the information of its
        cells, each of which has the variance of f that beta leaves added to its own. With a prior over time, of each
        position in its path.
    W : array (H, D)
        Frequencies.
    z : array (H,)
        Component of each frequency in the mixture prior.
    mu : array (H, D)
        Means of the components.
    Sigma : array (H, D, D)
        Covariances of the components.
    alpha : float
        Concentration of the mixture.
    amplitude : float
        Factor on the prior standard deviation of the coefficients, effects of covariates and intercepts excepted.
    beta : array (M, J)
        Posterior mean of the coefficients (their mode, where that is all that Laplace's method has).
    beta_factor : array (J, M, M) or (1, M, M), or None
        L_j, such that the coefficients of column j have covariance ``beta_scale[j]`` (L_j L_j')^{-1}. One serves all
        columns of a Gaussian table without gaps. None when it would not fit the memory budget.
    beta_scale : array (J,)
        See ``beta_factor``: the noise variances of a Gaussian table, else ones.
    theta : dict of array () or (J,)
        The family's own parameters, by name.
    log_posterior : float
        The objective at the maximum: log p(X, W, theta | Y) with beta integrated out, up to a constant, and the
        effective volume correction. Comparable between fits of one table with one family, kernel and prior.
    n_iterations : int
        Iterations from the start to the end.
    trace : array
        The objective after each iteration, of those on an approximation after each round.
    convergence : str
        "converged", "iteration limit", "line search failed", "modes not found" (of beta, by Newton's method,
        in some column) or "interrupted".
    init : str
        The start of X that was used.
    starts : tuple of Start
        How the starts that met the table fared, the one that was used first.
    units : Units or None
        Location and scale of each column, with which the table was standardised. None for families whose cells have no
        unit.
    lengthscale : array (L,) or None
        Of a prior over time, in the unit of the times.
    X_information : array (N, D, D) or None
        With a prior over time, what the cells of each row say about its position: together they have the covariances
        of whole paths, of which ``X_covariance`` has the rows.
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
    log_posterior: float
    n_iterations: int
    trace: np.ndarray
    convergence: Convergence
    init: str
    starts: tuple[Start, ...]
    units: Units | None = None
    lengthscale: np.ndarray | None = None
    X_information: np.ndarray | None = None

    def in_units(self) -> Fit:
        """The fit with beta, its covariance and the family's own parameters in the units of the table."""
        if self.units is None:
            return self
        scale = self.units.scale
        theta = {name: np.asarray(value, float) for name, value in self.theta.items()}
        return dataclasses.replace(
            self,
            beta=units.coefficients(self.beta, self.units),
            beta_scale=self.beta_scale * scale**2,
            theta=self.model.likelihood.theta_in_units(theta, scale),
            units=None,
        )


class Posterior(NamedTuple):
    """The Gaussian approximation around a maximum.

    Attributes
    ----------
    theta : dict of array () or (J,)
        The family's own parameters.
    coefficients : laplace.Details
        Posterior of beta given X, W and theta, for Phi without the amplitude.
    column_scale : array (M,)
        Factor on the prior standard deviation of each row of beta: the amplitude, and 1 for effects of covariates
        and the intercepts.
    X_covariance, X_information : array (N, D, D)
        As in ``Fit``.
    """

    theta: dict[str, Array]
    coefficients: laplace.Details
    column_scale: Float[Array, " M"]
    X_covariance: Float[Array, "N D D"]
    X_information: Float[Array, "N D D"]


def summarise(search: Search, starts: tuple[Start, ...], data: Data, model: Model, memory_budget: float) -> Fit:
    """The fit at the end of a search."""
    parameters, spectrum = search.parameters, search.spectrum
    theta, beta, column_scale, X_covariance, X_information = posterior(parameters, search.mode, spectrum, data, model)
    keep_factor = beta.factor.nbytes <= memory_budget
    if not keep_factor:
        logger.info("the factor of beta's covariance would take %.0f MB and is left out", beta.factor.nbytes / 1e6)
    return Fit(
        model=model,
        X=np.asarray(parameters.X),
        X_covariance=np.asarray(X_covariance),
        W=np.asarray(frequencies(parameters, spectrum)),
        z=np.asarray(spectrum.z),
        mu=np.asarray(spectrum.mu),
        Sigma=np.asarray(spectrum.Sigma),
        alpha=float(spectrum.alpha),
        amplitude=float(column_scale[0]),
        beta=np.asarray(beta.beta),
        beta_factor=np.asarray(beta.factor) if keep_factor else None,
        beta_scale=np.asarray(beta.scale),
        theta={name: np.asarray(value) for name, value in theta.items()},
        log_posterior=search.value,
        n_iterations=search.n_iterations,
        trace=np.array(search.trace),
        convergence=search.convergence,
        init=starts[0].name,
        starts=starts,
        lengthscale=None if spectrum.path is None else np.asarray(spectrum.path.lengthscale),
        X_information=None if spectrum.path is None else np.asarray(X_information),
    )


@functools.partial(compiled, quick=True, static_argnames="model")
def posterior(parameters: Parameters, mode: Mode | None, spectrum: Spectrum, data: Data, model: Model) -> Posterior:
    """The Gaussian approximation at the end of a search."""
    Phi, slopes, column_scale = scaled_features(parameters, spectrum, data.covariates)
    if mode is None:
        details = _gaussian_details(Phi, data, model)
        theta = {"sigma2": details.scale}
    else:
        theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items()}
        per_column = {name: value for name, value in theta.items() if value.ndim}
        details = laplace.details(Phi, per_column, laplace.rescaled(mode, 1 / column_scale), data, model)
    X_information = _row_information(slopes, details)
    steps = recursion(spectrum, model, data.chronology)
    X_covariance = _row_covariances(X_information) if steps is None else _path_covariances(X_information, steps)
    # From coefficients of the scaled features to coefficients of Phi.
    unscaled = details._replace(
        beta=column_scale[:, None] * details.beta, factor=details.factor / column_scale[None, :, None]
    )
    return Posterior(theta, unscaled, column_scale, X_covariance, X_information)


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
        curvature=observed / sigma2[None],
        leverage=jnp.broadcast_to(jnp.sum(half**2, axis=1).T, observed.shape) * sigma2[None],
    )


def _row_information(slopes: Float[Array, "D N M"], details: laplace.Details) -> Float[Array, "N D D"]:
    """sum_j (1/D_nj + s_nj)^{-1} (df_nj/dx)(df_nj/dx)' of each row, s_nj the leverage."""
    dF = slopes @ details.beta
    information = details.curvature / (1 + details.curvature * details.leverage)
    return jnp.einsum("dnj,nj,enj->nde", dF, information, dF)


def _row_covariances(information: Float[Array, "N D D"]) -> Float[Array, "N D D"]:
    """(I + information)^{-1} of each row."""
    return jnp.linalg.inv(information + jnp.eye(information.shape[1], dtype=information.dtype)[None])


def _path_covariances(information: Float[Array, "N D D"], steps: Innovations) -> Float[Array, "N D D"]:
    """The rows of (K^{-1} + information)^{-1}."""
    known = information.astype(steps.deviation.dtype)
    return dynamics.smoothed(dynamics.filtered(known, jnp.zeros_like(known[..., 0]), steps.step))[1]
