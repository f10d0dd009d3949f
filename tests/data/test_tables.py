"""Every kind of table becomes the same float array or is refused by name; embeddings go back in the kind they came."""

import dataclasses
import datetime
import decimal
import fractions
import re
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.data.tables import numeric, place, read

Y = np.array([[1.0, 0, 2.5], [np.nan, 4, 0], [3, 0, 0], [7, 8, 1]])
COUNTS = np.where(np.isnan(Y), 0, np.floor(Y))
TYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", ">f8", "longdouble")


class FakeAnnData:
    """The attributes of an AnnData that are used."""

    def __init__(self, X, layers=None, names=("a", "b", "c")):
        self.X, self.layers, self.obsm = X, layers or {}, {}
        self.obs_names, self.var_names = pd.Index([f"cell{n}" for n in range(4)]), pd.Index(names)


@dataclasses.dataclass
class FakeTsdFrame:
    """The attributes of a pynapple TsdFrame that are used, and one of those that it borrows from NumPy."""

    t: np.ndarray
    d: np.ndarray
    time_support: Any
    columns: Any
    dtypes = sum


# What is read


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, np.ndarray.tolist, lambda Y: Y.astype(object)])
def test_arrays_and_lists(make):
    reading = read(make(Y))
    np.testing.assert_array_equal(reading.values, Y)
    assert reading.values.dtype == np.float64
    assert (reading.columns, reading.index, reading.kind) == (None, None, "array")


@pytest.mark.parametrize("dtype", TYPES)
def test_all_kinds_of_numbers(dtype):
    values = read(COUNTS.astype(dtype)).values
    assert values.dtype == np.float64
    assert values.dtype.isnative
    np.testing.assert_array_equal(values, COUNTS.astype(dtype).astype(float))


def test_arrays_of_jax():
    np.testing.assert_array_equal(read(jnp.asarray(COUNTS)).values, COUNTS)


def test_nothing_is_copied_that_need_not_be():
    for same in (Y, np.asfortranarray(Y), Y[::2]):
        assert np.shares_memory(read(same).values, same)
    frozen = Y.copy()
    frozen.setflags(write=False)
    assert np.shares_memory(read(frozen).values, frozen)
    frame = pd.DataFrame(Y)
    assert np.shares_memory(read(frame).values, frame.to_numpy())


def test_masked_cells_are_missing_whatever_they_hold():
    hidden = COUNTS == 4
    np.testing.assert_array_equal(read(np.ma.array(COUNTS, mask=hidden)).values, np.where(hidden, np.nan, COUNTS))
    np.testing.assert_array_equal(read(np.ma.array(COUNTS)).values, COUNTS)
    large = np.ma.array([[1, 2**60]], mask=[[False, True]])
    np.testing.assert_array_equal(read(large).values, [[1, np.nan]])
    assert large.data[0, 1] == 2**60
    np.testing.assert_array_equal(read(np.ma.array([["x", 2]], object, mask=[[True, False]])).values, [[np.nan, 2]])


def test_objects_that_are_numbers():
    cells = [[True, decimal.Decimal("2.5"), fractions.Fraction(1, 4)], [None, pd.NA, np.float32(3)], [2**53 - 1, 1, 0]]
    expected = [[1, 2.5, 0.25], [np.nan, np.nan, 3], [2**53 - 1, 1, 0]]
    np.testing.assert_array_equal(read(np.array(cells, object)).values, expected)


def test_frames_keep_names_and_index():
    frame = pd.DataFrame(Y, columns=["a", "b", "a"], index=list("wxyz"))
    reading = read(frame)
    np.testing.assert_array_equal(reading.values, Y)
    assert (reading.columns, reading.kind) == (("a", "b", "a"), "frame")
    assert reading.index is frame.index


@pytest.mark.parametrize("columns", [None, [3, 1, 2], [("a", 1), ("a", 2), ("b", 1)]])
def test_names_that_are_not_strings_are_no_names(columns):
    assert read(pd.DataFrame(Y, columns=columns)).columns is None


def test_some_names_that_are_strings_are_refused():
    with pytest.raises(TypeError, match=r"column names of Y must be strings, all or none of them, got 1 among"):
        read(pd.DataFrame(Y, columns=["a", 1, "b"]))


def test_columns_of_all_types_of_numbers_in_one_frame():
    frame = pd.DataFrame(
        {
            "Int64": pd.array([1, None, 3], "Int64"),
            "bool": [True, False, True],
            "boolean": pd.array([True, None, False], "boolean"),
            "Float64": pd.array([1.5, None, 2], "Float64"),
            "int8": np.array([1, -2, 3], "int8"),
            "object": [1, pd.NA, None],
            "sparse": pd.arrays.SparseArray([0, 0, 1]),
        }
    )
    nan = np.nan
    expected = [[1, 1, 1, 1.5, 1, 1, 0], [nan, 0, nan, nan, -2, nan, 0], [3, 1, 0, 2, 3, nan, 1]]
    np.testing.assert_array_equal(read(frame).values, expected)
    for j, name in enumerate(frame):
        np.testing.assert_array_equal(read(frame[[name]]).values[:, 0], np.array(expected)[:, j])


@pytest.mark.parametrize(
    "column",
    [
        ["x", "y"],
        pd.Categorical([1, 2]),
        pd.to_datetime(["2020-01-01", "2021-01-01"]),
        pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("UTC"),
        pd.to_timedelta([1, 2], "s"),
        pd.period_range("2020", periods=2),
        [{}, 1],
        ["1", 2],
    ],
)
def test_columns_that_are_not_numbers_are_named(column):
    with pytest.raises(TypeError, match=r"^column 'wrong' of Y must hold numbers, got "):
        read(pd.DataFrame({"right": [1.0, 2.0], "wrong": column}))


def test_polars_frames():
    import polars

    reading = read(polars.DataFrame({"a": [1, None, 3], "b": [True, False, None], "c": [1.5, None, 0.0]}))
    np.testing.assert_array_equal(reading.values, [[1, 1, 1.5], [np.nan, 0, np.nan], [3, np.nan, 0]])
    assert (reading.columns, reading.index, reading.kind) == (("a", "b", "c"), None, "frame")
    with pytest.raises(TypeError, match="column 's' of Y must hold numbers"):
        read(polars.DataFrame({"s": ["x"]}))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_sparse_tables(make, form):
    sparse = make(np.where(np.isnan(Y), 6, Y))
    sparse.data[sparse.data == 6] = np.nan
    sparse.data[sparse.data == 8] = 0  # stored, and yet zero
    reading = read(sparse.asformat(form))
    np.testing.assert_array_equal(reading.values, np.where(Y == 8, 0, Y))
    assert reading.kind == "sparse"


# AnnData and time series


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_annotated_data(make):
    data = FakeAnnData(make(COUNTS), {"raw": make(2 * COUNTS), "log": make(COUNTS)})
    reading = read(data)
    np.testing.assert_array_equal(reading.values, COUNTS)
    assert (reading.columns, reading.kind) == (("a", "b", "c"), "anndata")
    assert reading.index is data.obs_names
    np.testing.assert_array_equal(read(data, "raw").values, 2 * COUNTS)
    with pytest.raises(ValueError, match=r"Y has no layer 'counts'; its layers: 'raw', 'log'"):
        read(data, "counts")


def test_annotated_data_on_disk_are_loaded():
    on_disk = SimpleNamespace(to_memory=lambda: scipy.sparse.csr_matrix(COUNTS))
    np.testing.assert_array_equal(read(FakeAnnData(on_disk)).values, COUNTS)


def test_annotated_data_without_a_matrix_need_a_layer():
    with pytest.raises(ValueError, match=r"Y has no X: name one of its layers: 'raw'"):
        read(FakeAnnData(None, {"raw": COUNTS}))
    with pytest.raises(ValueError, match=r"Y has no layer 'raw'; its layers: none"):
        read(FakeAnnData(COUNTS), "raw")


@pytest.mark.parametrize("table", [Y, pd.DataFrame(Y), scipy.sparse.csr_array(COUNTS)])
def test_a_layer_of_something_without_layers_is_refused(table):
    with pytest.raises(ValueError, match=r"layer = 'raw' was given, but Y \(.*\) has no layers"):
        read(table, "raw")


@pytest.mark.parametrize(("columns", "names"), [(pd.RangeIndex(3), None), (["a", "b", "c"], ("a", "b", "c"))])
def test_time_series(columns, names):
    series = FakeTsdFrame(np.arange(4.0), Y, "always", columns)
    reading = read(series)
    np.testing.assert_array_equal(reading.values, Y)
    assert (reading.columns, reading.kind) == (names, "timeseries")
    assert reading.index is series.t


def test_a_frame_with_columns_named_like_a_time_series_is_a_frame():
    assert read(pd.DataFrame(Y, columns=["t", "d", "time_support"])).kind == "frame"


def test_embeddings_go_back_in_the_kind_of_the_table():
    X = np.ones((4, 2))
    for table in (Y, pd.DataFrame(Y), scipy.sparse.csr_array(COUNTS), Y.tolist()):
        assert place(table, X, ("u", "v"), "X_rflvm") is X
    data = FakeAnnData(COUNTS)
    assert place(data, X, ("u", "v"), "X_rflvm") is X
    assert data.obsm == {"X_rflvm": X}
    series = FakeTsdFrame(np.arange(4.0), Y, "always", None)
    placed = place(series, X, ("u", "v"), "X_rflvm")
    assert isinstance(placed, FakeTsdFrame)
    assert placed.t is series.t
    assert placed.d is X
    assert (placed.time_support, placed.columns) == ("always", ["u", "v"])


def test_a_real_anndata():
    import anndata

    data = anndata.AnnData(scipy.sparse.csr_matrix(COUNTS), layers={"raw": 2 * COUNTS})
    np.testing.assert_array_equal(read(data).values, COUNTS)
    np.testing.assert_array_equal(read(data, "raw").values, 2 * COUNTS)
    place(data, COUNTS[:, :2], ("u", "v"), "X_rflvm")
    np.testing.assert_array_equal(data.obsm["X_rflvm"], COUNTS[:, :2])


def test_a_real_time_series():
    import pynapple

    support = pynapple.IntervalSet([0, 1.4], [0.9, 4])
    series = pynapple.TsdFrame(t=np.arange(4) / 2, d=COUNTS, time_support=support, columns=["a", "b", "c"])
    reading = read(series)
    assert (reading.kind, reading.columns, len(reading.values)) == ("timeseries", ("a", "b", "c"), len(series))
    placed = place(series, np.ones((len(series), 2)), ("u", "v"), "X_rflvm")
    assert (type(placed), list(placed.columns)) == (type(series), ["u", "v"])
    np.testing.assert_array_equal(placed.t, series.t)
    np.testing.assert_array_equal(placed.time_support, series.time_support)


# What is refused, in the words that scikit-learn's checks of an estimator look for


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (np.ones(5), ValueError, r"Y must have 2 dimensions, got shape \(5,\)\. Reshape your data: "),
        (np.ones((2, 2, 2)), ValueError, r"Y must have 2 dimensions, got shape \(2, 2, 2\)$"),
        (3, ValueError, r"Y must have 2 dimensions, got shape \(\)$"),
        (None, ValueError, "Y must have 2 dimensions"),
        (pd.Series([1, 2]), ValueError, "Reshape your data"),
        (np.ones((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\."),
        (np.ones((12, 0)), ValueError, r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\."),
        (pd.DataFrame(index=[1, 2]), ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1 is required"),
        ([[1, 2], [3]], ValueError, "Y cannot be read as an array of numbers: .*inhomogeneous"),
        (Y + 1j, ValueError, "Y must hold real numbers: Complex data not supported"),
        (scipy.sparse.csr_array(COUNTS + 1j), ValueError, "Complex data not supported"),
        (np.ma.array(Y + 1j), ValueError, "Complex data not supported"),
        (np.array([[1, 2j]], object), ValueError, "Complex data not supported, got 2j in row 0 and column 1"),
        ("abc", TypeError, "Y must hold numbers, got <U3 data"),
        ([["1", "2"]], TypeError, "Y must hold numbers, got <U1 data"),
        (np.array([["x"]], np.dtypes.StringDType()), TypeError, r"Y must hold numbers, got StringDType\(\) data"),
        (np.array([[1, "2"]], object), TypeError, "Y must hold numbers, got '2' in row 0 and column 1"),
        (np.array([[{"foo": "bar"}, 1.0]], object), TypeError, r"argument must be .* string.* number.*, not 'dict'"),
        ({"a": [1, 2]}, TypeError, "Y must hold numbers, got a value of type dict: "),
        (np.zeros((2, 2), [("a", float)]), TypeError, "Y must hold numbers"),
        (np.array([["2020-01-01"]], "datetime64[D]"), TypeError, "Y must hold numbers, got dates or times"),
        (np.array([[np.timedelta64(1, "s")]], object), TypeError, "Y must hold numbers"),
        (np.array([[1, 2**53]]), ValueError, r"Y holds a whole number of 2\*\*53 or beyond in row 0 and column 1"),
        (
            np.array([[1], [2**64 - 1]], "uint64"),
            ValueError,
            "beyond in row 1 and column 0, which cannot be represented",
        ),
        (np.array([[-(2**62)]]), ValueError, r"2\*\*53 or beyond"),
        ([[10**400, 1]], ValueError, r"2\*\*53 or beyond in row 0 and column 0"),
        (pd.DataFrame({"a": pd.array([1, None, 2**53], "Int64")}), ValueError, r"column 'a' of Y holds .* in row 2"),
    ],
)
def test_what_is_no_table_of_numbers_is_named(table, error, message):
    with pytest.raises(error, match=message):
        read(table)


def test_other_arrays_are_read_by_the_same_rules():
    np.testing.assert_array_equal(numeric("offset", [1, 2], 1), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"^offset must have 1 dimension, got shape \(1, 2\)$"):
        numeric("offset", [[1, 2]], 1)
    with pytest.raises(TypeError, match=r"^offset must hold numbers, got 'x' in row 1$"):
        numeric("offset", np.array([1, "x"], object), 1)


# Whatever comes in, what comes out is a table or an error that names the problem

FAMILIES = [likelihoods.get(name) for name in ("gaussian", "poisson", "bernoulli", "negative_binomial", "multinomial")]
FAMILIES.append(likelihoods.Binomial(trials=3))
# beartype takes a random number at a function's first call, which Hypothesis forbids while it draws.
assert len(set(FAMILIES)) == len(FAMILIES)
SIZES = st.integers(0, 4)

usual = st.one_of(st.integers(0, 3), st.booleans(), st.floats(0, 3), st.just(np.nan))
numbers = st.one_of(
    usual,
    st.floats(),
    st.integers(),
    st.sampled_from([np.inf, -1, -0.0, 1e308, 5e-324, 2**53 - 1, 2**53, 2**63, 2**64, -(2**63), 10**400]),
)
ODD = [
    None, pd.NA, pd.NaT, datetime.date(2020, 1, 1), np.datetime64("2020"), np.timedelta64(1, "s"), "1", {}, [], [1],
    decimal.Decimal("1e999"), decimal.Decimal("sNaN"), np.float32(1), np.uint64(2**64 - 1), np.ones(1), np.array(2),
]  # fmt: skip
odd = st.one_of(numbers, st.text(max_size=3), st.binary(max_size=3), st.complex_numbers(), st.sampled_from(ODD))


@st.composite
def arrays(draw):
    """Nested lists, and arrays of every type, order and number of dimensions."""
    N, J = draw(SIZES), draw(SIZES)
    cells = draw(st.sampled_from([usual, numbers, odd, st.just(draw(usual))]))
    rows = draw(st.lists(st.lists(cells, min_size=J, max_size=J), min_size=N, max_size=N))
    form = draw(st.sampled_from(["list", "ragged", "object", "number", "other", "masked", "sparse"]))
    if form == "list":
        return rows
    if form == "ragged":
        return [*rows, [1] * (J + 1)]
    table = np.empty((N, J), object)
    for n, row in enumerate(rows):
        for j, cell in enumerate(row):
            table[n, j] = cell
    if form == "object":
        return table
    bits = draw(st.lists(st.integers(0, 2**64 - 1), min_size=N * J, max_size=N * J))
    table = np.array(bits, "uint64").reshape(N, J) % draw(st.sampled_from([2, 3, 2**53, 2**64 - 1]))
    with np.errstate(over="ignore"):
        table = table.astype(draw(st.sampled_from(TYPES)), order=draw(st.sampled_from("CF")))
    if form == "sparse":
        return scipy.sparse.coo_array(np.asarray(table, float)).asformat(
            draw(st.sampled_from(["csr", "csc", "lil", "dok"]))
        )
    if form == "masked":
        return np.ma.array(
            table, mask=np.array(draw(st.lists(st.booleans(), min_size=N * J, max_size=N * J))).reshape(N, J)
        )
    if form == "other":
        table = np.nan_to_num(table).astype(
            draw(st.sampled_from(["complex", "datetime64[s]", "m8[s]", "U5", "S5", "V8"]))
        )
    table = table.reshape(draw(st.sampled_from([(N, J), (N * J,), (N, J, 1), (1, N * J), (N * J, 1)])))
    table.setflags(write=draw(st.booleans()))
    return table


@st.composite
def frames(draw):
    """Data frames with columns of every type and names that may repeat, as they are or inside an AnnData."""
    N, J = draw(SIZES), draw(SIZES)
    kinds: dict[str, Any] = {
        "float": st.floats(),
        "Int64": st.none() | st.integers(0, 2**54),
        "Float64": st.none() | st.floats(0, 9),
        "boolean": st.none() | st.booleans(),
        "object": odd,
        "string": st.text(max_size=2),
        "uint64": st.integers(0, 2**64 - 1),
        "category": st.integers(0, 3),
        "datetime64[ns]": st.integers(0, 3),
    }
    columns = []
    for _ in range(J):
        kind = draw(st.sampled_from([*kinds][: draw(st.sampled_from([4, len(kinds)]))]))
        columns.append(pd.Series(draw(st.lists(kinds[kind], min_size=N, max_size=N)), dtype=kind))
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(N))
    frame.columns = draw(st.lists(st.sampled_from(["a", "b", "t", "d", 1, ("a", 1)]), min_size=J, max_size=J))
    return frame


def refusal(table, family) -> tuple[Any, Any, str]:
    """What was read, what was checked, and the message if either was refused."""
    try:
        reading = read(table)
        chosen = likelihoods.choose(reading.values, ~np.isnan(reading.values))[0] if family is None else family
        return reading, (chosen.name, checks.check_table(reading.values, chosen, None, None, 1)), ""
    except (TypeError, ValueError) as error:
        return None, None, f"{type(error).__name__}: {error}"


def accept_or_name(table, family):
    """Read and check a table; a refusal must say what is wrong in which row, which column or Y."""
    plain = isinstance(table, np.ndarray) and table.dtype != object
    before = np.asarray(table).tobytes() if plain else None
    reading, checked, message = refusal(table, family)
    if plain:
        assert np.asarray(table).tobytes() == before
    if message:
        assert re.search(r"\bY\b|\brow \d|\bcolumn", message), message
        return False
    name, checked = checked
    shape = reading.values.shape
    assert reading.values.dtype == np.float64
    assert min(shape) > 0
    assert reading.columns is None or len(reading.columns) == shape[1]
    assert checked.Y.shape == checked.observed.shape == (shape[0], shape[1] - (name == "multinomial"))
    assert checked.Y.dtype == np.float64
    assert np.isfinite(checked.Y).all()
    assert not checked.Y[~checked.observed].any()
    return True


# By name: a family that is drawn is hashed, for which beartype looks at a random element, and Hypothesis forbids that.
NAMES = st.sampled_from([None, *(family.name for family in FAMILIES)])
FUZZ = settings(deadline=None, derandomize=True, max_examples=400, suppress_health_check=[HealthCheck.too_slow])


@FUZZ
@given(arrays(), NAMES)
def test_any_array_is_accepted_or_refused_by_name(table, name):
    accept_or_name(table, next((family for family in FAMILIES if family.name == name), None))


@FUZZ
@given(frames(), NAMES)
def test_any_frame_is_accepted_or_refused_by_name(table, name):
    accept_or_name(table, next((family for family in FAMILIES if family.name == name), None))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_plain_table_is_accepted_by_every_family(family):
    assert accept_or_name(COUNTS % 2, family)
    assert accept_or_name(pd.DataFrame(COUNTS % 2).astype("Int64"), family)
