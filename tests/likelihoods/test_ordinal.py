"""Ordered categories: which there are, cut points given f, their prior, starts."""

# pyright: reportAttributeAccessIssue=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from rflvm.data import checks
from rflvm.likelihoods import Ordinal

Y = np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [2.0, 4.0], [4.0, 2.0], [1.0, 4.0]])
F = np.array([[-1.0, 3.5], [0.4, -0.9], [2.3, 2.0], [0.9, 1.0], [2.0, 0.1], [0.0, 0.2]])
MASK = np.ones((6, 2), bool)
MASK[5, 1] = False


def law(y, f, gaps):
    cuts = np.concatenate([[-np.inf, 0.0], np.cumsum(gaps), [np.inf]])
    return expit(cuts[int(y)] - f) - expit(cuts[int(y) - 1] - f)


def test_gaps_follow_their_conditional_given_f(x64):
    """Ends of independent chains against a grid over both gaps: four KS tests at 1e-4."""
    family = Ordinal(low=1, high=4, a0=1.5, b0=0.8)

    def chain(key):
        def draw(theta, key):
            return family.update_theta(key, theta, jnp.asarray(Y), jnp.asarray(F), jnp.asarray(MASK)), None

        return jax.lax.scan(draw, {"gaps": jnp.ones((2, 2))}, jax.random.split(key, 25))[0]

    gaps = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), 1500))["gaps"])
    u = np.linspace(-7, 3.5, 250)
    one, two = np.exp(u)[:, None], np.exp(u)[None]
    for j in range(2):
        cuts = [-np.inf, 0.0, one, one + two, np.inf]
        log_p = sum(stats.gamma(1.5, scale=1 / 0.8).logpdf(g) for g in (one, two)) + u[:, None] + u[None]
        for y, f in zip(Y[MASK[:, j], j].astype(int), F[MASK[:, j], j], strict=True):
            log_p = log_p + np.log(np.maximum(expit(cuts[y] - f) - expit(cuts[y - 1] - f), 1e-300))
        p = np.exp(log_p - log_p.max())
        for i in range(2):
            cumulative = np.cumsum(p.sum(axis=1 - i))
            cdf = lambda x, c=cumulative: np.interp(np.log(x), u, c / c[-1])  # noqa: E731
            assert stats.kstest(gaps[:, i, j], cdf).pvalue > 1e-4, (i, j)


def test_density_of_narrow_and_wide_categories_in_single_precision():
    """Where the difference of two probabilities would be rounding."""
    family = Ordinal(low=0, high=2)
    y = jnp.ones((1, 4))
    gaps = np.array([[1e-6, 1e-3, 5.0, 60.0]])
    f = np.array([[-20.0, 0.3, 12.0, 30.0]])
    with np.errstate(divide="ignore"):
        a, b = f, f - gaps
        expected = -np.logaddexp(0, -a) - np.logaddexp(0, b) + np.log(-np.expm1(-gaps))
    theta = {"gaps": jnp.asarray(gaps, "float32")}
    found = family.log_prob(y, jnp.asarray(f, "float32"), theta)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_categories_come_from_the_table():
    table, family = checks.table_and_family(np.where(MASK, Y, np.nan), Ordinal(), None, None, 1)
    assert (family.low, family.high) == (1, 4)
    assert (table.Y[~MASK] == 0).all()
    assert Ordinal(low=0).learned_from(Y, MASK) == Ordinal(low=0, high=4)


@pytest.mark.parametrize(
    ("values", "family", "message"),
    [
        (Y + 0.5, Ordinal(), "ordinal needs whole numbers"),
        (Y, Ordinal(low=1, high=3), "ordinal needs categories from 1 to 3, got"),
        (np.minimum(Y, 2), Ordinal(), "3 categories or more, got 1 to 2"),
        (Y * 100, Ordinal(), "at most 50 categories, got 100 to 400"),
    ],
)
def test_tables_that_are_not_of_ordered_categories_are_refused(values, family, message):
    with pytest.raises(ValueError, match=message):
        checks.table_and_family(values, family, None, None, 1)


def test_a_fit_starts_with_the_frequencies_of_the_categories(x64):
    rng = np.random.default_rng(0)
    table = rng.choice([1.0, 2.0, 3.0, 4.0], size=(4000, 2), p=[0.1, 0.5, 0.15, 0.25])
    mask = rng.random(table.shape) > 0.2
    family, offset = Ordinal(low=1, high=4), np.zeros((4000, 1))
    cells = np.where(mask, table, 0)
    gaps = family.first_theta(cells, mask, offset, None)["gaps"]
    f = family.intercepts(cells, mask, offset, None)
    for j in range(2):
        shares = [law(y, f[j], gaps[:, j]) for y in (1, 2, 3, 4)]
        np.testing.assert_allclose(shares, [np.mean(table[mask[:, j], j] == y) for y in (1, 2, 3, 4)], atol=1e-3)
    steps = family.stabilise(table, offset, None)
    first = np.where(table == 1, steps, np.inf).min(axis=0)
    np.testing.assert_allclose(first, logit(np.mean(table == 1, axis=0) / 2), atol=0.01)


def test_prior_density_and_draws_agree(x64):
    """One KS test at 1e-4."""
    family, prior = Ordinal(low=0, high=3, a0=1.5, b0=0.8), stats.gamma(1.5, scale=1 / 0.8)
    gaps = np.asarray(family.sample_theta(jax.random.key(0), 1000, jnp.dtype("float64"))["gaps"])
    assert gaps.shape == (2, 1000)
    assert stats.kstest(gaps.ravel(), prior.cdf).pvalue > 1e-4
    np.testing.assert_allclose(family.log_prior_theta({"gaps": jnp.asarray(gaps)}), prior.logpdf(gaps).sum())
