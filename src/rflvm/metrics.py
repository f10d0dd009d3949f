"""How well a latent space was recovered."""

from __future__ import annotations

import numpy as np


def r2_affine(X: np.ndarray, estimate: np.ndarray) -> float:
    """R^2 between the true X and the best affine map of an estimate onto it (paper, section 3.1)."""
    design = np.column_stack([estimate, np.ones(len(estimate))])
    residual = X - design @ np.linalg.lstsq(design, X, rcond=None)[0]
    return float(1 - (residual**2).sum() / ((X - X.mean(0)) ** 2).sum())
