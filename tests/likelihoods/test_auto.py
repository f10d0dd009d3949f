"""The family that a table gets: rules for its values, and the estimate that tells Poisson from negative binomial."""

import numpy as np
import pytest

from rflvm import likelihoods
from rflvm.datasets import make_s_curve
from rflvm.likelihoods import evidence

SIZES = {(100, 10): 200, (200, 50): 200, (500, 100): 100, (1000, 200): 50}


def choose(Y, observed=None):
    Y = np.asarray(Y, float)
    family, reason = likelihoods.choose(Y, ~np.isnan(Y) if observed is None else observed)
    assert reason.count(". ") == 0
    return family.name, reason


@pytest.mark.parametrize(
    ("Y", "family", "reason"),
    [
        ([[1, 2.5], [0, 3]], "gaussian", r"not all cells are whole numbers: Y[0, 1] = 2.5 (1 such cell)"),
        ([[1, 2], [-4, -1]], "gaussian", r"not all cells are counts: Y[1, 0] = -4 (2 such cells)"),
        ([[1, np.inf], [0, 3]], "gaussian", "not all cells are whole numbers: Y[0, 1] = inf (1 such cell)"),
        ([[1, 1e300], [0, 3]], "gaussian", "not all cells are whole numbers: Y[0, 1] = 1e+300 (1 such cell)"),
        ([[0, 1], [1, 1]], "bernoulli", "all cells are 0 or 1"),
        ([[1, 1], [1, np.nan]], "bernoulli", "all cells are 0 or 1"),
        ([[0, 0], [0, 0]], "poisson", "all cells are 0"),
        ([[np.nan]], "gaussian", "no cell is observed"),
    ],
)
def test_values_decide(Y, family, reason):
    assert choose(Y) == (family, reason)


def test_only_observed_cells_are_looked_at():
    Y = np.array([[0.0, 1, 0.5], [1, 0, -3]])
    assert choose(Y, np.array([[True, True, False]] * 2))[0] == "bernoulli"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("emissions", "dispersion"),
    [("poisson", 2.0), *(("negative_binomial", r) for r in (0.5, 2.0, 5.0, 20.0))],
)
def test_dispersion_decides_between_the_families_of_counts(emissions, dispersion, seed):
    """The seeds are fixed; of 200 others none is wrong, so that any other seed has a false alarm below 2 %."""
    Y = make_s_curve(200, 50, emissions=emissions, dispersion=dispersion, seed=seed).data
    family, reason = choose(Y)
    assert family == emissions
    assert reason.startswith(f"whole numbers from 0 to {Y.max():.0f}; among similar rows the variance is ")
    assert reason.endswith("that Poisson counts may reach")
    assert ("more than" in reason) == (emissions == "negative_binomial")


def test_structure_between_rows_is_not_dispersion():
    """Two kinds of rows: every column has a variance of many times its mean, and yet all is Poisson."""
    rng = np.random.default_rng(0)
    Y = rng.poisson(np.where(rng.random((200, 1)) < 0.5, 1.0, 20.0) * np.ones((200, 30)))
    assert Y.var(axis=0).min() > 5 * Y.mean()
    assert choose(Y)[0] == "poisson"
    assert choose(rng.poisson(Y * rng.gamma(1, 1, Y.shape)))[0] == "negative_binomial"


def s_curves(emissions, **settings):
    return [make_s_curve(200, 40, emissions=emissions, seed=seed, **settings).data for seed in range(3)]


@pytest.mark.parametrize("trials", [2, 5])
def test_successes_out_of_a_few_trials_are_binomial(trials):
    for Y in s_curves("binomial", trials=trials):
        family, _ = likelihoods.choose(Y, np.ones(Y.shape, bool))
        assert family == likelihoods.Binomial(trials)


def test_many_trials_whose_bound_is_not_seen_are_gaussian_and_the_reason_names_the_binomial():
    for Y in s_curves("binomial", trials=255):
        family, reason = choose(Y)
        assert family == "gaussian"
        assert reason.endswith("if they are out of a known number of trials give likelihoods.Binomial(trials=...)")


def measured(to_whole):
    """Whole numbers from smooth functions of the latent positions, with noise of standard deviation 1/2."""
    rng = np.random.default_rng(0)
    return [to_whole(Y + rng.normal(0, 0.5, Y.shape)) for Y in s_curves("gaussian", noise=0.0)]


@pytest.mark.parametrize(
    "to_whole",
    [
        lambda Y: 1 + np.digitize(Y, [-1.5, -0.5, 0.5, 1.5]),
        lambda Y: np.clip(np.round(5 + 2 * Y), 0, 10),
        lambda Y: np.maximum(np.round(30 + 2 * Y), 0),
        lambda Y: np.round(1000 + 10 * Y),
    ],
    ids=["ratings 1 to 5", "ratings 0 to 10", "mean 30", "mean 1000"],
)
def test_what_varies_less_than_counts_is_gaussian(to_whole):
    for Y in measured(to_whole):
        family, reason = choose(Y)
        assert family == "gaussian"
        assert "times the mean, less than that of Poisson counts" in reason


def test_grey_levels_are_gaussian_though_they_vary_more_than_counts():
    for Y in measured(lambda Y: np.clip(np.round(128 + 70 * Y), 0, 255)):
        family, reason = choose(Y)
        assert family == "gaussian"
        assert "as if it were an upper bound, and a Gaussian predicts cells from similar rows better" in reason


def test_rows_of_equal_totals_name_the_multinomial():
    advice = "; every row has the total 100: the multinomial likelihood would model the shares"
    for Y in s_curves("multinomial"):
        family, reason = choose(Y)
        assert family == "poisson"
        assert reason.endswith(advice)
        assert advice not in choose(Y[:, 1:])[1]


@pytest.mark.parametrize("trials", [1, 2, 7, 1000, np.inf])
def test_pairs_of_equal_means_have_the_variance_that_is_expected(trials):
    """Given any means: 40,000 pairs, the error of the ratio in its own standard errors; a false alarm in 1e-5."""
    rng = np.random.default_rng(0)
    rate = rng.uniform(0.1, 0.9, 40_000)
    draw = (lambda: rng.poisson(10 * rate)) if np.isinf(trials) else (lambda: rng.binomial(int(trials), rate))
    ratio, errors = evidence.underdispersion(evidence.Pairs(draw().astype(float), draw().astype(float)), trials)
    assert abs(ratio - 1) < 0.05
    assert abs(errors) < 4.4


def test_missing_cells_are_left_out():
    rng = np.random.default_rng(1)
    for emissions in ("poisson", "negative_binomial"):
        Y = make_s_curve(300, 60, emissions=emissions).data
        assert choose(np.where(rng.random(Y.shape) < 0.3, np.nan, Y))[0] == emissions


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 1), (2, 2), (5, 1), (5, 3), (3, 400), (400, 1), (600, 2)])
def test_tables_of_every_shape_get_a_family(shape):
    rng = np.random.default_rng(2)
    for Y in (rng.poisson(3.0, shape), np.full(shape, 7), 10**15 * rng.poisson(3.0, shape)):
        assert choose(Y)[0] in ("poisson", "negative_binomial", "bernoulli", "gaussian")


def test_constant_columns_and_columns_without_observed_cells():
    Y = make_s_curve(200, 50).data
    assert choose(np.column_stack([np.zeros(200), np.full(200, 5), np.full(200, np.nan), Y]))[0] == "poisson"
    assert choose(np.full((20, 4), 3))[0] == "poisson"


def test_one_column_needs_a_large_variance():
    rng = np.random.default_rng(3)
    assert choose(rng.poisson(4.0, (300, 1)))[0] == "poisson"
    assert choose(rng.negative_binomial(0.2, 0.01, (300, 1)))[0] == "negative_binomial"


def test_the_choice_is_repeatable_and_leaves_the_table_alone():
    Y = make_s_curve(600, 220).data
    Y.setflags(write=False)
    assert choose(Y) == choose(np.asfortranarray(Y)) == choose(Y)


def error_rate(size, make):
    """How often another family is chosen, over seeds that had no part in setting the margin."""
    made = (make(*size, seed) for seed in range(1000, 1000 + SIZES[size]))
    return np.mean([choose(Y)[0] != family for Y, family in made])


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("emissions", "dispersion", "in_small_tables"),
    [
        ("poisson", 2.0, 0.1),
        ("negative_binomial", 0.5, 0.0),
        ("negative_binomial", 2.0, 0.01),
        ("negative_binomial", 5.0, 0.01),
        ("negative_binomial", 20.0, 0.265),
    ],
)
def test_error_rates_are_as_documented(size, emissions, dispersion, in_small_tables):
    def make(N, J, seed):
        return make_s_curve(N, J, emissions=emissions, dispersion=dispersion, seed=seed).data, emissions

    assert error_rate(size, make) == pytest.approx(in_small_tables if size == (100, 10) else 0, abs=0.01)


@pytest.mark.long
@pytest.mark.parametrize(("size", "expected"), [((100, 10), 0.68), ((200, 50), 0.165), ((500, 100), 0.0)])
def test_error_rates_with_exposures_are_as_documented(size, expected):
    def make(N, J, seed):
        rng = np.random.default_rng(seed)
        exposure = 0.7 * rng.standard_normal((N, 1))
        return rng.poisson(np.exp(make_s_curve(N, J, seed=seed).F + exposure)), "poisson"

    assert error_rate(size, make) == pytest.approx(expected, abs=0.01)
