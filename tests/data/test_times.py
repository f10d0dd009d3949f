"""Times and sessions as users give them: every form of them becomes one timeline, or is refused by name."""

import jax.numpy as jnp
import numpy as np
import pytest

from rflvm import likelihoods
from rflvm.data import checks, tables, times

Y = np.arange(12.0).reshape(6, 2)


def timeline(given=None, sessions=None, Y=Y):
    return times.read(tables.read(Y), given, sessions)


def test_without_times_rows_are_evenly_spaced_and_there_is_one_session():
    found = timeline()
    np.testing.assert_array_equal(found.times, np.arange(6))
    np.testing.assert_array_equal(found.gap, [0, 1, 1, 1, 1, 1])
    assert (found.labels, found.typical) == ((0,), 1.0)


def test_sessions_by_label_or_by_start():
    for sessions in (["b", "b", "a", "a", "a", "c"], np.array([7, 7, 3, 3, 3, 5]), [0, 2, 5], np.array([0, 2, 5])):
        found = timeline(sessions=sessions)
        np.testing.assert_array_equal(found.session, [0, 0, 1, 1, 1, 2])
        np.testing.assert_array_equal(found.gap, [0, 1, 0, 1, 1, 0])
        np.testing.assert_array_equal(found.times, [0, 1, 0, 1, 2, 0])
        assert found.slices == [slice(0, 2), slice(2, 5), slice(5, 6)]
    assert timeline(sessions=["b", "b", "a", "a", "a", "c"]).labels == ("b", "a", "c")


def test_irregular_times_may_begin_anew_in_each_session():
    found = timeline([1e9, 1e9 + 0.25, 0, 10, 30, 0], [0, 2, 5])
    np.testing.assert_array_equal(found.gap, [0, 0.25, 0, 10, 20, 0])
    assert found.typical == 10


def test_dates_become_seconds():
    dates = np.datetime64("2024-01-01") + np.array([0, 1, 2, 5, 6, 9]).astype("timedelta64[h]")
    np.testing.assert_array_equal(timeline(dates).gap, np.array([0, 1, 1, 3, 1, 3]) * 3600.0)
    dates[3] = np.datetime64("NaT")
    with pytest.raises(ValueError, match="times of row 3 is missing"):
        timeline(dates)


def test_a_tsdframe_has_its_times_and_epochs():
    pynapple = pytest.importorskip("pynapple")
    support = pynapple.IntervalSet(start=[0.0, 10.0], end=[5.0, 20.0])
    series = pynapple.TsdFrame(t=np.array([0.5, 1.0, 4.0, 10.0, 12.0, 15.0]), d=Y, time_support=support)
    found = timeline(Y=series)
    np.testing.assert_array_equal(found.gap, [0, 0.5, 3, 0, 2, 3])
    assert timeline(Y=series, sessions=[0]).labels == (0,)


@pytest.mark.parametrize(
    ("given", "sessions", "match"),
    [
        ([0, 1, 1, 2, 3, 4], None, r"times must increase within a session, but row 2 has 1, as the row before has"),
        ([0, 1, 3, 2, 3, 4], None, r"row 3 has 2, after 3 \(1 such\): sort the rows by time, or give sessions="),
        ([0, 1, np.nan, 2, 3, 4], None, r"times of row 2 is missing or infinite"),
        ([0, 1, 2], None, r"times must be 6 numbers or dates, one per row of Y, got shape \(3,\)"),
        (None, ["a", "b", "a", "a", "b", "b"], r"sessions: row 2 goes back to session 'a'"),
        (None, ["a", None, "a", "a", "b", "b"], r"sessions of row 1 is missing"),
        (None, [0, 9], r"sessions must be labels of all 6 rows, or increasing numbers of rows from 0 to below 6"),
        (None, [1, 3], r"increasing numbers of rows from 0"),
        (None, [[0], [3]], r"got shape \(2, 1\)"),
    ],
)
def test_what_cannot_be_a_timeline_is_refused_by_name(given, sessions, match):
    with pytest.raises(ValueError, match=match):
        timeline(given, sessions)


def test_starts_that_are_no_numbers_are_refused():
    with pytest.raises(TypeError, match="no whole numbers"):
        timeline(sessions=["a", "b"])


def test_a_row_without_cells_is_allowed_where_there_is_time():
    gaps = Y.copy()
    gaps[3] = np.nan
    with pytest.raises(ValueError, match="row 3 of Y has no observed cell"):
        checks.check_table(gaps, likelihoods.Poisson(), None, None, 2)
    table = checks.check_table(gaps, likelihoods.Poisson(), None, None, 2, timeline())
    chronology = checks.to_device(table, "float32").chronology
    assert chronology is not None
    assert chronology.gap.dtype == jnp.float32
    with pytest.raises(ValueError, match="column 1 of Y has no observed cell"):
        checks.check_table(np.where([[True, False]], Y, np.nan), likelihoods.Poisson(), None, None, 2, timeline())
