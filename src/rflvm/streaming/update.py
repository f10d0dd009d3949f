"""The functions after an epoch, from sums over rows: in double precision, on the host.

beta_j    + (H_j + P)^{-1} (r_j - P beta_j), P being the prior precision: a step of Newton's method
theta     where a quadratic approximation of the log density, plus the log prior, is highest
amplitude where E[log p(beta | amplitude)] is highest, beta ~ N(beta_j, (H_j + P)^{-1})
scale     x -> A x, W -> W A^{-1} with A = (sum_n E[x_n x_n'] / N)^{-1/2}, which leaves the likelihood as it is and
          makes the divergence of q from the prior of X least
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import linalg, optimize

from ..model.joint import Model, log_prior_beta
from ..numerics.compilation import compiled
from ..numerics.precision import precision
from .epochs import Totals
from .functions import Functions
from .programs import stack

# How far f may move at an anchor, and the logarithm of a parameter, in one epoch: quadratics hold near by.
LARGEST_MOVE = 0.5

# Relative to the mean of a diagonal: what single precision may have lost of a Gram matrix. Tenfold until there is a
# factor.
JITTER = 1e-7


class Update(NamedTuple):
    """Functions after an epoch.

    Attributes
    ----------
    functions : Functions
        The functions.
    turn : array (D, D)
        A: positions x are A x from now on.
    factor : array (J, M, M)
        L_j with (L_j L_j')^{-1} the covariance of the coefficients of column j, in single precision.
    """

    functions: Functions
    turn: Float[np.ndarray, "D D"]
    factor: Float[np.ndarray, "J M M"]


def update(functions: Functions, totals: Totals, anchors: Float[np.ndarray, "A D"], model: Model) -> Update:
    """The functions after an epoch; f moves by at most ``LARGEST_MOVE`` at the anchors, the scale of X aside."""
    weight = totals.sums.n / max(totals.curvature.n, 1)
    beta, factor, spread = _new_beta(functions, totals, weight, functions.features(anchors), model)
    theta = _new_theta(functions, totals, weight, model)
    new = functions._replace(beta=beta, theta=theta)
    new = new._replace(amplitude=_new_amplitude(new, spread, model))
    A = turn_of(totals.sums.square / totals.sums.n)
    return Update(new.turned(A), A, factor)


def prior_precision(functions: Functions, model: Model) -> Float[np.ndarray, "M J"]:
    """Diagonals of the prior precisions of the coefficients of all columns."""
    M, J = functions.beta.shape
    diagonal = np.full(M, (model.prior.beta_scale * float(functions.amplitude)) ** -2.0)
    diagonal[-1] = model.prior.bias_scale**-2.0
    with precision("float64"):
        theta = {name: jnp.asarray(value) for name, value in functions.theta.items()}
        scale = np.asarray(model.likelihood.coefficient_scale(theta))
    return diagonal[:, None] / np.broadcast_to(scale, J)


def _new_beta(
    functions: Functions, totals: Totals, weight: float, Phi: np.ndarray, model: Model
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients, factors of their precisions, and the variances (M, J) that those leave."""
    prior = prior_precision(functions, model)
    right = totals.sums.gradient - prior * functions.beta
    M, J = functions.beta.shape
    beta, spread = functions.beta.copy(), np.empty((M, J))
    factor = np.empty((J, M, M), np.float32)
    for j in range(J):
        L = _factor(weight * totals.curvature.gram[j], prior[:, j])
        step = linalg.cho_solve((L, True), right[:, j])
        beta[:, j] += step * min(1.0, LARGEST_MOVE / max(np.abs(Phi @ step).max(), 1e-300))
        spread[:, j] = (linalg.solve_triangular(L, np.eye(M), lower=True) ** 2).sum(axis=0)
        factor[j] = np.tril(L)
    return beta, factor, spread


def _factor(gram: Float[np.ndarray, "M M"], prior: Float[np.ndarray, " M"]) -> Float[np.ndarray, "M M"]:
    """The Cholesky factor of a Gram matrix, of which the lower triangle counts, plus the prior precision."""
    A = np.tril(gram) + np.tril(gram, -1).T
    size = np.trace(A) / len(A)
    for attempt in range(6):
        try:
            return linalg.cholesky(A + np.diag(prior + JITTER * 10**attempt * size), lower=True)
        except linalg.LinAlgError:
            continue
    raise linalg.LinAlgError("the Gram matrix of a column is not positive definite")


def _new_amplitude(functions: Functions, spread: Float[np.ndarray, "M J"], model: Model) -> np.ndarray:
    """The amplitude a that maximises -n log a - S / (2 a^2) - (log a)^2 / 2, S being E|beta|^2 on the prior's scale."""
    unit = prior_precision(functions._replace(amplitude=np.ones(())), model)[:-1]
    S, n = float(((functions.beta[:-1] ** 2 + spread[:-1]) * unit).sum()), unit.size
    log_a = 0.5 * np.log(S / n)
    for _ in range(20):
        pull = S * np.exp(-2 * log_a)
        log_a += (pull - n - log_a) / (2 * pull + 1)
    return np.asarray(np.exp(log_a))


def turn_of(square: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
    """A from the mean of E[x x'].

    With fixed frequencies too it is any symmetric matrix: an RBF kernel then has a matrix of lengthscales.
    """
    values, vectors = np.linalg.eigh(square)
    return vectors / np.sqrt(values) @ vectors.T


def _new_theta(functions: Functions, totals: Totals, weight: float, model: Model) -> dict[str, np.ndarray]:
    """The family's own parameters, of which those of one column are found together and those of all with them."""
    if not functions.theta:
        return {}
    slope, bend = weight * totals.curvature.slope, weight * totals.curvature.bend
    values, vectors = np.linalg.eigh(np.moveaxis(bend + np.swapaxes(bend, 0, 1), 2, 0) / 2)
    downwards = np.einsum("jab,jb,jcb->acj", vectors, np.minimum(values, 0), vectors)
    with precision("float64"):
        as_array = lambda tree: jax.tree.map(jnp.asarray, tree)  # noqa: E731
        start = as_array({name: np.log(value) for name, value in functions.theta.items()})
        standard = functions.beta / np.r_[np.full(len(functions.beta) - 1, functions.amplitude), 1][:, None]
        given = as_array((slope, downwards, standard))

        def negative(flat):
            value, gradient = _log_density(_named(flat, start), start, *given, model)
            return -float(value), -_flat(gradient)

        n = len(_flat(start))
        found = optimize.minimize(
            negative, np.zeros(n), jac=True, method="L-BFGS-B", bounds=[(-LARGEST_MOVE, LARGEST_MOVE)] * n
        )
        steps = _named(found.x, start)
    return {name: np.asarray(value * np.exp(np.asarray(steps[name]))) for name, value in functions.theta.items()}


@functools.partial(compiled, quick=True, static_argnames="model")
def _log_density(steps, start, slope, bend, standard, model: Model):
    """The quadratic approximation of log p(Y | theta) plus the log prior, steps away from log theta; its gradient."""

    def at(steps):
        own = stack({name: value for name, value in steps.items() if value.ndim})
        likelihood = jnp.sum(slope * own) + 0.5 * jnp.einsum("aj,abj,bj->", own, bend, own) if own.size else 0.0
        log_theta = {name: start[name] + value for name, value in steps.items()}
        theta = {name: jnp.exp(value) for name, value in log_theta.items()}
        prior = model.likelihood.log_prior_theta(theta) + sum(value.sum() for value in log_theta.values())
        return likelihood + prior + log_prior_beta(standard, theta, model).sum()

    return jax.value_and_grad(at)(steps)


def _flat(tree: dict[str, Any]) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, float).ravel() for leaf in tree.values()])


def _named(flat: np.ndarray, like: dict[str, Any]) -> dict[str, Any]:
    ends = np.cumsum([value.size for value in like.values()])[:-1]
    parts = zip(np.split(flat, ends), like.items(), strict=True)
    return {name: jnp.asarray(part.reshape(value.shape)) for part, (name, value) in parts}
