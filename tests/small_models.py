"""Small fitted models that tests of figures and reports share; none has converged, which does not matter there."""

from __future__ import annotations

import copy
import dataclasses
import functools
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from rflvm import RFLVM, likelihoods
from rflvm.datasets import make_s_curve
from rflvm.fitted.diagnostics import Quantity

N, J = 60, 20
HOSTILE = "</script><script>document.title='broken'</script>"
MAP: dict[str, Any] = {
    "inference": "map", "kernel": "rbf", "init": "pca", "n_features": 20, "max_iter": 15, "random_state": 0,
}  # fmt: skip
TINY: dict[str, Any] = MAP | {"n_features": 6, "max_iter": 3}


def _fit(Y: Any, offset: np.ndarray | None = None, **settings: Any) -> RFLVM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RFLVM(**settings).fit(Y, offset=offset)


@functools.cache
def poisson() -> RFLVM:
    """Counts with a gap, names of rows and columns, one of each hostile."""
    Y = make_s_curve(N, J, emissions="poisson").data
    Y[0, 1] = np.nan
    rows = [HOSTILE, *(f"day {n}" for n in range(1, N))]
    return _fit(pd.DataFrame(Y, rows, [HOSTILE, *(f"gene {j}" for j in range(1, J))]), likelihood="poisson", **MAP)


@functools.cache
def chains() -> RFLVM:
    """Two short chains."""
    Y = np.random.default_rng(0).poisson(3, (12, 5)).astype(float)
    settings = {"init": "pca", "n_features": 6, "n_samples": 6, "n_burnin": 4, "n_chains": 2, "random_state": 0}
    return _fit(Y, likelihood="poisson", **settings)


@functools.cache
def disagreeing(*rows: int) -> RFLVM:
    """The two chains, as if they did not agree on the positions of these rows."""
    model = copy.copy(chains())
    fitted = model.fitted_
    rhat = np.where(np.isin(np.arange(len(fitted.embedding)), rows), 1.5, 1.0)
    positions = Quantity("positions", 1.0, 100.0, rhat, np.full(len(rhat), 100.0))
    model._adopt(dataclasses.replace(fitted, diagnostics=(positions,)))
    return model


@functools.cache
def small(name: str) -> RFLVM:
    """A family with the latent dimensions, offsets or trials that make it special."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(3, (12, 4)).astype(float)
    offset = np.linspace(-0.3, 0.3, 12)
    if name == "gaussian":
        return _fit(rng.normal(size=(12, 4)), n_components=1, **TINY)
    if name == "multinomial":
        return _fit(counts, likelihood="multinomial", n_components=3, **TINY)
    if name == "negative_binomial":
        return _fit(counts, offset, likelihood="negative_binomial", **TINY)
    if name == "bernoulli":
        return _fit((counts > 2).astype(float), likelihood="bernoulli", **TINY)
    if name == "student_t":
        return _fit(rng.standard_t(2, (12, 4)), likelihood="student_t", **TINY)
    if name == "ordinal":
        return _fit(np.clip(counts, 1, 5), offset, likelihood="ordinal", **TINY)
    if name.startswith("zero_inflated"):
        return _fit(np.where(rng.random((12, 4)) < 0.3, 0, counts), offset, likelihood=name, **TINY)
    trials = counts.astype(int) + rng.integers(1, 4, counts.shape)
    return _fit(counts, likelihood=likelihoods.Binomial(trials=trials), **TINY)
