"""When the rows of a table were: times and sessions as a user gives them, checked, as a ``Chronology``."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ..numerics.errors import InputError, InputTypeError
from . import tables


class Timeline(NamedTuple):
    """Times and sessions of rows, on the host.

    Attributes
    ----------
    times : array (N,)
        In the user's unit; seconds since the first row, where dates were given; numbers of rows within their session,
        where nothing was.
    session : array (N,)
        Number of each row's session, counted from 0.
    labels : tuple
        Name of each session: as given, or its number.
    typical : float
        The median gap between rows of one session, with which learned lengthscales begin.
    """

    times: Float[np.ndarray, " N"]
    session: Int[np.ndarray, " N"]
    labels: tuple[Any, ...]
    typical: float

    @property
    def first(self) -> Bool[np.ndarray, " N"]:
        """Where a session begins."""
        return np.r_[True, np.diff(self.session) > 0]

    @property
    def gap(self) -> Float[np.ndarray, " N"]:
        """Time since the row before; 0 where a session begins."""
        return np.where(self.first, 0, np.diff(self.times, prepend=self.times[0]))

    @property
    def slices(self) -> list[slice]:
        """The rows of each session."""
        ends = [*np.flatnonzero(self.first)[1:], len(self.times)]
        return [slice(int(start), int(end)) for start, end in zip(np.flatnonzero(self.first), ends, strict=True)]


def read(reading: tables.Reading, times: Any, sessions: Any) -> Timeline:
    """Times and sessions of the rows of a table; a TsdFrame has its own, if none are given.

    Parameters
    ----------
    reading : Reading
        The table.
    times : array-like (N,) or None
        Increasing within each session: numbers, or dates. None: evenly spaced, one unit from row to row.
    sessions : array-like (N,), or of fewer numbers, or None
        A label for each row, with the rows of a session together; or the numbers of the rows, counted from 0, at which
        sessions begin. None: one session.
    """
    N = len(reading.values)
    if reading.kind == "timeseries":
        times = reading.index if times is None else times
        sessions = _epochs(reading) if sessions is None else sessions
    session, labels = _sessions(sessions, N)
    begins = np.r_[True, np.diff(session) > 0]
    if times is None:
        since = np.arange(N) - np.maximum.accumulate(np.where(begins, np.arange(N), 0))
        return Timeline(since.astype(float), session, labels, 1.0)
    values = _times(times, N)
    gap = np.diff(values, prepend=values[0])
    backward = np.flatnonzero(~begins & ~(gap > 0))
    if backward.size:
        row = int(backward[0])
        equal = gap[row] == 0
        remedy = (
            "put rows of one time together, or shift one of them"
            if equal
            else "sort the rows by time{or_sessions:, or give sessions= where a new session begins}"
        )
        raise InputError(
            "{parameter} must increase within a session, but {where:row {row}} has {value:g}, "
            + ("as the row before has" if equal else "after {before:g}")
            + " ({such} such): "
            + remedy,
            parameter="times",
            row=row,
            value=float(values[row]),
            before=float(values[row - 1]),
            such=backward.size,
        )
    between = gap[~begins]
    return Timeline(values, session, labels, float(np.median(between)) if between.size else 1.0)


def _epochs(reading: tables.Reading) -> Int[np.ndarray, " N"]:
    """Number of the epoch that each row lies in: the last that has begun."""
    starts = np.asarray(reading.support.start, float)
    return np.searchsorted(starts, np.asarray(reading.index, float), side="right") - 1


def _times(times: Any, N: int) -> Float[np.ndarray, " N"]:
    array = np.asarray(times)
    if array.dtype.kind == "M" and array.size:
        array = array - array.flat[0]
    if array.dtype.kind == "m":
        array = array / np.timedelta64(1, "s")  # NaN where there is no time
    values = tables.numeric("times", array, 1).copy()
    if values.shape != (N,):
        raise InputError(
            "{parameter} must be {N} numbers or dates, one per row of {Y}, got shape {shape}",
            parameter="times",
            N=N,
            shape=values.shape,
        )
    unknown = np.flatnonzero(~np.isfinite(values))
    if unknown.size:
        raise InputError(
            "{parameter} of {where:row {row}} is missing or infinite ({such} such): every row needs a time; a row "
            "without observed cells may stand for a gap",
            parameter="times",
            row=int(unknown[0]),
            such=unknown.size,
        )
    return values


def _sessions(sessions: Any, N: int) -> tuple[Int[np.ndarray, " N"], tuple[Any, ...]]:
    """Number of each row's session, and the labels of the sessions."""
    if sessions is None:
        return np.zeros(N, int), (0,)
    given = np.asarray(sessions, dtype=None if hasattr(sessions, "dtype") else object)
    if given.ndim != 1 or given.size > N or not given.size:
        raise InputError(
            "{parameter} must be a label for each of the {N} rows, or the numbers of the rows at which sessions begin; "
            "got shape {shape}",
            parameter="sessions",
            N=N,
            shape=given.shape,
        )
    if given.size < N:
        return _from_starts(given, N)
    labels = [value.item() if isinstance(value, np.generic) else value for value in given]
    for row, label in enumerate(labels):
        if label is None or label != label:
            raise InputError("{parameter} of {where:row {row}} is missing", parameter="sessions", row=row)
    begins = np.array([True, *(after != before for before, after in itertools.pairwise(labels))])
    names = [label for label, begin in zip(labels, begins, strict=True) if begin]
    if len(set(names)) < len(names):
        seen: set[Any] = set()
        again = next(i for i, name in enumerate(names) if name in seen or seen.add(name))
        raise InputError(
            "{parameter}: {where:row {row}} goes back to session {label}: the rows of a session must stand together, "
            "in order of time; sort the table",
            parameter="sessions",
            row=int(np.flatnonzero(begins)[again]),
            label=repr(names[again]),
        )
    return np.cumsum(begins) - 1, tuple(names)


def _from_starts(starts: np.ndarray, N: int) -> tuple[Int[np.ndarray, " N"], tuple[Any, ...]]:
    try:
        rows = np.array([int(start) for start in starts])
        whole = bool((rows == starts).all())
    except (TypeError, ValueError):
        whole = False
        rows = np.zeros(0, int)
    if not whole:
        raise InputTypeError(
            "{parameter} has {n} entries for {N} rows, which are then the numbers of the rows at which sessions begin, "
            "but they are no whole numbers: give a label for each row, or those numbers",
            parameter="sessions",
            n=len(starts),
            N=N,
        )
    if rows[0] != 0 or (np.diff(rows) <= 0).any() or rows[-1] >= N:
        raise InputError(
            "{parameter} must be labels of all {N} rows, or increasing numbers of rows from 0 to below {N} at which "
            "sessions begin; got {given}",
            parameter="sessions",
            N=N,
            given=rows.tolist(),
        )
    begins = np.isin(np.arange(N), rows)
    return np.cumsum(begins) - 1, tuple(range(len(rows)))
