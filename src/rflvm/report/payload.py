"""What the explorer decodes from: arrays in one deflated block of bytes, and a header of JSON that says what they are.

The browser computes E[y | x] = mean_s g(phi(x)'beta^(s) + b^(s)) from the members of ``prediction.py``, so its answer
is that of ``inverse_transform``. Coefficients are whole numbers of 32 bits times a step per column,
max |beta_j| / (2^31 - 1); all else that enters is double. As |phi(x)| = 1, the error of f_j is at most
sqrt(2H) max |beta_j| / 2^32.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import likelihoods
from ..estimator import RFLVM
from ..fitted.summaries import column_names, row_covariances, trials_per_cell, usual_trials
from ..plots.colours import COLOURS, Colouring

MOST_ROWS, MOST_COLUMNS = 5000, 1000  # in the explorer; a random choice of rows, and of columns see ``_chosen``
N_JUDGED = 500  # rows from which it is told which columns vary
LARGEST = 2**31 - 1
MISSING = 2**16 - 1  # among observed whole numbers
FAMILIES = ("bernoulli", "binomial", "gaussian", "multinomial", "negative_binomial", "poisson")


class Payload(NamedTuple):
    """What goes into the page."""

    header: str  # JSON, safe inside a script element
    block: str  # base64 of the deflated arrays
    rows: np.ndarray  # which rows are in it
    columns: np.ndarray  # which columns are in it, those that vary most first in ``order``
    order: np.ndarray


def build(
    model: RFLVM,
    labels: list[str],
    colourings: Mapping[str, Colouring],
    image_shape: tuple[int, int] | None,
    ordered: bool,
) -> Payload:
    """Everything the explorer needs of a fitted model."""
    order, centre, spread = variation(model)
    rows, columns = _chosen(model, order, image_shape is not None, ordered)
    names = titled_columns(model)
    arrays = _arrays(model, rows, columns) | {"centre": centre[columns], "spread": spread[columns]}
    arrays |= {f"colour{i}": colouring.values[rows].astype("<f4") for i, colouring in enumerate(colourings.values())}
    block, places = _packed(arrays)
    place_of = {int(j): place for place, j in enumerate(columns)}
    header = {
        "family": model.likelihood_.name,
        "dimensions": model.n_components,
        "columns": [names[j] for j in columns],
        "rows": [labels[n] for n in rows],
        "order": [place_of[int(j)] for j in order if int(j) in place_of],
        "image": image_shape,
        "ordered": ordered,
        "colours": [{"name": name, "classes": colouring.names} for name, colouring in colourings.items()],
        "palette": COLOURS,
        "total": None if model._totals is None else float(np.nanmean(model._totals)),
        "missing": MISSING,
        "arrays": places,
    }
    return Payload(as_json(header), base64.b64encode(zlib.compress(block, 9)).decode(), rows, columns, order)


def as_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def titled_columns(model: RFLVM) -> list[str]:
    """Names of the columns; numbers alone would not say what they are."""
    names = column_names(model)
    return names if model._columns() is not None else [f"column {name}" for name in names]


class Variation(NamedTuple):
    """How columns vary with the position."""

    order: np.ndarray  # from the column that varies most: spread of E[y | x_n] over rows, over the error there
    centre: np.ndarray  # mean of E[y | x_n] over rows
    spread: np.ndarray  # its standard deviation


def variation(model: RFLVM) -> Variation:
    """How columns vary with the position, judged from some of the rows."""
    N = len(model.embedding_)
    some = np.sort(np.random.default_rng(0).permutation(N)[:N_JUDGED])
    trials = trials_per_cell(model)
    Y = model._values[some]
    E = model.inverse_transform(
        model.embedding_[some], offset=model._offset[some], trials=None if trials is None else trials[some]
    )
    squares = np.where(np.isnan(Y), 0, (Y - E) ** 2).sum(axis=0) / np.maximum((~np.isnan(Y)).sum(axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, spread = E.mean(axis=0), E.std(axis=0)
        ratio = spread / np.sqrt(np.maximum(squares, np.finfo(float).tiny))
    order = np.argsort(-np.nan_to_num(ratio), kind="stable")
    return Variation(order, centre.astype("<f8"), spread.astype("<f8"))


def _chosen(model: RFLVM, order: np.ndarray, whole: bool, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the explorer: the columns that vary most, or of a curve evenly spaced ones.

    Images and stick breaking need all columns.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(model.embedding_))[:MOST_ROWS])
    J = len(order)
    if J <= MOST_COLUMNS or whole or isinstance(model.likelihood_, likelihoods.Multinomial):
        return rows, np.arange(J)
    if ordered:
        return rows, np.linspace(0, J - 1, MOST_COLUMNS).round().astype(int)
    return rows, np.sort(order[:MOST_COLUMNS])


def _arrays(model: RFLVM, rows: np.ndarray, columns: np.ndarray) -> dict[str, np.ndarray]:
    members = model._members
    predictors = columns[columns < members.beta.shape[2]]
    beta = members.beta[..., predictors]
    # What all members share is there once: W when it is not sampled, and beta when its covariance was not kept.
    W = members.W[:1] if bool((members.W[:1] == members.W).all()) else members.W
    alike = len(W) == 1 and not members.theta and bool((beta[:1] == beta).all())
    beta = beta[:1] if alike else beta
    step = np.maximum(np.abs(beta[:, :-1]).max(axis=(0, 1)), np.finfo(float).tiny) / LARGEST
    arrays = {
        "X": model.embedding_[rows].astype("<f8"),
        "covariance": row_covariances(model)[rows].astype("<f4"),
        "W": W.astype("<f8"),
        "beta": np.round(beta[:, :-1] / step).astype("<i4"),
        "step": step.astype("<f8"),
        "bias": beta[:, -1].astype("<f8"),
        "observed": _observed(model._values[np.ix_(rows, columns)]),
        "low": _ends(model, columns)[0].astype("<f8"),
        "high": _ends(model, columns)[1].astype("<f8"),
    }
    arrays |= {name: members.theta[name][:, columns].astype("<f8") for name in ("sigma2", "r") if name in members.theta}
    if model._offset.any():
        arrays["offset"] = model._offset[rows].astype("<f8")
    if model._totals is not None:
        mean = np.nanmean(model._totals)
        arrays["totals"] = np.where(np.isnan(model._totals), mean, model._totals)[rows].astype("<f8")
    usual, per_cell = usual_trials(model), trials_per_cell(model)
    if usual is not None:
        arrays["trials"] = usual[columns].astype("<f8")
    if per_cell is not None:
        arrays["row_trials"] = per_cell[np.ix_(rows, columns)].astype("<f8")
    return arrays


def _observed(Y: np.ndarray) -> np.ndarray:
    """Observed cells: whole numbers of 16 bits if that is what they are, else single precision."""
    missing = np.isnan(Y)
    known = Y[~missing]
    if known.size and (known >= 0).all() and (known < MISSING).all() and (known == np.floor(known)).all():
        return np.where(missing, MISSING, Y).astype("<u2")
    return Y.astype("<f4")


def _ends(model: RFLVM, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Between what a column is drawn: its observed range, from 0 unless it can be negative."""
    Y = model._values[:, columns]
    low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
    if not isinstance(model.likelihood_, likelihoods.Gaussian):
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
