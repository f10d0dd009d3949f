"""The paper's simulation (section 3.1): an S-shaped latent curve seen through Gaussian-process maps."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_s_curve as sklearn_s_curve
from sklearn.utils import Bunch

EMISSIONS = ("gaussian", "poisson", "bernoulli", "binomial", "negative_binomial", "multinomial")


def make_s_curve(
    n_samples: int = 500,
    n_features: int = 100,
    *,
    emissions: str = "poisson",
    lengthscale: float = 1.0,
    noise: float = 0.5,
    trials: int = 10,
    dispersion: float = 2.0,
    total: int = 100,
    seed: int = 0,
) -> Bunch:
    """Simulate Y from an S-curve X (two dimensions, unit variance each) and F ~ GP(0, RBF).

    Parameters
    ----------
    n_samples, n_features : int
        N and J (for multinomial emissions J categories and J - 1 functions, shifted so that where
        all of them are zero the categories are equally likely).
    emissions : str
        The family of the observations.
    lengthscale : float
        Of the RBF kernel, on the scale of X.
    noise, trials, dispersion, total
        Standard deviation (gaussian), trials (binomial), r (negative_binomial), row total (multinomial).
    seed : int
        Of NumPy's generator.

    Returns
    -------
    Bunch
        ``data`` Y (N, J), ``X`` (N, 2), ``F``, ``t`` the position along the curve.

    Examples
    --------
    >>> from rflvm.datasets import make_s_curve
    >>> truth = make_s_curve(60, 20, emissions="poisson")
    >>> truth.data.shape, truth.X.shape, truth.F.shape
    ((60, 20), (60, 2), (60, 20))
    """
    if emissions not in EMISSIONS:
        raise ValueError(f"emissions must be one of {', '.join(EMISSIONS)}, got {emissions!r}")
    rng = np.random.default_rng(seed)
    points, t = sklearn_s_curve(n_samples, random_state=seed)
    X = points[:, [0, 2]]
    X = (X - X.mean(0)) / X.std(0)
    squared = ((X[:, None] - X[None]) ** 2).sum(-1)
    K = np.exp(-squared / (2 * lengthscale**2)) + 1e-8 * np.eye(n_samples)
    n_functions = n_features - (emissions == "multinomial")
    F = np.linalg.cholesky(K) @ rng.standard_normal((n_samples, n_functions))
    if emissions == "multinomial":
        F = F - np.log(np.arange(n_functions, 0, -1))
    probability = 1 / (1 + np.exp(-F))
    if emissions == "gaussian":
        Y = F + noise * rng.standard_normal(F.shape)
    elif emissions == "poisson":
        Y = rng.poisson(np.exp(F))
    elif emissions == "bernoulli":
        Y = rng.binomial(1, probability)
    elif emissions == "binomial":
        Y = rng.binomial(trials, probability)
    elif emissions == "negative_binomial":
        Y = rng.negative_binomial(dispersion, 1 - probability)
    else:
        left, columns = np.full(n_samples, total), []
        for p in probability.T:
            columns.append(rng.binomial(left, p))
            left = left - columns[-1]
        Y = np.column_stack([*columns, left])
    return Bunch(data=Y.astype(float), X=X, F=F, t=t)
