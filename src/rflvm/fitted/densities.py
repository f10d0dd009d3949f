"""log p(y | f, theta) of cells under draws of all unknowns."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Int

from ..model.draws import Draws
from ..model.features import features, linear_predictor
from ..model.joint import Data, Model
from ..numerics.compilation import compiled
from ..numerics.precision import precision


def densities_of_cells(
    draws: Draws, data: Data, chains: Sequence[int], n_draws: int, cells: Int[np.ndarray, " I"]
) -> Float[np.ndarray, "S I"]:
    """log p(y | f, theta) of some cells, numbered row by row, under at most ``n_draws`` even draws of each chain."""
    n_beta = draws["beta"].shape[1]
    chosen = np.unique(np.linspace(0, n_beta - 1, min(n_draws, n_beta)).round().astype(int))
    with precision("float64"):
        return np.array(
            [
                np.asarray(log_density(*unknowns(draws, c, i), data, draws.model)).ravel()[cells]
                for c in chains
                for i in chosen.tolist()
            ]
        )


def cell_densities(draws: Draws, data: Data) -> Iterator[np.ndarray]:
    """log p(y | f, theta) of each cell (N, J), for each draw that has beta in turn."""
    for chain in range(len(draws["beta"])):
        for i in range(draws["beta"].shape[1]):
            yield np.asarray(log_density(*unknowns(draws, chain, i), data, draws.model))


def unknowns(draws: Draws, chain: int, i: int) -> tuple[Any, Any, Any, dict]:
    """X, W, beta and theta of the i-th draw that has beta, in double precision whatever the engine's was."""
    at = i * draws.beta_thin
    theta = {name: np.asarray(draws[name][chain, at], float) for name in draws.theta}
    X, W, beta = draws["X"][chain, at], draws["W"][chain, at], draws["beta"][chain, i]
    return np.asarray(X, float), np.asarray(W, float), np.asarray(beta, float), theta


@functools.partial(compiled, static_argnames="model")
def log_density(
    X: Float[Array, "N D"], W: Float[Array, "H D"], beta: Float[Array, "M J"], theta: dict, data: Data, model: Model
) -> Float[Array, "N J"]:
    F = linear_predictor(features(X, W, data.covariates), beta, data.offset)
    return model.likelihood.log_prob(data.Y, F, theta, data.trials)
