"""Small tables, settings of small fits, and searches of the MAP engine on such tables."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.maximum import starts
from rflvm.maximum.search import begin, free_frequencies
from rflvm.model.joint import Model

SMALL: dict[str, Any] = {"n_features": 8, "n_iterations": 5, "init": "pca", "kernel": "rbf"}
LEARNED: dict[str, Any] = SMALL | {"kernel": "learned"}
FAMILIES: dict[str, likelihoods.Likelihood] = {
    "gaussian": likelihoods.Gaussian(),
    "poisson": likelihoods.Poisson(),
    "negative-binomial": likelihoods.NegativeBinomial(),
    "multinomial": likelihoods.Multinomial(),
}


def table(name, N=30, J=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, J)) if name == "gaussian" else rng.poisson(3, size=(N, J)).astype(float)


def search_on(name, kernel, Y, mask=None):
    """Data, model and a search with either kernel, in double precision."""
    family = FAMILIES[name]
    data = checks.to_device(checks.check_table(Y, family, mask, np.linspace(-0.2, 0.2, len(Y)), 2), "float64")
    model = Model(family, 2, 4)
    X = starts.embed("pca", starts.stabilised(data, model), 2, 0)
    search = begin(0, X, data, model, learn_amplitude=True)
    if kernel == "learned":
        search = free_frequencies(jax.random.key(1), search, model)
    return data, model, search
