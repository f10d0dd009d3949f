"""Methods that preserve neighbourhoods: Isomap on the table as it is (paper, section 3.3), and the two most used today,
t-SNE and UMAP, on the square roots of a table of counts (any other table as it is).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import manifold

from .base import Baseline, Placing, extra, is_counts


class Isomap(Placing):
    """Distances along the graph of the five nearest neighbours; a disconnected one is joined at its closest points."""

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        neighbours = min(5, len(Y) - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would warn of a disconnected graph
            self._method = manifold.Isomap(n_neighbors=neighbours, n_components=self.n_components).fit(Y)
        return self._method.embedding_

    def _place(self, Y: np.ndarray) -> np.ndarray:
        return self._method.transform(Y)


class TSNE(Baseline):
    """t-SNE by scikit-learn, started at the principal components; it has no ``transform``."""

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        perplexity = min(30.0, (len(Y) - 1) / 3)
        method = manifold.TSNE(self.n_components, perplexity=perplexity, init="pca", random_state=seed)
        return method.fit_transform(_stabilised(Y, is_counts(Y))).astype(float)


class UMAP(Placing):
    """UMAP by umap-learn, with its defaults. The position of a new row depends on the rows it is placed with."""

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        umap: Any = extra("umap", "umap-learn")
        neighbours = min(15, len(Y) - 1)
        # With a seed it runs on one core, and would say so.
        self._method = umap.UMAP(neighbours, self.n_components, random_state=seed, n_jobs=1)
        self._counts = is_counts(Y)
        return np.asarray(self._method.fit_transform(_stabilised(Y, self._counts)), float)

    def _place(self, Y: np.ndarray) -> np.ndarray:
        return np.asarray(self._method.transform(_stabilised(Y, self._counts)), float)


def _stabilised(Y: np.ndarray, counts: bool) -> np.ndarray:
    """Square roots of counts, which stabilises the variance of Poisson noise; any other table as it is."""
    return np.sqrt(Y) if counts else Y
