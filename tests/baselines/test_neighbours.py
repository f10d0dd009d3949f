"""Methods that keep neighbourhoods."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from rflvm import baselines
from rflvm.baselines import neighbours
from rflvm.datasets import make_s_curve


def share_kept(X, embedding):
    """The share of ten nearest neighbours along the curve that are neighbours in the picture."""
    near, seen = (NearestNeighbors(n_neighbors=10).fit(A).kneighbors(return_distance=False) for A in (X, embedding))
    return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near.tolist(), seen.tolist(), strict=True)])


@pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")  # of umap, on import
@pytest.mark.parametrize("name", ["isomap", "tsne", pytest.param("umap", marks=pytest.mark.long)])  # numba: 1 min
def test_neighbourhoods_are_kept(name):
    """By chance 10 of 119 would be."""
    truth = make_s_curve(120, 200, emissions="poisson", seed=1)
    X = baselines.make(name, random_state=0).fit(truth.data).embedding_
    assert share_kept(truth.X, X) > 0.4


def test_a_graph_in_pieces_is_joined():
    rng = np.random.default_rng(0)
    Y = np.concatenate([rng.poisson(1, (20, 4)), 1000 + rng.poisson(1, (20, 4))])
    X = baselines.Isomap().fit(Y).embedding_
    assert np.isfinite(X).all()


def test_the_noise_of_counts_is_made_even():
    Y = np.array([[0.0, 4.0], [9.0, 1.0]])
    np.testing.assert_array_equal(neighbours._stabilised(Y, True), [[0, 2], [3, 1]])
    np.testing.assert_array_equal(neighbours._stabilised(Y, False), Y)
