"""Several starts of X compete: many on a Gaussian stand-in for the table, the best few on the table itself.

The log posterior has many modes, and the start decides which of them is found. On the stand-in one Cholesky factor
serves all columns, and many starts can be tried and shaped. PCA and kernel matching meet the table in any case, Isomap
and t-SNE where they show another picture. There a start is dropped when it could not catch up with the highest at the
rate at which it last rose.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .. import likelihoods
from ..model import dynamics
from ..model.joint import Data, Model
from ..numerics.affine import r2_affine
from . import starts
from .approach import approach
from .climb import OnIteration, climb, ignore
from .search import Search, begin

logger = logging.getLogger(__name__)

# How far each round goes: short where there are many starts, longer where few are left. Choices without a measurement
# of their own. What comes of the whole competition is measured: R^2 of X by benchmarks/map.py, and on real tables the
# height and the accuracy beside those from single starts by benchmarks/alternatives.py.
N_SCREENING_ITERATIONS = 20  # of every start, on the stand-in
N_SHORTLIST = 5  # starts that go on there, the highest
N_SHORTLIST_ITERATIONS = 40  # of each of them
N_SHAPED = 2  # starts of the shortlist that go on to the table, besides others as they are
N_FIRST_ITERATIONS = 10  # of every start that meets the table; those that lead to one picture can be told by then

# Starts that meet the table as they are, not only after the stand-in: on tables far from Gaussian it can take a good
# picture apart. Those that are no graph of neighbours always do, the others unless their picture is there already.
ALWAYS = ("pca", "kernel 1")
IF_NEW = ("isomap", "tsne")

# The largest number of columns that the first round on the table looks at: one block of ``laplace`` (COLUMN_BLOCK), so
# that no iteration costs more than that. A choice without a measurement.
N_COLUMNS = 256

# Starts that the last rounds, on all rows and columns, begin with, at most; fewer where there are more columns than in
# the first round, for each iteration then costs as much as several of those. Choices without a measurement.
N_FINALISTS = 4
N_WIDE_FINALISTS = 2

# Iterations of each round of the last ones: after two of them it shows which starts cannot catch up. A choice without
# a measurement.
N_RACE_ITERATIONS = 15

# Nats of log posterior below which a round of a race gains nothing. A choice without a measurement.
SAME_MAXIMUM = 5.0

# R^2 between two pictures, after the best affine map in either direction, from which they are the same up to how they
# are turned. A choice without a measurement.
SAME_PICTURE = 0.9

# Nats per row below the winner within which another picture explains the table about equally well. A maximum does not
# say how much volume belongs to it: its posterior covariances of X do, and their log determinants differ by tenths of a
# nat per row between arrangements. A choice without a measurement.
CLOSE = 0.1


@dataclasses.dataclass(frozen=True)
class Start:
    """How a start of X fared.

    Attributes
    ----------
    name : str
        "pca", "isomap", "tsne", "kernel" and a number for kernel matching, with "shaped" where it was improved as if
        the table were Gaussian before; or "given".
    n_iterations : int
        Iterations on the table.
    heights : tuple of float
        Log posterior after each round on the table; where the first is on a sample of it (``sampled``), it cannot be
        compared with the others.
    sampled : bool
        Whether the first round was on a sample of rows or columns.
    same_picture : bool
        Whether its picture is the winner's, up to how it is turned.
    r2 : float
        Share of the winner's picture that the best affine map of this one explains.
    """

    name: str
    n_iterations: int
    heights: tuple[float, ...]
    sampled: bool
    same_picture: bool
    r2: float


@dataclasses.dataclass
class Entrant:
    """A start on the table, its height after each round, and how many rounds were on a sample."""

    search: Search
    heights: list[float]
    n_sampled: int = 0

    @property
    def gain(self) -> float:
        """What the last round brought; before the second on one table there is no telling."""
        return self.heights[-1] - self.heights[-2] if len(self.heights) - self.n_sampled > 1 else np.inf


def choose_start(
    data: Data, model: Model, init: str | np.ndarray, seed: int, n_iterations: int, on_iteration: OnIteration = ignore,
    learn_amplitude: bool = True, n_others: int = 0,
) -> tuple[Search, tuple[Start, ...], dict[str, Search]]:  # fmt: skip
    """A search from the start of X that was asked for, or from the best of several ("auto"), and how each fared.

    Of many rows or columns a sample meets the table first; the last rounds are on all of them, until one start is left
    or ``n_iterations`` are used up. An interrupt is raised: there is nothing to keep yet.

    Last come at most ``n_others`` of the other searches, where they were when the competition ended (see ``others``).
    """
    if isinstance(init, np.ndarray):
        return begin(seed, init, data, model, learn_amplitude), (_alone("given"),), {}
    table = starts.stabilised(data, model)
    if init != "auto":
        X = starts.embed(init, table, model.D, seed)
        return begin(seed, X, data, model, learn_amplitude), (_alone(init),), {}
    rows = starts.landmarks(len(table), seed)
    sample = _sample(data, rows, seed)
    entrants = _entrants(table[rows], sample, model, seed, on_iteration, learn_amplitude)
    _advance_all(entrants, sample, model, min(N_FIRST_ITERATIONS, n_iterations), on_iteration)
    kept = finalists(entrants, N_FINALISTS if data.Y.shape[1] <= N_COLUMNS else N_WIDE_FINALISTS)
    sampled = sample.Y.shape != data.Y.shape
    if sampled:
        for name in kept:
            parameters = entrants[name].search.parameters
            X = starts.extend(np.asarray(parameters.X), rows, table, seed)
            whole = begin(seed, X, data, model, learn_amplitude).with_parameters(
                log_amplitude=parameters.log_amplitude, log_scale=parameters.log_scale
            )
            before = entrants[name].search
            entrants[name].search = dataclasses.replace(
                whole, n_iterations=before.n_iterations, approximable=before.approximable
            )
            entrants[name].n_sampled = 1
    last = _race({name: entrants[name] for name in kept}, data, model, n_iterations, on_iteration)
    winner = max(last, key=lambda name: last[name].heights[-1])
    logger.info("start of X: %s", winner)
    best = np.asarray(last[winner].search.parameters.X)
    X_of = lambda name: np.asarray(entrants[name].search.parameters.X)  # noqa: E731
    fared = [
        _fared(name, entrants[name], X_of(name), best if name in kept else best[rows], sampled) for name in entrants
    ]
    whole = last if sampled else entrants
    left = {name: whole[name].search for name in others(whole, winner, len(table))[:n_others]}
    return last[winner].search, tuple(sorted(fared, key=lambda start: start.name != winner)), left


def others(entrants: dict[str, Entrant], winner: str, N: int) -> list[str]:
    """From where chains can start besides the winner: other pictures that come close to it, then other ways to its own.

    The highest first of each. A chain that starts at a picture far below the winner would stay there for nothing.
    """
    best = entrants[winner]

    def behind(entrant: Entrant) -> float:
        """Nats below the winner after the last round that both have made."""
        last = min(len(entrant.heights), len(best.heights)) - 1
        return best.heights[last] - entrant.heights[last]

    X = np.asarray(best.search.parameters.X)
    rest = sorted((name for name in entrants if name != winner), key=lambda name: behind(entrants[name]))
    alike = [name for name in rest if same_picture(X, np.asarray(entrants[name].search.parameters.X))]
    close = [name for name in rest if name not in alike and behind(entrants[name]) < CLOSE * N]
    return close + alike


def _alone(name: str) -> Start:
    return Start(name, 0, (), False, True, 1.0)


def _fared(name: str, entrant: Entrant, X: np.ndarray, best: np.ndarray, sampled: bool) -> Start:
    same, r2 = same_picture(best, X), _likeness(best, X)
    return Start(name, entrant.search.n_iterations, tuple(entrant.heights), sampled, same, r2)


def same_picture(X: np.ndarray, Z: np.ndarray) -> bool:
    """Whether two pictures of the rows are one, up to how they are turned and stretched."""
    return min(_likeness(X, Z), _likeness(Z, X)) >= SAME_PICTURE


def _likeness(X: np.ndarray, Z: np.ndarray) -> float:
    """Share of a picture that the best affine map of another explains; pictures of one row are all alike."""
    return r2_affine(X, Z) if len(X) > 1 else 1.0


def _entrants(
    table: Float[np.ndarray, "N J"], sample: Data, model: Model, seed: int, on_iteration: OnIteration,
    learn_amplitude: bool,
) -> dict[str, Entrant]:  # fmt: skip
    """The starts that meet the table: some as they are, and the best few after the stand-in."""
    candidates = starts.candidates(table, model.D, seed)
    shaped = _screen(candidates, _stand_in(table, sample), model, seed, on_iteration)
    _log_heights("as if Gaussian", {name: search.value for name, search in shaped.items()})
    entrants = {}
    for name in _different({name: np.asarray(shaped[name].parameters.X) for name in _ranked(shaped)})[:N_SHAPED]:
        search = begin(seed, np.asarray(shaped[name].parameters.X), sample, model, learn_amplitude)
        entrants[f"{name} shaped"] = search.with_parameters(log_scale=shaped[name].parameters.log_scale)
    for name in (*ALWAYS, *IF_NEW):
        there = [np.asarray(search.parameters.X) for search in entrants.values()]
        if name in candidates and (name in ALWAYS or not any(same_picture(X, candidates[name]) for X in there)):
            entrants[name] = begin(seed, candidates[name], sample, model, learn_amplitude)
    return {name: Entrant(search, []) for name, search in entrants.items()}


def _race(
    entrants: dict[str, Entrant], data: Data, model: Model, n_iterations: int, on_iteration: OnIteration
) -> dict[str, Entrant]:
    """Rounds on the whole table until one start is left, or there is nothing to gain for those that are."""
    racing = dict(entrants)
    while True:
        left = {name: n_iterations - entrant.search.n_iterations for name, entrant in racing.items()}
        _advance_all(racing, data, model, max(min(N_RACE_ITERATIONS, *left.values()), 1), on_iteration)
        highest = max(entrant.heights[-1] for entrant in racing.values())
        racing = {name: entrant for name, entrant in racing.items() if entrant.heights[-1] + entrant.gain >= highest}
        rising = [entrant for entrant in racing.values() if entrant.gain > SAME_MAXIMUM]
        spent = min(left[name] for name in racing) <= N_RACE_ITERATIONS
        if len(racing) == 1 or not rising or spent:
            return entrants


def _advance_all(
    entrants: dict[str, Entrant], data: Data, model: Model, n_iterations: int, on_iteration: OnIteration
) -> None:
    """A round of each that has not converged."""
    for entrant in entrants.values():
        if entrant.search.convergence != "converged":
            entrant.search = _advance(entrant.search, data, model, n_iterations, on_iteration)
        entrant.heights.append(entrant.search.value)
    _log_heights("on the table", {name: entrant.heights[-1] for name, entrant in entrants.items()})


def finalists(entrants: dict[str, Entrant], most: int = N_FINALISTS) -> list[str]:
    """The highest few with different pictures: two starts with one picture are on the way to one maximum."""
    ranked = sorted(entrants, key=lambda name: entrants[name].heights[-1], reverse=True)
    return _different({name: np.asarray(entrants[name].search.parameters.X) for name in ranked})[:most]


def _different(pictures: dict[str, Float[np.ndarray, "N D"]]) -> list[str]:
    """Names of pictures, in their order, without those that show the same as one before them."""
    kept: list[str] = []
    for name, X in pictures.items():
        if not any(same_picture(pictures[other], X) for other in kept):
            kept.append(name)
    return kept


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
    """So many iterations on the approximation of the objective, or on the objective itself where that is cheaper.

    All starts are given as many, whichever it is, or they could not be compared.
    """
    until = search.n_iterations + n_iterations
    search = approach(search, data, model, n_iterations, on_iteration)
    n_left = until - search.n_iterations
    if n_left > 0 and search.convergence not in ("converged", "interrupted"):
        search = climb(search, data, model, n_left, on_iteration)
    if search.convergence == "interrupted":
        raise KeyboardInterrupt
    return search


def _sample(data: Data, rows: np.ndarray, seed: int) -> Data:
    """The given rows, and at most ``N_COLUMNS`` columns."""
    columns = np.sort(np.random.default_rng(seed).permutation(data.Y.shape[1])[:N_COLUMNS])

    def select(part):
        values = np.asarray(part)
        return jnp.asarray(values[rows] if values.ndim == 1 else values[np.ix_(rows, columns)])

    by_row: dict[str, Any] = {"chronology": None, "covariates": None}
    chosen = jax.tree.map(select, data._replace(**by_row))
    if data.chronology is not None:
        by_row["chronology"] = dynamics.take(data.chronology, rows)
    if data.covariates is not None:
        by_row["covariates"] = jnp.asarray(np.asarray(data.covariates)[rows])
    return chosen._replace(**by_row)


def _ranked(searches: dict[str, Search]) -> list[str]:
    """Names from the highest to the lowest."""
    return sorted(searches, key=lambda name: searches[name].value, reverse=True)


def _log_heights(round_name: str, heights: dict[str, float]) -> None:
    listed = ", ".join(f"{name} {height:.1f}" for name, height in heights.items())
    logger.info("log posterior %s: %s", round_name, listed)
