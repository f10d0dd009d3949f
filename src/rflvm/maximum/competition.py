"""Several starts of X compete: first on a Gaussian stand-in of the table, then on the table itself."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .. import likelihoods
from ..model.joint import Data, Model
from . import starts
from .climb import (
    climb,
)
from .search import Search, begin

logger = logging.getLogger(__name__)

SCREENING = (16, 20), (5, 40)  # of so many starts, so many iterations


N_FINALISTS, N_FINAL, N_COLUMNS = 2, 8, 256


SAME, NEAR = 5.0, 50.0  # nats between starts that end in the same maximum, and between those worth a second round


def choose_start(
    data: Data, model: Model, init: str | np.ndarray, seed: int,
    tell: Callable[[float], None] = lambda value: None, amplitude: bool = True,
) -> tuple[Search, str]:  # fmt: skip
    """A search from the start of X that was asked for, or from the best of several.

    Of many rows a sample competes, and the others are placed next to it. The first rounds are held on the
    standardised table as if it were Gaussian, which costs little, the last on the table itself, or a sample of its
    columns. An interrupt is raised: there is nothing to keep yet.
    """
    if isinstance(init, np.ndarray):
        return begin(seed, init, data, model, amplitude), "given"
    table = starts.stabilised(data, model)
    if init != "auto":
        return begin(seed, starts.embed(init, table, model.D, seed), data, model, amplitude), init
    rows = starts.landmarks(len(table), seed)
    sample = _sample(data, rows, seed)
    stand_in = Data(jnp.asarray(starts.standardised(table[rows]), data.Y.dtype), None, 0 * sample.offset, None)
    gaussian = Model(likelihoods.Gaussian(), model.D, model.H)

    def compete(search: Search, data: Data, model: Model, n_iterations: int) -> Search:
        search = climb(search, data, model, n_iterations, tell)
        if search.convergence == "interrupted":
            raise KeyboardInterrupt
        return search

    def from_stand_in(found: Search) -> Search:
        search = begin(seed, np.asarray(found.parameters.X), sample, model, amplitude)
        parameters = search.parameters._replace(log_scale=found.parameters.log_scale)
        return dataclasses.replace(search, parameters=parameters)

    made = starts.candidates(table[rows], model.D, seed)
    first = {name: begin(seed, X, stand_in, gaussian, True) for name, X in made.items()}
    for n_best, n_iterations in SCREENING:
        best = sorted(first, key=lambda name: first[name].value, reverse=True)[:n_best]
        first |= {name: compete(first[name], stand_in, gaussian, n_iterations) for name in best}
    finalists = _different(first)
    second = {name: compete(from_stand_in(first[name]), sample, model, N_FINAL) for name in finalists}
    if "tsne" in made:
        second["tsne itself"] = compete(begin(seed, made["tsne"], sample, model, amplitude), sample, model, N_FINAL)
    best = max(second, key=lambda name: second[name].value)
    for text, found in (("as if Gaussian", first), ("then", second)):
        logger.info("log posterior %s: %s", text, ", ".join(f"{n} {search.value:.1f}" for n, search in found.items()))
    logger.info("start of X: %s", best)
    search = second[best]
    if sample.Y.shape == data.Y.shape:
        return search, best
    full = begin(seed, starts.extend(np.asarray(search.parameters.X), rows, table, seed), data, model, amplitude)
    _, log_amplitude, log_scale, _, _ = search.parameters
    parameters = full.parameters._replace(log_amplitude=log_amplitude, log_scale=log_scale)
    return dataclasses.replace(full, parameters=parameters), best


def _sample(data: Data, rows: np.ndarray, seed: int) -> Data:
    """Some rows, and at most ``N_COLUMNS`` columns."""
    columns = np.sort(np.random.default_rng(seed).permutation(data.Y.shape[1])[:N_COLUMNS])
    some = lambda part: part[rows] if part.ndim == 1 else part[np.ix_(rows, columns)]  # noqa: E731
    return jax.tree.map(lambda part: jnp.asarray(some(np.asarray(part))), data)


def _different(searches: dict[str, Search]) -> list[str]:
    """The highest few that are near the highest and not in the same maximum as one above them."""
    ranked = sorted(searches, key=lambda name: searches[name].value, reverse=True)
    kept = ranked[:1]
    for name in ranked[1:]:
        value = searches[name].value
        if searches[kept[-1]].value - value > SAME and searches[kept[0]].value - value < NEAR:
            kept.append(name)
    return kept[:N_FINALISTS]
