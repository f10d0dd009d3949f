"""Several starts of X compete: first on a Gaussian stand-in for the table, then on the table itself.

The log posterior has many modes, and the start decides which of them is found. On the stand-in one Cholesky factor
serves all columns, and many starts can be tried.
"""

from __future__ import annotations

import logging

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .. import likelihoods
from ..model.joint import Data, Model
from . import starts
from .climb import OnIteration, climb, ignore
from .search import Search, begin

logger = logging.getLogger(__name__)

# How far each round goes: short where there are many starts, longer where few are left. Choices without a measurement
# of their own. What comes of the whole competition is measured: R^2 of X by benchmarks/map.py, and on real tables the
# height and the accuracy beside those from single starts by benchmarks/alternatives.py.
N_SCREENING_ITERATIONS = 20  # of every start, on the stand-in
N_SHORTLIST = 5  # starts that go on there, the highest
N_SHORTLIST_ITERATIONS = 40  # of each of them
N_FINALISTS = 2  # starts of the shortlist that go on to the table, besides t-SNE as it is
N_FINAL_ITERATIONS = 8  # of each of them; one costs J Cholesky factors

# The largest number of columns that the finals look at: one block of ``laplace`` (COLUMN_BLOCK), so that no iteration
# costs more than that. A choice without a measurement.
N_COLUMNS = 256

# Differences of log posterior on the stand-in, in nats. Choices without a measurement.
SAME_MAXIMUM = 5.0  # searches closer than this are taken to be in one maximum, of which one finalist is enough
WITHIN_REACH = 50.0  # a search further below the best than this is not expected to win on the table


def choose_start(
    data: Data, model: Model, init: str | np.ndarray, seed: int, on_iteration: OnIteration = ignore,
    learn_amplitude: bool = True,
) -> tuple[Search, str]:  # fmt: skip
    """A search from the start of X that was asked for, or from the best of several ("auto"), and the start's name.

    Of many rows a sample competes, and the others are placed next to it. An interrupt is raised: there is nothing to
    keep yet.
    """
    if isinstance(init, np.ndarray):
        return begin(seed, init, data, model, learn_amplitude), "given"
    table = starts.stabilised(data, model)
    if init != "auto":
        return begin(seed, starts.embed(init, table, model.D, seed), data, model, learn_amplitude), init
    rows = starts.landmarks(len(table), seed)
    sample = _sample(data, rows, seed)
    candidates = starts.candidates(table[rows], model.D, seed)
    screened = _screen(candidates, _stand_in(table[rows], sample), model, seed, on_iteration)
    begun = {
        name: begin(seed, np.asarray(screened[name].parameters.X), sample, model, learn_amplitude).with_parameters(
            log_scale=screened[name].parameters.log_scale
        )
        for name in finalists(screened)
    }
    if "tsne" in candidates:  # also as it is: on tables far from Gaussian the screening can take a good picture apart
        begun["tsne itself"] = begin(seed, candidates["tsne"], sample, model, learn_amplitude)
    finals = {name: _advance(search, sample, model, N_FINAL_ITERATIONS, on_iteration) for name, search in begun.items()}
    winner = max(finals, key=lambda name: finals[name].value)
    _log_heights("as if Gaussian", screened)
    _log_heights("then", finals)
    logger.info("start of X: %s", winner)
    if sample.Y.shape == data.Y.shape:
        return finals[winner], winner
    parameters = finals[winner].parameters
    X = starts.extend(np.asarray(parameters.X), rows, table, seed)
    whole = begin(seed, X, data, model, learn_amplitude)
    return whole.with_parameters(log_amplitude=parameters.log_amplitude, log_scale=parameters.log_scale), winner


def _screen(
    candidates: dict[str, Float[np.ndarray, "N D"]], stand_in: Data, model: Model, seed: int, on_iteration: OnIteration
) -> dict[str, Search]:
    """Climbs from all candidates on the stand-in, longer ones for those that are highest then."""
    gaussian = Model(likelihoods.Gaussian(), model.D, model.H)
    searches = {}
    for name, X in candidates.items():
        start = begin(seed, X, stand_in, gaussian, learn_amplitude=True)
        searches[name] = _advance(start, stand_in, gaussian, N_SCREENING_ITERATIONS, on_iteration)
    for name in _ranked(searches)[:N_SHORTLIST]:
        searches[name] = _advance(searches[name], stand_in, gaussian, N_SHORTLIST_ITERATIONS, on_iteration)
    return searches


def _stand_in(table: Float[np.ndarray, "N J"], sample: Data) -> Data:
    """The standardised table, without gaps or offset, in the precision of the sample."""
    return Data(
        Y=jnp.asarray(starts.standardised(table), sample.Y.dtype),
        mask=None,
        offset=jnp.zeros_like(sample.offset),
        trials=None,
    )


def _advance(search: Search, data: Data, model: Model, n_iterations: int, on_iteration: OnIteration) -> Search:
    """A climb that raises an interrupt."""
    search = climb(search, data, model, n_iterations, on_iteration)
    if search.convergence == "interrupted":
        raise KeyboardInterrupt
    return search


def _sample(data: Data, rows: np.ndarray, seed: int) -> Data:
    """The given rows, and at most ``N_COLUMNS`` columns."""
    columns = np.sort(np.random.default_rng(seed).permutation(data.Y.shape[1])[:N_COLUMNS])

    def select(part):
        values = np.asarray(part)
        return jnp.asarray(values[rows] if values.ndim == 1 else values[np.ix_(rows, columns)])

    return jax.tree.map(select, data)


def _ranked(searches: dict[str, Search]) -> list[str]:
    """Names from the highest to the lowest."""
    return sorted(searches, key=lambda name: searches[name].value, reverse=True)


def finalists(searches: dict[str, Search]) -> list[str]:
    """The highest few that are within reach of the highest and not in the same maximum as one above them."""
    ranked = _ranked(searches)
    kept = ranked[:1]
    for name in ranked[1:]:
        value = searches[name].value
        if searches[kept[-1]].value - value > SAME_MAXIMUM and searches[kept[0]].value - value < WITHIN_REACH:
            kept.append(name)
    return kept[:N_FINALISTS]


def _log_heights(round_name: str, searches: dict[str, Search]) -> None:
    heights = ", ".join(f"{name} {search.value:.1f}" for name, search in searches.items())
    logger.info("log posterior %s: %s", round_name, heights)
