"""Random Fourier features (paper, Eq. 2) and the stationary kernel they estimate (Eq. 1).

With H frequencies ``W`` the feature map is ``sqrt(1/H) [cos(Wx), sin(Wx)]``, so that
``phi(x)'phi(x) = 1``. To it are appended the covariates z of the row, if there are any, whose
coefficients are effects gamma_j, and a column of ones, whose coefficient is the intercept ``b_j``.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# pi/2 in three parts, the first two short enough that k times each is exact for |k| < 2^20.
_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)


@jax.custom_jvp
def sincos(angle: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Sine and cosine together: one range reduction, two short Taylor series.

    XLA evaluates the two separately, with a range reduction made for huge arguments, and they
    then cost more than the matrix product that follows. Absolute error below 3e-16 in float64.
    """
    k = jnp.round(angle * (2 / math.pi))
    r = angle
    for part in _HALF_PI:
        r = r - k * part
    r2 = r * r
    s = c = jnp.ones_like(r)
    for n in range(8, 0, -1):
        s = 1 - s * r2 / ((2 * n) * (2 * n + 1))
        c = 1 - c * r2 / ((2 * n - 1) * (2 * n))
    s = r * s
    quadrant = k - 4 * jnp.floor(k / 4)
    swap = (quadrant == 1) | (quadrant == 3)
    sine = jnp.where(swap, c, s) * jnp.where(quadrant >= 2, -1, 1)
    cosine = jnp.where(swap, s, c) * jnp.where((quadrant == 1) | (quadrant == 2), -1, 1)
    return sine, cosine


@sincos.defjvp
def _sincos_jvp(primals, tangents):
    sine, cosine = sincos(primals[0])
    return (sine, cosine), (cosine * tangents[0], -sine * tangents[0])


def features(
    X: Float[Array, "N D"], W: Float[Array, "H D"], Z: Float[Array, "N C"] | None = None
) -> Float[Array, "N M"]:
    """Phi = [cos(XW') sin(XW')]/sqrt(H), the covariates Z and a column of ones: M = 2H + C + 1 columns."""
    sine, cosine = sincos(X @ W.T)
    scale = 1 / math.sqrt(W.shape[0])
    given = [] if Z is None else [Z]
    return jnp.concatenate([cosine * scale, sine * scale, *given, jnp.ones((X.shape[0], 1), X.dtype)], axis=1)


def without_effects(beta: Float[np.ndarray, "*S M J"], H: int) -> Float[np.ndarray, "*S K J"]:
    """The rows of beta that belong to cosines, sines and the intercept: those of an average row."""
    return beta if beta.shape[-2] == 2 * H + 1 else np.delete(beta, slice(2 * H, -1), axis=-2)


def effects(beta: Any, H: int) -> Any:
    """The rows (..., C, J) of beta that belong to covariates."""
    return beta[..., 2 * H : -1, :]


def linear_predictor(
    Phi: Float[Array, "N M"], beta: Float[Array, "M J"], offset: Float[Array, " N"]
) -> Float[Array, "N J"]:
    """F = Phi beta + offset, the intercepts being the last row of beta."""
    return Phi @ beta + offset[:, None]


def features_and_slopes(
    X: Float[Array, "N D"], W: Float[Array, "H D"], Z: Float[Array, "N C"] | None = None
) -> tuple[Float[Array, "N M"], Float[Array, "D N M"]]:
    """Phi and its derivatives: slopes[d] holds d Phi / d x_d."""
    Phi = features(X, W, Z)
    H = W.shape[0]
    cosine, sine = Phi[:, :H], Phi[:, H : 2 * H]
    zero = jnp.zeros((X.shape[0], Phi.shape[1] - 2 * H), X.dtype)
    slopes = [jnp.concatenate([-sine * w[None], cosine * w[None], zero], axis=1) for w in W.T]
    return Phi, jnp.stack(slopes)


def slope_coefficients(beta: Float[Array, "M J"], W: Float[Array, "H D"]) -> Float[Array, "D M J"]:
    """Coefficients of the derivatives of f: phi(x)' times those of d is df/dx_d.

    The derivative of a cosine is a sine of the same frequency, so that F and all its slopes are one product with Phi.
    """
    H = W.shape[0]
    cosine, sine, none = beta[:H], beta[H : 2 * H], jnp.zeros_like(beta[2 * H :])
    return jnp.stack([jnp.concatenate([w[:, None] * sine, -w[:, None] * cosine, none]) for w in W.T])


def kernel(lags: Float[Array, "L D"], W: Float[Array, "H D"]) -> Float[Array, " L"]:
    """The implied stationary kernel k(lag) = mean_h cos(w_h'lag), the Monte Carlo form of Eq. 1."""
    return jnp.mean(jnp.cos(lags @ W.T), axis=1)
