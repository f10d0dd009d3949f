"""The paper's Poisson S-curve: simulate it, fit it, print R^2, draw true and inferred X."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rflvm import RFLVM
from rflvm.datasets import make_s_curve
from rflvm.metrics import r2_affine

N_BURNIN, N_SAMPLES = 400, 600
PICTURE = Path("output/s_curve.png")


def main() -> None:
    """Run the demonstration."""
    truth = make_s_curve(500, 100, emissions="poisson", lengthscale=1.0, seed=0)
    print(f"Poisson S-curve: {truth.data.shape[0]} rows, {truth.data.shape[1]} columns of counts, M = 100 features")
    start = time.perf_counter()
    model = RFLVM(
        likelihood="poisson", n_burnin=N_BURNIN, n_samples=N_SAMPLES, n_chains=1, random_state=0, progress=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page below says it too
        X = model.fit_transform(truth.data)
    seconds = time.perf_counter() - start
    r2 = r2_affine(truth.X, X)
    print(f"{N_BURNIN + N_SAMPLES} sweeps in {seconds:.0f} s, compilation included")
    print(f"R^2 of X after the best affine map: {r2:.3f}\n")
    model.diagnose()
    PICTURE.parent.mkdir(exist_ok=True)
    draw(truth.X, X, truth.t, r2)
    print(f"\npicture: {PICTURE}")


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
