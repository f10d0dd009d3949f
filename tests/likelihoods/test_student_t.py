"""Student t noise: its parameters given f, their prior, units, and what wild cells do to a fit."""

# pyright: reportAttributeAccessIssue=false

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from rflvm.likelihoods import StudentT
from rflvm.likelihoods.student_t import NU_RATE, NU_SHAPE, log_gamma_ratio

Y = np.array([[0.2, 4.0], [-1.1, 0.3], [9.0, 1.0], [0.4, -2.0]])
F = np.array([[0.0, 3.5], [-1.0, 0.9], [0.3, 5.0], [0.9, -1.0]])
MASK = np.array([[True, True], [True, True], [True, False], [True, True]])


def test_parameters_follow_their_conditional_given_f(x64):
    """Ends of independent chains against a grid over (sigma^2, nu): four KS tests at 1e-4."""
    family = StudentT(a0=2.0, b0=1.5)

    def chain(key):
        def draw(theta, key):
            return family.update_theta(key, theta, jnp.asarray(Y), jnp.asarray(F), jnp.asarray(MASK)), None

        start = {"sigma2": jnp.ones(2), "nu": jnp.full(2, 5.0)}
        return jax.lax.scan(draw, start, jax.random.split(key, 40))[0]

    theta = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), 1500))
    u, v = np.linspace(-6, 6, 600), np.linspace(-6, 6, 500)  # log sigma^2 and log nu
    sigma2, nu = np.exp(u)[:, None], np.exp(v)[None]
    for j in range(2):
        cells = stats.t(nu, 0, np.sqrt(sigma2)).logpdf
        log_p = sum(cells(r) for r in (Y - F)[MASK[:, j], j])
        log_p += stats.invgamma(2.0, scale=1.5).logpdf(sigma2) + stats.gamma(NU_SHAPE, scale=1 / NU_RATE).logpdf(nu)
        p = np.exp(log_p + u[:, None] + v[None] - log_p.max())
        for name, grid, axis in (("sigma2", u, 1), ("nu", v, 0)):
            cumulative = np.cumsum(p.sum(axis=axis))
            cdf = lambda x, c=cumulative, g=grid: np.interp(np.log(x), g, c / c[-1])  # noqa: E731
            assert stats.kstest(np.asarray(theta[name][:, j]), cdf).pvalue > 1e-4, (name, j)


def test_prior_density_and_draws_agree(x64):
    """Two KS tests at 1e-4."""
    family = StudentT(a0=2.0, b0=1.5)
    laws = {"sigma2": stats.invgamma(2.0, scale=1.5), "nu": stats.gamma(NU_SHAPE, scale=1 / NU_RATE)}
    theta = family.sample_theta(jax.random.key(0), 2000, jnp.dtype("float64"))
    for name, law in laws.items():
        assert stats.kstest(np.asarray(theta[name]), law.cdf).pvalue > 1e-4
    one = {"sigma2": np.array([0.5, 2.0]), "nu": np.array([3.0, 30.0])}
    expected = sum(law.logpdf(one[name]).sum() for name, law in laws.items())
    np.testing.assert_allclose(family.log_prior_theta({k: jnp.asarray(v) for k, v in one.items()}), expected)


def test_ratio_of_gamma_functions(x64):
    a = np.array([1e-3, 0.1, 1.0, 7.3, 50.0, 1e4])
    np.testing.assert_allclose(log_gamma_ratio(jnp.asarray(a)), gammaln(a + 0.5) - gammaln(a), rtol=1e-10, atol=1e-11)


def test_wild_cells_hardly_move_the_units(x64):
    rng = np.random.default_rng(0)
    table = 50 + 3 * rng.normal(size=(400, 3))
    observed, offset = rng.random(table.shape) > 0.1, np.zeros(400)
    clean = StudentT().units(table, observed, offset)
    table[rng.random(table.shape) < 0.05] = 1e6
    table[:, 2] = 7.0
    units = StudentT().units(table, observed, offset)
    np.testing.assert_allclose(units.location[:2], clean.location[:2], atol=0.5)
    np.testing.assert_allclose(units.scale[:2], clean.scale[:2], rtol=0.15)
    assert (units.location[2], units.scale[2]) == (7.0, 1.0)


def test_degrees_of_freedom_that_are_given_are_no_unknown(x64):
    family = StudentT(freedom=4.0)
    assert set(family.sample_theta(jax.random.key(0), 2, jnp.dtype("float64"))) == {"sigma2"}
    assert set(family.first_theta(Y, MASK, np.zeros((4, 1)), None)) == {"sigma2"}
    drawn = family.update_theta(jax.random.key(0), {"sigma2": jnp.ones(2)}, jnp.asarray(Y), jnp.asarray(F), None)
    assert set(drawn) == {"sigma2"}


@pytest.mark.parametrize("bad", [{"freedom": 0.0}, {"a0": -1.0}, {"b0": float("nan")}])
def test_parameters_must_be_positive(bad):
    with pytest.raises(ValueError, match="must be finite and positive"):
        StudentT(**bad)
