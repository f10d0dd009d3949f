"""Zeros beyond those of the counts: the odds given f, their prior, and a share that comes back."""

# pyright: reportAttributeAccessIssue=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rflvm.likelihoods import ZeroInflatedNegativeBinomial, ZeroInflatedPoisson

Y = np.array([[0.0, 4.0], [3.0, 0.0], [0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
F = np.array([[0.2, 1.4], [1.0, 0.9], [-1.0, 1.5], [0.1, 0.3], [2.0, 9.0]])
MASK = np.ones((5, 2), bool)
MASK[4, 1] = False


def test_odds_follow_their_conditional_given_f(x64):
    """Ends of independent chains against a grid: two KS tests at 1e-4."""
    family = ZeroInflatedPoisson(a_zero=1.5, b_zero=2.5)

    def chain(key):
        def draw(theta, key):
            return family.update_theta(key, theta, jnp.asarray(Y), jnp.asarray(F), jnp.asarray(MASK)), None

        return jax.lax.scan(draw, {"odds": jnp.ones(2)}, jax.random.split(key, 15))[0]

    odds = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), 1500))["odds"])
    pi = (np.arange(4000) + 0.5) / 4000
    for j in range(2):
        y, f = Y[MASK[:, j], j][:, None], F[MASK[:, j], j][:, None]
        cells = np.where(y == 0, pi, 0) + (1 - pi) * stats.poisson(np.exp(f)).pmf(y)
        p = np.prod(cells, axis=0) * stats.beta(1.5, 2.5).pdf(pi)
        cumulative = np.cumsum(p)
        cdf = lambda x, c=cumulative: np.interp(x, pi, c / c[-1])  # noqa: E731
        assert stats.kstest(odds[:, j] / (1 + odds[:, j]), cdf).pvalue > 1e-4, j


@pytest.mark.parametrize("family", [ZeroInflatedPoisson(1.5, 2.5), ZeroInflatedNegativeBinomial(1.5, 2.5)])
def test_prior_density_and_draws_agree(x64, family):
    """One KS test at 1e-4 each; the odds have a beta prime distribution."""
    theta = family.sample_theta(jax.random.key(0), 1000, jnp.dtype("float64"))
    law = stats.betaprime(1.5, 2.5)
    assert stats.kstest(np.asarray(theta["odds"]), law.cdf).pvalue > 1e-4
    expected = law.logpdf(theta["odds"]).sum() + float(family.counts_family.log_prior_theta(theta))
    np.testing.assert_allclose(family.log_prior_theta(theta), expected, rtol=1e-10)


def test_all_zeros_are_of_the_inflation_where_counts_would_be_large(x64):
    family = ZeroInflatedPoisson()
    y, f = jnp.zeros((2000, 1)).at[:500].set(40.0), jnp.full((2000, 1), np.log(40.0))
    keys = jax.random.split(jax.random.key(1), 200)
    odds = np.asarray(jax.vmap(lambda key: family.update_theta(key, {"odds": jnp.ones(1)}, y, f, None)["odds"])(keys))
    assert np.mean(odds / (1 + odds)) == pytest.approx(1501 / 2002, abs=0.005)


def test_counts_only(x64):
    with pytest.raises(ValueError, match="zero_inflated_poisson needs whole numbers"):
        ZeroInflatedPoisson().check(Y + 0.5, MASK)
