"""Time of one Gibbs sweep, in U (one 2000 x 2000 float64 matrix product in the same process).

    RFLVM_DATA=/path/to/data python benchmarks/sweep.py

X is sampled and every block moves by the default, except in the rows that say "polya-gamma", where
beta moves as in the paper. Prints every block's share, the speed of the matrix
products as a share of the machine's peak (the speed of the product that defines U), and how the
time grows with N and J. Writes benchmarks/results/sweep.json. The Congress rows need RFLVM_DATA.
"""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import congress, machine, median_seconds, unit_seconds, write

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.datasets import make_s_curve
from rflvm.maximum import starts
from rflvm.maximum.states import from_prior
from rflvm.model.features import features
from rflvm.model.joint import Model
from rflvm.numerics import linalg
from rflvm.numerics.linalg import one_blas_thread
from rflvm.sampling.blocks import tuning as tunings
from rflvm.sampling.sweep import Moves, compiled_adapt, compiled_sweep

# U per sweep: what the published code needs (DESIGN, measured once) and what this one should.
PUBLISHED = {
    "poisson": 11, "negative_binomial": 10, "bernoulli": 5.3, "gaussian": 5.6,
    "congress poisson": 52, "congress negative_binomial": 61,
}  # fmt: skip
GOAL = {
    "poisson": 0.22, "negative_binomial": 0.4, "bernoulli": 0.2, "gaussian": 0.12,
    "congress poisson": 1.0, "congress negative_binomial": 3.0,
}  # fmt: skip
N_BURNIN = 30
REPEATS = 20


def prepare(Y: np.ndarray, family: likelihoods.Likelihood, H: int = 50):
    """Data, model, state and tuning after a short burn-in."""
    model = Model(family, D=2, H=H)
    data = checks.to_device(checks.check_table(Y, family, None, None, 2), "float64")
    state = from_prior(jax.random.key(0), starts.embed("pca", starts.stabilised(data, model), 2, 0), data, model)
    tuning = tunings.initial(state, data, model)
    for t in range(N_BURNIN):
        key = jax.random.fold_in(jax.random.key(1), t)
        state, infos = compiled_sweep(key, state, tuning, data, model, Moves())
        tuning = compiled_adapt(tuning, jnp.asarray(float(t)), state, infos, data, model)
    jax.block_until_ready((state, tuning))
    return data, model, state, tuning


def measure(
    name: str, Y: np.ndarray, family: likelihoods.Likelihood, blocks: bool = True, moves: Moves = Moves()
) -> dict[str, Any]:
    """Seconds and U of a sweep and of its blocks."""
    data, model, state, tuning = prepare(Y, family)
    key = jax.random.key(2)
    unit = unit_seconds()
    with one_blas_thread():  # as in a run
        seconds = median_seconds(lambda: compiled_sweep(key, state, tuning, data, model, moves), REPEATS)
    row: dict[str, Any] = {"case": name, "N": Y.shape[0], "J": Y.shape[1], "M": 2 * model.H}
    row |= {"U_seconds": round(unit, 4), "ms": round(1e3 * seconds, 2), "U": round(seconds / unit, 4)}
    if name in GOAL:
        row |= {"goal_U": GOAL[name], "published_U": PUBLISHED[name], "ratio": round(PUBLISHED[name] * unit / seconds)}
    print(f"{name:28s} {Y.shape[0]:5d} x {Y.shape[1]:<5d} {1e3 * seconds:8.1f} ms  {seconds / unit:7.3f} U", end="")
    print(f"   goal {GOAL[name]} U, published {PUBLISHED[name]} U" if name in GOAL else "")
    if blocks:
        row["blocks_U"] = {}
        for block, step in moves.blocks().items():
            run = jax.jit(lambda k, s, d, t, step=step: step(k, s, d, model, t))
            with one_blas_thread():
                part = median_seconds(lambda run=run: run(key, state, data, tuning), REPEATS)
            row["blocks_U"][block] = round(part / unit, 4)
            print(f"    {block:12s} {1e3 * part:8.2f} ms  {part / unit:7.4f} U")
    return row


def products(Y: np.ndarray) -> dict[str, float]:
    """Speed of the matrix products of a sweep as a share of the peak, 16 GFLOP per U."""
    _, _, state, _ = prepare(Y, likelihoods.Poisson())
    Phi = features(state.X, state.W)
    N, M, J = *Phi.shape, Y.shape[1]
    peak = 16e9 / unit_seconds()
    weights = jnp.asarray(np.random.default_rng(0).uniform(size=(N, J)))
    shares = {
        "Phi @ beta": 2 * N * M * J / median_seconds(lambda: jax.jit(jnp.matmul)(Phi, state.beta), 50) / peak,
        "Gram matrices": N
        * M
        * (M + 1)
        * J
        / median_seconds(lambda: jax.jit(linalg.weighted_grams)(Phi, weights), 20)
        / peak,
    }
    for name, share in shares.items():
        print(f"{name:14s} {N} x {M} x {J}: {100 * share:.0f} % of peak")
    return {name: round(share, 3) for name, share in shares.items()}


def main() -> None:
    """Measure everything."""
    with jax.enable_x64(True):
        families = {
            "gaussian": likelihoods.Gaussian(),
            "poisson": likelihoods.Poisson(),
            "bernoulli": likelihoods.Bernoulli(),
            "negative_binomial": likelihoods.NegativeBinomial(),
        }
        load = round(os.getloadavg()[0], 2)
        rows = [measure(name, make_s_curve(emissions=name).data, family) for name, family in families.items()]
        paper = Moves(coefficients="polya-gamma")
        for name in ("bernoulli", "negative_binomial"):
            Y = make_s_curve(emissions=name).data
            rows.append(measure(f"{name}, polya-gamma", Y, families[name], moves=paper))
        found = congress()
        Y = None if found is None else found[0]
        if Y is None:
            print("Congress: skipped, RFLVM_DATA does not name a folder with congress109/congress109.csv")
        else:
            for name in ("poisson", "negative_binomial"):
                rows.append(measure(f"congress {name}", Y, families[name]))
        growth = {}
        for label, shape in (("base", (500, 100)), ("4x rows", (2000, 100)), ("4x columns", (500, 400))):
            Y_grown = make_s_curve(*shape, emissions="poisson").data
            growth[label] = measure(f"poisson, {label}", Y_grown, families["poisson"], blocks=False)["U"]
        for label in list(growth):
            print(f"{label}: {growth[label] / growth['base']:.2f} times the base")
        shares = {"S-curve": products(make_s_curve().data)}
        if Y is not None:
            shares["Congress"] = products(Y)
    write("sweep", {
        "machine": machine(), "load_average_at_start": load, "sweeps": rows, "growth_U": growth,
        "share_of_peak_of_matrix_products": shares,
    })  # fmt: skip


if __name__ == "__main__":
    main()
