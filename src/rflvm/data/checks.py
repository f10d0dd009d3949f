"""Checks of what a user passes in: every problem gets an error that names it, before any compilation."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..likelihoods import Likelihood
from ..likelihoods.base import first_bad_cell
from ..model.dynamics import Chronology, Matern
from ..model.joint import Data, Prior
from ..numerics.errors import InputError, InputTypeError
from ..numerics.names import hint
from ..numerics.units import Units, standardised
from . import tables
from .covariates import learn as learn_covariates
from .times import Timeline
from .times import read as read_timeline

# An array of more entries has no 32-bit index; seeds of scikit-learn and, in single precision, of JAX are 32 bits.
LARGEST_SIZE, LARGEST_SEED = 2**31 - 1, 2**32 - 1

# Single precision has holes between whole numbers from here on.
LARGEST_SINGLE_COUNT = 2.0**24

# Hyperparameters are squared and summed, and single precision has seven digits. Draws of a gamma variate whose shape is
# smaller than that of alpha here underflow to zero. Frequencies near mu0 are multiplied by positions near one; beyond
# the largest their cosines would be noise.
LARGEST_HYPERPARAMETER, LARGEST_MU0 = 1e6, 1e3
LEAST_HYPERPARAMETER = {"mu0": 0.0, "alpha_shape": 1e-2}

# Offsets of counts are logarithms. e^50 is beyond any count, and single precision ends at e^88.
LARGEST_LOG_EXPOSURE = 50.0


class Table(NamedTuple):
    """A checked table, on the host, as it was given; ``to_device`` standardises the cells of a table with units.

    Attributes
    ----------
    Y : ndarray of shape (N, J)
        Cells, 0 where they do not count.
    observed : ndarray of bool of shape (N, J)
        Which cells count.
    offset : ndarray of shape (N,)
        Offset of each row.
    trials : ndarray of shape (N, J) or None
        Trials of each cell.
    units : Units or None
        Location and scale of each column of the table that was fitted; None for a family without.
    timeline : Timeline or None
        Times and sessions of the rows, for a prior over time.
    covariates : ndarray of shape (N, C) or None
        Covariates of the rows, coded (``data/covariates.py``).
    """

    Y: np.ndarray
    observed: np.ndarray
    offset: np.ndarray
    trials: np.ndarray | None
    units: Units | None = None
    timeline: Timeline | None = None
    covariates: np.ndarray | None = None


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            "{parameter} must be one of {choices}, got {value}{hint}",
            parameter=name,
            choices=", ".join(map(repr, choices)),
            value=repr(value),
            hint=hint(value, choices),
        )


def check_integer(name: str, value: Any, least: int, most: int = LARGEST_SIZE) -> int:
    """A whole number from ``least`` to ``most``."""
    try:
        if isinstance(value, np.ndarray):  # of no dimensions it would pass, and be saved and shown as an array
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputTypeError(
            "{parameter} must be a whole number, got {value}", parameter=name, value=repr(value)
        ) from None
    if number < least:
        raise InputError("{parameter} must be at least {least}, got {value}", parameter=name, least=least, value=number)
    if number > most:
        raise InputError("{parameter} must be at most {most}, got {value}", parameter=name, most=most, value=number)
    return number


def check_seed(random_state: Any) -> int:
    """A seed; without a random state a fresh one, from the system and not from NumPy's generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return check_integer("random_state", random_state, 0, LARGEST_SEED)


def check_prior(prior: Any) -> Prior:
    """Hyperparameters of a size that squares and products of them can be computed."""
    if not isinstance(prior, Prior):
        raise InputTypeError(
            "{parameter} must be a Prior, such as rflvm.Prior(bias_scale=5), got {value}",
            parameter="prior",
            value=repr(prior),
        )
    for field in dataclasses.fields(prior):
        value = getattr(prior, field.name)
        least = LEAST_HYPERPARAMETER.get(field.name, 1 / LARGEST_HYPERPARAMETER)
        most = LARGEST_MU0 if field.name == "mu0" else LARGEST_HYPERPARAMETER
        if not least <= abs(value) <= most:
            raise InputError(
                "{parameter} must be from {least:g} to {most:g} in size, got {value:g}",
                parameter=f"prior.{field.name}",
                least=least,
                most=most,
                value=value,
            )
    return prior


def check_run(n_samples: Any, n_burnin: Any, thin: Any) -> dict[str, int]:
    """The lengths of a run."""
    run = {
        "n_samples": check_integer("n_samples", n_samples, 1),
        "n_burnin": check_integer("n_burnin", n_burnin, 0),
        "thin": check_integer("thin", thin, 1),
    }
    if run["thin"] > run["n_samples"]:
        raise InputError(
            "thin = {keep} keeps no draw of {n_samples} = {sweeps}: thin must not exceed {n_samples}",
            keep=run["thin"],
            sweeps=run["n_samples"],
        )
    return run


def check_dimensions(n_components: Any, n_features: Any) -> tuple[int, int]:
    """D and H = M/2 from D and M."""
    D = check_integer("n_components", n_components, 1)
    M = check_integer("n_features", n_features, 2)
    if M % 2:
        raise InputError(
            "{parameter} must be even (a cosine and a sine per frequency), got {M}: use {next}",
            parameter="n_features",
            M=M,
            next=M + 1,
        )
    return D, M // 2


def check_table(
    values: np.ndarray, likelihood: Likelihood, mask: Any, offset: Any, D: int, timeline: Timeline | None = None
) -> Table:
    """Check a table for a family: shapes, finiteness, support, rows and columns with nothing in them.

    With a timeline a row may have no observed cell: its neighbours in time say where it is.
    """
    N = values.shape[0]
    if N < D:
        raise InputError(
            "{Y} has fewer rows ({rows}) than latent dimensions ({n_components} = {D})",
            rows=f"{N} sample{'s' * (N > 1)}",
            D=D,
        )
    observed = ~np.isnan(values)
    if mask is not None:
        given = np.asarray(mask)
        if given.dtype != bool or given.shape != values.shape:
            raise InputError(
                "{parameter} must be a boolean array of shape {expected}, True where a cell is observed; "
                "got {dtype} of shape {shape}",
                parameter="mask",
                expected=values.shape,
                dtype=str(given.dtype),
                shape=given.shape,
            )
        observed &= given
    _check_finite(values, observed)
    if timeline is None:
        _check_not_empty(observed, 1, "row")
    _check_not_empty(observed, 0, "column")
    likelihood.check(values, observed)
    cells, counted, trials = likelihood.encode(values, observed)
    offset = check_offset(offset, N, likelihood)
    return Table(cells, counted, offset, trials, likelihood.units(cells, counted, offset), timeline)


def check_cells(values: np.ndarray, observed: np.ndarray, likelihood: Likelihood, *, empty_rows: bool) -> None:
    """Check some rows of a table for a family; what concerns whole columns is left to ``check_table``."""
    if values.dtype.kind == "f":
        _check_finite(values, observed)
    if not empty_rows:
        _check_not_empty(observed, 1, "row")
    likelihood.check(values if likelihood.counts else values.astype(float), observed)


def _check_not_empty(observed: np.ndarray, axis: int, name: str) -> None:
    """Raise when a row (axis 1) or a column (axis 0) has no observed cell."""
    empty = np.flatnonzero(~observed.any(axis=axis))
    if empty.size:
        raise InputError(
            "{where:{kind} {index} of Y} has no observed cell ({such} such): nothing can be learned about it; "
            "{drop_it:drop it}",
            kind=name,
            index=int(empty[0]),
            such=empty.size,
            **{name: int(empty[0])},
        )


def as_table(
    Y: Any, likelihood: Likelihood, mask: Any, offset: Any, D: int, dynamics: Matern | None = None, times: Any = None,
    sessions: Any = None, covariates: Any = None,
) -> Table:  # fmt: skip
    """A table as an engine takes it: of any kind, read and checked here, or one that was checked before."""
    if isinstance(Y, Table):
        return Y
    reading = tables.read(Y)
    timeline = timeline_for(dynamics, reading, times, sessions)
    return with_covariates(check_table(reading.values, likelihood, mask, offset, D, timeline), covariates, Y)


def table_and_family(
    Y: Any, likelihood: Likelihood, mask: Any, offset: Any, D: int, dynamics: Matern | None = None, times: Any = None,
    sessions: Any = None, covariates: Any = None,
) -> tuple[Table, Likelihood]:  # fmt: skip
    """The same for a table that is to be fitted, and the family with what it takes from the table."""
    if isinstance(Y, Table):
        return Y, likelihood
    reading = tables.read(Y)
    family = likelihood.learned_from(reading.values, ~np.isnan(reading.values))
    timeline = timeline_for(dynamics, reading, times, sessions)
    table = check_table(reading.values, family, mask, offset, D, timeline)
    return with_covariates(table, covariates, Y), family


def with_covariates(table: Table, covariates: Any, Y: Any) -> Table:
    """A table that is to be fitted with covariates of its rows, if there are any."""
    learned = learn_covariates(covariates, len(table.Y), Y)
    return table if learned is None else table._replace(covariates=learned.values)


def timeline_for(dynamics: Matern | None, reading: tables.Reading, times: Any, sessions: Any) -> Timeline | None:
    """Times and sessions of the rows of a table, if there is a prior over time, without which they say nothing."""
    if dynamics is not None:
        return read_timeline(reading, times, sessions)
    for name, given in (("times", times), ("sessions", sessions)):
        if given is not None:
            raise InputError(
                "{parameter} needs a prior over time: without one rows are independent, and the order of rows says "
                'nothing; {with_dynamics:give dynamics="matern32"}',
                parameter=name,
            )
    return None


def encode_table(
    values: np.ndarray, likelihood: Likelihood, offset: np.ndarray, units: Units | None,
    timeline: Timeline | None = None, covariates: np.ndarray | None = None,
) -> Table:  # fmt: skip
    """A table, an offset and covariates that were checked before, in the units of the table that was fitted."""
    cells, counted, trials = likelihood.encode(values, ~np.isnan(values))
    return Table(cells, counted, offset, trials, units, timeline, covariates)


def _check_finite(values: np.ndarray, observed: np.ndarray) -> None:
    infinite = observed & np.isinf(values)
    if infinite.any():
        n, j = map(int, np.argwhere(infinite)[0])
        raise InputError("{where:Y[{row}, {column}]} is infinite; use NaN for a missing cell", row=n, column=j)


def check_offset(offset: Any, N: int, likelihood: Likelihood) -> np.ndarray:
    """One finite number per row, zero when there is none; with a log link of a size that it can be the log of."""
    if offset is None:
        return np.zeros(N)
    # A copy: JAX may look at the memory of an array for as long as it is in use.
    offsets = tables.numeric("offset", offset, 1).copy()
    if offsets.shape != (N,) or not np.isfinite(offsets).all():
        raise InputError(
            "{parameter} must be {N} finite numbers, one per row of {Y}, got shape {shape}",
            parameter="offset",
            N=N,
            shape=offsets.shape,
        )
    if offsets.any() and not likelihood.offsets:
        raise InputError(
            "{parameter} is added to the predictors of all columns of a row, and here it would have a meaning for "
            "counts only: fit counts alone with it, or leave it out",
            parameter="offset",
        )
    far = np.flatnonzero(likelihood.log_link & (np.abs(offsets) > LARGEST_LOG_EXPOSURE))
    if far.size:
        raise InputError(
            "{parameter} of {where:row {row}} is {value:g} ({such} such), and the log of an exposure must be from "
            "-{most:g} to {most:g}: give logarithms of exposures, in units in which these are near 1",
            parameter="offset",
            row=int(far[0]),
            value=float(offsets[far[0]]),
            most=LARGEST_LOG_EXPOSURE,
            such=far.size,
        )
    return offsets


def check_exposure(exposure: Any, likelihood: Likelihood) -> None:
    """Totals are the exposures of counts with a log link; those of a multinomial row are fixed anyway."""
    check_choice("exposure", exposure, ("total",))
    if not likelihood.log_link:
        raise InputError(
            '{exposure_total:exposure="total"} is for the poisson and negative_binomial likelihoods and others with a '
            "log link, not for {family}",
            family=likelihood.name,
        )


def refuse_offset(offset: Any) -> None:
    """With ``exposure="total"`` the offset is that of ``log_totals``."""
    if offset is not None:
        raise InputError(
            '{exposure_total:exposure="total"} makes the offset from the totals of the rows: leave out {offset:offset=}'
        )


def log_totals(values: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """Log of each row's total relative to the sum of its observed columns' means in the fitted table.

    Zero for a row without any cell. Half a count is added to each column of the fitted table, for new rows may have
    counts in columns that had none.
    """
    return log_exposures(values, ~np.isnan(values), usual_counts(fitted))


def usual_counts(fitted: np.ndarray) -> np.ndarray:
    """Means of the columns of the fitted table, with half a count added to each column."""
    return np.nanmean(fitted, axis=0) + 0.5 / len(fitted)


def log_exposures(values: np.ndarray, observed: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Log of each row's total relative to the sum of the ``usual_counts`` of its observed columns."""
    total, expected = np.sum(values, axis=1, where=observed, dtype=float), observed @ usual
    empty = np.flatnonzero(observed.any(axis=1) & (total == 0))
    if empty.size:
        raise InputError(
            '{where:row {row} of Y} has no counts ({such} such), and {exposure_total:exposure="total"} needs the log '
            "of its total: {drop_it:drop it}",
            row=int(empty[0]),
            such=empty.size,
        )
    return np.log(np.where(total > 0, total, 1) / np.where(total > 0, expected, 1))


def check_rows(
    values: np.ndarray,
    likelihood: Likelihood,
    offset: Any,
    units: Units | None,
    covariates: np.ndarray | None = None,
    timeline: Timeline | None = None,
) -> Table:
    """Rows to be placed in a fitted model, in the units of its table. They may have no observed cell at all."""
    observed = ~np.isnan(values)
    _check_finite(values, observed)
    likelihood.check(values, observed)
    offset = check_offset(offset, len(values), likelihood)
    return encode_table(values, likelihood, offset, units, timeline, covariates)


def check_columns(reading: tables.Reading, J: int, names: tuple[str, ...] | None, estimator: str) -> None:
    """Raise unless the columns are those of the fit, in their order."""
    check_column_names(reading.columns, reading.values.shape[1], J, names, estimator)


def check_column_names(
    columns: tuple[str, ...] | None, n: int, J: int, names: tuple[str, ...] | None, estimator: str
) -> None:
    """Raise unless n columns with these names are the J of the fit, in their order; the words are scikit-learn's."""
    if names is not None and columns is not None and names != columns:
        unseen, missing = (sorted(set(a) - set(b)) for a, b in ((columns, names), (names, columns)))
        listed = lambda some: "".join(f"- {name}\n" for name in some[:5]) + "- ...\n" * (len(some) > 5)  # noqa: E731
        raise ValueError(
            "The feature names should match those that were passed during fit.\n"
            + f"Feature names unseen at fit time:\n{listed(unseen)}" * bool(unseen)
            + f"Feature names seen at fit time, yet now missing:\n{listed(missing)}" * bool(missing)
            + "Feature names must be in the same order as they were in fit.\n" * (not unseen and not missing)
        )
    if n != J:
        raise InputError(
            "X has {J} features, but {estimator} is expecting {expected} features as input",
            J=n,
            estimator=estimator,
            expected=J,
        )


def check_positions(X: Any, D: int) -> np.ndarray:
    """Latent positions."""
    positions = tables.numeric("X", X, 2)
    if positions.shape[1] != D or not np.isfinite(positions).all():
        raise InputError(
            "{parameter} must be finite positions of shape (n, {D}), got shape {shape}",
            parameter="X",
            D=D,
            shape=positions.shape,
        )
    return positions


def check_start(init: Any, N: int, D: int, names: tuple[str, ...]) -> str | np.ndarray:
    """The name of a start, or starting positions."""
    if isinstance(init, str):
        check_choice("init", init, names)
        return init
    X = tables.numeric("init", init, 2).copy()
    if X.shape != (N, D) or not np.isfinite(X).all():
        raise InputError(
            "{parameter} must be finite numbers of shape {expected}, got shape {shape}",
            parameter="init",
            expected=(N, D),
            shape=X.shape,
        )
    return X


def single_suffices(table: Table | Data, likelihood: Likelihood) -> bool:
    """Whether single precision tells the counts and trials of a table apart; always true of other tables."""
    parts = [np.asarray(part) for part in (table.Y, table.trials) if part is not None]
    return not likelihood.counts or all(np.max(part, initial=0) <= LARGEST_SINGLE_COUNT for part in parts)


def to_device(table: Table, dtype: str) -> Data:
    """The table as JAX arrays, on the standard scale where it has units; no mask at all when every cell counts."""
    cells = standardised(table.Y, table.observed, table.offset, table.units)
    offset = table.offset if table.units is None else np.zeros_like(table.offset)
    large = np.abs(cells) > np.finfo(dtype).max
    if large.any():
        raise InputError(
            "{cell} is too large for {dtype}: rescale {Y}{or_float64:, or use dtype='float64'}",
            cell=first_bad_cell(large, table.Y),
            dtype=dtype,
        )
    return Data(
        Y=jnp.asarray(cells, dtype),
        mask=None if table.observed.all() else jnp.asarray(table.observed),
        offset=jnp.asarray(offset, dtype),
        trials=None if table.trials is None else jnp.asarray(table.trials, dtype),
        chronology=None if table.timeline is None else _on_device(table.timeline, dtype),
        covariates=None if table.covariates is None else jnp.asarray(table.covariates, dtype),
    )


def _on_device(timeline: Timeline, dtype: str) -> Chronology:
    """Gaps are differences in double precision: times may be seconds since 1970."""
    gap, typical = jnp.asarray(timeline.gap, dtype), jnp.asarray(timeline.typical, dtype)
    return Chronology(gap, jnp.asarray(timeline.first), typical)
