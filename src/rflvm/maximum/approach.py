"""Rounds of L-BFGS on an approximation of the objective, each begun with an evaluation of the objective itself.

Most of an evaluation is spent on a Gram matrix and a determinant of each column. Between two evaluations they are
replaced by those of a curvature that columns share, with the gradient corrected to be exact where a round begins
(``objective.Anchor``): an iteration then costs a fraction, and the maximum is the same.
"""

from __future__ import annotations

import dataclasses
import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np

from ..model import laplace
from ..model.joint import Data, Model
from ..model.laplace import Mode
from ..numerics.compilation import compiled
from .climb import MIN_RISE, MODE_TOLERANCE, Ascent, OnIteration, ascend, ignore
from .objective import Anchor, Parameters, evaluate
from .search import Search

logger = logging.getLogger(__name__)

# Iterations of a round. More of them trust the approximation for longer; with fewer L-BFGS learns the curvature of the
# objective anew more often. A choice without a measurement of its own.
N_ROUND = 25

# Share of the rise of the approximation that the objective must confirm, or rounds are of no use. A choice without a
# measurement.
MIN_CONFIRMED = 0.5


def approach(search: Search, data: Data, model: Model, n_iterations: int, on_iteration: OnIteration = ignore) -> Search:
    """Rounds on the approximation, until one gains little, costs much or the objective does not confirm its gain.

    Where the modes of beta are not found, single precision may be too coarse: that is left to ``climb``. Rounds that
    are of no use are not tried again.

    Returns
    -------
    Search
        The highest point that was confirmed: "converged" where the last round gained less than ``climb`` would go on
        for, and otherwise where ``climb`` begins. The trace has the height after each round, and
        iterations that led nowhere are not counted. A search with the conjugate Gaussian is returned as it is: the
        objective itself is cheap then.
    """
    if search.mode is None or not search.approximable:
        return search
    here, gradient, arrived = measured(search, data, model)
    if not (arrived and np.isfinite(here.value)):
        return dataclasses.replace(search, approximable=False)
    here, n_left = dataclasses.replace(here, convergence="iteration limit"), n_iterations
    try:
        while n_left > 0:
            there, promised, cheap = _round(here, gradient, data, model, min(N_ROUND, n_left), on_iteration)
            n_taken = max(there.n_iterations - here.n_iterations, 1)
            n_left -= n_taken
            there, slope, arrived = measured(there, data, model)
            gain = there.value - here.value
            confirmed = gain >= MIN_CONFIRMED * promised
            if gain > 0:
                here, gradient = dataclasses.replace(there, trace=[*here.trace, there.value]), slope
                if max(gain, promised) < MIN_RISE * n_taken * len(data.Y):
                    return dataclasses.replace(here, convergence="converged")
            if not (gain > 0 and confirmed and arrived and cheap):
                logger.info("a round of %d iterations rose by %.1f, not %.1f: no more of them", n_taken, gain, promised)
                return dataclasses.replace(here, approximable=False)
    except KeyboardInterrupt:
        return dataclasses.replace(here, convergence="interrupted")
    return here


def measured(search: Search, data: Data, model: Model) -> tuple[Search, Parameters, bool]:
    """A search with the height and the modes at its point, the gradient there, and whether the modes were found."""
    tolerance = MODE_TOLERANCE[str(data.Y.dtype)]
    value, gradient, evidence = evaluate(search.parameters, search.mode, search.spectrum, data, model, tolerance)
    assert evidence is not None
    return dataclasses.replace(search, value=float(value), mode=evidence.mode), gradient, bool(evidence.arrived)


def _round(
    search: Search, gradient: Parameters, data: Data, model: Model, n_iterations: int, on_iteration: OnIteration
) -> tuple[Search, float, bool]:
    """L-BFGS on the approximation at the search's point, its value left as it was; the rise, and if that was cheap."""
    anchor = anchored(search, gradient, data, model)
    ascent = Ascent(search, data, model, lambda _: on_iteration(search.value), np.inf, anchor)
    ascend(ascent, n_iterations)
    there = dataclasses.replace(
        search,
        parameters=ascent.unravel(ascent.best),
        mode=ascent.mode,
        n_iterations=search.n_iterations + max(len(ascent.heights) - 1, 0),
    )
    return there, ascent.height - ascent.heights[0] if ascent.heights else 0.0, not ascent.costs_too_much


def anchored(search: Search, gradient: Parameters, data: Data, model: Model) -> Anchor:
    """The approximation that has the objective's gradient where a search is."""
    parameters, mode, spectrum = search.parameters, search.mode, search.spectrum
    assert mode is not None
    uncorrected = Anchor(_share_curvature(parameters, mode, data, model), jax.tree.map(jnp.zeros_like, parameters))
    tolerance = MODE_TOLERANCE[str(data.Y.dtype)]
    _, without, _ = evaluate(parameters, mode, spectrum, data, model, tolerance, uncorrected)
    return uncorrected._replace(correction=jax.tree.map(jnp.subtract, gradient, without))


@functools.partial(compiled, static_argnames="model")
def _share_curvature(parameters: Parameters, mode: Mode, data: Data, model: Model) -> laplace.SharedCurvature:
    theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items() if value.ndim}
    return laplace.share_curvature(theta, mode, data, model)
