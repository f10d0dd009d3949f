"""Binomial observations with the logit link: Eq. 7 with a = y, b = trials."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np

from ..numerics.errors import InputError
from .base import LARGEST_COUNT, SuccessCounts, check_counts, first_bad_cell


@dataclasses.dataclass(frozen=True, eq=False)
class Binomial(SuccessCounts):
    """y successes out of a known number of trials, with success probability sigmoid(f).

    Parameters
    ----------
    trials : int or array_like
        One number, one per column (J,), or one per cell (N, J).
    """

    trials: int | np.ndarray

    name: ClassVar[str] = "binomial"
    decoder: ClassVar[str | None] = "binomial"

    def __post_init__(self):
        trials = np.asarray(self.trials)
        if not (np.issubdtype(trials.dtype, np.number) and np.isfinite(trials).all()):
            raise ValueError("binomial trials must be finite numbers")
        if (trials < 0).any() or (trials != np.floor(trials)).any():
            raise ValueError(f"binomial trials must be whole numbers >= 0, got {trials.min():g} to {trials.max():g}")
        if (trials >= LARGEST_COUNT).any():
            raise ValueError(f"binomial trials must be below 2**53, got {trials.max():g}")

    @functools.cached_property
    def _content(self) -> tuple[tuple[int, ...], bytes]:
        """What makes two of this family equal; an array as a field can neither be compared nor hashed."""
        return np.shape(self.trials), np.asarray(self.trials, float).tobytes()

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and self._content == other._content

    def __hash__(self) -> int:
        return hash((type(self), self._content))

    def _per_cell(self, shape: tuple[int, ...]) -> np.ndarray:
        trials = np.asarray(self.trials, float)
        allowed = {(): True, (shape[1],): True, shape: True}
        if trials.shape not in allowed:
            raise ValueError(
                f"binomial trials must be one number, one per column ({shape[1]},) or one per cell {shape}, "
                f"got shape {trials.shape}"
            )
        return np.broadcast_to(trials, shape)

    def check(self, Y, observed):
        check_counts(Y, observed, "binomial")
        bad = observed & (self._per_cell(Y.shape) < np.where(observed, Y, 0))
        if bad.any():
            raise InputError("binomial needs y <= trials, got {cell}", cell=first_bad_cell(bad, Y))

    def encode(self, Y, observed):
        return np.where(observed, Y, 0), observed, self._per_cell(Y.shape)

    def stabilise(self, Y, offset, trials):
        assert trials is not None
        return np.arcsin(np.sqrt((Y + 3 / 8) / (trials + 3 / 4)))

    def with_trials(self, trials):
        return Binomial(trials=trials)

    def trials_for(self, n, J):
        return self._per_cell((n, J))

    def typical_trials(self, J):
        trials = np.asarray(self.trials, float)
        return np.broadcast_to(np.round(trials.mean(axis=0)) if trials.ndim == 2 else trials, J)

    @property
    def trials_per_cell(self):
        trials = np.asarray(self.trials)
        return trials if trials.ndim == 2 else None
