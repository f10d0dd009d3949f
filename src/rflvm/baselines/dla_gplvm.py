"""DLA-GPLVM: a Poisson GPLVM by the decoupled Laplace approximation (Wu, Roy, Keeley & Pillow 2017).

    y_nj ~ Poisson(exp(f_nj)),  f_j ~ N(0, K_X + s0^2 1 1'),  x_n ~ N(0, I)

with an RBF kernel K_X of lengthscale one, whose variance is learned with X, and an intercept per column, of standard
deviation s0 = 10. (The scale of X is free: to learn a lengthscale as well would make the prior of X void.) With
K_X + s0^2 1 1' = Phi Lambda^{-1} Phi' (``rbf.py``) f_j = Phi beta_j, and Laplace's method gives

    log p(y_j | X) ~ log p(y_j | f_j) - 1/2 beta_j' Lambda beta_j - 1/2 log |P_j| + 1/2 log |Lambda|
    P_j = Phi' W_j Phi + Lambda,  W_j = diag(exp f_j)

at the mode. The mode moves with X. The decoupled approximation replaces the likelihood of each cell by a Gaussian that
does not: exp(b f - W f^2 / 2), with W = exp(f) and b = W f + y - exp(f) at the last mode. Given b and W the mode is
beta_j = P_j^{-1} Phi' b_j, one Newton step in closed form, and the expression above is maximised over X and the
kernel with it in place; then b and W are computed anew at the new mode, and so on.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from .. import likelihoods
from ..data.checks import check_integer
from ..model.joint import log_prior_latents
from ..numerics import linalg, memory_maps
from ..numerics.compilation import compiled
from ..numerics.precision import precision
from . import rbf
from .base import Baseline, start_of_X
from .poisson import Columns, Sites, first_sites, sites_at

BIAS_SCALE = 10.0
N_STEPS = 15  # of L-BFGS with the same Gaussians
RISE = 2e-6  # a fit has converged when a round raises the evidence by less than this, relative to its absolute value
DECREMENT = 1e-6  # Newton decrement at which a mode counts as found
_N_NEWTON, _N_HALVINGS, _RADIUS = 100, 8, 4.0
_BLOCK_NUMBERS = 16_000_000  # most numbers in the matrices P of one block of columns


class Parameters(NamedTuple):
    """What is maximised over."""

    X: Float[Array, "N D"]
    log_amplitude: Float[Array, ""]


def features(parameters: Parameters, rows: Int[Array, " R"]) -> Float[Array, "N M"]:
    """Phi: a square root of K_X, and a column of ones for the intercept."""
    X, log_amplitude = parameters
    Phi = jnp.exp(log_amplitude) * rbf.root(X, rows)
    return jnp.concatenate([Phi, jnp.ones((len(X), 1), X.dtype)], axis=1)


def log_prior(parameters: Parameters) -> Float[Array, ""]:
    """log p(X), and N(0, 1) for the logarithm of the amplitude, up to a constant."""
    return log_prior_latents(parameters.X) - 0.5 * parameters.log_amplitude**2


@compiled
def evaluate(
    parameters: Parameters, sites: Sites, table: Columns, rows: Int[Array, " R"]
) -> tuple[Float[Array, ""], Parameters]:
    """The decoupled objective and its gradient."""
    Phi, pullback = jax.vjp(lambda parameters: features(parameters, rows), parameters)
    value, gradient = evidence(Phi, sites, table)
    prior, prior_gradient = jax.value_and_grad(log_prior)(parameters)
    return value + prior, jax.tree.map(jnp.add, pullback(gradient)[0], prior_gradient)


def evidence(Phi: Float[Array, "N M"], sites: Sites, table: Columns) -> tuple[Float[Array, ""], Float[Array, "N M"]]:
    """sum_j log p(y_j | Phi) with given Gaussians, and its gradient in Phi.

    With g = dlog p / df at f = Phi beta and v = P^{-1} (Phi' g - Lambda beta), which is 0 at the mode, column j adds
    g beta' + (b - W f) v' - W Phi v beta' - W Phi P^{-1} to the gradient: the first three terms are from f = Phi beta,
    in which beta depends on Phi, the last is from the log-determinant.
    """
    Lambda = _precision(Phi)

    def block(total, columns):
        sites, table = columns
        L, inverse = _factor(Phi, sites.W, Lambda)
        beta = linalg.multiply_columns(inverse, Phi.T @ sites.b)
        F = Phi @ beta
        value, g = _log_posterior(beta, F, Lambda, table)
        value += 0.5 * jnp.log(Lambda).sum() - jnp.log(jnp.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
        v = linalg.multiply_columns(inverse, Phi.T @ g - Lambda[:, None] * beta)
        twice, _ = linalg.trace_slopes(Phi, sites.W, inverse)
        gradient = (g - sites.W * (Phi @ v)) @ beta.T + (sites.b - sites.W * F) @ v.T - 0.5 * twice
        return (total[0] + value.sum(), total[1] + gradient), None

    start = (jnp.zeros((), Phi.dtype), jnp.zeros_like(Phi))
    return lax.scan(block, start, _cut((sites, table), Phi.shape[1]))[0]


@compiled
def find_mode(
    parameters: Parameters, sites: Sites, table: Columns, rows: Int[Array, " R"]
) -> tuple[Float[Array, "N J"], Float[Array, ""]]:
    """F at the mode given X and the kernel, and the largest Newton decrement left.

    Newton's method from the mode of the given Gaussians, or of ``first_sites`` where the density there is higher. A
    column takes the best of ``_N_HALVINGS`` step lengths, each half the one before; the first is a whole step, or less
    so that no cell moves by more than ``_RADIUS``, beyond which exp(f) may overflow.
    """
    Phi = features(parameters, rows)
    Lambda = _precision(Phi)
    fractions = jnp.asarray(0.5 ** np.arange(_N_HALVINGS), Phi.dtype)

    def begin(sites, table):
        _, inverse = _factor(Phi, sites.W, Lambda)
        beta = linalg.multiply_columns(inverse, Phi.T @ sites.b)
        return beta, _log_posterior(beta, Phi @ beta, Lambda, table)[0]

    def block(columns):
        sites, table = columns

        def step(carry):
            beta, F, _, n = carry
            sites = sites_at(F, table)
            _, inverse = _factor(Phi, sites.W, Lambda)
            _, g = _log_posterior(beta, F, Lambda, table)
            gradient = Phi.T @ g - Lambda[:, None] * beta
            direction = linalg.multiply_columns(inverse, gradient)
            change = Phi @ direction
            largest = jnp.minimum(1, _RADIUS / jnp.maximum(jnp.abs(change).max(axis=0), _RADIUS))
            lengths = fractions[:, None] * largest[None]
            values = lax.map(
                lambda t: _log_posterior(beta + t[None] * direction, F + t[None] * change, Lambda, table)[0], lengths
            )
            length = jnp.take_along_axis(lengths, jnp.argmax(values, axis=0)[None], axis=0)
            decrement = jnp.sum(direction * gradient, axis=0).max()
            return beta + length * direction, F + length * change, decrement, n + 1

        # One after the other: see "Batched LAPACK calls" in docs/design/decisions.md.
        both = jax.tree.map(lambda *parts: jnp.stack(parts), sites, first_sites(table))
        (beta, other), (value, other_value) = lax.map(lambda sites: begin(sites, table), both)
        beta = jnp.where(other_value > jnp.where(jnp.isnan(value), -jnp.inf, value), other, beta)
        start = (beta, Phi @ beta, jnp.asarray(jnp.inf, Phi.dtype), 0)
        _, F, decrement, _ = lax.while_loop(lambda carry: (carry[2] > DECREMENT) & (carry[3] < _N_NEWTON), step, start)
        return F, decrement

    F, decrements = lax.map(block, _cut((sites, table), Phi.shape[1]))
    return jnp.moveaxis(F, 0, 1).reshape(len(Phi), -1)[:, : table.Y.shape[1]], decrements.max()


def _precision(Phi):
    """The diagonal of Lambda."""
    return jnp.ones(Phi.shape[1], Phi.dtype).at[-1].set(BIAS_SCALE**-2)


def _factor(Phi, W, Lambda):
    """The Cholesky factor of P_j for each column, and P_j^{-1}."""
    L, _ = linalg.cholesky(linalg.weighted_grams(Phi, W) + jnp.diag(Lambda)[None])
    return L, linalg.inverse_from_cholesky(L)


def _log_posterior(beta, F, Lambda, table: Columns):
    """log p(y_j | f_j) - 1/2 beta_j' Lambda beta_j of each column, and the gradient of its first term in f."""
    rate = table.observed * jnp.exp(F)
    cells = table.Y * F - rate - table.observed * gammaln(table.Y + 1)
    return cells.sum(axis=0) - 0.5 * Lambda @ beta**2, table.Y - rate


def _cut(columns: Any, M: int) -> Any:
    """Arrays (N, J) in blocks of columns, (blocks, N, width), padded with columns without observed cells."""
    J = jax.tree.leaves(columns)[0].shape[1]
    count = -(-J // max(_BLOCK_NUMBERS // M**2, 1))
    width = -(-J // count)

    def cut(array):
        padded = jnp.pad(array, ((0, 0), (0, count * width - J)))
        return jnp.moveaxis(padded.reshape(len(array), count, width), 1, 0)

    return jax.tree.map(cut, columns)


class Search(NamedTuple):
    """Where a maximisation ended, and the Laplace evidence with the prior after each round."""

    parameters: Parameters
    F: Float[Array, "N J"]
    trace: list[float]
    convergence: Literal["converged", "iteration limit"]


def maximise(X: np.ndarray, table: Columns, n_rounds: int) -> Search:
    """Rounds of L-BFGS from a start of X, each with the Gaussians of the mode that the last one ended at."""
    parameters = Parameters(jnp.asarray(X), jnp.zeros(()))
    best, F, trace = parameters, None, []
    sites = first_sites(table)
    for _ in range(n_rounds + 1):
        rows = jnp.asarray(rbf.pivots(np.asarray(parameters.X)))
        F_mode, _ = find_mode(parameters, sites, table, rows)
        sites = sites_at(F_mode, table)
        value = float(evaluate(parameters, sites, table, rows)[0])
        if not np.isfinite(value):
            raise linalg.NumericalError("the evidence is not finite; rescale the counts or check for extreme values")
        converged = bool(trace) and value - trace[-1] < RISE * abs(value)
        if F is None or value > max(trace):
            best, F = parameters, F_mode
        trace.append(value)
        if converged:
            return Search(best, F, trace, "converged")
        parameters = climb(parameters, sites, table, rows)
    assert F is not None
    return Search(best, F, trace, "iteration limit")


def climb(parameters: Parameters, sites: Sites, table: Columns, rows: Int[Array, " R"]) -> Parameters:
    """``N_STEPS`` of L-BFGS on the decoupled objective. A step to where it is not finite is not taken."""
    N, D = parameters.X.shape

    def unravel(flat):
        return Parameters(jnp.asarray(flat[:-1].reshape(N, D)), jnp.asarray(flat[-1]))

    def negative(flat):
        value, gradient = evaluate(unravel(flat), sites, table, rows)
        gradient = _ravel(gradient)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e300, np.zeros_like(flat)
        return -float(value), -gradient

    options = {"maxiter": N_STEPS, "maxcor": N_STEPS}
    minimize: Any = optimize.minimize
    return unravel(minimize(negative, _ravel(parameters), jac=True, method="L-BFGS-B", options=options).x)


def _ravel(parameters: Parameters) -> np.ndarray:
    return np.concatenate([np.asarray(part).ravel() for part in parameters])


class DLAGPLVM(Baseline):
    """Poisson GPLVM by the decoupled Laplace approximation.

    NaN means missing. There is no ``transform``: the method places the rows it was fitted to.

    The time of a step grows with N J R^2, R the rank of the kernel (``rbf.py``): some 30 for a curve and 110 for a
    cloud of rows with the variance of the prior, more as X spreads or D grows, and N at most.

    Parameters
    ----------
    n_components : int
        Latent dimensions D.
    init : {"pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where X starts: by default the principal components of the square roots of the counts, each with variance one,
        as in the paper.
    max_iter : int
        Rounds of 15 L-BFGS steps each.
    random_state : int, RandomState or None
        Of the start.

    Attributes
    ----------
    embedding_ : array (N, D)
        X, in units of the lengthscale.
    F_ : array (N, J)
        f_nj at the mode; ``exp(F_)`` are the expected counts, also of missing cells.
    amplitude_ : float
        Standard deviation of the functions.
    log_evidence_ : array
        log p(Y, X) by Laplace's method, up to a constant, before each round and at the end.
    n_iter_ : int
        Rounds.
    convergence_ : {"converged", "iteration limit"}
        Why it ended.
    """

    _likelihood = likelihoods.Poisson()
    _takes_gaps = True

    def __init__(self, n_components: int = 2, *, init: Any = "pca", max_iter: int = 50, random_state: Any = None):
        super().__init__(n_components, random_state=random_state)
        self.init = init
        self.max_iter = max_iter

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        max_iter = check_integer("max_iter", self.max_iter, 1)
        start = start_of_X(self.init, np.sqrt(Y), observed, self.n_components, seed)
        memory_maps.free_if_scarce()
        with precision("float64"), linalg.one_blas_thread():
            search = maximise(start, Columns(jnp.asarray(Y), jnp.asarray(observed, float)), max_iter)
            X, log_amplitude = (np.array(part) for part in search.parameters)
            self.F_ = np.array(search.F)
        self.amplitude_, self.log_evidence_ = float(np.exp(log_amplitude)), np.array(search.trace)
        self.n_iter_, self.convergence_ = len(search.trace) - 1, search.convergence
        if search.convergence == "iteration limit":
            warnings.warn(
                f"DLA-GPLVM was still rising after {max_iter} rounds: raise max_iter", ConvergenceWarning, stacklevel=3
            )
        return X
