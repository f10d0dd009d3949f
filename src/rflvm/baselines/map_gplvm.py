"""MAP-GPLVM: the naive Poisson GPLVM of the paper (section 3.1), coordinate ascent on F and X in turn.

    y_nj ~ Poisson(exp(f_nj)),  f_j ~ N(0, C),  x_n ~ N(0, I),  C = K_X + s0^2 1 1' + noise I

with an RBF kernel K_X of variance and lengthscale one and s0 = 10. F given X is found by Newton's method, X given F by
L-BFGS on log N(F; 0, C) + log N(X; 0, I). F given X is smooth in X, and no other X explains a smooth F as well, so X
stays where it was: the poor local modes that the paper reports. The more noise, the further X can move.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
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
from .poisson import Columns, sites_at

BIAS_SCALE = 10.0
N_STEPS = 15  # of L-BFGS with the same F
RISE = (
    1e-5  # the ascent has converged when a round raises the density by less than this, relative to its absolute value
)
DECREMENT = 1e-6  # Newton decrement at which a mode counts as found
_N_NEWTON, _N_HALVINGS, _RADIUS = 100, 8, 4.0


def covariance(X: Float[Array, "N D"], noise: float) -> Float[Array, "N N"]:
    """C."""
    return rbf.kernel(X, X) + BIAS_SCALE**2 + noise * jnp.eye(len(X), dtype=X.dtype)


def log_density_of_F(X: Float[Array, "N D"], F: Float[Array, "N J"], noise: float) -> Float[Array, ""]:
    """log N(F; 0, C) + log N(X; 0, I), up to a constant."""
    L = jnp.linalg.cholesky(covariance(X, noise))
    white = linalg.solve_lower(L, F)
    return log_prior_latents(X) - 0.5 * jnp.sum(white**2) - F.shape[1] * jnp.log(jnp.diagonal(L)).sum()


@functools.partial(compiled, static_argnames="noise")
def find_F(
    X: Float[Array, "N D"], F: Float[Array, "N J"], table: Columns, noise: float
) -> tuple[Float[Array, "N J"], Float[Array, ""]]:
    """The F that maximises log p(Y, F | X), from a given one, and log p(Y, F, X) there up to a constant.

    Newton's method for one column after the other. With a = C^{-1} f, W = exp(f) and b = W f + y - exp(f) a whole
    step ends at a = b - S B^{-1} S C b, S = W^{1/2} and B = I + S C S, which needs no inverse of C. A column takes the
    best of ``_N_HALVINGS`` step lengths, each half the one before; the first is a whole step, or less so that no cell
    moves by more than ``_RADIUS``.
    """
    C = covariance(X, noise)
    L = jnp.linalg.cholesky(C)
    fractions = jnp.asarray(0.5 ** np.arange(_N_HALVINGS), X.dtype)

    def column(inputs):
        f, cells = inputs

        def value_at(a, f):
            return jnp.sum(cells.Y * f - cells.observed * jnp.exp(f)) - 0.5 * a @ f

        def step(carry):
            a, f, _, n = carry
            b, W = sites_at(f, cells)
            root = jnp.sqrt(W)
            factor = jnp.linalg.cholesky(jnp.eye(len(f), dtype=f.dtype) + root[:, None] * C * root[None])
            half = linalg.solve_lower(factor, (root * (C @ b))[:, None])
            new = b - root * linalg.solve_lower_transposed(factor, half)[:, 0]
            direction, change = new - a, C @ new - f
            gradient = cells.Y - cells.observed * jnp.exp(f) - a
            lengths = fractions * jnp.minimum(1, _RADIUS / jnp.maximum(jnp.abs(change).max(), _RADIUS))
            values = lax.map(lambda t: value_at(a + t * direction, f + t * change), lengths)
            length = lengths[jnp.argmax(values)]
            return a + length * direction, f + length * change, change @ gradient, n + 1

        a = linalg.solve_lower_transposed(L, linalg.solve_lower(L, f[:, None]))[:, 0]
        start = (a, f, jnp.asarray(jnp.inf, f.dtype), 0)
        a, f, _, _ = lax.while_loop(lambda carry: (carry[2] > DECREMENT) & (carry[3] < _N_NEWTON), step, start)
        return f, value_at(a, f)

    f, values = lax.map(column, (F.T, Columns(table.Y.T, table.observed.T)))
    logdet = 2 * jnp.log(jnp.diagonal(L)).sum()
    return f.T, values.sum() - 0.5 * F.shape[1] * logdet + log_prior_latents(X)


@functools.partial(compiled, static_argnames="noise")
def _value_and_gradient(X, F, noise: float):
    return jax.value_and_grad(log_density_of_F)(X, F, noise)


def climb(X: Float[Array, "N D"], F: Float[Array, "N J"], noise: float) -> Float[Array, "N D"]:
    """``N_STEPS`` of L-BFGS on X given F."""

    def negative(flat):
        value, gradient = _value_and_gradient(jnp.asarray(flat.reshape(X.shape)), F, noise)
        return -float(value), -np.asarray(gradient).ravel()

    minimize: Any = optimize.minimize
    options = {"maxiter": N_STEPS, "maxcor": N_STEPS}
    optimum = minimize(negative, np.asarray(X).ravel(), jac=True, method="L-BFGS-B", options=options)
    return jnp.asarray(optimum.x.reshape(X.shape))


class MAPGPLVM(Baseline):
    """Poisson GPLVM by coordinate ascent on F and X.

    NaN means missing. There is no ``transform``: the method places the rows it was fitted to. The time of a
    round grows with J N^3.

    Parameters
    ----------
    n_components : int
        Latent dimensions D.
    init : {"pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where X starts: by default the principal components of the square roots of the counts, each with variance one.
    noise : float
        Variance of independent noise in each f_nj (a nugget). The paper's model has none; it makes C invertible, and
        decides how far X can move.
    max_iter : int
        Rounds.
    random_state : int, RandomState or None
        Of the start.

    Attributes
    ----------
    embedding_ : array (N, D)
        X.
    F_ : array (N, J)
        ``exp(F_)`` are the expected counts, also of missing cells.
    log_joint_ : array
        log p(Y, F, X), up to a constant, before each round and at the end.
    n_iter_ : int
        Rounds.
    convergence_ : {"converged", "iteration limit"}
        Why it ended.
    """

    _likelihood = likelihoods.Poisson()
    _takes_gaps = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        init: Any = "pca",
        noise: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = None,
    ):
        super().__init__(n_components, random_state=random_state)
        self.init = init
        self.noise = noise
        self.max_iter = max_iter

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        max_iter = check_integer("max_iter", self.max_iter, 1)
        noise = float(self.noise)
        if not 1e-8 <= noise < np.inf:
            raise ValueError(f"noise must be finite and at least 1e-8, got {noise:g}")
        start = start_of_X(self.init, np.sqrt(Y), observed, self.n_components, seed)
        memory_maps.free_if_scarce()
        with precision("float64"), linalg.one_blas_thread():
            table = Columns(jnp.asarray(Y), jnp.asarray(observed, float))
            X, trace, self.convergence_ = jnp.asarray(start), [], "iteration limit"
            F, value = find_F(X, jnp.log(table.Y + 0.5), table, noise)
            trace.append(float(value))
            for _ in range(max_iter):
                X = climb(X, F, noise)
                F, value = find_F(X, F, table, noise)
                trace.append(float(value))
                if trace[-1] - trace[-2] < RISE * abs(trace[-1]):
                    self.convergence_ = "converged"
                    break
            self.F_, embedding = np.array(F), np.array(X)
        self.log_joint_, self.n_iter_ = np.array(trace), len(trace) - 1
        if not np.isfinite(trace[-1]):
            raise linalg.NumericalError("the density is not finite; rescale the counts or check for extreme values")
        if self.convergence_ == "iteration limit":
            warnings.warn(
                f"MAP-GPLVM was still rising after {max_iter} rounds: raise max_iter", ConvergenceWarning, stacklevel=3
            )
        return embedding
