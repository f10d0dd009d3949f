"""Kernel matching: positions whose RBF kernel has the empirical covariances of the rows, from random starts.

Under the model the rows n and m of F have covariance k(x_n - x_m) over columns. The empirical covariances of the
standardised columns are matched by least squares off the diagonal. Unlike a graph of neighbours they know about
distances between neighbourhoods.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..numerics.affine import r2_affine
from ..numerics.compilation import compiled

# Choices without a measurement of their own. benchmarks/map.py records which start wins (by kernel matching: 14 of 30
# S-curves) and tests/maximum/test_starts.py holds the best shape of an S-curve to R^2 > 0.97.
N_ROWS = 400  # rows that are matched, at random; a step costs their square
N_STARTS = 64  # random starts, at most
N_AT_ONCE = 16  # random starts between two looks at whether they agree
AGREEMENT = 0.5  # share of the starts in the shape of the best at which no more are made
N_SHAPES = 8  # different shapes that are handed on, at most
SAME_SHAPE = 0.95  # R^2 after the best affine map above which two results have the same shape
START_SCALE = 0.3  # standard deviation of a random start: near enough that no gradient of the kernel has vanished

# Adam on the squared differences, with the rate falling to zero over the last third. Choices without a measurement.
N_STEPS = 70
RATE = 0.1
FIRST_DECAY = 0.9  # of the mean gradient
SECOND_DECAY = 0.99  # of the mean square; a shorter memory than the usual 0.999, for there are few steps


def matched(table: Float[np.ndarray, "N J"], D: int, seed: int) -> tuple[np.ndarray, list[Float[np.ndarray, "n D"]]]:
    """Rows of a standardised table at random, and several arrangements of them of different shapes, the best first."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(table))[:N_ROWS])
    covariance = _centred(table[rows] @ table[rows].T / table.shape[1]).astype(np.float32)
    X, losses = np.zeros((0, len(rows), D)), np.zeros(0)
    while len(X) < N_STARTS:
        more, more_losses = _from_random_starts(rng, covariance, D)
        X, losses = np.concatenate([X, more]), np.append(losses, more_losses)
        best = X[np.argmin(losses)]
        if np.mean([r2_affine(best, other) > SAME_SHAPE for other in X]) >= AGREEMENT:
            break
    return rows, _distinct(X[np.argsort(losses)])


def _from_random_starts(
    rng: np.random.Generator, covariance: Float[np.ndarray, "n n"], D: int
) -> tuple[Float[np.ndarray, "B n D"], Float[np.ndarray, " B"]]:
    """Results of ``N_AT_ONCE`` random starts and their losses.

    Each is first matched with one dimension to spare, in which a curve does not get stuck across itself.
    """
    n = len(covariance)
    variance = max(0.5 * np.trace(covariance) / n, 1e-12)  # the other half may be noise
    log_variance = np.log(np.full(N_AT_ONCE, variance, np.float32))
    X = START_SCALE * rng.standard_normal((N_AT_ONCE, n, D + 1))
    X, log_variance, _ = _match(X.astype(np.float32), log_variance, covariance)
    flat = np.stack([_principal(arrangement, D) for arrangement in np.asarray(X, float)])
    X, _, losses = _match(flat.astype(np.float32), log_variance, covariance)
    return np.asarray(X, float), np.asarray(losses)


def _distinct(ranked: Float[np.ndarray, "B n D"]) -> list[Float[np.ndarray, "n D"]]:
    """The first ``N_SHAPES`` arrangements none of which has the shape of another."""
    kept: list[np.ndarray] = []
    for X in ranked:
        if len(kept) < N_SHAPES and all(r2_affine(other, X) < SAME_SHAPE for other in kept):
            kept.append(X)
    return kept


@compiled
def _match(
    X: Float[Array, "B n D"], log_variance: Float[Array, " B"], covariance: Float[Array, "n n"]
) -> tuple[Float[Array, "B n D"], Float[Array, " B"], Float[Array, " B"]]:
    """Positions, log variances and losses after Adam from each start."""
    # In batches of two, which bounds the memory; a choice without a measurement.
    return jax.lax.map(lambda start: _match_one(start[0], start[1], covariance), (X, log_variance), batch_size=2)


def _match_one(X: Float[Array, "n D"], log_variance: Float[Array, ""], covariance: Float[Array, "n n"]):
    off_diagonal = 1 - jnp.eye(len(covariance), dtype=covariance.dtype)

    def gradient_and_loss(X, log_variance):
        squares = jnp.sum(X**2, axis=1)
        distances = jnp.maximum(squares[:, None] + squares[None] - 2 * X @ X.T, 0)
        K = jnp.exp(log_variance - 0.5 * distances)
        residual = (_centred(K) - covariance) * off_diagonal
        G = _centred(residual) * K
        return (-2 * (G.sum(axis=1)[:, None] * X - G @ X), G.sum()), 0.5 * jnp.sum(residual**2)

    def step(carry, t):
        position, first, second = carry
        gradient, loss = gradient_and_loss(*position)
        first = jax.tree.map(lambda m, g: FIRST_DECAY * m + (1 - FIRST_DECAY) * g, first, gradient)
        second = jax.tree.map(lambda v, g: SECOND_DECAY * v + (1 - SECOND_DECAY) * g**2, second, gradient)
        rate = RATE * jnp.minimum(1, 3 * (1 - t / N_STEPS))

        def move(p, m, v):
            return p - rate * m / (1 - FIRST_DECAY ** (t + 1)) / (jnp.sqrt(v / (1 - SECOND_DECAY ** (t + 1))) + 1e-8)

        return (jax.tree.map(move, position, first, second), first, second), loss

    zero = (jnp.zeros_like(X), jnp.zeros_like(log_variance))
    steps = jnp.arange(N_STEPS, dtype=X.dtype)
    ((X, log_variance), _, _), losses = jax.lax.scan(step, ((X, log_variance), zero, zero), steps)
    return X, log_variance, losses[-1]


def _centred(A):
    """A symmetric matrix with the means of its rows and columns taken out."""
    mean = A.mean(axis=0)
    return A - mean[None] - mean[:, None] + mean.mean()


def _principal(X: Float[np.ndarray, "n E"], D: int) -> Float[np.ndarray, "n D"]:
    """The first D principal components."""
    centred = X - X.mean(0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:D].T
