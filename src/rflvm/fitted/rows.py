"""Rows and positions under a fit: positions and predictive densities of rows, predictions of their cells, new rows.

The rows that a user gives are read and checked against the columns of the fit and cut into blocks; for families with
row totals, predicted shares are multiplied by them. The mathematics is in ``prediction.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..data import checks, tables
from ..model.joint import Data
from ..numerics.errors import InputError
from ..numerics.precision import precision
from . import prediction
from .fit import Fitted


class Rows(NamedTuple):
    """Rows as they were given, NaN where missing, and on the device in double precision."""

    values: Float[np.ndarray, "n J"]
    data: Data


def read(
    fitted: Fitted, Y: Any, *, offset: Any = None, trials: Any = None, layer: str | None = None, asked_by: str = "RFLVM"
) -> Rows:
    """Rows with the columns of the fit, from a table of any kind; ``asked_by`` is named where the columns differ."""
    reading = tables.read(Y, layer)
    about = fitted.about
    checks.check_columns(reading, about.values.shape[1], about.columns, asked_by)
    family = fitted.likelihood if trials is None else fitted.likelihood.with_trials(trials)
    if about.exposure is not None:
        checks.refuse_offset(offset)
    table = checks.check_rows(reading.values, family, offset)
    if about.exposure is not None:
        table = table._replace(offset=checks.log_totals(reading.values, about.values))
    with precision("float64"):
        return Rows(reading.values, checks.to_device(table, "float64"))


def moments(fitted: Fitted, rows: Rows) -> prediction.Moments:
    """Posterior mean and covariance of each row's position, and its log predictive density."""
    return by_block(fitted, lambda placed, block: prediction.moments(placed), rows.data)


def predict(fitted: Fitted, rows: Rows, quantiles: list[float]) -> tuple[np.ndarray, ...]:
    """Means of all cells given the observed ones of their rows, and quantiles of new observations of them."""
    model, members, key = fitted.model, fitted.members, jax.random.key(fitted.about.seed)

    def of_block(placed, block, values):
        mean = np.asarray(prediction.expected(placed, block, members, model))
        totals = model.likelihood.implied_totals(np.asarray(values), mean)
        if model.likelihood.row_totals:
            mean = mean * totals[:, None]
        if not quantiles:
            return (mean,)
        drawn = prediction.replicates(key, placed, block, jnp.asarray(np.round(totals)), members, model)
        return mean, *np.quantile(np.asarray(drawn), quantiles, axis=0, method="inverted_cdf")

    return by_block(fitted, of_block, rows.data, rows.values)


def expected(fitted: Fitted, X: Any, *, offset: Any = None, trials: Any = None) -> Float[np.ndarray, "n K"]:
    """E[Y | X] at positions, averaged over members; for families with row totals, at the mean total of the table."""
    return _at_positions(prediction.decode, fitted, X, offset, trials)


def expected_by_member(fitted: Fitted, X: Any, *, offset: Any = None, trials: Any = None) -> Float[np.ndarray, "S n K"]:
    """E[Y | X] at positions under each of the draws that predictions average over."""
    return _at_positions(prediction.responses, fitted, X, offset, trials)


def _at_positions(function: Callable[..., Any], fitted: Fitted, X: Any, offset: Any, trials: Any) -> np.ndarray:
    X = checks.check_positions(X, fitted.n_components)
    offset = checks.check_offset(offset, len(X), log_link=fitted.likelihood.log_link)
    with precision("float64"):
        parts = jnp.asarray(X), jnp.asarray(offset), _trials(fitted, len(X), trials)
        Y = np.asarray(function(*parts, fitted.members, fitted.model))
    totals = fitted.totals
    return Y if totals is None else Y * np.nanmean(totals)


def generate(
    fitted: Fitted, n: int, seed: int, *, offset: Any = None, trials: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """New rows: positions (n, D) from their prior, cells (n, J) given them; totals are drawn from the table's."""
    totals = np.zeros(n)
    if fitted.totals is not None:
        known = fitted.totals[~np.isnan(fitted.totals)]
        totals = np.random.default_rng(seed).choice(known, n)
    offset = checks.check_offset(offset, n, log_link=fitted.likelihood.log_link)
    with precision("float64"):
        parts = jnp.asarray(offset), _trials(fitted, n, trials), jnp.asarray(totals)
        X, Y = prediction.generate(jax.random.key(seed), *parts, fitted.members, fitted.model)
    return np.asarray(X), np.asarray(Y)


def _trials(fitted: Fitted, n: int, trials: Any) -> jax.Array | None:
    """Trials per cell for n rows; None for a family without trials."""
    family = fitted.likelihood if trials is None else fitted.likelihood.with_trials(trials)
    per_cell = family.trials_for(n, fitted.about.values.shape[1])
    return None if per_cell is None else jnp.asarray(per_cell)


def by_block(fitted: Fitted, function: Callable[..., Any], data: Data, *more: np.ndarray) -> Any:
    """A function of the placed points of a block of rows and of the block, applied to all blocks and concatenated."""
    parts, n_done = [], 0
    with precision("float64"):
        for block, n, *rest in prediction.blocks(data, *more):
            placed = prediction.place(block, fitted.members, fitted.model)
            impossible = ~np.isfinite(np.asarray(placed.log_weight).max(axis=(0, 1)))[:n]
            if impossible.any():
                row = n_done + int(impossible.argmax())
                raise InputError(
                    "{where:row {row}} has probability 0 under the fit at every position: look at its cells and offset",
                    row=row,
                )
            parts.append(jax.tree.map(lambda part, n=n: np.asarray(part)[:n], function(placed, block, *rest)))
            n_done += n
    return jax.tree.map(lambda *parts: np.concatenate(parts), *parts)
