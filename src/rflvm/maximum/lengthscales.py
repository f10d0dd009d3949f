"""Lengthscales of a prior over time between two climbs, which hold them.

At the end X^ of a climb the likelihood is taken for Gaussian in X, with the gradient and the information G of each row
that it has there, so that X can be integrated out:

    log p(Y | l) = 1/2 h'(K_l^{-1} + G)^{-1} h - 1/2 log|I + G K_l| + ...,    h = G X^ + grad log p(Y | X^)

X follows l there, which within a climb would be a narrow ridge, and a Kalman filter evaluates it in O(N). G is used in
the objective as well (``objective.log_volume_of_paths``). After a few climbs neither moves.
"""

from __future__ import annotations

import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import optimize

from ..model import dynamics
from ..model.dynamics import Chronology, Matern
from ..model.joint import Data, Model, per_axis
from ..numerics import linalg
from ..numerics.compilation import compiled
from .objective import Parameters, Path, Spectrum, recursion

logger = logging.getLogger(__name__)

# Deviations of its prior within which a log lengthscale is sought.
WITHIN = 4.0


def first_path(X: Float[np.ndarray, "N D"], information: float, data: Data, model: Model) -> Path | None:
    """Of a start of X, if there is a prior over time: lengthscales as if the start had the noise of unit slopes.

    ``information`` is that about F in all cells.
    """
    if model.dynamics is None:
        return None
    assert data.chronology is not None
    N, dtype = len(X), data.Y.dtype
    observed = np.ones(N) if data.mask is None else np.asarray(data.mask).mean(axis=1)
    each = information / N * observed / observed.mean()
    relative = np.tile(each[:, None], model.D)
    start = model.dynamics.start(data.chronology, model.D)
    path = Path(start, jnp.asarray(each, dtype), jnp.asarray(relative, dtype))
    return path._replace(lengthscale=learned(path, relative[:, :, None] * np.eye(model.D), relative * X, data, model))


def renewed(
    parameters: Parameters,
    slope: Float[Array, "N D"],
    information: Float[Array, "N D D"],
    spectrum: Spectrum,
    data: Data,
    model: Model,
) -> Path:
    """The path where a climb has ended.

    ``slope`` is the gradient of the objective in X, and ``information`` what the cells of each row say about its
    position.
    """
    path = spectrum.path
    assert path is not None
    natural = _natural(parameters.X, slope, information, spectrum, data, model)
    lengthscale = learned(path, np.asarray(information, float), np.asarray(natural), data, model)
    X = np.asarray(parameters.X, float)
    variance = X.var(axis=0).mean() if parameters.W is None else X.var(axis=0)
    relative = np.diagonal(np.asarray(information, float), axis1=1, axis2=2) * variance
    logger.info("lengthscales %s", np.round(np.asarray(lengthscale), 3).tolist())
    return path._replace(lengthscale=lengthscale, relative=jnp.asarray(relative, parameters.X.dtype))


def learned(
    path: Path, information: Float[np.ndarray, "N D D"], natural: Float[np.ndarray, "N D"], data: Data, model: Model
) -> Float[Array, " L"]:
    """The lengthscales of the highest posterior density given ``information`` and h, or those that are given."""
    prior = model.dynamics
    assert prior is not None
    assert data.chronology is not None
    if not prior.learned:
        return path.lengthscale
    chronology = linalg.cast(data.chronology, jnp.float64)
    known = jnp.asarray(information), jnp.asarray(natural)

    def negative(logs):
        value, slope = _log_density(jnp.asarray(logs), *known, chronology, prior)
        return -float(value), -np.asarray(slope)

    middle = np.log(np.asarray(prior.start(chronology, model.D)))
    away = WITHIN * dynamics.LOG_DEVIATION
    start = np.log(np.asarray(path.lengthscale, float))
    found = optimize.minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=[(value - away, value + away) for value in middle]
    )
    return jnp.asarray(np.exp(found.x), path.lengthscale.dtype)


@functools.partial(compiled, static_argnames="prior")
def _log_density(
    logs: Float[Array, " L"], information: Float[Array, "N D D"], natural: Float[Array, "N D"], chronology: Chronology,
    prior: Matern,
) -> tuple[Float[Array, ""], Float[Array, " L"]]:  # fmt: skip
    """log p(Y | l) + log p(log l) up to a constant, and its gradient."""
    D = natural.shape[1]

    def value(logs):
        lengthscale = jnp.exp(logs)
        steps = dynamics.transitions(prior, per_axis(lengthscale, D), chronology)
        known = dynamics.filtered(information, natural, steps)
        mean, _ = dynamics.smoothed(known)
        half_logdet = lambda P: linalg.small_logdet(linalg.small_cholesky(P[:, :D, :D])).sum()  # noqa: E731
        log_volume = half_logdet(known.covariance) - half_logdet(known.predicted)
        return 0.5 * jnp.sum(natural * mean) + log_volume + prior.log_prior(lengthscale, chronology) + jnp.sum(logs)

    return jax.value_and_grad(value)(logs)


@functools.partial(compiled, static_argnames="model")
def _natural(
    X: Float[Array, "N D"], slope: Float[Array, "N D"], information: Float[Array, "N D D"], spectrum: Spectrum,
    data: Data, model: Model,
) -> Float[Array, "N D"]:  # fmt: skip
    """h, from the gradient of the objective, in which the prior has -K^{-1} X."""
    steps = recursion(spectrum, model, data.chronology)
    assert steps is not None
    X, slope, information = (part.astype(steps.deviation.dtype) for part in (X, slope, information))
    return jnp.einsum("nde,ne->nd", information, X) + slope + dynamics.times_precision(X, steps)
