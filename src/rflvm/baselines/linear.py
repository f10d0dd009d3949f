"""Linear methods, by scikit-learn and on the table as it is (paper, section 3.3): PCA and NMF."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import decomposition

from .base import Placing

_NMF_ITERATIONS = 1000


class PCA(Placing):
    """Principal component analysis."""

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        self._method = decomposition.PCA(self.n_components, random_state=seed).fit(Y)
        return self._place(Y)

    def _place(self, Y: np.ndarray) -> np.ndarray:
        return self._method.transform(Y)


class NMF(Placing):
    """Non-negative matrix factorisation, started at the singular vectors; cells must not be negative.

    The vectors' negative parts start at zero, scikit-learn's default when the paper was written, and not at the table's
    mean: the two starts lead to different local optima, and this one has the accuracies that the paper reports.
    """

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        self._check(Y)
        n_components: Any = self.n_components  # scikit-learn's annotation has the type of its default alone
        self._method = decomposition.NMF(n_components, init="nndsvd", max_iter=_NMF_ITERATIONS, random_state=seed)
        return self._method.fit_transform(Y)

    def _place(self, Y: np.ndarray) -> np.ndarray:
        self._check(Y)
        return self._method.transform(Y)

    @staticmethod
    def _check(Y: np.ndarray) -> None:
        if (Y < 0).any():
            n, j = np.argwhere(Y < 0)[0]
            raise ValueError(f"Y[{n}, {j}] = {Y[n, j]:g} is negative: NMF needs cells of at least 0")
