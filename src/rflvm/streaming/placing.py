"""Anchors: positions beside which rows are placed, spread as the landmarks are."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .functions import Functions
from .programs import Anchors

# A row is compared with N_FIRST of the anchors and the N_NEAR nearest to either of the best two. Under true functions
# of two dimensions 0.8 % of 8192 rows ended at other modes with 64 and 16, 0.3 % with 256 and 8, 0.2 % with 512 and 8.
# Rows at other modes draw the functions to themselves; the work grows with the number.
N_ANCHORS, N_FIRST, N_NEAR = 1024, 256, 8

# Below so many landmarks, draws from the prior make up for them.
FEWEST_ANCHORS = 256


def anchor_positions(X: Float[np.ndarray, "L D"], seed: int) -> Float[np.ndarray, "A D"]:
    """Positions of landmarks, at random, and draws from the prior where they are few."""
    rng = np.random.default_rng(seed)
    chosen = np.asarray(X, float)[rng.permutation(len(X))[:N_ANCHORS]]
    drawn = rng.standard_normal((max(FEWEST_ANCHORS - len(chosen), 0), X.shape[1]))
    return rng.permutation(np.concatenate([chosen, drawn]))


def anchors_of(positions: Float[np.ndarray, "A D"], functions: Functions, dtype: str) -> Anchors:
    """Anchors under the functions."""
    first = positions[:N_FIRST]
    distance = ((first[:, None] - positions[None]) ** 2).sum(axis=2)
    near = np.argsort(distance, axis=1, kind="stable")[:, :N_NEAR]
    F = functions.features(positions) @ functions.beta
    return Anchors(jnp.asarray(positions, dtype), jnp.asarray(F, dtype), jnp.asarray(near))
