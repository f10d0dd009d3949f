"""The kernel that was learned, k(lag) = mean_h cos(w_h'lag), and the distribution of its frequencies w_h."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from ..data.checks import check_integer
from ..estimator import RFLVM
from ..fitted.fit import Fitted
from .axes import axes, fit_of
from .axes import dimension as name_of
from .colours import COLOURS

N_DIRECTIONS, N_LAGS, MOST_DRAWS = 64, 101, 200


def kernel(model: RFLVM, *, max_lag: float = 3.0, ax: Any = None) -> Any:
    """The kernel against the distance between two positions, averaged over directions, with its 90 % band over draws.

    Positions have unit prior variance. With ``inference="map"`` there is one W and no band.

    Parameters
    ----------
    model : RFLVM
        Fitted.
    max_lag : float
        The largest distance.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    W = _evenly_spaced(fit_of(model), "W")
    directions = np.random.default_rng(0).standard_normal((N_DIRECTIONS, W.shape[2]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lags = np.linspace(0, max_lag, N_LAGS)
    along = np.einsum("shd,ed->seh", W, directions).reshape(len(W), -1)
    values = np.stack([np.cos(lag * along).mean(axis=1) for lag in lags], axis=1)
    ax = axes(ax)
    _curve_with_band(ax, lags, values)
    ax.axhline(0, color="0.55", lw=0.8)
    ax.set_xlim(0, max_lag)
    ax.set_xlabel("distance in latent space")
    ax.set_ylabel("kernel")
    return ax


def spectrum(model: RFLVM, *, dimension: int = 0, ax: Any = None) -> Any:
    """The spectral density of the kernel along one latent dimension.

    Bars are the frequencies of all draws, each counted as w and as -w because the kernel is even. For a learned kernel
    the line is the Gaussian mixture that W is drawn from, with its 90 % band over draws.

    Parameters
    ----------
    model : RFLVM
        Fitted.
    dimension : int
        Which latent dimension, from 0.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    fitted = fit_of(model)
    W = _evenly_spaced(fitted, "W")
    d = check_integer("dimension", dimension, 0)
    if d >= W.shape[2]:
        raise ValueError(f"dimension must be from 0 to {W.shape[2] - 1}, got {dimension}")
    ax = axes(ax)
    both = np.concatenate([W[..., d].ravel(), -W[..., d].ravel()])
    limit = 1.15 * np.quantile(np.abs(both), 0.995) or 1.0
    counts, edges = np.histogram(both, 41 if fitted.about.kernel == "learned" else 15, range=(-limit, limit))
    ax.stairs(counts / len(both) / np.diff(edges), edges, fill=True, color=COLOURS[5], alpha=0.5, label="frequencies")
    if fitted.about.kernel == "learned":
        grid = np.linspace(-limit, limit, 241)
        _curve_with_band(ax, grid, _mixture(fitted, d, grid), "mixture")
    ax.set_xlim(-limit, limit)
    ax.set_ylim(0, None)
    ax.set_xlabel(f"frequency along {name_of(d)}")
    ax.set_ylabel("spectral density")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2)
    return ax


def _evenly_spaced(fitted: Fitted, name: str) -> np.ndarray:
    """Aligned draws of an unknown (S, ...), at most MOST_DRAWS of them, evenly spaced."""
    draws = fitted.pictured[name]
    draws = draws.reshape(-1, *draws.shape[2:])
    return draws[:: -(-len(draws) // MOST_DRAWS)]


def _mixture(fitted: Fitted, d: int, grid: np.ndarray) -> np.ndarray:
    """Density of the mixture along a dimension for each draw, symmetric in the frequency."""
    densities = []
    for z, mu, Sigma in zip(*(_evenly_spaced(fitted, name) for name in ("z", "mu", "Sigma")), strict=True):
        slots, counts = np.unique(z, return_counts=True)
        centre, scale = mu[slots, d], np.sqrt(Sigma[slots, d, d])
        parts = norm.pdf(grid[:, None], centre, scale) + norm.pdf(grid[:, None], -centre, scale)
        densities.append(parts @ counts / counts.sum() / 2)
    return np.array(densities)


def _curve_with_band(ax: Any, x: np.ndarray, values: np.ndarray, label: str | None = None) -> None:
    lower, upper = np.quantile(values, [0.05, 0.95], axis=0)
    ax.fill_between(x, lower, upper, color=COLOURS[0], alpha=0.25, lw=0)
    ax.plot(x, values.mean(axis=0), color=COLOURS[0], lw=1.8, label=label)
