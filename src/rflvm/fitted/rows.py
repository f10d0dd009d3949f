"""Rows and positions under a fit: positions and predictive densities of rows, predictions of their cells, new rows.

The rows that a user gives are read and checked against the columns of the fit and cut into blocks; for families with
row totals, predicted shares are multiplied by them. The mathematics is in ``prediction.py``, on the standard scale of
families with units: here rows are brought to it, and what is predicted is brought back.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ..data import checks, tables
from ..data.blocks.encoding import Encoder, block_size
from ..data.blocks.sources import open_table
from ..data.covariates import encode
from ..data.times import Timeline
from ..model.joint import Data
from ..numerics import scalars
from ..numerics.errors import InputError
from ..numerics.precision import precision
from ..numerics.units import log_scales, restored
from ..streaming.epochs import data_of
from ..streaming.placing import anchors_of
from ..streaming.programs import place
from ..streaming.result import standard_deviations
from . import paths, prediction
from .fit import Fitted

PRECISION = "float32"  # of rows that are placed fast


class Rows(NamedTuple):
    """Rows as they were given, NaN where missing, with their offset; and on the device in double precision."""

    values: Float[np.ndarray, "n J"]
    offset: Float[np.ndarray, " n"]
    data: Data


def read(
    fitted: Fitted, Y: Any, *, offset: Any = None, trials: Any = None, covariates: Any = None, times: Any = None,
    sessions: Any = None, layer: str | None = None, asked_by: str = "RFLVM",
) -> Rows:  # fmt: skip
    """Rows with the columns of the fit, from a table of any kind; ``asked_by`` is named where the columns differ."""
    reading = tables.read(Y, layer)
    about = fitted.about
    checks.check_columns(reading, about.values.shape[1], about.columns, asked_by)
    family = fitted.likelihood if trials is None else fitted.likelihood.with_trials(trials)
    if about.exposure is not None:
        checks.refuse_offset(offset)
    Z = encode(about.coding, covariates, len(reading.values), Y)
    timeline = _timeline(fitted, reading, times, sessions)
    table = checks.check_rows(reading.values, family, offset, fitted.units, Z, timeline)
    if about.exposure is not None:
        table = table._replace(offset=checks.log_totals(reading.values, about.values))
    with precision("float64"):
        return Rows(reading.values, table.offset, checks.to_device(table, "float64"))


def fast_positions(
    fitted: Fitted, Y: Any, *, offset: Any = None, trials: Any = None, layer: str | None = None, asked_by: str = "RFLVM"
) -> tuple[Float[np.ndarray, "n D"], Float[np.ndarray, "n D"]]:
    """Modes of the positions of rows under the most probable functions, and standard deviations around them.

    The rows may be in a file, and are read in blocks.
    """
    streamed, about = fitted.streamed, fitted.about
    if streamed is None:
        raise ValueError(f'fast=True needs inference="stream": this model was fitted with "{about.inference}"')
    source = open_table(Y, layer)
    N, J = source.shape
    checks.check_column_names(source.columns, J, about.values.shape[1], about.columns, asked_by)
    family = fitted.likelihood if trials is None else fitted.likelihood.with_trials(trials)
    if about.exposure is not None:
        checks.refuse_offset(offset)
    usual = None if about.exposure is None else checks.usual_counts(about.values)
    offset = None if offset is None else checks.check_offset(offset, N, family)
    encoder = Encoder(family, fitted.units, offset, usual, PRECISION, empty_rows=True)
    size = block_size(N, J)
    with precision(PRECISION):
        anchors = anchors_of(streamed.anchors, streamed.functions, PRECISION)
        state = streamed.functions.state(PRECISION)
        parts = [
            [np.asarray(part)[: block.n] for part in place(data_of(block), anchors, state, fitted.model)]
            for block in encoder.blocks(source, size)
        ]
    X, triangles = (np.concatenate(part) for part in zip(*parts, strict=True))
    return X, standard_deviations(triangles, X.shape[1])


def _timeline(fitted: Fitted, reading: tables.Reading, times: Any, sessions: Any) -> Timeline | None:
    """Times and sessions of rows; those that have none are as far apart as those of the fit."""
    timeline, of_fit = checks.timeline_for(fitted.model.dynamics, reading, times, sessions), fitted.about.timeline
    if timeline is None or of_fit is None or times is not None or reading.kind == "timeseries":
        return timeline
    return timeline._replace(times=of_fit.typical * timeline.times, typical=of_fit.typical)


def moments(fitted: Fitted, rows: Rows) -> prediction.Moments:
    """Posterior mean and covariance of each row's position, and its log predictive density."""
    if fitted.model.dynamics is None:
        found = by_block(fitted, lambda placed, block: prediction.moments(placed), rows.data)
    else:
        parts = [paths.moments(session) for _, session in _sessions(fitted, rows.data)]
        found = jax.tree.map(lambda *parts: np.concatenate(parts), *parts)
    loss = log_scales(~np.isnan(rows.values), fitted.units).sum(axis=1)
    return found._replace(log_density=found.log_density - loss)


def predict(fitted: Fitted, rows: Rows, quantiles: list[float], summary: str = "median") -> tuple[np.ndarray, ...]:
    """What is expected in all cells given the observed ones of their rows, and quantiles of new observations of them.

    ``summary`` is over the posterior of E[y | f]; for families with row totals it is of shares, which sum to one.
    """
    checks.check_choice("summary", summary, prediction.SUMMARIES)
    model, members, key = fitted.model, fitted.members, jax.random.key(fitted.about.seed)
    summarised = {"median": prediction.medians, "mean": prediction.expected}[summary]

    def of_block(placed, block, values):
        cells = np.asarray(summarised(placed, block, members, model))
        totals = model.likelihood.implied_totals(np.asarray(values), cells)
        if model.likelihood.row_totals:
            cells = cells * totals[:, None]
        if not quantiles:
            return (cells,)
        drawn = prediction.replicates(key, placed, block, jnp.asarray(np.round(totals)), members, model)
        return cells, *np.quantile(np.asarray(drawn), quantiles, axis=0, method="inverted_cdf")

    parts = by_block(fitted, of_block, rows.data, rows.values)
    return tuple(restored(part, rows.offset, fitted.units) for part in parts)


def tails(level: float) -> list[float]:
    """The probabilities of the two quantiles between which a new observation is with probability ``level``."""
    level = scalars.probability("level", level)
    return [(1 - level) / 2, (1 + level) / 2]


def uncertain(fitted: Fitted, rows: Rows, level: float) -> Bool[np.ndarray, "n J"]:
    """Cells whose predictive interval would be wider than the range of the observed cells of their column.

    It would be so with functions that are not held to the range that the table knows of them.
    """
    _, lower, upper = predict(unheld(fitted), rows, tails(level))
    return upper - lower > observed_range(fitted)


def unheld(fitted: Fitted) -> Fitted:
    """The fit with functions that predictions do not hold to a range."""
    return dataclasses.replace(fitted, members=fitted.members.free())


def observed_range(fitted: Fitted) -> Float[np.ndarray, " J"]:
    """The largest less the smallest observed cell of each column of the fitted table."""
    return np.nanmax(fitted.about.values, axis=0) - np.nanmin(fitted.about.values, axis=0)


def expected(
    fitted: Fitted, X: Any, *, offset: Any = None, trials: Any = None, covariates: Any = None, summary: str = "median"
) -> Float[np.ndarray, "n K"]:
    """E[Y | X] at positions, summarised over members; for families with row totals, at the mean total of the table."""
    checks.check_choice("summary", summary, prediction.SUMMARIES)
    return _at_positions(lambda *parts: prediction.decode(*parts, summary), fitted, X, offset, trials, covariates)


def expected_bounds(
    fitted: Fitted, X: Any, level: float, *, offset: Any = None, trials: Any = None, covariates: Any = None
) -> Float[np.ndarray, "2 n K"]:
    """The interval that holds E[Y | X] under a share ``level`` of the draws that predictions are summarised over."""

    def bounds(*parts):
        return np.quantile(np.asarray(prediction.responses(*parts)), tails(level), axis=0)

    return _at_positions(bounds, fitted, X, offset, trials, covariates)


def expected_by_member(
    fitted: Fitted, X: Any, *, offset: Any = None, trials: Any = None, covariates: Any = None
) -> Float[np.ndarray, "S n K"]:
    """E[Y | X] at positions under each of the draws that predictions are summarised over."""
    return _at_positions(prediction.responses, fitted, X, offset, trials, covariates)


def _at_positions(
    function: Callable[..., Any], fitted: Fitted, X: Any, offset: Any, trials: Any, covariates: Any
) -> np.ndarray:
    """A function of positions, offset, trials and covariates with rows on its last axis but one, in blocks of rows."""
    X = checks.check_positions(X, fitted.n_components)
    offset = checks.check_offset(offset, len(X), fitted.likelihood)
    size = prediction.block_size(fitted.about.values.shape[1])
    with precision("float64"):
        given = X, _inside(offset, fitted), _trials(fitted, len(X), trials), _covariates(fitted, len(X), covariates)
        parts = [
            np.asarray(function(*block, fitted.members, fitted.model))[..., :n, :]
            for n, block in prediction.cut(given, len(X), size)
        ]
    Y, totals = np.concatenate(parts, axis=-2), fitted.totals
    return restored(Y if totals is None else Y * np.nanmean(totals), offset, fitted.units)


class Forecast(NamedTuple):
    """Rows after the last one of a session.

    Attributes
    ----------
    times : array (n,)
        In the unit of the fit.
    X, X_std : array (n, D)
        Posterior mean and standard deviation of positions.
    expected, lower, upper : array (n, J)
        As ``RFLVM.predict_intervals``.
    """

    times: np.ndarray
    X: np.ndarray
    X_std: np.ndarray
    expected: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def forecast(
    fitted: Fitted, n: int, level: float, session: Any = None, times: Any = None, offset: Any = None,
    summary: str = "median",
) -> Forecast:  # fmt: skip
    """The rows that follow a session of the table, as rows of it without observed cells."""
    about, timeline = fitted.about, fitted.about.timeline
    if timeline is None:
        raise ValueError('forecast needs a prior over time: fit with dynamics="matern32"')
    labels = list(timeline.labels)
    if session is not None and session not in labels:
        raise InputError(
            "{parameter} must be one of {labels}, got {value}", parameter="session", labels=labels, value=repr(session)
        )
    rows = timeline.slices[-1 if session is None else labels.index(session)]
    before = timeline.times[rows]
    ahead = before[-1] + timeline.typical * np.arange(1, n + 1) if times is None else times
    if np.shape(ahead) != (n,):
        raise InputError(
            "{parameter} must be the {n} times of the new rows, got shape {shape}",
            parameter="times",
            n=n,
            shape=np.shape(ahead),
        )
    values = np.concatenate([about.values[rows], np.full((n, about.values.shape[1]), np.nan)])
    whole = tables.read(values)
    together = checks.timeline_for(
        fitted.model.dynamics, whole, np.concatenate([before, np.asarray(ahead, float)]), None
    )
    new = checks.check_offset(offset, n, fitted.likelihood)
    offsets = np.concatenate([about.offset[rows], new])
    Z = about.covariates  # of average rows, where they are not known
    Z = None if Z is None else np.concatenate([Z[rows], np.zeros((n, Z.shape[1]))])
    table = checks.check_rows(values, fitted.likelihood, offsets, fitted.units, Z, together)
    with precision("float64"):
        extended = Rows(values, table.offset, checks.to_device(table, "float64"))
    where = moments(fitted, extended)
    cells = predict(fitted, extended, tails(level), summary)
    std = np.sqrt(np.diagonal(where.covariance, axis1=1, axis2=2))
    assert together is not None
    return Forecast(together.times[-n:], np.asarray(where.mean)[-n:], std[-n:], *(part[-n:] for part in cells))


def generate(
    fitted: Fitted, n: int, seed: int, *, offset: Any = None, trials: Any = None, covariates: Any = None,
    times: Any = None, sessions: Any = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """New rows: positions (n, D) from their prior, cells (n, J) given them; totals are drawn from the table's.

    With a prior over time they are whole sessions, evenly spaced as the rows of the fit unless ``times`` are given.
    """
    timeline = _timeline(fitted, tables.read(np.zeros((n, 1))), times, sessions)
    totals = np.zeros(n)
    if fitted.totals is not None:
        known = fitted.totals[~np.isnan(fitted.totals)]
        totals = np.random.default_rng(seed).choice(known, n)
    offset = checks.check_offset(offset, n, fitted.likelihood)
    with precision("float64"):
        key, members, model = jax.random.key(seed), fitted.members, fitted.model
        Z = _covariates(fitted, n, covariates)
        given = _inside(offset, fitted), _trials(fitted, n, trials), Z, totals
        if timeline is None:
            X, Y = prediction.generate(key, *given, members, model)
        else:
            key_X, key_cells = jax.random.split(key)
            X, which = paths.generate(key_X, timeline, members, model)
            Y = prediction.generate_cells(key_cells, X, which, *given, members, model)
    return X, restored(Y, offset, fitted.units)


def _inside(offset: Float[np.ndarray, " n"], fitted: Fitted) -> Float[np.ndarray, " n"]:
    """The offset that is left on the standard scale."""
    return offset if fitted.units is None else np.zeros_like(offset)


def _trials(fitted: Fitted, n: int, trials: Any) -> np.ndarray | None:
    """Trials per cell for n rows; None for a family without trials."""
    family = fitted.likelihood if trials is None else fitted.likelihood.with_trials(trials)
    return family.trials_for(n, fitted.about.values.shape[1])


def _covariates(fitted: Fitted, n: int, covariates: Any) -> np.ndarray | None:
    """Covariates of n rows, as the engines see them; of average rows where none are given."""
    about = fitted.about
    if covariates is None and about.covariates is not None:
        return np.zeros((n, about.covariates.shape[1]))
    return encode(about.coding, covariates, n)


def by_block(fitted: Fitted, function: Callable[..., Any], data: Data, *more: np.ndarray) -> Any:
    """A function of the placed points of a block of rows and of the block, applied to all blocks and concatenated."""
    placed_blocks = _placed_rows if fitted.model.dynamics is None else _placed_sessions
    parts = []
    with precision("float64"):
        for placed, block, n, *rest in placed_blocks(fitted, data, *more):
            parts.append(jax.tree.map(lambda part, n=n: np.asarray(part)[:n], function(placed, block, *rest)))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *parts)


def _placed_rows(fitted: Fitted, data: Data, *more: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """Points of the posterior of each row by itself, block by block."""
    n_done = 0
    for block, n, *rest in prediction.blocks(data, *more):
        placed = prediction.place(block, fitted.members, fitted.model)
        _refuse_impossible(~np.isfinite(np.asarray(placed.log_weight).max(axis=(0, 1)))[:n], n_done)
        yield placed, block, n, *rest
        n_done += n


def _placed_sessions(fitted: Fitted, data: Data, *more: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """Points on paths of whole sessions, in blocks of rows that begin where a session does."""
    for rows, session in _sessions(fitted, data):
        by_row = np.moveaxis(np.asarray(session.paths), 2, 0)
        part = jax.tree.map(lambda part, rows=rows: np.asarray(part)[rows], data._replace(chronology=None))
        for block, n, points, *rest in prediction.blocks(part, by_row, *(part[rows] for part in more)):
            X = jnp.moveaxis(points, 0, 2)
            yield prediction.Placed(X, jnp.zeros(X.shape[:3])), block, n, *rest


def _sessions(fitted: Fitted, data: Data) -> Iterator[tuple[slice, paths.Session]]:
    """The rows of each session and its posterior, computed with the same random numbers for all sessions."""
    assert data.chronology is not None
    starts = np.append(np.flatnonzero(np.asarray(data.chronology.first)), len(data.Y))
    with precision("float64"):
        key = jax.random.key(fitted.about.seed)
        for start, stop in itertools.pairwise(starts.tolist()):
            rows = slice(start, stop)
            session = paths.place(key, *paths.padded(data, data.chronology, rows), fitted.members, fitted.model)
            session = paths.first_rows(session, stop - start)
            _refuse_impossible(~np.isfinite(session.log_density.sum(axis=0, keepdims=True))[0], start)
            yield rows, session


def _refuse_impossible(impossible: Bool[np.ndarray, " n"], n_before: int) -> None:
    if impossible.any():
        raise InputError(
            "{where:row {row}} has probability 0 under the fit at every position: look at its cells and offset",
            row=n_before + int(impossible.argmax()),
        )
