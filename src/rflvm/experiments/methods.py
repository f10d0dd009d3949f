"""The columns of the table: every method by its name, with one setting for all data sets."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import RFLVM, baselines

LABELS = {
    "pca": "PCA",
    "nmf": "NMF",
    "isomap": "Isomap",
    "vae": "VAE",
    "dla-gplvm": "DLA-GPLVM",
    "gaussian-rflvm": "Gaussian RFLVM",
    "poisson-rflvm": "Poisson RFLVM",
    "negative-binomial-rflvm": "Neg. binom. RFLVM",
    "poisson-rflvm-sampled": "Poisson RFLVM, sampled",
    "poisson-rflvm-exposure": "Poisson RFLVM, exposure",
    "gplvm": "GPLVM",
    "umap": "UMAP",
    "tsne": "t-SNE",
}
SEEDLESS = ("pca", "nmf", "isomap", "dla-gplvm")  # deterministic up to a randomised singular value decomposition
RFLVMS = tuple(name for name in LABELS if "-rflvm" in name)
ENGINES: dict[str, dict[str, Any]] = {
    "map": {"inference": "map", "kernel": "rbf"},
    "gibbs": {"inference": "gibbs", "kernel": "learned"},
}
SHORT = {**ENGINES["gibbs"], "n_chains": 1, "n_burnin": 50, "n_samples": 100}
SETTINGS: dict[str, dict[str, Any]] = {  # where they are not those of the class, or of the MAP engine
    "dla-gplvm": {"max_iter": 3},  # rounds of 15 steps, together about as many as RFLVM makes; it would go on for hours
    "gplvm": {"max_iter": 200},
    "poisson-rflvm-sampled": SHORT,
    "poisson-rflvm-exposure": {**ENGINES["map"], "exposure": "total"},
}
QUICK: dict[str, dict[str, Any]] = {
    "dla-gplvm": {"max_iter": 1},
    "gplvm": {"max_iter": 20},
    **{name: {**ENGINES["map"], "init": "tsne", "max_iter": 10} for name in RFLVMS},
    "poisson-rflvm-sampled": {**SHORT, "n_burnin": 10, "n_samples": 10, "init": "tsne"},
    "poisson-rflvm-exposure": {**ENGINES["map"], "init": "tsne", "max_iter": 10, "exposure": "total"},
}


def make(name: str, n_components: int, seed: int, **settings: Any) -> Any:
    """A method that can be fitted; ``settings`` are other parameters of its class."""
    if name in RFLVMS:
        likelihood = name.partition("-rflvm")[0].replace("-", "_")
        return RFLVM(n_components, likelihood=likelihood, random_state=seed, **(settings or ENGINES["map"]))
    return baselines.make(name, n_components, seed, **settings)


def fitted(name: str, Y: np.ndarray, n_components: int, seed: int, **settings: Any) -> Any:
    """A fitted method. Convergence warnings are not shown: the experiments measure the result, whatever it is.

    A fit that was interrupted and kept its unfinished result does not count: the interrupt is raised.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(name, n_components, seed, **settings).fit(Y)
    if getattr(model, "convergence_", "") == "interrupted":
        raise KeyboardInterrupt
    return model
