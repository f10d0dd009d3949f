"""Chains side by side: trace and rank plots of the log joint density."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..estimator import RFLVM
from .axes import axes, fit_of
from .colours import COLOURS, MISSING


def trace(model: RFLVM, *, ax: Any = None) -> Any:
    """The log joint density of each chain after burn-in.

    Chains should lie on one level and have a short autocorrelation; different levels are different modes, that is,
    arrangements of the rows.

    Parameters
    ----------
    model : RFLVM
        Fitted with ``inference="gibbs"``.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    log_joint = _log_joint(model, "a trace")
    ax = axes(ax)
    run = fit_of(model).draws.run
    sweeps = (1 + np.arange(log_joint.shape[1])) * (1 if run is None else run.thin)
    for chain, values in enumerate(log_joint):
        ax.plot(sweeps, values, color=COLOURS[chain % len(COLOURS)], lw=0.9, alpha=0.85, label=f"chain {chain + 1}")
    ax.set_xlabel("sweep after burn-in")
    ax.set_ylabel("log joint density")
    ax.ticklabel_format(axis="y", useOffset=False)
    _legend(ax, len(log_joint))
    return ax


def ranks(model: RFLVM, *, n_bins: int = 20, ax: Any = None) -> Any:
    """Rank plot: how often each chain has each rank of the log joint density among the draws of all chains.

    The histograms of chains that sample the same distribution are flat, up to noise (Vehtari et al. 2021).

    Parameters
    ----------
    model : RFLVM
        Fitted with ``inference="gibbs"`` and two chains or more.
    n_bins : int
        Bins of ranks.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    log_joint = _log_joint(model, "a rank plot")
    n_chains, n_draws = log_joint.shape
    if n_chains < 2:
        raise ValueError("a rank plot compares chains, and the model has 1: fit with n_chains=2 or more")
    ax = axes(ax)
    order = rankdata(log_joint).reshape(log_joint.shape)
    edges = np.linspace(0.5, log_joint.size + 0.5, n_bins + 1)
    expected = n_draws / n_bins
    ax.axhline(expected, color=MISSING, lw=1, ls="--")
    for chain, ranked in enumerate(order):
        counts = np.histogram(ranked, edges)[0]
        ax.stairs(counts, edges, color=COLOURS[chain % len(COLOURS)], lw=1.5, label=f"chain {chain + 1}")
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, None)
    ax.set_xlabel("rank of the log joint density")
    ax.set_ylabel("draws")
    _legend(ax, n_chains)
    return ax


def _log_joint(model: RFLVM, what: str) -> np.ndarray:
    draws = fit_of(model).draws
    if draws.run is None:
        raise ValueError(f'{what} needs chains: this model was fitted with inference="map", fit it with "gibbs"')
    return draws["log_joint"]


def _legend(ax: Any, n_chains: int) -> None:
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(n_chains, 4), frameon=False, borderaxespad=0.2)
