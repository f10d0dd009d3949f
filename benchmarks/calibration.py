"""Is the posterior honest? Coverage of 90 % credible intervals over simulated tables.

Twenty Poisson S-curves (200 x 50), a tenth of the cells held out at random. Intervals from the draws
of the sampler with its default start: of f in all cells, and of y in the held-out cells by the
posterior predictive distribution. The bar is 86 to 94 %. For counts an interval of the predictive
distribution covers at least its nominal probability, so y is also counted with a uniform random tie
break, which makes the nominal coverage exact. Writes benchmarks/results/calibration.json.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from common import machine, write

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.model.alignment import mean_latents
from rflvm.model.features import features
from rflvm.numerics.affine import r2_affine

N_TABLES, N, J, M = 20, 200, 50, 100
N_BURNIN, N_SAMPLES = 400, 400
LEVEL = 0.9


def predictors(draws: rflvm.Draws) -> np.ndarray:
    """F of each draw (draw, N, J)."""
    with jax.enable_x64(True):
        compute = jax.jit(lambda X, W, beta: features(X, W) @ beta)
        kept = range(0, draws.n_draws, draws.beta_thin)
        return np.stack(
            [
                np.asarray(compute(*(jnp.asarray(draws[name][0, t]) for name in ("X", "W")), draws["beta"][0, i]))
                for i, t in enumerate(kept)
            ]
        )


def main() -> None:
    """Simulate, fit, count."""
    rows = []
    for seed in range(N_TABLES):
        truth = make_s_curve(N, J, emissions="poisson", seed=seed)
        rng = np.random.default_rng(1000 + seed)
        held_out = rng.random(truth.data.shape) < 0.1
        Y = np.where(held_out, np.nan, truth.data)
        draws = rflvm.sample(Y, "poisson", n_features=M, n_burnin=N_BURNIN, n_samples=N_SAMPLES, seed=seed)
        F = predictors(draws)
        low, high = np.quantile(F, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        predicted = rng.poisson(np.exp(F))[:, held_out]
        y = truth.data[held_out]
        below, equal = np.mean(predicted < y, axis=0), np.mean(predicted == y, axis=0)
        rank = below + rng.random(y.shape) * equal
        row = {
            "seed": seed,
            "R2": round(r2_affine(truth.X, mean_latents(draws)), 4),
            "f": round(float(np.mean((low <= truth.F) & (high >= truth.F))), 4),
            "f held out": round(float(np.mean(((low <= truth.F) & (high >= truth.F))[held_out])), 4),
            "y held out": round(float(np.mean(np.abs(rank - 0.5) <= LEVEL / 2)), 4),
        }
        rows.append(row)
        print(*(f"{key} {value}" for key, value in row.items()), flush=True)
    coverage = {key: round(float(np.mean([row[key] for row in rows])), 4) for key in ("f", "f held out", "y held out")}
    print("coverage of 90 % intervals:", coverage)
    write("calibration", {
        "machine": machine(), "N": N, "J": J, "M": M, "burnin": N_BURNIN, "draws": N_SAMPLES,
        "coverage": coverage, "tables": rows,
    })  # fmt: skip


if __name__ == "__main__":
    main()
