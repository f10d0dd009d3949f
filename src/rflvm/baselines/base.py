"""The interface that all baselines share: ``fit``, ``fit_transform``, ``embedding_``, and ``transform`` for some."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import likelihoods
from ..data import checks, tables
from ..maximum import gaps, starts


class Baseline(BaseEstimator, ABC):
    """A method that gives each row of a table a position.

    ``fit`` reads the table, checks it for ``_likelihood`` and refuses missing cells unless the method ``_takes_gaps``;
    ``_embed`` does the rest.
    """

    _likelihood: ClassVar[likelihoods.Likelihood] = likelihoods.Gaussian()
    _takes_gaps: ClassVar[bool] = False

    def __init__(self, n_components: int = 2, *, random_state: Any = None):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, Y: Any, y: Any = None) -> Any:
        """Fit the method to a table (N, J) of any kind that ``RFLVM`` takes; ``y`` is ignored. Returns itself."""
        D = checks.check_integer("n_components", self.n_components, 1)
        seed = checks.check_seed(self.random_state)
        values, observed, *_ = checks.check_table(tables.read(Y).values, self._family(), None, None, D)
        self._refuse_gaps(observed)
        self.n_features_in_ = values.shape[1]
        self.embedding_ = self._embed(values, observed, seed)
        return self

    def fit_transform(self, Y: Any, y: Any = None) -> np.ndarray:
        """Fit the method and return ``embedding_``."""
        return self.fit(Y).embedding_

    def _family(self) -> likelihoods.Likelihood:
        """The family whose support the table is checked for."""
        return self._likelihood

    def _refuse_gaps(self, observed: np.ndarray) -> None:
        if not (self._takes_gaps or observed.all()):
            n, j = np.argwhere(~observed)[0]
            raise ValueError(f"Y[{n}, {j}] is missing: {type(self).__name__} needs every cell; fill or drop the gaps")

    @abstractmethod
    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        """Positions of the rows of a checked table, 0 where it is missing."""


class Placing(Baseline):
    """A baseline that can place new rows."""

    def transform(self, Y: Any) -> np.ndarray:
        """Positions (n, D) of rows with the columns of the fit."""
        check_is_fitted(self)
        reading = tables.read(Y)
        checks.check_columns(reading, self.n_features_in_, None, type(self).__name__)
        values, observed, *_ = checks.check_rows(reading.values, self._family(), None, None)
        self._refuse_gaps(observed)
        return self._place(values)

    @abstractmethod
    def _place(self, Y: np.ndarray) -> np.ndarray:
        """Positions of the rows of a checked table without gaps."""


def start_of_X(init: Any, table: np.ndarray, observed: np.ndarray, D: int, seed: int) -> np.ndarray:
    """The given positions, or the start of ``starts.py`` with this name, from the table with its gaps filled."""
    init = checks.check_start(init, len(table), D, tuple(starts.STARTS))
    if isinstance(init, np.ndarray):
        return init
    filled = table if observed.all() else gaps.filled(table, observed, D)
    return starts.embed(init, filled, D, seed)


def is_counts(Y: np.ndarray) -> bool:
    """Whether all cells are whole numbers of at least 0."""
    return bool((Y >= 0).all() and (np.floor(Y) == Y).all())


def extra(name: str, package: str) -> ModuleType:
    """A module that not every installation has."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"this needs {package}: pip install 'rflvm[experiments]'") from None
