"""What the choices of the MAP engine do: the volume correction of the objective, and the fixed frequencies.

S-curves (D = 2, M = 100), climbs from the true X, so that nothing depends on the search for a start. The truth is a
lengthscale of 1 and an amplitude of 1 (Poisson) or 2 (Gaussian, where beta is measured in units of the noise). R^2 of X
after the climb, the lengthscale and the amplitude: for N = 500, J = 100, Gaussian and Poisson emissions and three seeds
with weights 0, 1/2 and 1 in the volume correction, and with points and draws as frequencies; for other N and J,
Poisson, with weight 1/2 and with the default. And the error of the kernel, root mean square over lags, for several
scales. Writes benchmarks/results/choices.json.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import machine, write

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.datasets import make_s_curve
from rflvm.maximum import starts
from rflvm.maximum.climb import climb
from rflvm.maximum.search import begin
from rflvm.model.joint import Model
from rflvm.numerics import linalg, quadrature
from rflvm.numerics.affine import r2_affine

WEIGHTS = (0.0, 0.5, 1.0)
SHAPES = ((250, 100), (1000, 100), (2000, 100), (500, 50), (2000, 50), (500, 25), (500, 400))
SCALES = (0.5, 1.0, 2.0, 4.0)
SEEDS = range(3)
H = 50


def draws(H: int, D: int, seed: int) -> np.ndarray:
    """Independent frequencies, as the paper has them."""
    return np.random.default_rng(seed).standard_normal((H, D))


def kernel_error(W: np.ndarray, scale: float) -> float:
    """Of mean_h cos(scale w_h'd) against the RBF kernel, d the differences of two standard normal positions."""
    lags = np.random.default_rng(0).normal(scale=2**0.5, size=(10_000, W.shape[1]))
    error = np.cos(scale * lags @ W.T).mean(axis=1) - np.exp(-(scale**2) * np.sum(lags**2, axis=1) / 2)
    return float(np.sqrt(np.mean(error**2)))


def climb_from_truth(family: str, seed: int, N: int, J: int, weight: float | None) -> dict[str, Any]:
    """Fit one S-curve from the true X."""
    truth = make_s_curve(N, J, emissions=family, seed=seed)
    model = Model(likelihoods.get(family), 2, H)
    with jax.enable_x64(True), linalg.one_blas_thread():
        data = checks.to_device(checks.check_table(truth.data, model.likelihood, None, None, 2), "float32")
        search = begin(seed, starts.scaled(truth.X), data, model, learn_amplitude=True)
        if weight is not None:
            spectrum = search.spectrum._replace(volume_weight=jnp.asarray(weight, data.Y.dtype))
            search = dataclasses.replace(search, spectrum=spectrum)
        search = climb(search, data, model, 100)
        log_amplitude, log_scale = search.parameters.log_amplitude, search.parameters.log_scale
        assert log_amplitude is not None
        assert log_scale is not None
        return {
            "family": family, "seed": seed, "N": N, "J": J,
            "volume_weight": round(float(search.spectrum.volume_weight), 3),
            "R2": round(r2_affine(truth.X, np.asarray(search.parameters.X, float)), 4),
            "lengthscale": round(float(jnp.exp(-log_scale)), 3),
            "amplitude": round(float(jnp.exp(log_amplitude)), 3),
            "convergence": search.convergence,
        }  # fmt: skip


def main() -> None:
    """Each choice in turn."""
    points = quadrature.frequencies
    errors = {
        name: [[round(kernel_error(f(H, 2, seed), scale), 4) for scale in SCALES] for seed in SEEDS]
        for name, f in (("quadrature", points), ("draws", draws))
    }
    print("error of the kernel at scales", SCALES, errors)
    rows: list[dict[str, Any]] = []

    def add(*case):
        name = "quadrature" if quadrature.frequencies is points else "draws"
        rows.append({"frequencies": name} | climb_from_truth(*case))
        print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        write("choices", {"machine": machine(), "scales": SCALES, "kernel_error": errors, "climbs": rows})

    for family in ("gaussian", "poisson"):
        for weight in WEIGHTS:
            for seed in SEEDS:
                add(family, seed, 500, 100, weight)
    for N, J in SHAPES:
        for weight in (0.5, None):
            add("poisson", 0, N, J, weight)
    quadrature.frequencies = draws
    for family in ("gaussian", "poisson"):
        for seed in SEEDS:
            add(family, seed, 500, 100, None)


if __name__ == "__main__":
    main()
