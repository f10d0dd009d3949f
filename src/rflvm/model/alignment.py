"""Draws of X, W, mu and Sigma turned onto a common reference (orthogonal Procrustes)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .draws import Draws


def rotations(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The rotation or reflection (..., D, D) that brings each X (..., N, D) closest to the reference (N, D)."""
    U, _, Vt = np.linalg.svd(np.swapaxes(X, -1, -2) @ reference)
    return U @ Vt


def align(draws: Draws, chains: Sequence[int] | None = None) -> Draws:
    """Rotate or reflect every draw of every chain onto a common reference.

    The posterior does not change under X -> XR, W -> WR, mu -> mu R, Sigma -> R'Sigma R with R
    orthogonal, and all four go along; beta stays as it is. The reference is the last draw, then the
    mean of the draws aligned to it, of the given chains, or of all.
    """
    X = np.asarray(draws["X"], float)
    reference = X if chains is None else X[list(chains)]
    first = reference @ rotations(reference, reference[-1, -1])
    R = rotations(X, first.mean(axis=(0, 1))).astype(draws["X"].dtype)
    turned = {name: draws[name] @ R for name in ("X", "W", "mu")}
    Sigma = np.swapaxes(R, -1, -2)[:, :, None] @ draws["Sigma"] @ R[:, :, None]
    return dataclasses.replace(draws, arrays=draws.arrays | turned | {"Sigma": Sigma})


def of_chains(draws: Draws, chains: Sequence[int]) -> Draws:
    """The draws of some chains only; not to go on with."""
    if tuple(chains) == tuple(range(len(draws["X"]))):
        return draws
    return dataclasses.replace(draws, arrays={name: array[list(chains)] for name, array in draws.arrays.items()})


def mean_latents(draws: Draws) -> np.ndarray:
    """Posterior mean of X (N, D), draws aligned first."""
    return align(draws)["X"].mean(axis=(0, 1), dtype=float)
