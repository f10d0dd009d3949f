"""A low-rank square root of the RBF kernel matrix, K = Phi Phi' to a tolerance, by pivoted Cholesky factorisation.

The pivot is the row with the largest residual variance, and the factorisation ends when that is below ``TOLERANCE``,
which bounds the error of every entry of K. A smooth kernel has a low rank however many rows there are; a rough one
takes all N pivots, and its factor is exact. With fixed pivots Phi is a smooth function of X:

    Phi = K[:, p] L^{-T},  L L' = K[p, p],  p the pivots
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..numerics import linalg

TOLERANCE = 1e-5
JITTER = 1e-9  # for pivots that have moved together since they were chosen
_STEP = 16  # the rank is a multiple of it, so that few shapes are compiled


def pivots(X: Float[np.ndarray, "N D"]) -> Int[np.ndarray, " R"]:
    """The pivots p for positions X in units of the lengthscale."""
    N = len(X)
    residual, chosen = np.ones(N), np.zeros(N, int)
    factor = np.zeros((N, N))
    for r in range(N):
        if r % _STEP == 0 and residual.max() < TOLERANCE:
            return chosen[:r]
        row = chosen[r] = int(np.argmax(residual))
        column = np.exp(-0.5 * ((X - X[row]) ** 2).sum(1)) - factor[:, :r] @ factor[row, :r]
        factor[:, r] = column / np.sqrt(max(residual[row], JITTER))
        residual = residual - factor[:, r] ** 2
        residual[chosen[: r + 1]] = -1
    return chosen


def root(X: Float[Array, "N D"], rows: Int[Array, " R"]) -> Float[Array, "N R"]:
    """Phi with Phi Phi' = K, the RBF kernel of variance and lengthscale one."""
    across = kernel(X, X[rows])
    L = jnp.linalg.cholesky(across[rows] + JITTER * jnp.eye(len(rows), dtype=X.dtype))
    return linalg.solve_lower(L, across.T).T


def kernel(X: Float[Array, "N D"], Z: Float[Array, "R D"]) -> Float[Array, "N R"]:
    """The RBF kernel of variance and lengthscale one between two sets of positions."""
    squares = jnp.sum(X**2, axis=1)[:, None] + jnp.sum(Z**2, axis=1)[None] - 2 * X @ Z.T
    return jnp.exp(-0.5 * jnp.maximum(squares, 0))
