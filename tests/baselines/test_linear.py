"""Linear methods."""

from __future__ import annotations

import numpy as np

from rflvm import baselines


def test_linear_methods_find_a_product_of_two_factors():
    """Of rank two and without noise, the table is an affine map of the positions."""
    rng = np.random.default_rng(0)
    Y = rng.gamma(2, size=(50, 2)) @ rng.gamma(2, size=(2, 8))
    for name in ("pca", "nmf"):
        X = baselines.make(name, random_state=0).fit(Y).embedding_
        design = np.column_stack([X, np.ones(50)])
        left = Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]
        assert (left**2).sum() < 1e-4 * ((Y - Y.mean(0)) ** 2).sum()
