"""The density of rows that are held out: half of a row's cells given the other half, its position integrated out.

log p(y_b | y_a) = log E[p(y_b | x)] over p(x | y_a), by importance sampling from normal distributions around two
modes given y_a, wider than G^{-1}, with the same quasi-random points for every row and in every epoch.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float
from scipy import stats

from ..data.blocks.encoding import Block
from ..likelihoods.base import sum_observed
from ..model.features import features, linear_predictor
from ..model.joint import Data, Model, State
from ..numerics import linalg
from ..numerics.compilation import compiled
from .epochs import data_of
from .functions import Functions
from .programs import N_PLACING_STEPS, Anchors, climb, modes, on_device

N_POINTS = 64
WIDTH = 1.5  # standard deviations of the proposal, in those of G^{-1}


class HeldOut(NamedTuple):
    """Rows that are held out.

    Attributes
    ----------
    data : Data
        The rows, on the device.
    given : array of bool (B, J)
        The half of the cells of each row that is given, of those that count.
    judged : array of bool (B, J)
        The other half; none of padding.
    """

    data: Data
    given: Bool[Array, "B J"]
    judged: Bool[Array, "B J"]


def halve(block: Block, seed: int) -> HeldOut:
    """A block of rows, with the cells of each cut in two at random."""
    first = np.random.default_rng(seed).random(block.Y.shape).argsort(axis=1) % 2 == 0
    counts = np.ones(block.Y.shape, bool) if block.mask is None else block.mask.copy()
    counts[block.n :] = False
    return HeldOut(data_of(block), jnp.asarray(first & counts), jnp.asarray(~first & counts))


def density(rows: HeldOut, anchors: Anchors, functions: Functions, model: Model) -> float:
    """Mean log density of the cells that are judged, per cell."""
    dtype = str(anchors.X.dtype)
    D = model.D
    points = stats.norm.ppf(stats.qmc.Sobol(D, rng=np.random.default_rng(0)).random(N_POINTS))
    values = _log_densities(rows, anchors, functions.state(dtype), jnp.asarray(points, dtype), model)
    return float(np.asarray(values, float).sum() / max(np.asarray(rows.judged).sum(), 1))


@functools.partial(compiled, static_argnames="model")
def _log_densities(
    rows: HeldOut, anchors: Anchors, state: State, points: Float[Array, "Q D"], model: Model
) -> Float[Array, " B"]:
    data = on_device(rows.data, state.W.dtype)
    given = data._replace(mask=rows.given)
    found = [climb(start.X, state, given, model, N_PLACING_STEPS) for start in modes(given, anchors, state, model)]
    factors = [linalg.small_cholesky(local.metric) for local in found]
    D = points.shape[1]

    def log_proposal(x):
        """Of the mixture of both, up to a constant."""
        parts = []
        for local, L in zip(found, factors, strict=True):
            away = x - local.X
            white = [sum(L[i][j] * away[:, i] for i in range(j, D)) for j in range(D)]
            parts.append(linalg.small_logdet(L) - 0.5 * sum(w**2 for w in white) / WIDTH**2)
        return jnp.logaddexp(*parts)

    def at(point, local, L):
        x = local.X + WIDTH * linalg.small_solve_lower_transposed(L, jnp.broadcast_to(point[None], local.X.shape))
        F = linear_predictor(features(x, state.W), state.beta, data.offset)
        cells = model.likelihood.log_prob(data.Y, F, state.theta, data.trials)
        log_weight = sum_observed(cells, rows.given, axis=1) - 0.5 * jnp.sum(x**2, axis=1) - log_proposal(x)
        return log_weight, sum_observed(cells, rows.judged, axis=1)

    parts = [
        lax.map(lambda point, local=local, L=L: at(point, local, L), points)
        for local, L in zip(found, factors, strict=True)
    ]
    log_weight, judged = (jnp.concatenate(part) for part in zip(*parts, strict=True))
    return logsumexp(log_weight + judged, axis=0) - logsumexp(log_weight, axis=0)
