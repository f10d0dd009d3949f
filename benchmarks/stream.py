"""The streaming engine on simulated counts from a memory map: accuracy, time, memory, growth and families.

python benchmarks/stream.py [growth] [families]: fits of 10^5 and 10^6 rows, each in a process of its own; fits of other
families to 10^5 rows. Times are seconds of the processor, of which one pass over a table is 2 N J M flops at the speed
of a matrix product of the same process. Results in results/stream_*.json.
"""

from __future__ import annotations

import itertools
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp

import rflvm
from rflvm import likelihoods
from rflvm.data.blocks.encoding import Encoder
from rflvm.numerics.affine import r2_affine
from rflvm.numerics.precision import precision
from rflvm.streaming import held_out as density
from rflvm.streaming.functions import Functions, of_fit
from rflvm.streaming.placing import anchors_of

J, M, D = 50, 100, 2
TRIMMED = 0.002  # of the rows, the worst, that R^2 leaves out


class Truth:
    """Smooth functions of two dimensions: random features of an RBF kernel with lengthscale one."""

    def __init__(self, seed: int = 0, H: int = 100):
        rng = np.random.default_rng([seed, 1])
        self.W, self.beta = rng.standard_normal((H, D)), rng.standard_normal((2 * H, J))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        angle = X @ self.W.T
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1) @ self.beta / np.sqrt(len(self.W))


def simulate(path: Path, N: int, seed: int = 0) -> np.ndarray:
    """N x J Poisson counts in a file, from X ~ N(0, I), which is returned."""
    truth, rng = Truth(seed), np.random.default_rng([seed, 2])
    Y = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint16, shape=(N, J))
    X = rng.standard_normal((N, D))
    for start in range(0, N, 50_000):
        Y[start : start + 50_000] = rng.poisson(np.exp(truth(X[start : start + 50_000])))
    Y.flush()
    return X


def held_out(F: Any, seed: int = 0, n: int = 2000) -> float:
    """Mean log density per cell of half of the columns of new rows given the other half, integrated on a grid."""
    truth, rng = Truth(seed), np.random.default_rng([seed, 3])
    Y = rng.poisson(np.exp(truth(rng.standard_normal((n, D))))).astype(float)
    axis = np.linspace(-5, 5, 161)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, D)
    f, log_prior = F(grid), -0.5 * (grid**2).sum(axis=1)
    half = np.arange(J) % 2 == 0
    values = []
    for y in np.split(Y, n // 200):
        given = y[:, half] @ f[:, half].T - np.exp(f[:, half]).sum(axis=1) + log_prior
        judged = y[:, ~half] @ f[:, ~half].T - np.exp(f[:, ~half]).sum(axis=1)
        base = gammaln(y[:, ~half] + 1).sum(axis=1)
        values.append(logsumexp(given + judged, axis=1) - logsumexp(given, axis=1) - base)
    return float(np.mean(values) / (~half).sum())


def functions_of(fit: Any) -> Any:
    """f at positions under a fit."""

    def F(X: np.ndarray) -> np.ndarray:
        angle = X @ np.asarray(fit.W, float).T
        waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(len(fit.W))
        return waves @ fit.beta[:-1] + fit.beta[-1]

    return F


def r2(X: np.ndarray, Z: np.ndarray) -> tuple[float, float]:
    """R^2 of X after the best affine map of Z, of all rows and without the worst ones."""
    design = np.column_stack([Z, np.ones(len(Z))])
    error = ((X - design @ np.linalg.lstsq(design, X, rcond=None)[0]) ** 2).sum(axis=1)
    best = np.argsort(error)[: int(len(X) * (1 - TRIMMED))]
    return r2_affine(X, Z), r2_affine(X[best], Z[best])


def pass_seconds(N: int) -> float:
    """Seconds of the processor of 2 N J M flops in single precision."""
    a, b = jnp.ones((8192, M + 1)), jnp.ones((M + 1, J))
    product = jax.jit(lambda a, b: a @ b)
    product(a, b).block_until_ready()
    started = time.process_time()
    for _ in range(100):
        product(a, b).block_until_ready()
    return (time.process_time() - started) / 100 * N / 8192


def anonymous() -> float:
    """Megabytes of memory of this process that are not pages of files, at most so far, from samples of the system."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1e3


class Peak:
    """The largest anonymous memory of this process, looked at from a thread."""

    def __init__(self) -> None:
        import threading

        self.megabytes, self.running = 0.0, True
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while self.running:
            self.megabytes = max(self.megabytes, anonymous())
            time.sleep(0.02)


class Phases(logging.Handler):
    """When the phases of a run end, in seconds of the processor."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[str, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.times.append((record.getMessage().split(":")[0], time.process_time()))


def fit_counts(path: str, N: int, options: dict[str, Any]) -> dict[str, Any]:
    """One fit of counts in a file."""
    X = np.load(path + ".X.npy")
    phases, peak = Phases(), Peak()
    logger = logging.getLogger("rflvm.streaming")
    logger.setLevel(logging.INFO)
    logger.addHandler(phases)
    started = time.process_time()
    fit = rflvm.stream(path, "poisson", n_features=M, **options)
    seconds = time.process_time() - started
    peak.running = False
    whole, trimmed = r2(X, np.asarray(fit.X, float))
    ends = [(name, at - started) for name, at in phases.times]
    unit = pass_seconds(N)
    took = [(name, at - before) for (_, before), (name, at) in itertools.pairwise(ends)]
    return {
        "rows": N,
        "r2": whole,
        "r2_trimmed": trimmed,
        "held_out": held_out(functions_of(fit.landmarks)),
        "ceiling": held_out(Truth()),
        "epochs": [epoch._asdict() for epoch in fit.epochs],
        "convergence": fit.convergence,
        "mean_square": (np.asarray(fit.X, float) ** 2).mean(axis=0).tolist(),
        "amplitude": fit.landmarks.amplitude,
        "seconds": seconds,
        "phases": dict(ends),
        "pass_seconds": unit,
        "placing_passes": dict(took)["placed"] / unit,
        "epoch_passes": [seconds / unit for name, seconds in took if name.endswith("of all")],
        "anonymous_megabytes": peak.megabytes,
        "resident_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


N_FAMILY, J_FAMILY, M_FAMILY = 50_000, 20, 50


def fit_family(name: str) -> dict[str, Any]:
    """A fit of a family, beside that of its 2000 landmarks alone and the true functions; coverage of intervals."""
    family = likelihoods.get(name)
    rng = np.random.default_rng([0, 4])
    H = 200
    W, beta = rng.standard_normal((H, D)), rng.standard_normal((2 * H + 1, J_FAMILY))
    beta[-1] = 0.0
    own = {
        "gaussian": {"sigma2": 0.25},
        "negative_binomial": {"r": 3.0, "h": 1.0},
        "student_t": {"sigma2": 0.1, "nu": 4},
    }
    theta = {k: np.asarray(v, float) * np.ones(() if k == "h" else J_FAMILY) for k, v in own.get(name, {}).items()}
    fixed = {"z": np.zeros(H, int), "mu": np.zeros((H, D)), "Sigma": np.tile(np.eye(D), (H, 1, 1))}
    truth = Functions(W=W, alpha=np.ones(()), amplitude=np.ones(()), beta=beta, theta=theta, **fixed)

    def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        X = np.random.default_rng([seed, 5]).standard_normal((n, D))
        with precision("float32"):
            F = jnp.asarray(truth.features(X) @ beta, "float32")
            as_single = {k: jnp.asarray(v, "float32") for k, v in theta.items()}
            return X, np.asarray(family.sample(jax.random.key(seed), F, as_single, None))

    X, Y = draw(N_FAMILY, 0)
    started = time.process_time()
    settings: dict[str, Any] = {"likelihood": name, "n_features": M_FAMILY, "random_state": 0}
    model = rflvm.RFLVM(inference="stream", kernel="rbf", **settings).fit(Y)
    seconds = time.process_time() - started
    fitted = model.fitted_
    assert fitted.streamed is not None
    alone = rflvm.maximise(fitted.about.values, name, n_features=M_FAMILY)
    units = fitted.units
    if units is not None:  # the true functions on the standard scale
        beta = beta / units.scale
        beta[-1] -= units.location / units.scale
        theta = theta | {"sigma2": theta["sigma2"] / units.scale**2}
        truth = truth._replace(beta=beta, theta=theta)
    _, fresh = draw(2048, 1)
    encoder = Encoder(fitted.likelihood, units, None, None, "float32")
    halves = density.halve(encoder(0, fresh, 2048), 0)

    def held_out_under(functions: Functions) -> float:
        with precision("float32"):
            anchors = anchors_of(fitted.streamed.anchors, functions, "float32")  # pyright: ignore[reportOptionalMemberAccess]
            return density.density(halves, anchors, functions, fitted.model)

    hidden = np.random.default_rng(2).random((400, J_FAMILY)) < 0.2
    given = np.where(hidden, np.nan, fresh[:400])
    _, lower, upper = model.predict_intervals(given)
    inside = (fresh[:400] >= lower) & (fresh[:400] <= upper)
    whole, trimmed = r2(X, np.asarray(model.embedding_, float))
    return {
        "family": name,
        "rows": N_FAMILY,
        "r2": whole,
        "r2_trimmed": trimmed,
        "held_out_landmarks_alone": held_out_under(of_fit(alone)),
        "held_out": held_out_under(fitted.streamed.functions),
        "held_out_truth": held_out_under(truth),
        "coverage_of_hidden_cells": float(inside[hidden].mean()),
        "theta": {k: np.asarray(v).mean() for k, v in fitted.streamed.functions.theta.items()},
        "seconds": seconds,
        "epochs": [epoch._asdict() for epoch in fitted.streamed.epochs],
    }


def families(names: tuple[str, ...] = ("gaussian", "negative_binomial", "bernoulli", "student_t")) -> None:
    """Other families."""
    result: dict[str, Any] = {"machine": common.machine(), "fits": []}
    for name in names:
        found = in_a_process("fit_family", name)
        print(json.dumps(found))
        result["fits"].append(found)
        common.write("stream_families", result)


def in_a_process(name: str, *arguments: Any) -> dict[str, Any]:
    """A function of this module in a process of its own."""
    command = [sys.executable, __file__, "--child", name, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def growth(sizes: tuple[int, ...] = (1_000_000, 100_000)) -> None:
    """Accuracy, time and memory as the table grows."""
    result: dict[str, Any] = {"machine": common.machine(), "fits": []}
    with tempfile.TemporaryDirectory() as folder:
        for N in sizes:
            path = str(Path(folder) / f"{N}.npy")
            np.save(path + ".X.npy", simulate(Path(path), N))
            found = in_a_process("fit_counts", path, N, {})
            print(json.dumps(found))
            result["fits"].append(found)
            common.write("stream_growth", result)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(globals()[sys.argv[2]](*json.loads(sys.argv[3]))))
    else:
        for name in sys.argv[1:] or ["growth"]:
            globals()[name]()
