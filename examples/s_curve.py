"""The paper's Poisson S-curve: simulate it, fit it, print R^2, draw true and inferred X."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.metrics import r2_affine
from rflvm.posterior import mean_latents

N_BURNIN, N_SAMPLES = 400, 600
PICTURE = Path("output/s_curve.png")


def main() -> None:
    """Run the demonstration."""
    truth = make_s_curve(500, 100, emissions="poisson", lengthscale=1.0, seed=0)
    print(f"Poisson S-curve: {truth.data.shape[0]} rows, {truth.data.shape[1]} columns of counts, M = 100 features")
    start = time.perf_counter()
    draws = rflvm.sample(
        truth.data,
        "poisson",
        n_latent=2,
        n_features=100,
        n_burnin=N_BURNIN,
        n_samples=N_SAMPLES,
        progress=True,
    )
    seconds = time.perf_counter() - start
    X = mean_latents(draws)
    r2 = r2_affine(truth.X, X)
    print(f"{N_BURNIN + N_SAMPLES} sweeps in {seconds:.0f} s, compilation included")
    print(f"R^2 of X after the best affine map: {r2:.3f}")
    PICTURE.parent.mkdir(exist_ok=True)
    draw(truth.X, X, truth.t, r2)
    print(f"picture: {PICTURE}")


def draw(truth: np.ndarray, X: np.ndarray, colour: np.ndarray, r2: float) -> None:
    """Two panels: the true latent curve and the posterior mean mapped onto it."""
    design = np.column_stack([X, np.ones(len(X))])
    mapped = design @ np.linalg.lstsq(design, truth, rcond=None)[0]
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
    for ax, points, title in zip(axes, (truth, mapped), ("true X", f"inferred X ($R^2$ = {r2:.3f})"), strict=True):
        ax.scatter(*points.T, c=colour, s=10, cmap="viridis")
        ax.set_title(title)
        ax.set_xlabel("$x_1$")
        ax.set_aspect("equal")
    axes[0].set_ylabel("$x_2$")
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
