"""The best affine map of one set of positions onto another, by least squares, and how well it fits (R^2)."""

from __future__ import annotations

import numpy as np


def map_affinely(X: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """The estimate after the affine map that brings it closest to X."""
    design = np.column_stack([estimate, np.ones(len(estimate))])
    return design @ np.linalg.lstsq(design, X, rcond=None)[0]


def r2_affine(X: np.ndarray, estimate: np.ndarray) -> float:
    """R^2 between the true X and the best affine map of an estimate onto it (paper, section 3.1).

    Examples
    --------
    It does not change under affine maps of the estimate:

    >>> import numpy as np
    >>> from rflvm.metrics import r2_affine
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> round(r2_affine(X, X @ [[0.0, 2.0], [-1.0, 0.5]] + 3), 6)
    1.0
    """
    residual = X - map_affinely(X, estimate)
    return float(1 - (residual**2).sum() / ((X - X.mean(0)) ** 2).sum())
