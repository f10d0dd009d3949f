"""Covariates of rows: what users give, coded as columns of numbers."""

import numpy as np
import pandas as pd
import pytest

from rflvm.data import covariates
from rflvm.numerics.errors import InputError

BATCH = ["b", "a", "b", "c"]


def test_numbers_have_mean_zero_and_deviation_one_in_the_fitted_table():
    learned = covariates.learn({"age": [20, 40, 60, 80]}, 4)
    assert learned is not None
    np.testing.assert_allclose(learned.values.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(learned.values.std(axis=0), 1)
    again = covariates.encode(learned.coding, {"age": [50.0, 20.0], "more": ["x", "y"]}, 2)
    assert again is not None
    np.testing.assert_allclose(again, [[0], learned.values[0]], atol=1e-15)


def test_each_category_has_a_column_less_its_share():
    learned = covariates.learn(BATCH, 4)
    assert learned is not None
    assert covariates.labels(learned.coding) == ("covariate = a", "covariate = b", "covariate = c")
    np.testing.assert_allclose(learned.values[1], [0.75, -0.5, -0.25])
    np.testing.assert_allclose(learned.values.sum(axis=0), 0, atol=1e-15)


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (np.array([1.0, 2.0, 4.0, 4.0]), ("covariate",)),
        (np.array([[1.0, 2.0], [2.0, 1.0], [4.0, 2.0], [4.0, 1.0]]), ("covariate 0", "covariate 1")),
        ([["a", 1], ["b", 2], ["a", 3], ["b", 4]], ("covariate 0 = a", "covariate 0 = b", "covariate 1")),
        (np.array([True, False, False, True]), ("covariate",)),
        (np.array(BATCH), ("covariate = a", "covariate = b", "covariate = c")),
        (pd.Series([1, 2, 1, 2], name="day").astype("Int64"), ("day",)),
        (pd.Series([2, 1, 2, 1], name="day").astype("category"), ("day = 1", "day = 2")),
        (pd.DataFrame({"batch": BATCH, "age": [1.0, 2.0, 3.0, 5.0]}), ("batch = a", "batch = b", "batch = c", "age")),
    ],
    ids=["numbers", "columns", "lists", "flags", "text", "integers", "categories", "frame"],
)
def test_every_kind_is_read(given, labels):
    learned = covariates.learn(given, 4)
    assert learned is not None
    assert covariates.labels(learned.coding) == labels
    assert learned.values.shape == (4, len(labels))
    again = covariates.encode(learned.coding, given, 4)
    assert again is not None
    np.testing.assert_array_equal(again, learned.values)


def test_columns_of_polars_are_read():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"batch": pl.Series(BATCH, dtype=pl.Categorical), "age": [1, 2, 3, 5]})
    learned = covariates.learn(frame, 4)
    assert learned is not None
    assert covariates.labels(learned.coding) == ("batch = a", "batch = b", "batch = c", "age")


def test_names_are_looked_up_in_obs():
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"batch": pd.Categorical(BATCH), "age": [1, 2, 3, 5]}, index=list("wxyz"))
    table = anndata.AnnData(np.zeros((4, 2)), obs)
    for given, labels in (("age", ("age",)), (["batch"], ("batch = a", "batch = b", "batch = c"))):
        learned = covariates.learn(given, 4, table)
        assert learned is not None
        assert covariates.labels(learned.coding) == labels
    with pytest.raises(InputError, match=r"covariates names 'beta', and obs of Y has no such column.*'batch', 'age'"):
        covariates.learn(["age", "beta"], 4, table)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"age": [1, None, 3, 4]}, r"'age' is missing in row 1 \(1 such\): fill it in"),
        ({"age": [1, np.nan, np.nan, 4]}, r"'age' is missing in row 1 \(2 such\)"),
        (pd.DataFrame({"batch": ["a", None, "b", "b"]}), "'batch' is missing in row 1"),
        ({"age": [1, 2, np.inf, 4]}, "all finite numbers or all text, got inf in row 2"),
        ({"age": [1, 2, "x", 4]}, "all finite numbers or all text, got 'x' in row 2"),
        ({"age": [1, 2, 3]}, "one value for each of the 4 rows of Y, got 3"),
        ({"age": [7, 7, 7, 7]}, "'age' is the same in all rows"),
        ({"batch": ["a"] * 4}, "'batch' is the same in all rows"),
        ({"name": list("abcd")}, "'name' is another category in every row"),
        ({}, "have no column"),
        (np.zeros((4, 1, 1)), "one value for each row, or several in columns; got shape"),
        ("batch", "one value for each row, or several in columns"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(given, message):
    with pytest.raises(InputError, match=message) as caught:
        covariates.learn(given, 4)
    assert caught.value.parameter == "covariates"


def test_rows_need_the_covariates_of_the_fit():
    learned = covariates.learn({"batch": BATCH, "age": [1, 2, 3, 5]}, 4)
    assert learned is not None
    for given, message in (
        (None, "fitted with covariates of the rows, 'batch', 'age': give covariates"),
        ({"batch": ["a"]}, "must be those of the fit, 'batch', 'age', got 'batch'"),
        ({"batch": ["d"], "age": [1]}, r"'batch' is 'd' in row 0 \(1 such\).*none of.*'a', 'b', 'c'"),
        ({"batch": ["a"], "age": ["old"]}, "'age' must be numbers, as in the fit"),
    ):
        with pytest.raises(InputError, match=message):
            covariates.encode(learned.coding, given, 1)
    with pytest.raises(InputError, match="fitted without any"):
        covariates.encode((), [1.0], 1)
    assert covariates.encode((), None, 1) is None


def test_effects_of_a_number_are_per_unit_and_of_a_category_against_an_average_row():
    learned = covariates.learn({"age": [20, 40, 60, 80], "batch": BATCH}, 4)
    assert learned is not None
    gamma = np.array([[3.0], [1.0], [2.0], [6.0]])
    effects = covariates.in_units(learned.coding, gamma)
    np.testing.assert_allclose(effects[0], 3 / np.std([20, 40, 60, 80]))
    np.testing.assert_allclose(effects[1:, 0], np.array([1, 2, 6]) - (0.25 * 1 + 0.5 * 2 + 0.25 * 6))
    # What a row of category a with the mean age has beyond the intercept is the effect of a.
    row = covariates.encode(learned.coding, {"age": [50], "batch": ["a"]}, 1)
    assert row is not None
    np.testing.assert_allclose(row @ gamma, effects[1:2])
