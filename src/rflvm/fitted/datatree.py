"""A fit as an xarray DataTree, in the groups and dimensions that ArviZ reads.

Observed cells are one dimension, ``cell``, with the coordinates ``row`` and ``column``: a table may have gaps, and
leave-one-out leaves out one cell. (Without a whole row nothing would be known of its position.)
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from ..data import covariates
from ..model.draws import NOT_UNKNOWN, Draws
from ..model.features import effects, features, linear_predictor, without_effects
from ..model.joint import Data, Model
from ..numerics.compilation import compiled
from ..numerics.convergence import ess
from ..numerics.precision import precision
from ..numerics.units import log_scales, restored
from .densities import log_density, unknowns
from .fit import Fitted

DIMENSIONS = {
    "X": ("row", "latent"),
    "W": ("frequency", "latent"),
    "z": ("frequency",),
    "mu": ("component", "latent"),
    "Sigma": ("component", "latent", "latent_"),
    "lengthscale": ("latent",),
}
CELL_BUDGET = 2e8  # bytes that each group of cells may take; draws are thinned to fit


def convert(fitted: Fitted, *, replicated: bool = False, cells: bool = True) -> Any:
    """The groups posterior, sample_stats, log_likelihood and observed_data; posterior_predictive if it is asked for.

    beta, of which not every draw is kept, has a group of its own, ``coefficients``, with ``effect``, the effects of
    covariates; groups of cells have its draws, or
    fewer. All of it is in the units of the table, but ``lp``, which is the log joint density on the standard scale.
    Without ``cells`` there are only ``posterior`` and ``sample_stats``, which are small.
    """
    try:
        import xarray as xr
    except ImportError as error:
        raise ImportError("the posterior as a DataTree needs xarray: pip install 'rflvm[diagnostics]'") from error

    draws, data, offset = fitted.aligned, fitted.data(), fitted.about.offset
    rows, columns = fitted.about.rows, fitted.about.columns
    dimensions = DIMENSIONS | fitted.likelihood.theta_dimensions
    n_chains, n_draws = draws["log_joint"].shape
    mask = np.ones(data.Y.shape, bool) if data.mask is None else np.asarray(data.mask)
    n, j = np.nonzero(mask)
    n_beta = draws["beta"].shape[1]
    thin = max(1, int(np.ceil(8 * len(n) * n_chains * n_beta / CELL_BUDGET)))
    thinned = np.arange(0, n_beta, thin)
    rows = np.arange(len(mask)) if rows is None else np.asarray(rows)
    columns = np.arange(mask.shape[1]) if columns is None else np.asarray(columns)
    cell = {"row": ("cell", rows[n]), "column": ("cell", columns[j])}
    chains = {"chain": np.arange(n_chains)}
    kept = {"draw": thinned * draws.beta_thin}

    shown = draws.in_units()
    others = {name: part for name, part in shown.arrays.items() if name not in ("beta", *NOT_UNKNOWN)}
    if "lengthscale" in others:  # one may serve all dimensions
        others["lengthscale"] = np.broadcast_to(others["lengthscale"], others["X"].shape[:2] + others["X"].shape[3:])
    posterior = {name: (("chain", "draw", *dimensions.get(name, ())), part) for name, part in others.items()}
    every_draw = {"draw": np.arange(n_draws)}
    groups = {
        "posterior": xr.Dataset(posterior, chains | every_draw | {"row": rows}),
        "sample_stats": xr.Dataset({"lp": (("chain", "draw"), draws["log_joint"])}, chains | every_draw),
    }
    if not (cells or replicated):
        return xr.DataTree.from_dict(groups)
    H, coding = fitted.model.H, fitted.about.coding
    by_draw = ("chain", "draw")
    beta = {"beta": ((*by_draw, "feature", "predictor"), without_effects(shown["beta"], H))}
    given: dict[str, Any] = {"covariate": list(covariates.labels(coding))} if coding else {}
    if coding:
        gamma = covariates.in_units(coding, effects(shown["beta"], H))
        beta["effect"] = ((*by_draw, "covariate", "predictor"), gamma)
    by_cell = ("chain", "draw", "cell")
    with precision("float64"):
        densities = (_cells(None, draws, data, thinned) - log_scales(mask, fitted.units))[..., n, j]
    groups |= {
        "coefficients": xr.Dataset(beta, chains | {"draw": np.arange(n_beta) * draws.beta_thin} | given),
        "log_likelihood": xr.Dataset({"Y": (by_cell, densities)}, chains | kept | cell),
        "observed_data": xr.Dataset({"Y": ("cell", fitted.table().Y[n, j])}, cell),
    }
    if replicated:
        with precision("float64"):
            drawn = _cells(jax.random.key(fitted.about.seed), draws, data, thinned)
        drawn = restored(drawn, offset, fitted.units)[..., n, j]
        groups["posterior_predictive"] = xr.Dataset({"Y": (by_cell, drawn)}, chains | kept | cell)
    return xr.DataTree.from_dict(groups)


def loo(fitted: Fitted) -> Any:
    """Leave-one-out cross-validation over cells (PSIS-LOO): the expected log density of a cell given all others."""
    try:
        from arviz_stats.loo import loo
    except ImportError as error:
        raise ImportError("loo needs arviz-stats: pip install 'rflvm[diagnostics]'") from error
    log_joint = fitted.draws["log_joint"]
    return loo(convert(fitted), var_name="Y", reff=min(ess(log_joint) / log_joint.size, 1))


def _cells(key: Array | None, draws: Draws, data: Data, chosen: np.ndarray) -> np.ndarray:
    """(chain, draw, N, J): log p(y | f, theta) of each cell, or with a key a new y."""

    def table(chain, i):
        if key is None:
            return log_density(*unknowns(draws, chain, i), data, draws.model)
        key_i = jax.random.fold_in(jax.random.fold_in(key, chain), i)
        return _draw(key_i, *unknowns(draws, chain, i), data, draws.model)

    return np.array([[np.asarray(table(chain, i)) for i in chosen.tolist()] for chain in range(len(draws["X"]))])


@functools.partial(compiled, static_argnames="model")
def _draw(
    key: Array, X: Float[Array, "N D"], W: Float[Array, "H D"], beta: Float[Array, "M J"], theta: dict, data: Data,
    model: Model,
) -> Float[Array, "N J"]:  # fmt: skip
    F = linear_predictor(features(X, W, data.covariates), beta, data.offset)
    return model.likelihood.sample(key, F, theta, data.trials)
