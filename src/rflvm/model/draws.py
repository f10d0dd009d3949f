"""Draws from the posterior as arrays, recorded within a memory budget; how the chains that made them were run."""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..numerics.units import Units, coefficients
from .features import features
from .joint import Model, State

logger = logging.getLogger(__name__)

# What draws of beta take where nobody asks for all of them; and how many are kept of a run in any case, enough for the
# members that predictions average over.
BETA_BYTES, FEWEST_BETA = 1.2e7, 32
N_CELLS = 2  # of each row, of which F is kept in every draw
NOT_UNKNOWN = ("log_joint", "F")  # what is kept of a draw besides the unknowns


class Run(NamedTuple):
    """How the chains were run: with their states and tuning, all that it takes to go on."""

    seed: int
    n_burnin: int
    thin: int
    moves: tuple[str, str, str]  # latents, frequencies and coefficients, see ``sample``
    table: str  # digest of the table
    n_sweeps: int = 0  # done so far, burn-in included

    @property
    def n_sampled(self) -> int:
        """Sweeps after burn-in."""
        return max(self.n_sweeps - self.n_burnin, 0)

    @property
    def n_kept(self) -> int:
        """Draws kept of each chain."""
        return self.n_sampled // self.thin


@dataclasses.dataclass
class Draws:
    """Kept draws as NumPy arrays with leading dimensions (chain, draw).

    All but the log joint density is in single precision: rounding to seven digits is far below the standard deviation
    of any unknown. The chains themselves go on in the precision that they were asked to have.

    Attributes
    ----------
    arrays : dict
        "X", "W", "z", "mu", "Sigma", "alpha", "log_joint" and the family's own parameters, one entry per kept draw, and
        "lengthscale" where X has a prior over time; "beta" (chain, beta_draw, M, J) only for every ``beta_thin``-th
        draw. On the standard scale if the table has units. Of chains also "F" (chain, draw, N, K): the linear
        predictors, without offset, of a few cells of each row (``kept_cells``), by which predictions are judged.
    beta_thin : int
        Every how many kept draws beta is kept: beta is by far the largest unknown.
    tuning : list
        What each chain adapted in burn-in, a ``Tuning`` of ``sampling/blocks/tuning.py``.
    states : list of State
        The last state of each chain.
    info_sums : list of dict
        Sum of each block's Info over the sweeps after burn-in, for each chain; ``info`` has the means.
    interrupted : bool
        Whether the run was stopped by the user before its end.
    ended : str
        Why it ended: "settled", "length" (the sweeps that were asked for), "limit" (the most that a run makes that has
        not settled), "time" (``max_time``) or "interrupted"; empty when the draws do not come from chains.
    run : Run or None
        How the chains were run; None when the draws do not come from chains.
    units : Units or None
        Location and scale of each column, with which the table was standardised; ``in_units`` has the draws in the
        units of the table. None for families whose cells have no unit.
    """

    model: Model
    arrays: dict[str, np.ndarray]
    beta_thin: int
    tuning: list[Any] = dataclasses.field(default_factory=list)
    states: list[State] = dataclasses.field(default_factory=list)
    info_sums: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    interrupted: bool = False
    ended: str = ""
    run: Run | None = None
    units: Units | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    @property
    def n_draws(self) -> int:
        """Kept draws per chain."""
        return self.arrays["log_joint"].shape[1]

    @property
    def theta(self) -> list[str]:
        """Names of the family's own parameters among the arrays."""
        return [name for name in self.arrays if name not in (*State._fields, *NOT_UNKNOWN)]

    def in_units(self) -> Draws:
        """The draws with beta and the family's own parameters in the units of the table.

        With them phi'beta_j + offset is the linear predictor of column j as the table has it. They are to be looked at:
        ``continue_sampling`` goes on with the draws themselves. The log joint density stays that of the standard scale.

        Examples
        --------
        >>> import numpy as np
        >>> import rflvm
        >>> Y = 1000 + np.random.default_rng(0).normal(size=(12, 5))
        >>> draws = rflvm.sample(Y, "gaussian", n_features=6, n_samples=6, n_burnin=4, init="pca")
        >>> bool((draws["beta"][..., -1, :] < 900).all()), bool((draws.in_units()["beta"][..., -1, :] > 900).all())
        (True, True)
        """
        if self.units is None:
            return self
        theta = {name: np.asarray(self.arrays[name], float) for name in self.theta}
        changed = self.model.likelihood.theta_in_units(theta, self.units.scale)
        changed |= {"beta": coefficients(self.arrays["beta"], self.units)}
        return Draws(self.model, self.arrays | changed, self.beta_thin, interrupted=self.interrupted, ended=self.ended)

    @property
    def info(self) -> list[dict[str, Any]]:
        """Mean of each block's Info over the sweeps after burn-in, for each chain."""
        swept = 1 if self.run is None else max(self.run.n_sampled, 1)
        return [jax.tree.map(lambda total: np.asarray(total) / swept, sums) for sums in self.info_sums]


class Kept(NamedTuple):
    """One draw, and what is kept with it."""

    state: State  # beta is None where it is thinned out
    log_joint: Any
    F: Any  # of the cells that ``kept_cells`` names


def kept_cells(observed: Bool[np.ndarray, "N J"], n_predictors: int) -> Int[np.ndarray, "N K"]:
    """Columns of F that are kept of each row: chosen at random, among observed cells where there are any."""
    N, J = observed.shape
    order = np.random.default_rng(0).random((N, n_predictors))
    if n_predictors == J:
        order = order + ~observed
    return np.argsort(order, axis=1)[:, :N_CELLS]


def linear_predictors(
    state: State, cells: Int[Array, "N K"], covariates: Float[Array, "N C"] | None = None
) -> Float[Array, "N K"]:
    """F of some cells of each row, without offset."""
    beta = jnp.moveaxis(state.beta[:, cells], 0, 1)  # (N, M, K)
    return jnp.einsum("nm,nmk->nk", features(state.X, state.W, covariates), beta)


def small_parts(state: State) -> dict[str, Any]:
    """What is kept of every draw: all unknowns but beta."""
    parts = state._asdict() | state.theta
    return {name: part for name, part in parts.items() if name not in ("beta", "theta") and part is not None}


def kept_as(part: Any) -> np.dtype:
    """The dtype in which draws of an unknown are kept."""
    dtype = np.dtype(part.dtype)
    return np.dtype(np.float32) if dtype.kind == "f" else dtype


def with_few_beta(draws: Draws) -> Draws:
    """The draws with beta thinned further, until it takes ``BETA_BYTES`` or there are few."""
    C, n = draws["beta"].shape[:2]
    further = max(1, min(int(np.ceil(draws["beta"].nbytes / BETA_BYTES)), C * n // FEWEST_BETA))
    if further == 1:
        return draws
    arrays = draws.arrays | {"beta": np.ascontiguousarray(draws["beta"][:, ::further])}
    return dataclasses.replace(draws, arrays=arrays, beta_thin=draws.beta_thin * further)


class Recorder:
    """Preallocated arrays for the draws of all chains; ``state`` is asked for shapes and dtypes only.

    Beta is thinned to fit the budget, or, where a run goes on, as it was: ``beta_thin``.
    """

    def __init__(self, state: State, n_chains: int, n_draws: int, memory_budget: float, beta_thin: int | None = None):
        least = plan_beta_thinning(state, n_chains, n_draws, memory_budget)
        self.beta_thin = least if beta_thin is None else beta_thin
        if self.beta_thin < least:
            raise ValueError(
                f"{n_chains} chain(s) of {n_draws} draws, with beta for every {beta_thin}-th as in the run that is "
                f"continued, need more than memory_budget = {memory_budget / 1e6:.0f} MB: raise the budget"
            )
        if self.beta_thin > 1:
            logger.info(
                "beta is kept for every %d-th draw: all %d draws of it would take %.0f MB",
                self.beta_thin, n_draws, n_chains * n_draws * state.beta.size * kept_as(state.beta).itemsize / 1e6,
            )  # fmt: skip
        self._arrays: dict[str, np.ndarray] = {
            name: np.empty((n_chains, n_draws, *part.shape), kept_as(part)) for name, part in small_parts(state).items()
        }
        self._arrays["log_joint"] = np.empty((n_chains, n_draws))
        self._arrays["F"] = np.empty((n_chains, n_draws, *predictors_shape(state)), kept_as(state.X))
        n_beta = self._places("beta", 0, n_draws).stop
        self._arrays["beta"] = np.empty((n_chains, n_beta, *state.beta.shape), kept_as(state.beta))

    def _places(self, name: str, start: int, stop: int) -> slice:
        """Where an unknown's entries for the draws from ``start`` to ``stop`` are."""
        thin = self.beta_thin if name == "beta" else 1
        return slice(-(-start // thin), -(-stop // thin))

    def record(self, chain: int, draw: int, kept: Kept) -> None:
        """Keep one draw."""
        parts = small_parts(kept.state) | {"log_joint": kept.log_joint, "F": kept.F}
        for name, part in parts.items():
            self._arrays[name][chain, draw] = part
        if draw % self.beta_thin == 0:
            self._arrays["beta"][chain, draw // self.beta_thin] = kept.state.beta

    def fill(self, start: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep draws of all chains that were made before, from number ``start`` on."""
        stop = start + arrays["log_joint"].shape[1]
        if "F" not in arrays:  # made by version 0.1
            self._arrays["F"][:, start:stop] = np.nan
        for name, array in arrays.items():
            self._arrays[name][:, self._places(name, start, stop)] = array

    def arrays(self, stop: int, start: int = 0) -> dict[str, np.ndarray]:
        """The draws of every chain from number ``start`` to before ``stop``."""
        return {name: array[:, self._places(name, start, stop)] for name, array in self._arrays.items()}


def predictors_shape(state: State) -> tuple[int, int]:
    """Of what is kept of F."""
    return state.X.shape[0], min(N_CELLS, state.beta.shape[1])


def plan_beta_thinning(state: State, n_chains: int, n_draws: int, memory_budget: float) -> int:
    """The smallest thinning of beta with which all draws fit the budget (in bytes)."""
    small = sum(part.size * kept_as(part).itemsize for part in small_parts(state).values()) + 8
    small += math.prod(predictors_shape(state)) * kept_as(state.X).itemsize
    fixed = n_chains * n_draws * small
    beta = n_chains * state.beta.size * kept_as(state.beta).itemsize
    if fixed + beta > memory_budget:
        raise ValueError(
            f"{n_chains} chain(s) of {n_draws} draws need {(fixed + beta) / 1e6:.0f} MB even with a single "
            f"draw of beta each, more than memory_budget = {memory_budget / 1e6:.0f} MB: raise thin or the budget"
        )
    thin = -(-n_draws * beta // int(memory_budget - fixed))
    thin = max(1, min(thin, n_draws))
    while fixed + -(-n_draws // thin) * beta > memory_budget:
        thin += 1
    return thin
