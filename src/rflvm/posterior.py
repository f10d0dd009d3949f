"""Draws from the posterior: the plan that keeps them within a memory budget, and their alignment."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np

from .model import Model, State
from .updates.tuning import Tuning

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Draws:
    """Kept draws as NumPy arrays with leading dimensions (chain, draw).

    Attributes
    ----------
    arrays : dict
        "X", "W", "z", "mu", "Sigma", "alpha", "log_joint" and the family's own parameters, one
        entry per kept draw; "beta" (chain, beta_draw, M, J) only for every ``beta_thin``-th draw.
    beta_thin : int
        Every how many kept draws beta is kept: beta is by far the largest unknown.
    tuning : list of Tuning
        What each chain adapted in burn-in.
    states : list of State
        The last state of each chain.
    info : list of dict
        Mean of each block's Info over the sweeps after burn-in, for each chain.
    interrupted : bool
        Whether the run was stopped by the user before its end.
    """

    model: Model
    arrays: dict[str, np.ndarray]
    beta_thin: int
    tuning: list[Tuning]
    states: list[State]
    info: list[dict[str, Any]]
    interrupted: bool = False

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    @property
    def n_draws(self) -> int:
        """Kept draws per chain."""
        return self.arrays["log_joint"].shape[1]


def small_parts(state: State) -> dict[str, Any]:
    """What is kept of every draw: all unknowns but beta."""
    parts = state._asdict() | state.theta
    return {name: parts[name] for name in parts if name not in ("beta", "theta")}


class Recorder:
    """Preallocated arrays for the draws of all chains; ``state`` is asked for shapes and dtypes only."""

    def __init__(self, state: State, n_chains: int, n_draws: int, memory_budget: float):
        self.beta_thin = plan_beta_thinning(state, n_chains, n_draws, memory_budget)
        self._arrays = {
            name: np.empty((n_chains, n_draws, *part.shape), part.dtype) for name, part in small_parts(state).items()
        }
        self._arrays["log_joint"] = np.empty((n_chains, n_draws))
        n_beta = -(-n_draws // self.beta_thin)
        self._beta = np.empty((n_chains, n_beta, *state.beta.shape), state.beta.dtype)

    def record(self, chain: int, draw: int, state: State, log_joint: float) -> None:
        """Keep one draw."""
        for name, part in small_parts(state).items():
            self._arrays[name][chain, draw] = part
        self._arrays["log_joint"][chain, draw] = log_joint
        if draw % self.beta_thin == 0:
            self._beta[chain, draw // self.beta_thin] = state.beta

    def arrays(self, n_draws: int) -> dict[str, np.ndarray]:
        """The first ``n_draws`` draws of every chain."""
        n_beta = -(-n_draws // self.beta_thin)
        return {name: array[:, :n_draws] for name, array in self._arrays.items()} | {"beta": self._beta[:, :n_beta]}


def plan_beta_thinning(state: State, n_chains: int, n_draws: int, memory_budget: float) -> int:
    """The smallest thinning of beta with which all draws fit the budget (in bytes)."""
    small = sum(part.size * part.dtype.itemsize for part in small_parts(state).values()) + 8
    fixed = n_chains * n_draws * small
    beta = n_chains * state.beta.size * state.beta.dtype.itemsize
    if fixed + beta > memory_budget:
        raise ValueError(
            f"{n_chains} chain(s) of {n_draws} draws need {(fixed + beta) / 1e6:.0f} MB even with a single "
            f"draw of beta each, more than memory_budget = {memory_budget / 1e6:.0f} MB: raise thin or the budget"
        )
    thin = -(-n_draws * beta // int(memory_budget - fixed))
    thin = max(1, min(thin, n_draws))
    while fixed + -(-n_draws // thin) * beta > memory_budget:
        thin += 1
    if thin > 1:
        logger.info(
            "beta is kept for every %d-th draw: all %d draws of it would take %.0f MB",
            thin, n_draws, n_draws * beta / 1e6,
        )  # fmt: skip
    return thin


def rotations(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The rotation or reflection (..., D, D) that brings each X (..., N, D) closest to the reference (N, D)."""
    U, _, Vt = np.linalg.svd(np.swapaxes(X, -1, -2) @ reference)
    return U @ Vt


def align(draws: Draws) -> Draws:
    """Rotate or reflect every draw of every chain onto a common reference.

    The posterior does not change under X -> XR, W -> WR, mu -> mu R, Sigma -> R'Sigma R with R
    orthogonal, and all four go along; beta stays as it is. The reference is the last draw, then the
    mean of the draws aligned to it.
    """
    X = draws["X"]
    first = X @ rotations(X, X[-1, -1])
    R = rotations(X, first.mean(axis=(0, 1)))
    turned = {name: draws[name] @ R for name in ("X", "W", "mu")}
    Sigma = np.swapaxes(R, -1, -2)[:, :, None] @ draws["Sigma"] @ R[:, :, None]
    return dataclasses.replace(draws, arrays=draws.arrays | turned | {"Sigma": Sigma})


def mean_latents(draws: Draws) -> np.ndarray:
    """Posterior mean of X (N, D), draws aligned first."""
    return align(draws)["X"].mean(axis=(0, 1))
