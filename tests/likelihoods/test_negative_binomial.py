"""The dispersion r: table counts by enumeration, and its conditional by numerical integration."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.special import gammaln

from rflvm.likelihoods import NegativeBinomial
from rflvm.likelihoods.negative_binomial import sample_crt

stats: Any = scipy.stats  # its frozen distributions are typed as discrete and continuous at once

crt = jax.jit(sample_crt)


def crt_law(y, r):
    """P(l) = |s(y, l)| r^l Gamma(r) / Gamma(r + y) for l = 0..y, by the recursion of the Stirling numbers."""
    p = np.array([1.0])
    for i in range(y):
        p = (np.append(p, 0) * i + np.insert(p, 0, 0) * r) / (r + i)
    return p


def test_recursion_of_the_law_is_that_of_stirling_numbers_of_the_first_kind():
    stirling = np.array([0, 24, 50, 35, 10, 1])  # |s(5, l)|
    r = 0.7
    expected = stirling * r ** np.arange(6) * np.exp(gammaln(r) - gammaln(r + 5))
    np.testing.assert_allclose(crt_law(5, r), expected, rtol=1e-13)


def test_tables_of_few_customers_follow_the_exact_law(x64):
    """52 chi-squared tests, each at 1e-6."""
    R, r_values = 5_000, np.array([0.05, 0.7, 3.0, 40.0])
    y, r = np.meshgrid(np.arange(13.0), r_values, indexing="ij")
    shape = (R, *y.shape)
    tables = np.asarray(crt(jax.random.key(0), jnp.broadcast_to(y, shape), jnp.broadcast_to(r, shape)))
    for i in range(13):
        for k, r_k in enumerate(r_values):
            expected = R * crt_law(i, r_k)
            observed = np.bincount(tables[:, i, k].astype(int), minlength=i + 1)
            rare = expected < 5
            pooled = [np.append(x[~rare], x[rare].sum()) for x in (observed, expected)]
            assert pooled[0][-1] <= stats.poisson(pooled[1][-1]).isf(1e-7)
            keep = pooled[1] >= 5
            if keep.sum() > 1:
                statistic = np.sum((pooled[0] - pooled[1])[keep] ** 2 / pooled[1][keep])
                assert stats.chi2(keep.sum() - 1).sf(statistic) > 1e-6, (i, r_k)


@pytest.mark.parametrize("customers", [9, 1000])
def test_tables_of_many_customers_have_the_exact_mean_and_variance(x64, customers):
    """Ten z-scores with exact standard errors: a correct sampler exceeds 5 with probability 1e-5."""
    R, r = 4_000, np.array([1e-2, 0.3, 2.0, 100.0, 1e4])
    shape = (R, len(r))
    tables = np.asarray(crt(jax.random.key(1), jnp.full(shape, float(customers)), jnp.broadcast_to(r, shape)))
    p = r / (r + np.arange(customers)[:, None])
    mean, variance = p.sum(0), np.sum(p * (1 - p), axis=0)
    fourth_cumulant = np.sum(p * (1 - p) * (1 - 6 * p * (1 - p)), axis=0)
    assert np.abs((tables.mean(0) - mean) / np.sqrt(variance / R)).max() < 5
    spread = np.mean((tables - mean) ** 2, axis=0) - variance
    assert np.abs(spread / np.sqrt((fourth_cumulant + 2 * variance**2) / R)).max() < 5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables_for_extreme_dispersions(x64, dtype):
    """Almost no dispersion parameter: one table. An enormous one: a table each. Nobody: none."""
    tiny = float(np.finfo(dtype).tiny)
    y = jnp.asarray([0.0, 1.0, 5.0, 500.0, 0.0, 1.0, 5.0, 500.0], dtype)
    r = jnp.asarray([tiny] * 4 + [1e25] * 4, dtype)
    np.testing.assert_array_equal(crt(jax.random.key(2), y, r), [0, 1, 1, 1, 0, 1, 5, 500])


def test_r_and_h_follow_their_conditional_given_f(x64):
    """Ends of independent chains against a grid over (r_1, r_2), h integrated out: three KS tests at 1e-4.

    The third is of h (g0 + sum r), which is Gamma(b0 + a0 J) whatever r is.
    """
    family = NegativeBinomial(a0=1.5, b0=2.0, g0=0.8)
    Y = np.array([[0.0, 4.0], [3.0, 30.0], [1.0, 99.0]])
    F = np.array([[0.2, -0.4], [1.0, 0.9], [-1.0, 5.0]])
    mask = np.array([[True, True], [True, True], [True, False]])
    R, steps = 1_500, 12

    def chain(key):
        def draw(theta, key):
            return family.update_theta(key, theta, jnp.asarray(Y), jnp.asarray(F), jnp.asarray(mask)), None

        start = {"r": jnp.ones(2), "h": jnp.ones(())}
        return jax.lax.scan(draw, start, jax.random.split(key, steps))[0]

    theta = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), R))
    r = np.asarray(theta["r"])
    assert stats.kstest(np.asarray(theta["h"]) * (0.8 + r.sum(axis=1)), stats.gamma(5.0).cdf).pvalue > 1e-4
    log_r = np.linspace(-9, 6, 1501)
    grid = np.exp(log_r)
    own = []
    for j in range(2):
        seen = mask[:, j]
        y, f = Y[seen, j][:, None], F[seen, j][:, None]
        own.append(
            (gammaln(y + grid) - gammaln(grid)).sum(0) - grid * np.logaddexp(0, f).sum() + 1.5 * log_r
        )  # with the Jacobian of the logarithm
    log_p = own[0][:, None] + own[1] - (2.0 + 2 * 1.5) * np.log(0.8 + grid[:, None] + grid)
    p = np.exp(log_p - log_p.max())
    for j in range(2):
        cumulative = np.cumsum(p.sum(axis=1 - j))
        cdf = lambda x, c=cumulative: np.interp(np.log(x), log_r, c / c[-1])  # noqa: E731
        assert stats.kstest(r[:, j], cdf).pvalue > 1e-4


def test_prior_of_r_and_h_is_a_gamma_chain(x64):
    r, h = np.array([0.4, 2.2]), 0.9
    expected = stats.gamma(1.5, scale=1 / h).logpdf(r).sum() + stats.gamma(2.0, scale=1 / 0.8).logpdf(h)
    family = NegativeBinomial(a0=1.5, b0=2.0, g0=0.8)
    np.testing.assert_allclose(family.log_prior_theta({"r": jnp.asarray(r), "h": jnp.asarray(h)}), expected)


def test_draws_of_r_and_h_follow_the_prior(x64):
    """Two Kolmogorov-Smirnov tests at 1e-4."""
    family = NegativeBinomial(a0=1.5, b0=2.0, g0=0.8)
    draw = jax.jit(jax.vmap(lambda key: family.sample_theta(key, 1, jnp.dtype("float64"))))
    theta = draw(jax.random.split(jax.random.key(5), 2_000))
    assert stats.kstest(np.asarray(theta["h"]), stats.gamma(2.0, scale=1 / 0.8).cdf).pvalue > 1e-4
    assert stats.kstest(np.asarray(theta["r"][:, 0] * theta["h"]), stats.gamma(1.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("bad", [{"a0": 0.0}, {"b0": -1.0}, {"g0": float("nan")}])
def test_hyperparameters_must_be_positive(bad):
    with pytest.raises(ValueError, match="must be finite and positive"):
        NegativeBinomial(**bad)
