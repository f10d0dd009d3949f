"""Checks of what a user passes in: every problem gets an error that names it, before any compilation."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..likelihoods import Likelihood
from ..likelihoods.base import first_bad_cell
from ..model.joint import Data
from ..numerics.compilation import refuse_after_fork
from . import tables


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


def check_seed(random_state: Any) -> int:
    """A seed; without a random state a fresh one, from the system and not from NumPy's generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return check_integer("random_state", random_state, 0)


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


def check_dimensions(n_components: Any, n_features: Any) -> tuple[int, int]:
    """D and H = M/2 from D and M."""
    D = check_integer("n_components", n_components, 1)
    M = check_integer("n_features", n_features, 2)
    if M % 2:
        raise ValueError(f"n_features must be even (a cosine and a sine per frequency), got {M}: use {M + 1}")
    return D, M // 2


def check_table(Y: Any, likelihood: Likelihood, mask: Any, offset: Any, D: int) -> Table:
    """Check a table for a family: shapes, finiteness, support, rows and columns with nothing in them."""
    values = tables.read(Y).values
    N = values.shape[0]
    if N < D:
        raise ValueError(f"Y has fewer rows ({N} sample{'s' * (N > 1)}) than latent dimensions (n_components = {D})")
    observed = ~np.isnan(values)
    if mask is not None:
        given = np.asarray(mask)
        if given.dtype != bool or given.shape != values.shape:
            raise ValueError(
                f"mask must be a boolean array of shape {values.shape}, True where a cell is observed; "
                f"got {given.dtype} of shape {given.shape}"
            )
        observed &= given
    _check_finite(values, observed)
    for axis, name in ((1, "row"), (0, "column")):
        empty = np.flatnonzero(~observed.any(axis=axis))
        if empty.size:
            raise ValueError(
                f"{name} {empty[0]} of Y has no observed cell ({empty.size} such): nothing can be learned "
                f"about it; drop it"
            )
    likelihood.check(values, observed)
    offsets = check_offset(offset, N)
    cells, counted, trials = likelihood.encode(values, observed)
    return Table(cells, counted, offsets, trials)


def _check_finite(values: np.ndarray, observed: np.ndarray) -> None:
    infinite = observed & np.isinf(values)
    if infinite.any():
        n, j = np.argwhere(infinite)[0]
        raise ValueError(f"Y[{n}, {j}] is infinite; use NaN for a missing cell")


def check_offset(offset: Any, N: int) -> np.ndarray:
    """One finite number per row, zero when there is none."""
    if offset is None:
        return np.zeros(N)
    # A copy: JAX may look at the memory of an array for as long as it is in use.
    offsets = tables.numeric("offset", offset, 1).copy()
    if offsets.shape != (N,) or not np.isfinite(offsets).all():
        raise ValueError(f"offset must be {N} finite numbers, one per row of Y, got shape {offsets.shape}")
    return offsets


def check_exposure(exposure: Any, likelihood: Likelihood) -> None:
    """Totals are the exposures of counts with a log link; those of a multinomial row are fixed anyway."""
    check_choice("exposure", exposure, ("total",))
    if not likelihood.log_link:
        raise ValueError(
            f'exposure="total" is for counts with a log link (poisson, negative_binomial), not for {likelihood.name}'
        )


def log_totals(values: np.ndarray, column_means: np.ndarray) -> np.ndarray:
    """Log of each row's total over what its observed columns have on average; zero for a row without any cell."""
    observed = ~np.isnan(values)
    total, usual = np.nansum(values, axis=1), observed @ column_means
    empty = np.flatnonzero(observed.any(axis=1) & (total == 0))
    if empty.size:
        raise ValueError(
            f'row {empty[0]} of Y has no counts ({empty.size} such), and exposure="total" needs the log of its total: '
            "drop it"
        )
    return np.log(np.where(total > 0, total, 1) / np.where(total > 0, usual, 1))


def check_rows(values: np.ndarray, likelihood: Likelihood, offset: Any) -> Table:
    """Rows to be placed in a fitted model. They may have no observed cell at all."""
    observed = ~np.isnan(values)
    _check_finite(values, observed)
    likelihood.check(values, observed)
    offsets = check_offset(offset, len(values))
    cells, counted, trials = likelihood.encode(values, observed)
    return Table(cells, counted, offsets, trials)


def check_columns(reading: tables.Reading, J: int, names: np.ndarray | None, estimator: str) -> None:
    """Raise unless the columns are those of the fit, in their order; the words are scikit-learn's."""
    if names is not None and reading.columns is not None and tuple(names) != reading.columns:
        unseen, missing = (sorted(set(a) - set(b)) for a, b in ((reading.columns, names), (names, reading.columns)))
        listed = lambda some: "".join(f"- {name}\n" for name in some[:5]) + "- ...\n" * (len(some) > 5)  # noqa: E731
        raise ValueError(
            "The feature names should match those that were passed during fit.\n"
            + f"Feature names unseen at fit time:\n{listed(unseen)}" * bool(unseen)
            + f"Feature names seen at fit time, yet now missing:\n{listed(missing)}" * bool(missing)
            + "Feature names must be in the same order as they were in fit.\n" * (not unseen and not missing)
        )
    if reading.values.shape[1] != J:
        raise ValueError(
            f"X has {reading.values.shape[1]} features, but {estimator} is expecting {J} features as input"
        )


def check_positions(X: Any, D: int) -> np.ndarray:
    """Latent positions."""
    positions = tables.numeric("X", X, 2)
    if positions.shape[1] != D or not np.isfinite(positions).all():
        raise ValueError(f"X must be finite positions of shape (n, {D}), got shape {positions.shape}")
    return positions


def check_start(init: Any, N: int, D: int, names: tuple[str, ...]) -> str | np.ndarray:
    """The name of a start, or starting positions."""
    if isinstance(init, str):
        check_choice("init", init, names)
        return init
    X = tables.numeric("init", init, 2).copy()
    if X.shape != (N, D) or not np.isfinite(X).all():
        raise ValueError(f"init must be finite numbers of shape ({N}, {D}), got shape {X.shape}")
    return X


def to_device(table: Table, dtype: str) -> Data:
    """The table as JAX arrays; no mask at all when every cell counts."""
    refuse_after_fork()
    large = np.abs(table.Y) > np.finfo(dtype).max
    if large.any():
        raise ValueError(
            f"{first_bad_cell(large, table.Y)} is too large for {dtype}: rescale Y, or use dtype='float64'"
        )
    return Data(
        Y=jnp.asarray(table.Y, dtype),
        mask=None if table.observed.all() else jnp.asarray(table.observed),
        offset=jnp.asarray(table.offset, dtype),
        trials=None if table.trials is None else jnp.asarray(table.trials, dtype),
    )
