"""A square root of the RBF kernel matrix, exact to a tolerance: K = Phi Phi' with as few columns as that takes.

The Cholesky factor of K with rows taken in the order of what is left of their variance, ended when no row has more
than ``TOLERANCE`` of it left. That bounds the error of every entry of K. A smooth kernel takes few columns however many
rows there are; a rough one takes all N, and is then factored whole. With the order held Phi is a smooth function of X:

    Phi = K[:, p] L^{-T},  L L' = K[p, p],  p the rows that were taken
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..numerics import linalg

TOLERANCE = 1e-5
JITTER = 1e-9  # for rows of p that have come together since they were taken
_STEP = 16  # numbers of columns are multiples of it, so that little is compiled anew


def pivots(X: Float[np.ndarray, "N D"]) -> Int[np.ndarray, " R"]:
    """The rows p for positions X in lengthscales."""
    N = len(X)
    left, taken = np.ones(N), np.zeros(N, int)
    factor = np.zeros((N, N))
    for r in range(N):
        if r % _STEP == 0 and left.max() < TOLERANCE:
            return taken[:r]
        row = taken[r] = int(np.argmax(left))
        column = np.exp(-0.5 * ((X - X[row]) ** 2).sum(1)) - factor[:, :r] @ factor[row, :r]
        factor[:, r] = column / np.sqrt(max(left[row], JITTER))
        left = left - factor[:, r] ** 2
        left[taken[: r + 1]] = -1
    return taken


def root(X: Float[Array, "N D"], rows: Int[Array, " R"]) -> Float[Array, "N R"]:
    """Phi with Phi Phi' = K, the RBF kernel of variance and lengthscale one."""
    across = kernel(X, X[rows])
    L = jnp.linalg.cholesky(across[rows] + JITTER * jnp.eye(len(rows), dtype=X.dtype))
    return linalg.solve_lower(L, across.T).T


def kernel(X: Float[Array, "N D"], Z: Float[Array, "R D"]) -> Float[Array, "N R"]:
    """The RBF kernel of variance and lengthscale one between two sets of positions."""
    squares = jnp.sum(X**2, axis=1)[:, None] + jnp.sum(Z**2, axis=1)[None] - 2 * X @ Z.T
    return jnp.exp(-0.5 * jnp.maximum(squares, 0))
