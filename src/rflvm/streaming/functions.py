"""What all rows share, on the host in double precision, and on the device in that of the rows."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..maximum.result import Fit
from ..model.joint import State


class Functions(NamedTuple):
    """Frequencies with their mixture, coefficients and the family's own parameters.

    Attributes
    ----------
    W : array (H, D)
        Frequencies.
    z, mu, Sigma, alpha
        The mixture that is the prior of free frequencies.
    amplitude : float
        Factor on the prior standard deviation of the coefficients, intercepts excepted.
    beta : array (M, J)
        Coefficients of Phi.
    theta : dict of array
        The family's own parameters.
    """

    W: np.ndarray
    z: np.ndarray
    mu: np.ndarray
    Sigma: np.ndarray
    alpha: np.ndarray
    amplitude: np.ndarray
    beta: np.ndarray
    theta: dict[str, np.ndarray]

    def turned(self, A: Float[np.ndarray, "D D"]) -> Functions:
        """The same functions of positions A x, A being symmetric: W A^{-1}, and the mixture with it."""
        inverse = np.linalg.inv(A)
        Sigma = inverse @ self.Sigma @ inverse
        return self._replace(W=self.W @ inverse, mu=self.mu @ inverse, Sigma=Sigma)

    def features(self, X: Float[np.ndarray, "A D"]) -> Float[np.ndarray, "A M"]:
        """Phi at positions."""
        angle = X @ self.W.T
        waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(len(self.W))
        return np.concatenate([waves, np.ones((len(X), 1))], axis=1)

    def state(self, dtype: str) -> State:
        """What the programs of rows take; positions and mixture are left empty."""
        empty = jnp.zeros(0)
        W, beta, theta = jax.tree.map(lambda part: jnp.asarray(part, dtype), (self.W, self.beta, self.theta))
        return State(empty, W, empty, empty, empty, empty, beta, theta)


def of_fit(fit: Fit) -> Functions:
    """Those of a maximum."""
    as_array = lambda value: np.asarray(value, float)  # noqa: E731
    return Functions(
        W=as_array(fit.W),
        z=np.asarray(fit.z),
        mu=as_array(fit.mu),
        Sigma=as_array(fit.Sigma),
        alpha=as_array(fit.alpha),
        amplitude=as_array(fit.amplitude),
        beta=as_array(fit.beta),
        theta={name: as_array(value) for name, value in fit.theta.items()},
    )


def packed(matrices: Float[Array, "B D D"]) -> Float[Array, "B T"]:
    """The lower triangles of symmetric matrices, row by row."""
    D = matrices.shape[-1]
    return jnp.stack([matrices[:, i, j] for i in range(D) for j in range(i + 1)], axis=1)


def unpacked(triangles: Float[np.ndarray, "B T"], D: int) -> Float[np.ndarray, "B D D"]:
    """Symmetric matrices from their lower triangles."""
    rows, columns = np.tril_indices(D)
    matrices = np.empty((len(triangles), D, D), triangles.dtype)
    matrices[:, rows, columns] = matrices[:, columns, rows] = triangles
    return matrices
