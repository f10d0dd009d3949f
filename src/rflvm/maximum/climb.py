"""Ascent of the objective by L-BFGS, in single precision and, where that is too coarse, in double."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import optimize

from ..model import dynamics, laplace
from ..model.dynamics import Factor
from ..model.features import features
from ..model.joint import Data, Model
from ..model.laplace import Mode
from ..model.rows import information
from ..numerics.compilation import compiled
from ..numerics.linalg import NumericalError, cast
from .objective import MIN_MEAN_SQUARE, Anchor, Parameters, Spectrum, evaluate, frequencies, recursion
from .search import Convergence, Search

logger = logging.getLogger(__name__)

# When a climb ends: an iteration raises the height by less than MIN_RISE nats per row, on average over PATIENCE of
# them. The log posterior of a row's position varies by about one nat over the region where the row can be, whatever the
# number of columns, so smaller rises do not show in a picture. scikit-learn's mixtures end at the same rise. Choices
# without a measurement of their own; benchmarks/map.py records how the default fits end with them and when.
MIN_RISE = 1e-3
PATIENCE = 10  # more than one: the first step of L-BFGS after a restart is short
GRADIENT_TOLERANCE = 1e-4  # converged as well: no derivative is larger; SciPy's gtol, ten times its default

# When the modes of beta count as found, by the Newton decrement (about twice the log density left to gain in a column).
# Choices without a measurement.
MODE_TOLERANCE = {"float32": 1e-7, "float64": 1e-9}  # within an evaluation, relative to the column's log density
NEAR = 10.0  # times as much within a round of ``approach``, which is judged by the objective itself
MAX_DECREMENT = 0.1  # at the end of a climb: more than this would be a visible error of the height

# Evaluations in a row that do not find the modes after which single precision is given up: each of them costs as many
# Newton rounds as are allowed. A choice without a measurement.
MAX_MISSES = 8

# Times that a round on the approximation of the objective may compute P_j^{-1} anew, on average over columns: each of
# them is most of an evaluation of the objective itself, which then serves better. A choice without a measurement.
MAX_RENEWALS = 16.0

# Weight of the smooth deformations in the preconditioner. A choice without a measurement.
SMOOTH_SCALE = 0.5

# Pairs of steps and gradient changes that L-BFGS keeps, twice SciPy's default: they are small beside an evaluation.
# A choice without a measurement.
N_CORRECTIONS = 20

# Verdicts of which single precision can be the cause.
TOO_COARSE: tuple[Convergence, ...] = ("line search failed", "modes not found")

OnIteration = Callable[[float], None]  # is told the height after every iteration


def ignore(height: float) -> None:
    """An ``OnIteration`` that does nothing."""


def climb(
    search: Search, data: Data, model: Model, n_iterations: int, on_iteration: OnIteration = ignore,
    max_misses: float = np.inf,
) -> Search:  # fmt: skip
    """L-BFGS on the objective from where a search is; the highest point is kept, also when interrupted.

    Parameters
    ----------
    search : Search
        Where to start.
    data, model
        The table, in the precision of the search, and the model.
    n_iterations : int
        The largest number of iterations.
    on_iteration : callable
        Is called with the height after every iteration.
    max_misses : float
        Evaluations in a row that do not find the modes of beta after which the climb ends.

    Returns
    -------
    Search
        With the heights after each iteration added to its trace, and the verdict.
    """
    ascent = Ascent(search, data, model, on_iteration, max_misses)
    optimum = None
    try:
        optimum = ascend(ascent, n_iterations)
    except KeyboardInterrupt:
        if not ascent.heights:
            raise  # there is no point to keep yet
    if not ascent.heights:
        raise NumericalError("the objective is not finite at the start; rescale the data or check for extreme values")
    flat_gradient = optimum is not None and np.abs(optimum.jac).max() <= GRADIENT_TOLERANCE
    convergence = verdict(
        interrupted=optimum is None,
        modes_missing=ascent.decrement > MAX_DECREMENT or ascent.missed_too_often,
        levelled=bool(flat_gradient or has_levelled(ascent.heights, len(data.Y))),
        at_limit=optimum is not None and optimum.nit == n_iterations,
    )
    return dataclasses.replace(
        search,
        parameters=ascent.unravel(ascent.best),
        mode=ascent.mode,
        trace=search.trace + ascent.heights[1:],
        n_iterations=search.n_iterations + len(ascent.heights) - 1,
        value=ascent.height,
        convergence=convergence,
    )


def ascend(ascent: Ascent, n_iterations: int) -> Any:
    """L-BFGS, at most so many iterations; SciPy's result."""
    minimize: Any = optimize.minimize
    options = {"maxiter": n_iterations, "maxcor": N_CORRECTIONS, "ftol": 0, "gtol": GRADIENT_TOLERANCE}
    return minimize(ascent, ascent.start, jac=True, method="L-BFGS-B", callback=ascent.after_iteration, options=options)


def verdict(*, interrupted: bool, modes_missing: bool, levelled: bool, at_limit: bool) -> Convergence:
    """Why a climb ended, the first reason that applies.

    A climb that ended for no other reason was still rising when the line search found no higher point: the objective
    is not as precise as its gradient promises.
    """
    if interrupted:
        return "interrupted"
    if modes_missing:
        return "modes not found"
    if levelled:
        return "converged"
    return "iteration limit" if at_limit else "line search failed"


def has_levelled(heights: list[float], N: int) -> bool:
    """Whether the last ``PATIENCE`` iterations, or all if there were fewer, have raised the height by next to nothing.

    ``heights`` begins with the height at the start; N is the number of rows.
    """
    last = heights[-1 - PATIENCE :]
    return last[-1] - last[0] < MIN_RISE * N * max(len(last) - 1, 1)


class Ascent:
    """Minus the objective, or its approximation at an anchor, as SciPy's minimiser calls it, and the highest point.

    Attributes
    ----------
    start : array (P + M D,)
        Where the minimiser starts, in the coordinates of the preconditioner.
    unravel : callable
        From a vector (P,) to Parameters.
    best : array (P,)
        The highest point, as one vector. Updated with every evaluation that is higher.
    height : float
        The objective there.
    mode : Mode or None
        The modes of beta there, from which the next evaluation seeks its own.
    decrement : float
        The largest Newton decrement left there.
    n_misses : int
        Evaluations in a row that did not find the modes to the tolerance. Updated with every evaluation.
    n_renewed : float
        How often the modes needed P_j^{-1} anew so far, on average over columns. Updated with every evaluation.
    heights : list of float
        The height at the start and after each iteration.
    """

    def __init__(
        self, search: Search, data: Data, model: Model, on_iteration: OnIteration, max_misses: float,
        anchor: Anchor | None = None,
    ):  # fmt: skip
        self._search, self._data, self._model, self._anchor = search, data, model, anchor
        self._on_iteration, self._max_misses = on_iteration, max_misses
        self._tolerance = MODE_TOLERANCE[str(data.Y.dtype)] * (1.0 if anchor is None else NEAR)
        self.best, self.unravel = flatten(search.parameters)
        self._preconditioner = Preconditioner.at(search, data, model)
        self.start = self._preconditioner.coordinates(self.best)
        self.height = -np.inf
        self.heights: list[float] = []
        self.mode, self.decrement, self.n_misses, self.n_renewed = search.mode, 0.0, 0, 0.0

    def __call__(self, point: Float[np.ndarray, " Q"]) -> tuple[float, Float[np.ndarray, " Q"]]:
        """Minus the objective and its gradient."""
        flat = self._preconditioner.parameters(point)
        value, gradient, evidence = evaluate(
            self.unravel(flat), self.mode, self._search.spectrum, self._data, self._model, self._tolerance, self._anchor
        )
        value, gradient = float(value), flatten(gradient)[0]
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return self._penalty(), np.zeros_like(point)
        self._record(flat, value, evidence)
        return -value, -self._preconditioner.gradient(gradient)

    def after_iteration(self, point: Float[np.ndarray, " Q"]) -> None:
        """SciPy's callback: record and report the height, and end the climb when there is no use in going on."""
        self.heights.append(self.height)
        self._on_iteration(self.height)
        levelled = len(self.heights) > PATIENCE + 1 and has_levelled(self.heights, len(self._data.Y))
        if levelled or self.missed_too_often or self.costs_too_much:
            raise StopIteration

    @property
    def missed_too_often(self) -> bool:
        """Whether the modes of beta were not found in as many evaluations in a row as are allowed."""
        return self.n_misses >= self._max_misses

    @property
    def costs_too_much(self) -> bool:
        """Whether the approximation at an anchor has cost as many factors as so many evaluations of the objective."""
        return self._anchor is not None and self.n_renewed > MAX_RENEWALS

    def _record(self, flat: Float[np.ndarray, " P"], value: float, evidence: laplace.Evidence | None) -> None:
        if not self.heights:
            self.heights.append(value)
        self.n_misses = 0 if evidence is None or evidence.arrived else self.n_misses + 1
        self.n_renewed += 0.0 if evidence is None else float(evidence.renewed)
        if value > self.height:
            self.best, self.height = flat, value
            if evidence is not None:
                self.mode, self.decrement = evidence.mode, float(evidence.decrement)

    def _penalty(self) -> float:
        """What the minimiser is told where the objective is not finite: worse than anything that it has seen."""
        return abs(self.height) * 10 + 1e10 if np.isfinite(self.height) else 1e300


@dataclasses.dataclass(frozen=True)
class Preconditioner:
    """The change of variables x_n = x_n0 + C_n u_n + (``basis`` A)_n, in which L-BFGS moves (U, A) in place of X.

    C_n C_n' is the inverse of the Fisher information about x_n given the functions, relative to that of a typical row:
    rows that are known well move by small steps. With ``basis`` the features at the start times ``SMOOTH_SCALE``,
    directions in which all rows bend together are as easy as those in which each row moves by itself. Without them the
    shape of the whole would be found last.

    With a prior over time C U is T U in place of rows by themselves: T T' is the posterior covariance of whole paths.

    Attributes
    ----------
    origin : array (N, D)
        X at the start.
    factors : array (N, D, D) or Factor
        C_n, lower triangular; or T.
    n_moves : int
        Numbers in U: N D, or 2 N D with a prior over time.
    basis : array (N, M)
        Smooth functions of the rows.
    n_parameters : int
        P, the length of the parameters as one vector, of which X is the first N D. A point of the minimiser has U in
        place of X, and M D numbers more at its end, A.
    """

    origin: Float[np.ndarray, "N D"]
    factors: Float[np.ndarray, "N D D"] | Factor
    basis: Float[np.ndarray, "N M"]
    n_moves: int
    n_parameters: int

    @classmethod
    def at(cls, search: Search, data: Data, model: Model) -> Preconditioner:
        """The preconditioner for a climb that starts here."""
        parameters = search.parameters
        Phi, precisions = _features_and_information(parameters, search.mode, search.spectrum, data, model)
        X = np.asarray(parameters.X, float)
        if search.spectrum.path is None:
            covariances = np.linalg.inv(np.asarray(precisions, float))
            size = np.trace(covariances, axis1=1, axis2=2)
            factors: Any = np.linalg.cholesky(covariances / np.median(size) * covariances.shape[1])
            n_moves = X.size
        else:
            factors, n_moves = _factor_of_paths(parameters, search.spectrum, data, model), 2 * X.size
        return cls(
            origin=X,
            factors=factors,
            basis=SMOOTH_SCALE * np.asarray(Phi, float),
            n_moves=n_moves,
            n_parameters=sum(leaf.size for leaf in jax.tree.leaves(parameters)),
        )

    def coordinates(self, flat: Float[np.ndarray, " P"]) -> Float[np.ndarray, " Q"]:
        """The point of the minimiser that has the parameters at the start."""
        rest = flat[self.origin.size :]
        return np.concatenate([np.zeros(self.n_moves), rest, np.zeros(self.basis.shape[1] * self.origin.shape[1])])

    def parameters(self, point: Float[np.ndarray, " Q"]) -> Float[np.ndarray, " P"]:
        """The parameters at a point of the minimiser."""
        N, D = self.origin.shape
        n_rest = self.n_parameters - N * D
        U, rest, A = np.split(point, [self.n_moves, self.n_moves + n_rest])
        X = self.origin + self._moved(U.reshape(N, -1)) + self.basis @ A.reshape(-1, D)
        return np.concatenate([X.ravel(), rest])

    def gradient(self, flat: Float[np.ndarray, " P"]) -> Float[np.ndarray, " Q"]:
        """The gradient in the minimiser's coordinates, from that in the parameters."""
        N, D = self.origin.shape
        X_gradient = flat[: N * D].reshape(N, D)
        U_gradient = self._moved_transposed(X_gradient)
        return np.concatenate([U_gradient.ravel(), flat[N * D :], (self.basis.T @ X_gradient).ravel()])

    def _moved(self, U: Float[np.ndarray, "N E"]) -> Float[np.ndarray, "N D"]:
        if isinstance(self.factors, Factor):
            return np.asarray(_multiply(self.factors, U))
        return np.einsum("nde,ne->nd", self.factors, U)

    def _moved_transposed(self, X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N E"]:
        if isinstance(self.factors, Factor):
            return np.asarray(_multiply_transposed(self.factors, X))
        return np.einsum("nde,nd->ne", self.factors, X)


_multiply = compiled(dynamics.multiply)
_multiply_transposed = compiled(dynamics.multiply_transposed)


@functools.partial(compiled, static_argnames="model")
def _factor_of_paths(parameters: Parameters, spectrum: Spectrum, data: Data, model: Model) -> Factor:
    """T, scaled as C_n is, with the information that the rows had when the lengthscale was learned."""
    steps, path = recursion(spectrum, model, data.chronology), spectrum.path
    assert steps is not None
    assert path is not None
    X, relative = (part.astype(steps.deviation.dtype) for part in (parameters.X, path.relative))
    information = jax.vmap(jnp.diag)(relative / (jnp.var(X, axis=0) + MIN_MEAN_SQUARE)[None])
    known = dynamics.filtered(information, jnp.zeros_like(relative), steps.step)
    size = jnp.median(jnp.trace(dynamics.smoothed(known)[1], axis1=1, axis2=2)) / X.shape[1]
    T = dynamics.factor(known)
    return T._replace(root=T.root / jnp.sqrt(size))


@functools.partial(compiled, static_argnames="model")
def _features_and_information(
    parameters: Parameters, mode: Mode | None, spectrum: Spectrum, data: Data, model: Model
) -> tuple[Float[Array, "N M"], Float[Array, "N D D"]]:
    """Phi, and the prior precision of each row's position plus the information of its cells, the functions given.

    Where beta is integrated out in closed form nothing is known of the functions yet, and all rows are alike.
    """
    W = frequencies(parameters, spectrum)
    N, D = parameters.X.shape
    if mode is None:
        return features(parameters.X, W), jnp.broadcast_to(jnp.eye(D, dtype=parameters.X.dtype), (N, D, D))
    theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items()}
    beta = laplace.Blocks(data.Y.shape[1]).join(mode.beta)
    return features(parameters.X, W), information(parameters.X, W, beta, theta, data, model)


def flatten(parameters: Parameters) -> tuple[Float[np.ndarray, " P"], Callable[[np.ndarray], Parameters]]:
    """The parameters as one vector in double precision, X first, and the way back."""
    leaves, tree = jax.tree.flatten(parameters)
    shapes, dtypes = [leaf.shape for leaf in leaves], [leaf.dtype for leaf in leaves]
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def unravel(flat):
        parts = zip(np.split(flat, ends), shapes, dtypes, strict=True)
        return jax.tree.unflatten(tree, [jnp.asarray(part.reshape(shape), dtype) for part, shape, dtype in parts])

    return np.concatenate([np.asarray(leaf, float).ravel() for leaf in leaves]), unravel


def climb_precisely(
    search: Search, data: Data, model: Model, n_iterations: int, on_iteration: OnIteration
) -> tuple[Search, Data]:
    """Climb, and go on in double precision where single precision was too coarse; also the data in that precision.

    Large counts and a large amplitude make P_j so ill-conditioned that its determinant is noise, and Newton's steps are
    lost in it: each evaluation then goes to the limit of its rounds, which double precision does not need.
    """
    n_before = search.n_iterations
    single = data.Y.dtype == jnp.float32
    search = climb(search, data, model, n_iterations, on_iteration, MAX_MISSES if single else np.inf)
    n_left = n_iterations - (search.n_iterations - n_before)
    if search.convergence in TOO_COARSE and single and n_left > 0:
        logger.info("%s in single precision: going on in double", search.convergence)
        data = cast(data, jnp.float64)
        parameters, mode, spectrum = cast((search.parameters, search.mode, search.spectrum), jnp.float64)
        search = dataclasses.replace(search, parameters=parameters, mode=mode, spectrum=spectrum)
        search = climb(search, data, model, n_left, on_iteration)
    return search, data
