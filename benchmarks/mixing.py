"""Effective draws per second: the default moves against the paper's, in one run.

Frequencies: the implied kernel at a few lags and the log joint, four chains each on the Poisson
S-curve (500 x 100, M = 100), from different starts of W and from the true X, so that no chain sits
in a poor mode of X, which is another matter. The kernel at a lag is averaged over directions, so
that it does not depend on the rotation of X. The effective sample size is that of all chains
together. It cannot fall much below the number of chains, so figures near 4 mean none; and chains that
stand still may agree by chance, so the distance between the two moves' means is given too.

Coefficients: HMC against Polya-gamma augmentation with X, W and r held, for the predictor f and its
squared deviation in 200 cells (a move that merely changes signs is good for the first and bad for
the second). The figure is the smaller of the two, median and 10th percentile over the cells.

    RFLVM_DATA=/path/to/data python benchmarks/mixing.py

Writes benchmarks/results/mixing.json. The Congress row needs RFLVM_DATA.
"""

from __future__ import annotations

import os
import time
from typing import Any, Literal

import jax
import numpy as np
from common import congress, machine, median_seconds, unit_seconds, write
from sweep import prepare

import rflvm
from rflvm import likelihoods
from rflvm.datasets import make_s_curve
from rflvm.model.features import features
from rflvm.numerics.convergence import ess, rhat
from rflvm.numerics.linalg import one_blas_thread
from rflvm.sampling.blocks import beta

LAGS = (0.5, 1.0, 2.0)
N_CHAINS, N_BURNIN, N_SAMPLES = 4, 1000, 3000
MOVES: tuple[Literal["hmc", "prior"], ...] = ("hmc", "prior")
N_TUNING, N_CELLS, N_UPDATES = 100, 200, 600


def radial_kernel(W: np.ndarray, lag: float) -> np.ndarray:
    """k(lag) averaged over 16 directions, for draws of W (chain, draw, H, 2)."""
    angles = np.linspace(0, np.pi, 16, endpoint=False)
    directions = lag * np.stack([np.cos(angles), np.sin(angles)])
    return np.cos(W @ directions).mean(axis=(-2, -1))


def measure_frequencies(move: Literal["hmc", "prior"]) -> dict[str, Any]:
    """Effective draws per second of sampling with one move of W."""
    times = []
    truth = make_s_curve(emissions="poisson")
    draws = rflvm.sample(
        truth.data, "poisson", n_chains=N_CHAINS, n_burnin=N_BURNIN, n_samples=N_SAMPLES, frequencies=move,
        init=truth.X, progress=lambda p: times.append(time.perf_counter()),
    )  # fmt: skip
    seconds = times[-1] - times[N_BURNIN + 1]  # the first sweep after burn-in compiles
    quantities = {f"kernel at lag {lag}": radial_kernel(draws["W"], lag) for lag in LAGS}
    quantities["log joint"] = draws["log_joint"]
    row: dict[str, Any] = {
        "move": move,
        "seconds": round(seconds, 1),
        "acceptance": round(float(np.mean([info["W"].acceptance for info in draws.info])), 4),
    }
    print(f"W by {move}: {row['seconds']} s, acceptance {row['acceptance']}")
    for name, values in quantities.items():
        row[name] = {
            "ess": round(ess(values), 1),
            "ess_per_second": round(ess(values) / seconds, 4),
            "rhat": round(rhat(values), 3),
            "sd": round(float(values.std()), 5),
            "chain_means": [round(float(m), 4) for m in values.mean(axis=1)],
        }
        print(f"    {name:18s}", *(f"{key} {value}" for key, value in row[name].items()))
    return row


def measure_coefficients(name: str, Y: np.ndarray, family: likelihoods.Likelihood) -> dict[str, Any]:
    """Effective draws of f per update and per second, for both moves of beta."""
    data, model, start, tuning = prepare(Y, family)
    Phi = np.asarray(features(start.X, start.W))
    rng = np.random.default_rng(0)
    n, j = rng.integers(0, Y.shape[0], N_CELLS), rng.integers(0, Y.shape[1], N_CELLS)
    row: dict[str, Any] = {"case": name}
    for move, step in (("hmc", beta.step), ("polya-gamma", beta.step_polya_gamma)):
        run = jax.jit(lambda key, state, tuning, step=step: step(key, state, data, model, tuning))
        state, f = start, np.empty((N_UPDATES, N_CELLS))
        for t in range(-N_TUNING, N_UPDATES):
            state, info = run(jax.random.fold_in(jax.random.key(3), t + N_TUNING), state, tuning)
            if t < 0:
                tuning = beta.adapt(tuning, info, (1 + t + N_TUNING) ** -0.6)
            else:
                f[t] = np.sum(Phi[n] * np.asarray(state.beta)[:, j].T, axis=1)
        seconds = median_seconds(lambda: run(jax.random.key(4), state, tuning), 20)  # noqa: B023
        away = f - f.mean(axis=0)
        effective = np.array([min(ess(a[None]), ess(a[None] ** 2)) for a in away.T]) / N_UPDATES
        row[move] = {"ms": round(1e3 * seconds, 2)}
        for label, share in (("median", np.median(effective)), ("10th percentile", np.quantile(effective, 0.1))):
            row[move][f"{label} ess per update"] = round(float(share), 3)
            row[move][f"{label} ess per second"] = round(float(share) / seconds, 1)
        print(f"beta by {move}, {name}:", *(f"{key} {value}" for key, value in row[move].items()))
    row["ratio"] = round(row["hmc"]["median ess per second"] / row["polya-gamma"]["median ess per second"], 1)
    return row


def main() -> None:
    """Compare the moves."""
    load = round(os.getloadavg()[0], 2)
    unit = unit_seconds()
    rows = [measure_frequencies(move) for move in MOVES]
    names = [f"kernel at lag {lag}" for lag in LAGS] + ["log joint"]
    ratios = {name: round(rows[0][name]["ess_per_second"] / rows[1][name]["ess_per_second"], 1) for name in names}
    paper, default = ([np.mean(row[name]["chain_means"]) for name in names] for row in (rows[1], rows[0]))
    sd = [rows[0][name]["sd"] for name in names]
    away = {name: round(float((p - d) / s), 1) for name, p, d, s in zip(names, paper, default, sd, strict=True)}
    for name, ratio in ratios.items():
        print(f"{name}: {ratio} times more effective draws per second; the paper's move is {away[name]} sd away")
    bernoulli, counts = likelihoods.Bernoulli(), likelihoods.NegativeBinomial()
    cases: list[tuple[str, np.ndarray, likelihoods.Likelihood]] = [
        ("bernoulli", make_s_curve(emissions="bernoulli").data, bernoulli),
        ("negative_binomial", make_s_curve(emissions="negative_binomial").data, counts),
    ]
    found = congress()
    if found is not None:
        cases.append(("congress negative_binomial", found[0], counts))
    with jax.enable_x64(True), one_blas_thread():
        coefficients = [measure_coefficients(*case) for case in cases]
    write("mixing", {
        "machine": machine(), "load_average_at_start": load, "U_seconds": round(unit, 4),
        "frequencies": {
            "chains": N_CHAINS, "burnin": N_BURNIN, "draws": N_SAMPLES, "moves": rows, "ratio": ratios,
            "paper_minus_default_in_posterior_sd": away,
        },
        "coefficients": coefficients,
    })  # fmt: skip


if __name__ == "__main__":
    main()
