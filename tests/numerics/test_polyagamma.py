"""Polya-gamma draws against closed forms, a slow independent sampler and inverted transforms."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import ks_2samp

from rflvm.numerics import polyagamma

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

GRID_B = [0.1, 0.3, 0.5, 0.9, 1, 1.001, 1.5, 2, 2.5, 3, 3.001, 3.5, 4, 7.5, 10, 50, 500, 5000]
GRID_C = [0, 0.5, 2, 6, 12, 20]
GRID = [(b, c) for b in GRID_B for c in GRID_C]
REPEATS = 20_000
# 108 points with 4 statistics each, nearly normal: a correct sampler exceeds this with probability 5e-5.
LIMIT = 5.3

# Small tests share this shape, for most of their time is compilation.
SMALL_B, SMALL_C = np.linspace(0.1, 6, 128), np.linspace(-9, 9, 128)


@pytest.fixture(autouse=True)
def no_silent_type_promotion():
    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def small(dtype="float32"):
    return jnp.asarray(SMALL_B, dtype), jnp.asarray(SMALL_C, dtype)


def weights(c, terms):
    return 2 / ((2 * np.arange(1, terms + 1) - 1) ** 2 * np.pi**2 + c**2)


def z_scores(draws, b, c):
    """Mean, variance and two Laplace transforms of each row of draws, in exact standard errors."""
    draws, b, c = np.asarray(draws, np.float64), np.asarray(b, np.float64), np.asarray(c, np.float64)
    with jax.enable_x64(True):
        mean, variance = np.asarray(polyagamma.mean(b, c)), np.asarray(polyagamma.variance(b, c))
        t = np.array([[0.5], [4.0]]) / mean
        laplace, laplace_twice = (np.exp(np.asarray(polyagamma.log_laplace(k * t, b, c))) for k in (1, 2))
    fourth_cumulant = 6 * b * np.sum(weights(c[:, None], 1000) ** 4, axis=1)
    errors = [draws.mean(1) - mean, np.mean((draws - mean[:, None]) ** 2, axis=1) - variance]
    errors += [np.mean(np.exp(-s[:, None] * draws), axis=1) - value for s, value in zip(t, laplace, strict=True)]
    variances = [variance, fourth_cumulant + 2 * variance**2, *(laplace_twice - laplace**2)]
    return np.array(errors) / np.sqrt(np.array(variances) / draws.shape[1])


def draw_rows(seed, b, c, dtype):
    with jax.enable_x64(dtype == "float64"):
        b, c = (jnp.asarray(np.repeat(np.asarray(x)[:, None], REPEATS, axis=1), dtype) for x in (b, c))
        return np.asarray(polyagamma.sample(jax.random.key(seed), b, c))


@pytest.fixture(scope="module")
def grid_draws():
    return draw_rows(0, *np.transpose(GRID), dtype="float64")


def different(first, second):
    """P-value of the two-sample Kolmogorov-Smirnov test."""
    return float(np.asarray(ks_2samp(first, second, method="asymp"))[1])


def slow_series(rng, b, c, size, terms=300):
    """PG(b, c) by its definition: explicit gammas, and one with the mean and variance of the remainder."""
    w = weights(c, terms)
    draws = sum(weight * rng.standard_gamma(b, size) for weight in w)
    all_terms = weights(c, 200_000)
    rest_mean = b * (all_terms[terms:].sum() + 1 / (2 * np.pi**2 * 200_000))
    rest_variance = b * np.sum(all_terms[terms:] ** 2)
    return draws + rest_variance / rest_mean * rng.standard_gamma(rest_mean**2 / rest_variance, size)


def exact_cdf(x, b, c):
    """P(omega <= x) by inversion of the characteristic function."""
    mean, deviation = float(polyagamma.mean(b, c)), float(np.sqrt(polyagamma.variance(b, c)))

    def log_cosh(w):
        return w + np.log1p(np.exp(-2 * w)) - np.log(2)

    def log_transform(t):
        return b * (log_cosh(c / 2) - log_cosh(np.sqrt((c * c / 2 - 1j * t) / 2)))

    highest = 8.0
    while log_transform(highest / deviation).real > -22:
        highest *= 1.2
    step = 2 * np.pi / (mean + 60 * deviation)
    t = (np.arange(highest / deviation / step) + 0.5) * step
    transform = np.exp(log_transform(t)) / t
    return np.array([0.5 - np.sum(np.imag(np.exp(-1j * t * y) * transform)) * step / np.pi for y in x])


# Algebra


def test_closed_forms_equal_sums_over_k(x64):
    k = 200_000
    for c in [0.0, 1e-9, 1e-3, 0.1, 0.999, 1.001, 5.0, 40.0]:
        w = weights(c, k)
        rest = 1 / (2 * np.pi**2 * k)  # of sum w_k
        np.testing.assert_allclose(polyagamma.mean(2.5, c), 2.5 * (w.sum() + rest), rtol=1e-9)
        np.testing.assert_allclose(polyagamma.variance(2.5, c), 2.5 * np.sum(w**2), rtol=1e-11)
        for t in [1e-12, 1e-4, 0.3, 7.0, 500.0]:
            expected = -2.5 * (np.log1p(t * w).sum() + t * rest)
            np.testing.assert_allclose(polyagamma.log_laplace(t, 2.5, c), expected, rtol=1e-8)


def test_closed_forms_hold_in_float32():
    c = np.array([0, 1e-20, 1e-6, 1e-3, 0.03, 0.5, 0.99, 1.01, 3, 20, 1e3, 1e10])
    t = np.array([[0], [1e-6], [1e-3], [0.1], [3], [300]])
    with jax.enable_x64(True):
        expected = [np.asarray(f(2.5, c)) for f in (polyagamma.mean, polyagamma.variance)]
        expected.append(np.asarray(polyagamma.log_laplace(t, 2.5, c)))
    c32, t32, b32 = jnp.asarray(c, jnp.float32), jnp.asarray(t, jnp.float32), jnp.float32(2.5)
    actual = [polyagamma.mean(b32, c32), polyagamma.variance(b32, c32), polyagamma.log_laplace(t32, b32, c32)]
    for x, y in zip(actual, expected, strict=True):
        assert x.dtype == jnp.float32
        np.testing.assert_allclose(x, y, rtol=3e-6, atol=1e-37)


def test_laplace_transform_is_zero_at_zero_and_for_no_trials(x64):
    assert float(polyagamma.log_laplace(0.0, 3.0, 0.0)) == 0
    assert float(polyagamma.log_laplace(2.0, 0.0, 1.0)) == 0


def test_density_factor_right_of_one_equals_the_alternating_series(x64):
    x = np.linspace(1, 5, 60)
    n = np.arange(40)[:, None]
    for h in [0.03, 0.2, 0.5, 0.77, 1.0]:
        log_coefficient = gammaln(n + h) - gammaln(n + 1) - gammaln(h) + np.log(2 * n + h)
        terms = (-1.0) ** n * np.exp(log_coefficient - (2 * n + h) ** 2 / (2 * x))
        density = 2**h * terms.sum(0) / np.sqrt(2 * np.pi * x**3)
        expected = density * np.exp(np.pi**2 * x / 8) * x ** (1 - h) / h
        np.testing.assert_allclose(polyagamma._right_factor(jnp.full(60, h), jnp.asarray(1 / x)), expected, atol=3e-7)


def test_envelope_right_of_one_is_above_the_density(x64):
    h, v = jnp.meshgrid(jnp.linspace(1e-3, 1, 200), jnp.linspace(1e-6, 1, 300))
    accept = v ** (1 - h) * polyagamma._right_factor(h, v) / polyagamma._right_height(h)
    assert accept.min() > 0
    assert accept.max() <= 1


def test_gamma_nodes_match_seven_cumulants(x64):
    for c in [0.0, 1.0, 5.0, 9.0, 15.0, 25.0, 40.0, 300.0]:
        center, p, a = polyagamma._gamma_parameters(jnp.full(1, 4.0), jnp.full(1, c))
        v = np.asarray(center[None] * p / a)[:, 0]
        assert np.all(v > 0)
        assert p.sum() < 1  # the constant is positive
        for order in range(2, 8):
            expected = 4 * np.sum(weights(c, 100_000) ** order)
            np.testing.assert_allclose(np.sum(np.asarray(a)[:, 0] * v**order), expected, rtol=4e-6)


def test_three_gammas_have_the_right_distribution_function(monkeypatch):
    """The approximation for b > 3 is within 4e-6 everywhere (its largest error is at b = 3, c near 12)."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    sup_error = runpy.run_path(str(BENCHMARKS / "polyagamma.py"))["sup_error"]
    errors = {(b, c): sup_error(b, c) for b in [3, 3.5, 6, 20, 300, 5000] for c in [0, 3, 8, 12, 20, 31, 33, 50]}
    assert max(errors.values()) < 4e-6
    # and the same computation sees that they would not do for small b
    assert sup_error(0.5, 8) > 1e-4


# Distributions


def test_moments_and_laplace_transforms(grid_draws):
    """432 z-scores below 5.3: false alarm 5e-5."""
    assert np.abs(z_scores(grid_draws, *np.transpose(GRID))).max() < LIMIT


def test_moments_and_laplace_transforms_in_float32():
    """432 z-scores below 5.3: false alarm 5e-5."""
    draws = draw_rows(1, *np.transpose(GRID), dtype="float32")
    assert draws.dtype == np.float32
    assert np.abs(z_scores(draws, *np.transpose(GRID))).max() < LIMIT


def test_sample_one_moments_and_laplace_transforms(x64):
    """24 z-scores below 5: false alarm 1.4e-5."""
    c = jnp.repeat(jnp.asarray(GRID_C, float)[:, None], 100_000, axis=1)
    draws = polyagamma.sample_one(jax.random.key(1), c)
    assert np.abs(z_scores(draws, np.ones(len(GRID_C)), GRID_C)).max() < 5


@pytest.mark.parametrize(
    ("b", "c"), [(0.1, 0), (0.3, 2), (0.9, 6), (1, 0.5), (1.5, 0.5), (2.5, 2), (3.001, 12), (10, 0.5)]
)
def test_same_distribution_as_the_slow_series(grid_draws, b, c):
    """Eight Kolmogorov-Smirnov tests at 1e-5 each: false alarm 8e-5."""
    slow = slow_series(np.random.default_rng(3), b, c, REPEATS)
    assert different(grid_draws[GRID.index((b, c))], slow) > 1e-5


def test_checks_catch_one_per_cent_in_b():
    """A planted error: b is 1 % too large, which the mean of 20 000 draws can show from b = 50."""
    b, c = np.transpose(GRID)
    scores = np.abs(z_scores(draw_rows(0, 1.01 * b, c, "float64"), b, c))
    assert scores[0, b >= 50].min() > LIMIT


def test_checks_catch_a_gamma_with_the_right_mean_and_variance():
    """A planted error of shape only: the Laplace transforms and the Kolmogorov-Smirnov test must see it."""
    rng = np.random.default_rng(4)
    mean, variance = float(polyagamma.mean(1.0, 1.0)), float(polyagamma.variance(1.0, 1.0))
    wrong = variance / mean * rng.standard_gamma(mean**2 / variance, REPEATS)
    scores = np.abs(z_scores(wrong[None], [1.0], [1.0]))
    assert scores[:2].max() < LIMIT
    assert scores[2:].max() > LIMIT
    assert different(wrong, slow_series(rng, 1.0, 1.0, REPEATS)) < 1e-5


@pytest.mark.long
@pytest.mark.parametrize(
    ("b", "c"),
    [(0.05, 0.5), (0.3, 1.0), (0.7, 6.0), (1.0, 2.0), (1.5, 0.0), (3.0, 3.0), (3.001, 12.0), (40.0, 5.0)],
)
def test_ten_million_draws(x64, b, c):
    """Eight times four z-scores below 5.3 and one distance of distribution functions: false alarm 1e-5.

    The bound of the distance is that of Dvoretzky, Kiefer, Wolfowitz and Massart at 1e-7, 9.2e-4.
    """
    size, batches = 500_000, 20
    draws = [
        np.asarray(polyagamma.sample(jax.random.key(i), jnp.full(size, b), jnp.full(size, c))) for i in range(batches)
    ]
    draws = np.sort(np.concatenate(draws))
    assert np.abs(z_scores(draws[None], [b], [c])).max() < LIMIT
    x = draws[:: draws.size // 400]
    distance = np.abs(np.searchsorted(draws, x, side="right") / draws.size - exact_cdf(x, b, c)).max()
    assert distance < np.sqrt(np.log(2 / 1e-7) / (2 * draws.size))


# Special cases


def test_no_trials_give_exactly_zero():
    b, c = small()
    is_zero = np.arange(b.size) % 3 == 0
    draws = np.asarray(polyagamma.sample(jax.random.key(0), jnp.where(is_zero, 0.0, b), c))
    assert np.array_equal(draws == 0, is_zero)


def test_integer_b_is_accepted():
    with jax.numpy_dtype_promotion("standard"):
        draws = polyagamma.sample(jax.random.key(0), jnp.array([0, 1, 2, 40]), 1.0)
    assert draws.dtype == jnp.float32
    assert np.array_equal(np.asarray(draws) > 0, [False, True, True, True])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_draws_are_finite_and_positive_at_the_edges(dtype):
    edges_b = [1e-3, 0.01, 0.05, 0.5, 0.999, 1, 2.999, 3, 3.001, 1e3, 1e5, 1e6]
    b, c = (x.ravel() for x in np.meshgrid(edges_b, [0, 1e-8, 1e-3, 1, 19, 21, 32, 1e3, 1e6]))
    draws = draw_rows(5, b, c, dtype)
    with jax.enable_x64(True):
        mean = np.asarray(polyagamma.mean(b, c))
    assert np.all(np.isfinite(draws))
    assert np.all(draws > 0)
    assert np.abs(draws[b == 1e6] / mean[b == 1e6, None] - 1).max() < 0.01


def test_invalid_input_gives_nan_and_ends():
    b, c = small()
    b = b.at[:3].set(jnp.array([-1.0, jnp.nan, jnp.inf])).at[6].set(0.0)
    c = c.at[3:7].set(jnp.array([jnp.nan, jnp.inf, -jnp.inf, jnp.nan]))
    assert np.array_equal(np.isnan(polyagamma.sample(jax.random.key(0), b, c)), np.arange(b.size) < 7)
    assert np.array_equal(np.isnan(polyagamma.sample_one(jax.random.key(0), c)), ~np.isfinite(c))


def test_draws_do_not_depend_on_the_sign_of_c():
    key, (b, c) = jax.random.key(6), small()
    assert np.array_equal(polyagamma.sample(key, b, c), polyagamma.sample(key, b, -c))
    assert np.array_equal(polyagamma.sample_one(key, c), polyagamma.sample_one(key, -c))


def test_same_key_same_draws_and_other_key_other_draws():
    b, c = small()
    first = np.asarray(polyagamma.sample(jax.random.key(7), b, c))
    assert np.array_equal(first, polyagamma.sample(jax.random.key(7), b, c))
    assert not np.any(first == np.asarray(polyagamma.sample(jax.random.key(8), b, c)))
    assert np.unique(first).size == first.size


def test_both_precisions_draw_the_same_numbers():
    """The random bits are the same, so only a decision within rounding error of its limit can differ."""
    single = polyagamma.sample(jax.random.key(9), *small())
    with jax.enable_x64(True):
        double = polyagamma.sample(jax.random.key(9), *small("float64"))
        also_single = polyagamma.sample(jax.random.key(9), *small())
    assert (single.dtype, double.dtype, also_single.dtype) == (jnp.float32, jnp.float64, jnp.float32)
    assert np.array_equal(single, also_single)
    np.testing.assert_allclose(single, double, rtol=1e-3)


@pytest.mark.parametrize(("b", "c"), [((), ()), ((3, 1), (4,)), ((0,), ())])
def test_shapes_broadcast(b, c):
    draws = polyagamma.sample(jax.random.key(0), jnp.full(b, 1.5), jnp.full(c, 0.5))
    assert draws.shape == np.broadcast_shapes(b, c)
    assert polyagamma.sample_one(jax.random.key(0), jnp.full(b, 0.5)).shape == b


def test_vmap_equals_a_loop():
    keys, (b, c) = jax.random.split(jax.random.key(10), 3), small()
    together = jax.vmap(polyagamma.sample, in_axes=(0, None, None))(keys, b, c)
    one_by_one = jnp.stack([polyagamma.sample(key, b, c) for key in keys])
    np.testing.assert_allclose(together, one_by_one, rtol=1e-4)
