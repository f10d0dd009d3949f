"""Stick breaking against the multinomial law, missing cells included."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

from rflvm.likelihoods import Multinomial

stats: Any = scipy.stats  # its frozen distributions are typed as discrete and continuous at once

FAMILY = Multinomial()
Y = np.array([[2.0, 0.0, 3.0, 1.0], [0.0, 0.0, 0.0, 5.0], [4.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
ALL = np.ones(Y.shape, bool)
F = np.random.default_rng(0).normal(size=(4, 3))


def slow_probabilities(f):
    left, p = 1.0, []
    for value in f:
        p.append(left * expit(value))
        left *= 1 - expit(value)
    return np.array([*p, left])


def cells_log_prob(encoded):
    sticks, counted, trials = map(jnp.asarray, encoded)
    return np.where(counted, FAMILY.log_prob(sticks, jnp.asarray(F), {}, trials), 0)


def test_decode_inverts_encode_for_complete_rows(x64):
    sticks, counted, trials = FAMILY.encode(Y, ALL)
    assert counted.all()
    np.testing.assert_array_equal(FAMILY.decode(jnp.asarray(sticks), jnp.asarray(trials)), Y)


def test_probabilities_are_those_of_breaking_a_stick_and_sum_to_one(x64):
    p = FAMILY.respond(jnp.asarray(F), {}, None)
    np.testing.assert_allclose(p, [slow_probabilities(f) for f in F], rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    extreme = FAMILY.respond(jnp.asarray([[800.0, -800.0, 0.0], [-800.0, -800.0, -800.0]]), {}, None)
    np.testing.assert_allclose(extreme, [[1, 0, 0, 0], [0, 0, 0, 1]], atol=1e-300)


def test_sticks_of_a_complete_row_have_the_multinomial_probability(x64):
    coefficient = cells_log_prob(FAMILY.encode(Y, ALL)).sum(axis=1)
    expected = [stats.multinomial.logpmf(y, y.sum(), slow_probabilities(f)) for y, f in zip(Y, F, strict=True)]
    np.testing.assert_allclose(coefficient, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("missing", [[0], [1], [0, 1], [2], [0, 2], [3], [1, 3]])
def test_columns_after_the_last_missing_one_have_their_exact_conditional_law(x64, missing):
    observed = ALL.copy()
    observed[:, missing] = False
    spoiled = np.where(observed, Y, np.nan)
    encoded = FAMILY.encode(spoiled, observed)
    after = max(missing) + 1
    np.testing.assert_array_equal(encoded[1], np.broadcast_to(np.arange(3) >= after, (4, 3)))
    assert all(np.isfinite(np.asarray(part)).all() for part in encoded)
    for n in range(4):
        p = slow_probabilities(F[n])[after:]
        expected = stats.multinomial.logpmf(Y[n, after:], Y[n, after:].sum(), p / p.sum()) if after < 4 else 0
        np.testing.assert_allclose(cells_log_prob(encoded)[n].sum(), expected, rtol=1e-11, atol=1e-12)


def test_sticks_without_trials_carry_no_information(x64):
    sticks, _, trials = map(jnp.asarray, FAMILY.encode(Y, ALL))
    values, slope = jax.value_and_grad(lambda f: FAMILY.log_factor(sticks, f, {}, trials).sum(), has_aux=False)(
        jnp.asarray(F)
    )
    assert np.isfinite(values)
    empty = np.asarray(trials) == 0
    assert empty.sum() == 4  # two after the third row's last count, and the empty row of three, less one shared
    np.testing.assert_array_equal(np.asarray(slope)[empty], 0)
    np.testing.assert_array_equal(np.asarray(FAMILY.log_prob(sticks, jnp.asarray(F), {}, trials))[empty], 0)


def test_sampled_sticks_have_the_multinomial_mean_and_covariance(x64):
    """14 z-scores: a correct sampler exceeds 5 with probability 1e-5."""
    R, total = 20_000, 7.0
    f = jnp.tile(jnp.asarray(F[:1]), (R, 1))
    draw = jax.jit(FAMILY.sample_sticks)
    sticks, trials = draw(jax.random.key(0), f, jnp.full(R, total), jnp.zeros(R, int))
    y = np.asarray(FAMILY.decode(sticks, trials))
    np.testing.assert_array_equal(y.sum(axis=1), total)
    p = slow_probabilities(F[0])
    covariance = total * (np.diag(p) - np.outer(p, p))
    away = y - total * p
    assert np.abs(away.mean(0) / np.sqrt(np.diag(covariance) / R)).max() < 5
    products = away[:, :, None] * away[:, None, :]
    assert np.abs((products.mean(0) - covariance) / (products.std(0) / np.sqrt(R))).max() < 5


def test_sampled_sticks_start_where_they_are_told_with_the_trials_they_are_given(x64):
    """One z-score: a correct sampler exceeds 4.5 with probability 7e-6."""
    R = 20_000
    f = jnp.tile(jnp.asarray(F[1:2]), (R, 1))
    draw = jax.jit(FAMILY.sample_sticks)
    sticks, trials = draw(jax.random.key(1), f, jnp.full(R, 6.0), jnp.ones(R, int))
    np.testing.assert_array_equal(trials[:, 1], 6)
    np.testing.assert_array_equal(trials[:, 2], 6 - sticks[:, 1])
    p = expit(F[1, 1])
    assert abs(float(sticks[:, 1].mean()) - 6 * p) / np.sqrt(6 * p * (1 - p) / R) < 4.5


def test_one_category_is_refused():
    with pytest.raises(ValueError, match="at least 2 columns"):
        FAMILY.check(np.ones((3, 1)), np.ones((3, 1), bool))


def test_fractions_are_refused():
    with pytest.raises(ValueError, match=r"multinomial needs whole numbers, got Y\[0, 1\] = 0.5"):
        FAMILY.check(np.array([[1.0, 0.5]]), np.ones((1, 2), bool))
