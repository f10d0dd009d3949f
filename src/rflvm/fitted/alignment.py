"""Draws of X, W, mu and Sigma turned onto a common reference (orthogonal Procrustes)."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..model.draws import Draws


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
