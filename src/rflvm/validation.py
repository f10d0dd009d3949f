"""Checks of what a user passes in: every problem gets an error that names it, before any compilation."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from .likelihoods import Likelihood
from .model import Data


class Table(NamedTuple):
    """A checked table, on the host: cells, which of them count, offset per row, trials per cell."""

    Y: np.ndarray
    observed: np.ndarray
    offset: np.ndarray
    trials: np.ndarray | None


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_integer(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def check_run(n_samples: Any, n_burnin: Any, thin: Any) -> dict[str, int]:
    """The lengths of a run."""
    run = {
        "n_samples": check_integer("n_samples", n_samples, 1),
        "n_burnin": check_integer("n_burnin", n_burnin, 0),
        "thin": check_integer("thin", thin, 1),
    }
    if run["thin"] > run["n_samples"]:
        raise ValueError(f"thin = {thin} keeps no draw of n_samples = {n_samples}: thin must not exceed n_samples")
    return run


def check_dimensions(n_latent: Any, n_features: Any) -> tuple[int, int]:
    """D and H = M/2 from D and M."""
    D = check_integer("n_latent", n_latent, 1)
    M = check_integer("n_features", n_features, 2)
    if M % 2:
        raise ValueError(f"n_features must be even (a cosine and a sine per frequency), got {M}: use {M + 1}")
    return D, M // 2


def numeric(name: str, values: Any, ndim: int) -> np.ndarray:
    """A float array of ``ndim`` dimensions."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    array = np.ma.filled(values.astype(float), np.nan) if np.ma.isMaskedArray(values) else np.asarray(values)
    if array.dtype.kind in "mM":
        raise TypeError(f"{name} must hold numbers, got dates or times ({array.dtype})")
    if array.dtype == object or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        try:
            array = array.astype(float)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold numbers, got {array.dtype} data: {error}") from None
    if np.iscomplexobj(array):
        raise TypeError(f"{name} must hold real numbers, got complex ones")
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, got shape {array.shape}")
    return array.astype(float)


def check_table(Y: Any, likelihood: Likelihood, mask: Any, offset: Any, D: int) -> Table:
    """Check a table for a family: shapes, finiteness, support, rows and columns with nothing in them."""
    values = numeric("Y", Y, 2)
    N, J = values.shape
    if N == 0 or J == 0:
        raise ValueError(f"Y must have at least one row and one column, got shape {values.shape}")
    if N < D:
        raise ValueError(f"Y has fewer rows ({N}) than latent dimensions (n_latent = {D})")
    observed = ~np.isnan(values)
    if mask is not None:
        given = np.asarray(mask)
        if given.dtype != bool or given.shape != values.shape:
            raise ValueError(
                f"mask must be a boolean array of shape {values.shape}, True where a cell is observed; "
                f"got {given.dtype} of shape {given.shape}"
            )
        observed &= given
    infinite = observed & np.isinf(values)
    if infinite.any():
        n, j = np.argwhere(infinite)[0]
        raise ValueError(f"Y[{n}, {j}] is infinite; use NaN for a missing cell")
    for axis, name in ((1, "row"), (0, "column")):
        empty = np.flatnonzero(~observed.any(axis=axis))
        if empty.size:
            raise ValueError(
                f"{name} {empty[0]} of Y has no observed cell ({empty.size} such): nothing can be learned "
                f"about it; drop it"
            )
    likelihood.check(values, observed)
    offsets = np.zeros(N) if offset is None else numeric("offset", offset, 1)
    if offsets.shape != (N,) or not np.isfinite(offsets).all():
        raise ValueError(f"offset must be {N} finite numbers, one per row of Y, got shape {offsets.shape}")
    cells, counted, trials = likelihood.encode(values, observed)
    return Table(cells, counted, offsets, trials)


def check_start(init: Any, N: int, D: int, names: tuple[str, ...]) -> str | np.ndarray:
    """The name of a start, or starting positions."""
    if isinstance(init, str):
        check_choice("init", init, names)
        return init
    X = numeric("init", init, 2)
    if X.shape != (N, D) or not np.isfinite(X).all():
        raise ValueError(f"init must be finite numbers of shape ({N}, {D}), got shape {X.shape}")
    return X


def to_device(table: Table, dtype: str) -> Data:
    """The table as JAX arrays; no mask at all when every cell counts."""
    return Data(
        Y=jnp.asarray(table.Y, dtype),
        mask=None if table.observed.all() else jnp.asarray(table.observed),
        offset=jnp.asarray(table.offset, dtype),
        trials=None if table.trials is None else jnp.asarray(table.trials, dtype),
    )
