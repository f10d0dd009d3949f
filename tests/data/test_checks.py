"""Every bad input is refused with a message that names it, before anything is compiled."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import rflvm
from rflvm import likelihoods
from rflvm.data import checks, tables
from rflvm.numerics.errors import InputError, InputTypeError

COUNTS = np.arange(12.0).reshape(4, 3)


def refuse(error, message, Y: Any = COUNTS, likelihood: Any = "poisson", **arguments: Any):
    named: dict[str, Any] = {"n_features": 4, "n_samples": 2, "n_burnin": 0} | arguments
    with pytest.raises(error, match=message):
        rflvm.sample(Y, likelihood, **named)


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch):
    """The start of a chain is the first thing that compiles."""

    def fail(*arguments, **named):
        pytest.fail("the run started")

    monkeypatch.setattr("rflvm.sampling.run._starter", fail)


# The table


@pytest.mark.parametrize("shape", [(4,), (2, 2, 3), ()])
def test_tables_have_two_dimensions(shape):
    refuse(ValueError, r"Y must have 2 dimensions, got shape \(", Y=np.ones(shape))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_tables_are_refused(shape):
    refuse(ValueError, "at least one row and one column", Y=np.ones(shape))


def test_negative_counts_name_the_first_cell():
    refuse(ValueError, r"counts >= 0, got Y\[1, 2\] = -5", Y=np.where(COUNTS == 5, -5, COUNTS))


@pytest.mark.parametrize("family", ["poisson", "negative_binomial", "multinomial"])
def test_fractional_counts_name_the_first_cell(family):
    refuse(
        ValueError, rf"{family} needs whole numbers, got Y\[0, 1\] = 1.5", np.where(COUNTS == 1, 1.5, COUNTS), family
    )


def test_more_successes_than_trials_name_the_first_cell():
    refuse(ValueError, r"y <= trials, got Y\[1, 0\] = 3 ", likelihood=likelihoods.Binomial(trials=2))


def test_bernoulli_refuses_a_two():
    refuse(ValueError, r"0 or 1, got Y\[0, 2\] = 2", likelihood="bernoulli")


@pytest.mark.parametrize("axis", ["row", "column"])
def test_a_row_or_column_without_observed_cells_is_named(axis):
    Y = COUNTS.copy()
    Y[(1, slice(None)) if axis == "row" else (slice(None), 1)] = np.nan
    refuse(ValueError, f"{axis} 1 of Y has no observed cell", Y=Y)


def test_a_row_hidden_by_the_mask_is_named():
    refuse(ValueError, "row 2 of Y has no observed cell", mask=np.arange(4)[:, None] != np.full(3, 2))


def test_fewer_rows_than_components_dimensions_are_refused():
    refuse(ValueError, r"fewer rows \(4 samples\) than latent dimensions \(n_components = 5\)", n_components=5)


@pytest.mark.parametrize("mask", [np.ones((3, 4), bool), np.ones((4, 3)), np.ones(3, bool)])
def test_masks_are_boolean_and_of_the_tables_shape(mask):
    refuse(ValueError, r"mask must be a boolean array of shape \(4, 3\)", mask=mask)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_cells_are_named(value):
    refuse(ValueError, r"Y\[2, 1\] is infinite; use NaN", np.where(COUNTS == 7, value, COUNTS), "gaussian")


@pytest.mark.parametrize(
    "Y", [[["a", "b"], ["c", "d"]], np.array([[1, None], [2, "x"]], object), [[{}, 1], [2, 3]], [[b"x", b"y"]]]
)
def test_what_is_not_a_number_is_refused(Y):
    refuse(TypeError, "Y must hold numbers", Y=Y)


@pytest.mark.parametrize("dtype", ["complex", object])
def test_complex_numbers_are_refused(dtype):
    refuse(ValueError, "Y must hold real numbers: Complex data not supported", Y=(COUNTS + 1j).astype(dtype))


def test_dates_are_refused():
    refuse(TypeError, "Y must hold numbers", Y=np.array([["2020-01-01", "2020-01-02"]] * 4, "datetime64[D]"))


@pytest.mark.parametrize("offset", [np.zeros(3), np.array([0.0, np.nan, 0, 0]), np.array([0, 0, 0, np.inf])])
def test_offsets_are_one_finite_number_per_row(offset):
    refuse(ValueError, "offset must be 4 finite numbers, one per row", offset=offset)


def test_offsets_have_one_dimension():
    refuse(ValueError, "offset must have 1 dimension, got shape", offset=np.zeros((4, 1)))


def test_multinomial_needs_two_columns():
    refuse(ValueError, "at least 2 columns", Y=COUNTS[:, :1], likelihood="multinomial")


def test_a_row_of_which_multinomial_can_use_nothing_is_not_an_error():
    """Its sticks end with a missing cell: it carries no information but the prior's."""
    Y = COUNTS.copy()
    Y[0, 2] = np.nan
    table = checks.check_table(Y, likelihoods.Multinomial(), None, None, 2)
    assert not table.observed[0].any()


# The choices


@pytest.mark.parametrize(
    ("M", "error"), [(5, "even .* use 6"), (1, "at least 2"), (0, "at least 2"), (-4, "at least 2")]
)
def test_the_number_of_features_is_even_and_positive(M, error):
    refuse(ValueError, f"n_features must be {error}", n_features=M)


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [("n_components", 0, 1), ("n_samples", 0, 1), ("n_burnin", -1, 0), ("thin", 0, 1), ("n_chains", 0, 1)],
)
def test_lengths_have_a_least_value(name, value, least):
    refuse(ValueError, f"{name} must be at least {least}, got {value}", **{name: value})


@pytest.mark.parametrize("name", ["n_components", "n_features", "n_samples", "n_burnin", "thin", "n_chains"])
def test_lengths_are_whole_numbers(name):
    refuse(TypeError, f"{name} must be a whole number, got 2.5", **{name: 2.5})


def test_thinning_may_not_exceed_the_number_of_samples():
    refuse(ValueError, "thin = 3 keeps no draw of n_samples = 2", thin=3)


@pytest.mark.parametrize("name", ["latents", "frequencies", "coefficients", "dtype"])
def test_choices_are_listed(name):
    refuse(ValueError, f"{name} must be one of '.*', '.*', got 'wrong'", **{name: "wrong"})


def test_unknown_likelihoods_are_listed():
    refuse(ValueError, "unknown likelihood 'gamma': expected one of bernoulli, gaussian", likelihood="gamma")


def test_binomial_by_name_says_what_it_needs():
    refuse(ValueError, r"pass likelihoods.Binomial\(trials=...\)", likelihood="binomial")


@pytest.mark.parametrize("likelihood", [3, None, ["poisson"], likelihoods.Poisson])
def test_a_likelihood_that_is_neither_name_nor_object_is_refused(likelihood):
    refuse((TypeError, ValueError), "likelihood", likelihood=likelihood)


def test_polya_gamma_needs_a_logistic_family():
    refuse(ValueError, "logistic family, not poisson", likelihood="poisson", coefficients="polya-gamma")


def test_the_map_of_latents_needs_the_coefficients():
    refuse(ValueError, "marginal=False", likelihood="gaussian", latents="map")


@pytest.mark.parametrize("init", [np.zeros((3, 2)), np.zeros((4, 3)), np.full((4, 2), np.nan)])
def test_starts_are_named_or_have_the_shape_of_the_latents(init):
    refuse(ValueError, r"init must be finite numbers of shape \(4, 2\)", init=init)
    refuse(ValueError, "init must be", init="umap")


@pytest.mark.parametrize("offset", [1000.0, -1000.0, 50.1])
def test_offsets_of_counts_are_logarithms(offset):
    row = r"^offset of row 2 is .* \(1 such\), and the log of an exposure must be from -50 to 50"
    for family in ("poisson", "negative_binomial"):
        refuse(ValueError, row, likelihood=family, Y=np.ones((4, 3)), offset=[0, 50, offset, -50])
    checks.check_table(np.ones((4, 3)), likelihoods.Gaussian(), None, [0, 50, offset, -50], 2)


@pytest.mark.parametrize("value", [np.array([1, 2]), "much", None])
@pytest.mark.parametrize("name", ["memory_budget", "progress"])
def test_numbers_and_flags_are_no_arrays(name, value):
    refuse(TypeError, rf"^{name} must be ", **{name: value})


def test_a_memory_budget_too_small_for_the_run_is_refused():
    refuse(ValueError, "more than memory_budget = 0 MB", memory_budget=100.0)


@pytest.mark.parametrize("field", ["lambda0", "Psi0", "nu0", "alpha_shape", "alpha_rate", "beta_scale", "bias_scale"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_hyperparameters_are_finite_and_positive(field, value):
    with pytest.raises(ValueError, match=rf"prior\.{field} must be finite and positive"):
        rflvm.Prior(**{field: value})


def test_mu0_may_be_negative_but_not_infinite():
    assert rflvm.Prior(mu0=-1.0).mu0 == -1
    with pytest.raises(ValueError, match=r"prior\.mu0 must be finite"):
        rflvm.Prior(mu0=float("inf"))


# What is accepted


def test_missing_cells_are_hidden_and_set_to_zero():
    Y = np.where(COUNTS == 4, np.nan, COUNTS)
    mask = COUNTS != 7
    table = checks.check_table(Y, likelihoods.Poisson(), mask, None, 2)
    np.testing.assert_array_equal(table.observed, (COUNTS != 4) & mask)
    np.testing.assert_array_equal(table.Y[~table.observed], 0)
    np.testing.assert_array_equal(table.offset, np.zeros(4))


def test_cells_outside_the_mask_may_hold_anything():
    Y = np.where(COUNTS == 4, -np.inf, COUNTS)
    table = checks.check_table(Y, likelihoods.Poisson(), COUNTS != 4, None, 2)
    assert np.isfinite(table.Y).all()


@pytest.mark.parametrize("kind", [list, "int8", "float32", bool, object])
def test_lists_and_all_kinds_of_numbers_are_accepted(kind):
    Y = (COUNTS > 5).tolist() if kind is list else (COUNTS > 5).astype(kind)
    table = checks.as_table(Y, likelihoods.Bernoulli(), None, None, 2)
    assert table.Y.dtype == float
    np.testing.assert_array_equal(table.Y, COUNTS > 5)


def test_masked_arrays_hide_their_masked_cells():
    Y = np.ma.masked_equal(COUNTS, 4)
    table = checks.as_table(Y, likelihoods.Poisson(), None, None, 2)
    np.testing.assert_array_equal(table.observed, COUNTS != 4)


def test_there_is_no_mask_on_the_device_when_every_cell_counts():
    table = checks.as_table(COUNTS, likelihoods.Poisson(), None, None, 2)
    assert checks.to_device(table, "float32").mask is None
    hidden = checks.as_table(COUNTS, likelihoods.Poisson(), COUNTS > 0, None, 2)
    assert checks.to_device(hidden, "float32").mask is not None


def test_frames_are_tables():
    table = checks.as_table(pd.DataFrame(COUNTS).astype("Int64"), likelihoods.Poisson(), None, None, 2)
    np.testing.assert_array_equal(table.Y, COUNTS)


def test_cells_beyond_the_precision_are_named():
    table = checks.as_table(np.where(COUNTS == 4, 1e300, COUNTS), likelihoods.Gaussian(), None, None, 2)
    assert checks.to_device(table, "float32").Y.max() < len(COUNTS)  # standardised
    table = table._replace(units=None)
    with pytest.raises(ValueError, match=r"Y\[1, 1\] = 1e\+300 \(1 such cell\) is too large for float32: rescale Y"):
        checks.to_device(table, "float32")


def test_what_was_given_may_change_afterwards():
    offset, X = np.zeros(4), np.zeros((4, 2))
    table = checks.as_table(COUNTS, likelihoods.Poisson(), None, offset, 2)
    start = checks.check_start(X, 4, 2, ())
    assert not np.shares_memory(table.Y, COUNTS)
    assert not np.shares_memory(table.offset, offset)
    assert isinstance(start, np.ndarray)
    assert not np.shares_memory(start, X)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("cba", "Feature names must be in the same order as they were in fit"),
        ("abx", "Feature names unseen at fit time:\n- x\nFeature names seen at fit time, yet now missing:\n- c\n"),
        ("abcd", "Feature names unseen at fit time:\n- d\n"),
        (range(4), "X has 4 features, but RFLVM is expecting 3 features as input"),
    ],
)
def test_columns_are_those_of_the_fit(columns, message):
    names = ("a", "b", "c")
    checks.check_columns(tables.read(pd.DataFrame(COUNTS, columns=names)), 3, names, "RFLVM")
    checks.check_columns(tables.read(COUNTS), 3, names, "RFLVM")
    other = tables.read(pd.DataFrame(np.ones((2, len(columns))), columns=list(columns)))
    with pytest.raises(ValueError, match=message):
        checks.check_columns(other, 3, names, "RFLVM")


# Numbers and choices that are something else


@pytest.mark.parametrize("value", [np.array(["pca"]), np.array(["pca", "map"]), None, 3, ["pca"], {"{": 1}])
def test_a_choice_that_is_no_name_is_refused_as_it_is(value):
    refuse(ValueError, r"^latents must be one of 'sample', 'map', got ", latents=value)


@pytest.mark.parametrize("value", [2**31, 2**63, 10**30])
def test_sizes_that_no_array_has_are_refused(value):
    refuse(ValueError, rf"^n_features must be at most 2147483647, got {value}$", n_features=value)


@pytest.mark.parametrize("value", [2**32, 2**63, 10**30])
def test_seeds_are_32_bits(value):
    with pytest.raises(ValueError, match=rf"^random_state must be at most 4294967295, got {value}$"):
        checks.check_seed(value)
    refuse(ValueError, rf"^seed must be at most 4294967295, got {value}$", seed=value)
    with pytest.raises(ValueError, match="seed must be at most"):
        rflvm.maximise(COUNTS, "poisson", seed=value)
    assert checks.check_seed(2**32 - 1) == 2**32 - 1


@pytest.mark.parametrize("value", [np.int8(2), True, np.uint64(2)])
def test_whole_numbers_of_every_kind_become_python_integers(value):
    number = checks.check_integer("n_components", value, 1)
    assert type(number) is int
    assert number == value


@pytest.mark.parametrize("value", [np.array(2), np.array([2])])
def test_an_array_is_no_whole_number(value):
    refuse(TypeError, r"^n_components must be a whole number, got array\(", n_components=value)


@pytest.mark.parametrize("prior", ["a", 1.0, {"beta_scale": 1.0}, rflvm.Prior])
def test_a_prior_is_a_prior(prior):
    message = r"^prior must be a Prior, such as rflvm.Prior\(bias_scale=5\), got "
    refuse(TypeError, message, prior=prior)
    with pytest.raises(TypeError, match=message):
        rflvm.maximise(COUNTS, "poisson", prior=prior)


@pytest.mark.parametrize(
    ("prior", "least"),
    [
        (rflvm.Prior(alpha_shape=1e300), "0.01"),
        (rflvm.Prior(beta_scale=1e-200), "1e-06"),
        (rflvm.Prior(alpha_shape=1e-3), "0.01"),
        (rflvm.Prior(mu0=-1e20), "0"),
    ],
)
def test_hyperparameters_whose_squares_overflow_are_refused(prior, least):
    refuse(ValueError, rf"^prior\.\w+ must be from {least} to (1e\+06|1000) in size, got ", prior=prior)


@pytest.mark.parametrize("family", ["poisson", "negative_binomial", "multinomial"])
@pytest.mark.parametrize("count", [2.0**53, 1e30])
def test_counts_that_no_float_tells_from_their_neighbours_are_refused(family, count):
    message = r"needs counts below 2\*\*53, .* got Y\[1, 1\] = .* \(1 such cell\); count in larger units"
    refuse(ValueError, message, Y=np.where(COUNTS == 4, count, COUNTS), likelihood=family)


# The parts of an error


def parts_of(error_of):
    with pytest.raises((InputError, InputTypeError)) as caught:
        error_of()
    return caught.value.parameter, caught.value.row, caught.value.column


def test_errors_say_which_parameter_row_and_column_as_values_too():
    check = lambda Y, family="poisson": checks.check_table(Y, likelihoods.get(family), None, None, 1)  # noqa: E731
    assert parts_of(lambda: checks.check_integer("thin", 0, 1)) == ("thin", None, None)
    assert parts_of(lambda: checks.check_integer("thin", "a", 1)) == ("thin", None, None)
    assert parts_of(lambda: checks.check_choice("kernel", "a", ("b",))) == ("kernel", None, None)
    assert parts_of(lambda: check(np.where(COUNTS == 4, np.inf, COUNTS))) == (None, 1, 1)
    assert parts_of(lambda: check(np.where(COUNTS == 5, -1, COUNTS))) == (None, 1, 2)
    assert parts_of(lambda: check(np.where(COUNTS == 5, 0.5, COUNTS))) == (None, 1, 2)
    assert parts_of(lambda: check(COUNTS, "bernoulli")) == (None, 0, 2)
    assert parts_of(lambda: check(np.where(COUNTS > 8, np.nan, COUNTS))) == (None, 3, None)
    assert parts_of(lambda: check(np.where(COUNTS % 3 == 1, np.nan, COUNTS))) == (None, None, 1)
    assert parts_of(lambda: tables.read(np.array([[1.0, 2.0], [1.0, "x"]], object))) == ("Y", 1, 1)
    assert parts_of(lambda: tables.read(np.ones((2, 2), complex))) == ("Y", None, None)
