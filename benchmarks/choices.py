"""What the choices of the MAP engine do: the room of X in the objective, and the fixed frequencies.

S-curves (N = 500, J = 100, D = 2, M = 100) with Gaussian and Poisson emissions, three seeds, climbs from the true X,
so that nothing depends on the search for a start. The truth is a lengthscale of 1 and an amplitude of 1 (Poisson) or
2 (Gaussian, where beta is measured in units of the noise). R^2 of X after the climb, the lengthscale and the amplitude.
Writes benchmarks/results/choices.json.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import machine, write

from rflvm import likelihoods, linalg, quadrature, starts, validation
from rflvm import map as engine
from rflvm.datasets import make_s_curve
from rflvm.metrics import r2_affine
from rflvm.model import Model

STRETCHES = (0.0, 0.5, 1.0)
SEEDS = range(3)
H = 50


def draws(H: int, D: int, seed: int) -> np.ndarray:
    """Independent frequencies, as the paper has them."""
    return np.random.default_rng(seed).standard_normal((H, D))


def climb(family: str, seed: int, stretch: float) -> dict[str, Any]:
    """Fit one S-curve from the true X."""
    engine.STRETCH = stretch
    jax.clear_caches()
    truth = make_s_curve(emissions=family, seed=seed)
    model = Model(likelihoods.get(family), 2, H)
    with jax.enable_x64(True), linalg.one_blas_thread():
        data = validation.to_device(validation.check_table(truth.data, model.likelihood, None, None, 2), "float32")
        search = engine.begin(seed, starts.scaled(truth.X), data, model, amplitude=True)
        search = engine.climb(search, data, model, 100)
        log_amplitude, log_scale = search.parameters.log_amplitude, search.parameters.log_scale
        assert log_amplitude is not None
        assert log_scale is not None
        return {
            "family": family, "seed": seed, "stretch": stretch,
            "R2": round(r2_affine(truth.X, np.asarray(search.parameters.X, float)), 4),
            "lengthscale": round(float(jnp.exp(-log_scale)), 3),
            "amplitude": round(float(jnp.exp(log_amplitude)), 3),
        }  # fmt: skip


def main() -> None:
    """Each choice in turn."""
    rows = []
    points = quadrature.frequencies
    for name, frequencies in (("quadrature", points), ("draws", draws)):
        quadrature.frequencies = frequencies
        for family in ("gaussian", "poisson"):
            for stretch in STRETCHES if name == "quadrature" else (0.5,):
                for seed in SEEDS:
                    rows.append({"frequencies": name} | climb(family, seed, stretch))
                    print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    errors = {
        name: [round(float(np.sqrt(quadrature.discrepancy(f(H, 2, seed).ravel(), 2)[0])), 4) for seed in SEEDS]
        for name, f in (("quadrature", points), ("draws", draws))
    }
    print("error of the kernel:", errors)
    write("choices", {"machine": machine(), "kernel_error": errors, "climbs": rows})


if __name__ == "__main__":
    main()
