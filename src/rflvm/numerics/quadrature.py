"""Fixed frequencies for an RBF kernel: H quadrature points whose kernel has the least mean squared error.

The kernel of W is k(lag) = mean_h cos(w_h'lag). For independent draws from N(0, I) its error falls as 1/sqrt(H)
and is about 0.1 for H = 50 in two dimensions, and X would be distorted to compensate for it. Here the points minimise

    E[(k(lag) - exp(-|lag|^2 / 2))^2]    over lag ~ N(0, s^2 I), s = 3

which has a closed form: with the points and their mirror images, the squared maximum mean discrepancy to
N(0, I) under the kernel exp(-s^2 |w - w'|^2 / 2).
"""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float
from scipy import optimize, special
from scipy.stats import qmc

_LAG_VARIANCE = 9.0
_N_ITERATIONS = 200


@functools.lru_cache(maxsize=8)
def frequencies(H: int, D: int, seed: int) -> Float[np.ndarray, "H D"]:
    """Points that minimise the discrepancy, from a randomised Halton sequence."""
    start = special.ndtri(qmc.Halton(D, rng=seed).random(H))
    options = {"maxiter": _N_ITERATIONS, "ftol": 1e-14, "gtol": 1e-10}
    optimum = optimize.minimize(discrepancy, start.ravel(), (D,), "L-BFGS-B", jac=True, options=options)
    optimum.x.flags.writeable = False
    return optimum.x.reshape(H, D)


def discrepancy(flat: Float[np.ndarray, " HD"], D: int) -> tuple[float, Float[np.ndarray, " HD"]]:
    """E[(k(lag) - exp(-|lag|^2 / 2))^2] and its gradient."""
    s2 = _LAG_VARIANCE
    W = flat.reshape(-1, D)
    H = len(W)
    squares, products = np.sum(W**2, axis=1), W @ W.T
    value, gradient = (1 + 2 * s2) ** (-D / 2), np.zeros_like(W)
    for sign in (1, -1):
        K = 0.5 * np.exp(-0.5 * s2 * np.maximum(squares[:, None] + squares - 2 * sign * products, 0))
        value += K.sum() / H**2
        gradient -= 2 * s2 / H**2 * (K.sum(axis=1)[:, None] * W - sign * K @ W)
    expected = (1 + s2) ** (-D / 2) * np.exp(-0.5 * s2 / (1 + s2) * squares)
    value -= 2 * expected.mean()
    gradient += 2 * s2 / (1 + s2) / H * expected[:, None] * W
    return value, gradient.ravel()
