"""Draws of X, W, mu and Sigma turned onto a common reference (orthogonal Procrustes).

A prior over time under which dimensions have lengthscales of their own knows one axis from another: draws are rotated
only where all dimensions share a lengthscale, for a rotation would mix rough and smooth paths. Otherwise axes are
permuted and reflected, lengthscales going along, or only reflected where each was given its own.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from .draws import Draws
from .dynamics import Matern


def rotations(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The rotation or reflection (..., D, D) that brings each X (..., N, D) closest to the reference (N, D)."""
    U, _, Vt = np.linalg.svd(np.swapaxes(X, -1, -2) @ reference)
    return U @ Vt


def signed_permutations(X: np.ndarray, reference: np.ndarray, *, permute: bool = True) -> np.ndarray:
    """The same among permutations and reflections of the axes, or among reflections alone."""
    products = np.swapaxes(X, -1, -2) @ reference
    D = products.shape[-1]
    R = np.zeros_like(products)
    for index in np.ndindex(products.shape[:-2]):
        each = products[index]
        places = linear_sum_assignment(-np.abs(each))[1] if permute else np.arange(D)
        R[index][np.arange(D), places] = np.where(each[np.arange(D), places] < 0, -1, 1)
    return R


def _turns(process: Matern | None) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """What may be done to draws without a change of their density."""
    if process is None or process.exchangeable:
        return rotations
    return functools.partial(signed_permutations, permute=process.learned)


def align(draws: Draws, chains: Sequence[int] | None = None) -> Draws:
    """Rotate or reflect every draw of every chain onto a common reference.

    The posterior does not change under X -> XR, W -> WR, mu -> mu R, Sigma -> R'Sigma R with R
    orthogonal, and all four go along; beta stays as it is. The reference is the last draw, then the
    mean of the draws aligned to it, of the given chains, or of all.
    """
    X = np.asarray(draws["X"], float)
    turns = _turns(draws.model.dynamics)
    reference = X if chains is None else X[list(chains)]
    first = reference @ turns(reference, reference[-1, -1])
    R = turns(X, first.mean(axis=(0, 1))).astype(draws["X"].dtype)
    turned = {name: draws[name] @ R for name in ("X", "W", "mu")}
    Sigma = np.swapaxes(R, -1, -2)[:, :, None] @ draws["Sigma"] @ R[:, :, None]
    if turns is not rotations:
        turned["lengthscale"] = np.einsum("csd,csde->cse", draws["lengthscale"], R**2)
    return dataclasses.replace(draws, arrays=draws.arrays | turned | {"Sigma": Sigma})


def of_chains(draws: Draws, chains: Sequence[int]) -> Draws:
    """The draws of some chains only; not to go on with."""
    if tuple(chains) == tuple(range(len(draws["X"]))):
        return draws
    return dataclasses.replace(draws, arrays={name: array[list(chains)] for name, array in draws.arrays.items()})


def mean_latents(draws: Draws) -> np.ndarray:
    """Posterior mean of X (N, D), draws aligned first."""
    return align(draws)["X"].mean(axis=(0, 1), dtype=float)
