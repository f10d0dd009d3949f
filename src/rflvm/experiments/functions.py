"""The fitted functions: f_j at the fitted rows, without the offset."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..model.draws import Draws
from ..model.features import features
from ..numerics.compilation import compiled
from ..numerics.precision import precision


def mean_functions(draws: Draws) -> Float[np.ndarray, "N J"]:
    """Posterior mean of F in the units of the table, over the draws that have beta."""
    draws = draws.in_units()
    with precision("float64"):
        compute = compiled(lambda X, W, beta: features(X, W) @ beta)
        total, count = 0.0, 0
        for chain in range(len(draws["beta"])):
            for i, beta in enumerate(draws["beta"][chain]):
                at = i * draws.beta_thin
                X, W = (jnp.asarray(draws[name][chain, at], float) for name in ("X", "W"))
                total, count = total + np.asarray(compute(X, W, jnp.asarray(beta, float))), count + 1
    return np.asarray(total / count)
