"""L-BFGS from a given search, in single precision and, where that is too coarse, in double."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import optimize

from ..model.features import features
from ..model.joint import Data, Model
from ..numerics.compilation import compiled
from ..numerics.linalg import NumericalError, cast
from .objective import Parameters, Spectrum, evaluate, frequencies
from .search import Convergence, Search

logger = logging.getLogger(__name__)

SMOOTH = 0.5


TOLERANCE = {"float32": 1e-7, "float64": 1e-9}


PATIENCE, RISE = 5, 5e-6  # a climb ends when so many iterations raise it by less than this share of its height


FLAT_SLOPE = 1e-4


UNFINISHED = 0.1  # Newton decrement: log density that a column could still gain


MISSES = 8  # evaluations in a row without the modes after which single precision is given up


TOO_COARSE = ("line search failed", "modes not found")  # what single precision can be the reason of


def climb(
    search: Search, data: Data, model: Model, n_iterations: int, tell: Callable[[float], None] = lambda value: None,
    misses_allowed: float = np.inf,
) -> Search:  # fmt: skip
    """L-BFGS from where a search is; the highest point is kept, also when interrupted.

    "line search failed" means that the climb was still gaining when no higher point was found any more: the objective
    is not as precise as its slope promises. "modes not found" is said when much is left to gain in beta, or when it was
    not found to the tolerance in ``misses_allowed`` evaluations in a row, which ends the climb.

    X moves by U + ``SMOOTH`` Phi A, with Phi its features at the start: that all rows bend together is as easy
    as that each moves by itself, or the shape of the whole would be found last.
    """
    flat, unravel = _flatten(search.parameters)
    size, N, D = len(flat), *search.parameters.X.shape
    Phi = SMOOTH * np.asarray(_features(search.parameters, search.spectrum), float)
    tolerance = TOLERANCE[str(data.Y.dtype)]
    highest, value, mode, decrement, misses = flat, -np.inf, search.mode, 0.0, 0
    heights: list[float] = []
    convergence: Convergence = "line search failed"

    def expand(point):
        flat = point[:size].copy()
        flat[: N * D] += (Phi @ point[size:].reshape(-1, D)).ravel()
        return flat

    def negative(point):
        nonlocal highest, value, mode, decrement, misses
        flat = expand(point)
        number, gradient, evidence = evaluate(unravel(flat), mode, search.spectrum, data, model, tolerance)
        number, slope = float(number), _flatten(gradient)[0]
        if not (np.isfinite(number) and np.isfinite(slope).all()):
            return abs(value) * 10 + 1e10 if np.isfinite(value) else 1e300, np.zeros_like(point)
        if not heights:
            heights.append(number)
        misses = 0 if evidence is None or evidence.arrived else misses + 1
        if number > value:
            highest, value = flat, number
            if evidence is not None:
                mode, decrement = evidence.mode, float(evidence.decrement)
        return -number, -np.append(slope, Phi.T @ slope[: N * D].reshape(N, D))

    def level():
        return value - heights[-1 - PATIENCE :][0] < RISE * abs(value)

    def after(point):
        heights.append(value)
        tell(value)
        if misses >= misses_allowed or (len(heights) > PATIENCE + 1 and level()):
            raise StopIteration

    A = np.zeros(Phi.shape[1] * D)
    start = np.append(flat, A)
    options = {"maxiter": n_iterations, "maxcor": 20, "ftol": 0, "gtol": FLAT_SLOPE, "maxls": 20}
    try:
        minimize: Any = optimize.minimize
        result = minimize(negative, start, jac=True, method="L-BFGS-B", callback=after, options=options)
    except KeyboardInterrupt:
        if not heights:
            raise  # there is no point to keep yet
        result = None
    if not heights:
        raise NumericalError("the objective is not finite at the start; rescale the data or check for extreme values")
    if result is None:
        convergence = "interrupted"
    elif decrement > UNFINISHED or misses >= misses_allowed:
        convergence = "modes not found"
    elif level() or np.abs(result.jac).max() <= FLAT_SLOPE:
        convergence = "converged"
    elif result.nit == n_iterations:
        convergence = "iteration limit"
    return Search(unravel(highest), mode, search.spectrum, search.trace + heights[1:], value, convergence)


@compiled
def _features(parameters: Parameters, spectrum: Spectrum) -> Float[Array, "N M"]:
    return features(parameters.X, frequencies(parameters, spectrum))


def _flatten(parameters: Parameters) -> tuple[np.ndarray, Callable[[np.ndarray], Parameters]]:
    """The parameters as one float64 vector, and the way back."""
    leaves, tree = jax.tree.flatten(parameters)
    shapes, dtypes = [leaf.shape for leaf in leaves], [leaf.dtype for leaf in leaves]
    cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def unravel(flat):
        parts = np.split(flat, cuts)
        return jax.tree.unflatten(
            tree, [jnp.asarray(p.reshape(s), d) for p, s, d in zip(parts, shapes, dtypes, strict=True)]
        )

    return np.concatenate([np.asarray(leaf, float).ravel() for leaf in leaves]), unravel


def climb_precisely(
    search: Search, data: Data, model: Model, n_iterations: int, tell: Callable[[float], None]
) -> tuple[Search, Data]:
    """Climb, and go on in double precision where single precision was too coarse.

    Large counts and a large amplitude make P_j so ill-conditioned that its determinant is noise, and Newton's steps are
    lost in it: each evaluation then goes to the limit of its rounds, which double precision does not need.
    """
    before = len(search.trace)
    single = data.Y.dtype == jnp.float32
    search = climb(search, data, model, n_iterations, tell, MISSES if single else np.inf)
    left = n_iterations - (len(search.trace) - before)
    if search.convergence in TOO_COARSE and single and left > 0:
        logger.info("%s in single precision: going on in double", search.convergence)
        data = cast(data, jnp.float64)
        parameters, mode, spectrum = cast((search.parameters, search.mode, search.spectrum), jnp.float64)
        search = climb(Search(parameters, mode, spectrum, search.trace), data, model, left, tell)
    return search, data
