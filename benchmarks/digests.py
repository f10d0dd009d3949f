"""SHA-256 digests of small fits of every family by both engines, and of what follows from them.

A change that must not change what is computed prints the same digests before and after it: `python
benchmarks/digests.py write` records them in `results/digests.json`, `python benchmarks/digests.py` compares, all cases
(a quarter of an hour, most of it compilation) or those that are named. Last digits depend on the processor and on the
versions of jax and numpy, so both runs have to be on one machine.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
from common import RESULTS, machine, write
from jax.scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning

import rflvm
from rflvm import RFLVM, likelihoods

N, J, M = 40, 8, 10
HEAVY_TAILED = likelihoods.Custom(
    lambda y, f: student.logpdf(y - f, 4.0),
    mean=lambda f: f,
    variance=lambda f: 2.0 + 0 * f,
    sample=lambda key, f: f + jax.random.t(key, 4.0, f.shape, f.dtype),
)


def tables() -> dict[str, tuple[np.ndarray, Any, np.ndarray | None]]:
    """Table, likelihood and offset of each case."""
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, N)
    F = np.stack([np.sin(a * x + b) for a, b in zip(rng.uniform(0.5, 2, J), rng.uniform(0, 6, J), strict=True)], axis=1)
    gaussian = F + 0.3 * rng.standard_normal(F.shape)
    poisson = rng.poisson(np.exp(1 + F)).astype(float)
    trials = rng.integers(1, 9, F.shape)
    success = rng.binomial(trials, 1 / (1 + np.exp(-F))).astype(float)
    hole = rng.random(F.shape) < 0.1
    gaps = lambda Y: np.where(hole, np.nan, Y)  # noqa: E731
    offset = np.linspace(-0.3, 0.3, N)
    binomial = likelihoods.Binomial(trials=trials)
    return {
        "gaussian": (gaussian, "gaussian", None),
        "gaussian gaps": (gaps(gaussian), "gaussian", offset),
        "gaussian sampled": (gaps(gaussian), likelihoods.Gaussian(marginal=False), None),
        "poisson": (poisson, "poisson", None),
        "poisson gaps": (gaps(poisson), "poisson", offset),
        "bernoulli": (gaps((F > 0).astype(float)), "bernoulli", None),
        "binomial": (gaps(success), binomial, None),
        "negative binomial": (gaps(poisson), "negative_binomial", offset),
        "multinomial": (gaps(poisson), "multinomial", None),
        "custom": (gaps(gaussian), HEAVY_TAILED, None),
    }


def digest(*parts: Any) -> str:
    """Of all numbers in some trees of arrays."""
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(parts):
        total.update(np.ascontiguousarray(np.asarray(leaf)).tobytes())
    return total.hexdigest()[:16]


def draws_of(draws: Any) -> tuple[Any, ...]:
    return dict(draws.arrays), draws.states, draws.tuning


def chains(Y: np.ndarray, family: Any, offset: np.ndarray | None) -> dict[str, str]:
    """Both ways to start, and a run that goes on."""
    run: dict[str, Any] = {"n_features": M, "n_samples": 6, "n_burnin": 4, "n_chains": 2, "offset": offset}
    made = {"sampler, from pca": digest(*draws_of(rflvm.sample(Y, family, init="pca", **run)))}
    at_map = rflvm.sample(Y, family, init="map", **run)
    made["sampler, from map"] = digest(*draws_of(at_map))
    made["sampler, continued"] = digest(*draws_of(rflvm.continue_sampling(Y, at_map, 3, offset=offset)))
    if getattr(family, "name", family) in ("bernoulli", "binomial", "negative_binomial", "multinomial"):
        other = rflvm.sample(Y, family, init="pca", coefficients="polya-gamma", frequencies="prior", **run)
        made["sampler, Polya-gamma"] = digest(*draws_of(other))
    return made


def maxima(Y: np.ndarray, family: Any, offset: np.ndarray | None) -> dict[str, str]:
    """Both kernels."""
    made = {}
    for kernel in ("rbf", "learned"):
        fit = rflvm.maximise(Y, family, kernel=kernel, n_features=M, n_iterations=8, offset=offset)
        parts = (fit.X, fit.X_covariance, fit.W, fit.beta, fit.beta_factor, fit.theta, fit.trace)
        made[f"maximum, {kernel}"] = digest(*parts)
    return made


def estimator(Y: np.ndarray, family: Any, offset: np.ndarray | None) -> dict[str, str]:
    """What follows from a fit, by both engines, before and after it was saved."""
    made = {}
    trials = {"trials": family.trials} if isinstance(family, likelihoods.Binomial) else {}
    for inference in ("map", "gibbs"):
        settings: dict[str, Any] = {"n_features": M, "n_samples": 6, "n_burnin": 4, "max_iter": 8, "random_state": 1}
        model = RFLVM(likelihood=family, inference=inference, **settings).fit(Y, offset=offset)
        if not isinstance(family, likelihoods.Custom):
            with tempfile.TemporaryDirectory() as folder:
                model.save(Path(folder) / "model.npz")
                model = rflvm.load(Path(folder) / "model.npz")
        rows: dict[str, Any] = {"offset": offset} | trials
        made[f"{inference}: draws"] = digest(*draws_of(model.draws_), model.embedding_, model.embedding_std_)
        made[f"{inference}: transform"] = digest(model.transform(Y, return_std=True, **rows))
        made[f"{inference}: impute"] = digest(model.impute(Y, **rows))
        made[f"{inference}: intervals"] = digest(model.predict_intervals(Y, **rows))
        made[f"{inference}: score"] = digest(model.score_samples(Y, **rows))
        made[f"{inference}: inverse_transform"] = digest(model.inverse_transform(model.embedding_, **rows))
        made[f"{inference}: sample"] = digest(model.sample(N, **rows))
    return made


def main() -> None:
    """Record, or compare and say what differs."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    recording = sys.argv[1:] == ["write"]
    chosen = list(tables()) if recording else sys.argv[1:] or list(tables())
    found = {
        name: chains(*case) | maxima(*case) | estimator(*case) for name, case in tables().items() if name in chosen
    }
    if recording:
        write("digests", {"machine": machine(), "digests": found})
        return
    expected = json.loads((RESULTS / "digests.json").read_text())["digests"]
    expected = {name: made for name, made in expected.items() if name in chosen}
    differ = [
        f"{name}: {what}" for name, made in expected.items() for what in made if made[what] != found[name].get(what)
    ]
    print(f"{sum(map(len, expected.values())) - len(differ)} digests equal, {len(differ)} differ", *differ, sep="\n")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
