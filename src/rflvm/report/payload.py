"""What the explorer decodes from: arrays in one deflated block of bytes, and a header of JSON that says what they are.

The browser computes the median over s of g(phi(x)'beta^(s) + b^(s)), the linear predictor held to its range, from the
members of ``fitted/members.py``, so its answer is that of ``inverse_transform``. Coefficients are whole numbers of 32
bits times a step per column, max |beta_j| / (2^31 - 1); all else that enters is double. As |phi(x)| = 1, the error of
f_j is at most sqrt(2H) max |beta_j| / 2^32.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..fitted.fit import Fitted
from ..fitted.rows import expected, expected_bounds, observed_range, unheld
from ..fitted.summaries import column_names, members_in_units, predictors_by_member, row_covariances, typical_trials
from ..model.features import without_effects
from ..numerics.precision import precision
from ..plots.colours import COLOURS, Colouring

MOST_ROWS, MOST_COLUMNS = 5000, 1000  # in the explorer; ``_chosen`` says which of them
N_VARIATION = 500  # rows from which the variation of the columns is estimated
LEVEL = 0.9  # of the intervals in which the draws of the functions agree or not
LARGEST = 2**31 - 1
N_TABULATED = 129  # values of f at which the mean is tabulated, for a family that the page does not know
SINGLE_ERROR = 1e-4  # the largest error of a cell in single precision, relative to the range of its column
MISSING = 2**16 - 1  # marks a missing cell among 16-bit whole numbers


class Payload(NamedTuple):
    """What goes into the page."""

    header: str  # JSON, safe inside a script element
    block: str  # base64 of the deflated arrays
    rows: np.ndarray  # which rows are in it
    columns: np.ndarray  # which columns are in it
    order: np.ndarray  # all columns of the table, as in ``Variation``


def build(
    fitted: Fitted,
    labels: list[str],
    colourings: Mapping[str, Colouring],
    image_shape: tuple[int, int] | None,
    ordered: bool,
    ambiguous: np.ndarray,
) -> Payload:
    """Everything the explorer needs of a fitted model; ``ambiguous`` says which rows have two modes."""
    order, centre, spread, doubtful = variation(fitted)
    rows, columns = _chosen(fitted, order, image_shape is not None, ordered)
    names = titled_columns(fitted)
    arrays = _arrays(fitted, rows, columns) | {"centre": centre[columns], "spread": spread[columns]}
    arrays |= {f"colour{i}": colouring.values[rows].astype("<f4") for i, colouring in enumerate(colourings.values())}
    if fitted.about.timeline is not None:
        arrays |= {
            "times": fitted.about.timeline.times[rows],
            "session": fitted.about.timeline.session[rows].astype("<i4"),
        }
    block, places = _packed(arrays)
    place_of = {int(j): place for place, j in enumerate(columns)}
    header = {
        "decoders": [fitted.likelihood.decoders(len(names))[j] for j in columns],
        "counts": fitted.likelihood.counts,
        "dimensions": fitted.n_components,
        "columns": [names[j] for j in columns],
        "rows": [labels[n] for n in rows],
        "order": [place_of[int(j)] for j in order if int(j) in place_of],
        "ambiguous": np.flatnonzero(ambiguous[rows]).tolist(),
        "unsettled": np.flatnonzero(np.isin(rows, fitted.disagreeing)).tolist(),
        "doubtful": np.flatnonzero(doubtful[columns]).tolist(),
        "image": image_shape,
        "ordered": ordered,
        "colours": [{"name": name, "classes": colouring.names} for name, colouring in colourings.items()],
        "palette": COLOURS,
        "total": None if fitted.totals is None else float(np.nanmean(fitted.totals)),
        "missing": MISSING,
        "arrays": places,
    }
    timeline = fitted.about.timeline
    if timeline is not None:
        header["sessions"] = [str(label) for label in timeline.labels]
    return Payload(as_json(header), base64.b64encode(zlib.compress(block, 9)).decode(), rows, columns, order)


def as_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def titled_columns(fitted: Fitted) -> list[str]:
    """Names of the columns; numbers alone would not say what they are."""
    names = column_names(fitted)
    return names if fitted.about.columns is not None else [f"column {name}" for name in names]


class Variation(NamedTuple):
    """How columns vary with the position."""

    order: np.ndarray  # by ``spread`` relative to the root mean squared error of y, largest first; doubtful ones last
    centre: np.ndarray  # mean over rows of what is expected at their positions
    spread: np.ndarray  # standard deviation of it over rows
    doubtful: np.ndarray  # whether the table says little about the column


def variation(fitted: Fitted) -> Variation:
    """How columns vary with the position, estimated from a random sample of the rows.

    Doubtful columns, of which most cells are missing, or of which at most rows the draws of the functions disagree by
    more than the column's observed range, may seem to vary most of all.
    """
    N = len(fitted.embedding)
    sample = np.sort(np.random.default_rng(0).permutation(N)[:N_VARIATION])
    trials = fitted.likelihood.trials_per_cell
    where: dict[str, Any] = {
        "offset": fitted.about.offset[sample],
        "trials": None if trials is None else trials[sample],
        "covariates": fitted.covariates_of(sample),
    }
    values = fitted.about.values
    Y, E = values[sample], expected(fitted, fitted.embedding[sample], **where)
    mean_squares = np.where(np.isnan(Y), 0, (Y - E) ** 2).sum(axis=0) / np.maximum((~np.isnan(Y)).sum(axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, spread = E.mean(axis=0), E.std(axis=0)
        ratio = spread / np.sqrt(np.maximum(mean_squares, np.finfo(float).tiny))
        lower, upper = expected_bounds(unheld(fitted), fitted.embedding[sample], LEVEL, **where)
        disputed = (upper - lower > observed_range(fitted)).mean(axis=0) > 0.5
    doubtful = disputed | (np.isnan(values).mean(axis=0) > 0.5)
    order = np.lexsort((-np.nan_to_num(ratio), doubtful))
    return Variation(order, centre.astype("<f8"), spread.astype("<f8"), doubtful)


def _chosen(fitted: Fitted, order: np.ndarray, whole: bool, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the explorer: the columns that vary most, or of a curve evenly spaced ones.

    Images and stick breaking need all columns.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(fitted.embedding))[:MOST_ROWS])
    J = len(order)
    if J <= MOST_COLUMNS or whole or fitted.likelihood.row_totals:
        return rows, np.arange(J)
    if ordered:
        return rows, np.linspace(0, J - 1, MOST_COLUMNS).round().astype(int)
    return rows, np.sort(order[:MOST_COLUMNS])


def _arrays(fitted: Fitted, rows: np.ndarray, columns: np.ndarray) -> dict[str, np.ndarray]:
    members = members_in_units(fitted)
    predictors = columns[columns < members.beta.shape[2]]
    beta = without_effects(np.asarray(members.beta), fitted.model.H)[..., predictors]
    # What all members share is stored once: W when it is not sampled, and beta when its covariance was not kept.
    W = members.W[:1] if bool((members.W[:1] == members.W).all()) else members.W
    shared = len(W) == 1 and not members.theta and bool((beta[:1] == beta).all())
    ranges = members.lowest[..., predictors], members.highest[..., predictors]
    shared = shared and all(bool((part[:1] == part).all()) for part in ranges)
    beta, *ranges = (part[:1] if shared else part for part in (beta, *ranges))
    step = np.maximum(np.abs(beta[:, :-1]).max(axis=(0, 1)), np.finfo(float).tiny) / LARGEST
    arrays = {
        "X": fitted.embedding[rows].astype("<f8"),
        "covariance": row_covariances(fitted)[rows].astype("<f4"),
        "W": W.astype("<f8"),
        "beta": np.round(beta[:, :-1] / step).astype("<i4"),
        "step": step.astype("<f8"),
        "bias": beta[:, -1].astype("<f8"),
        "lowest": ranges[0].astype("<f8"),
        "highest": ranges[1].astype("<f8"),
        "observed": _observed(fitted.about.values[np.ix_(rows, columns)]),
        "low": _scales(fitted, columns)[0].astype("<f8"),
        "high": _scales(fitted, columns)[1].astype("<f8"),
    }
    per_column = fitted.likelihood.decoder_parameters(members.theta, fitted.about.values.shape[1])
    arrays |= {name: value[..., columns].astype("<f8") for name, value in per_column.items()}
    if fitted.about.offset.any():
        arrays["offset"] = fitted.about.offset[rows].astype("<f8")
    totals = fitted.totals
    if totals is not None:
        arrays["totals"] = np.where(np.isnan(totals), np.nanmean(totals), totals)[rows].astype("<f8")
    typical, per_cell = typical_trials(fitted), fitted.likelihood.trials_per_cell
    if typical is not None:
        arrays["trials"] = typical[columns].astype("<f8")
    if per_cell is not None:
        arrays["row_trials"] = per_cell[np.ix_(rows, columns)].astype("<f8")
    if None in fitted.likelihood.decoders(fitted.about.values.shape[1]):
        arrays |= _tabulated(fitted, columns)
    return arrays


def _tabulated(fitted: Fitted, columns: np.ndarray) -> dict[str, np.ndarray]:
    """E[y | f] of each column at ``N_TABULATED`` values of f, under each member, or once where members agree.

    For families whose mean the page does not know. The values of f are those of the rows and a quarter of their range
    on either side; the page interpolates by cubics, whose error for a mean like e^f is below 1e-5 of it.
    """
    F = predictors_by_member(fitted, fitted.embedding) + fitted.about.offset[:, None]
    low, high = F.min(axis=(0, 1)), F.max(axis=(0, 1))
    margin = np.maximum((high - low) / 4, 0.5)
    low, step = low - margin, (high - low + 2 * margin) / (N_TABULATED - 1)
    grid = low + step * np.arange(N_TABULATED)[:, None]
    trials, theta = typical_trials(fitted), members_in_units(fitted).theta
    with precision("float64"):
        f = jnp.asarray(grid)
        repeated = None if trials is None else jnp.asarray(np.broadcast_to(trials, grid.shape))
        members = [
            {name: jnp.asarray(value[s]) for name, value in theta.items()}
            for s in range(len(fitted.members.W) if theta else 1)
        ]
        table = np.stack([np.asarray(fitted.likelihood.respond(f, theta, repeated)) for theta in members])
    return {
        "table": table[..., columns].astype("<f4"),
        "table_low": low[columns].astype("<f8"),
        "table_step": step[columns].astype("<f8"),
    }


def _observed(Y: np.ndarray) -> np.ndarray:
    """Observed cells: whole numbers of 16 bits if that is what they are, else single precision where it is enough.

    It is not for a column that varies little around a large number.
    """
    missing = np.isnan(Y)
    known = Y[~missing]
    if known.size and (known >= 0).all() and (known < MISSING).all() and (known == np.floor(known)).all():
        return np.where(missing, MISSING, Y).astype("<u2")
    with np.errstate(over="ignore"):
        single = Y.astype("<f4")
    spread = np.nanmax(Y, axis=0) - np.nanmin(Y, axis=0)
    coarse = np.abs(single - Y) > SINGLE_ERROR * np.where(spread > 0, spread, np.inf)
    return Y.astype("<f8") if coarse.any() else single


def _scales(fitted: Fitted, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of each column's scale: its observed range, for counts from 0 on."""
    Y = fitted.about.values[:, columns]
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    if fitted.likelihood.counts:
        low = np.zeros_like(low)
    return low, np.where(high > low, high, low + 1)


def _packed(arrays: dict[str, np.ndarray]) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """The arrays one after the other, each on a multiple of 8 bytes, and where they are."""
    block, places = bytearray(), {}
    for name, array in arrays.items():
        places[name] = {"type": array.dtype.str[1:], "shape": list(array.shape), "at": len(block)}
        block += np.ascontiguousarray(array).tobytes()
        block += bytes(-len(block) % 8)
    return bytes(block), places
