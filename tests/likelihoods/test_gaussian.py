"""What is special about the Gaussian family: sigma^2 and the evidence. The rest is in test_base.py."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from rflvm.likelihoods import Gaussian

stats: Any = scipy.stats  # its frozen distributions are typed as discrete and continuous at once


def test_prior_of_sigma2_is_inverse_gamma(x64):
    sigma2 = np.array([0.3, 1.7])
    expected = stats.invgamma(2.5, scale=0.8).logpdf(sigma2).sum()
    np.testing.assert_allclose(Gaussian(a0=2.5, b0=0.8).log_prior_theta({"sigma2": jnp.asarray(sigma2)}), expected)


def test_draws_of_sigma2_follow_the_prior(x64):
    """Kolmogorov-Smirnov at 1e-4."""
    theta = Gaussian(a0=2.5, b0=0.8).sample_theta(jax.random.key(0), 20_000, jnp.dtype("float64"))
    assert stats.kstest(np.asarray(theta["sigma2"]), stats.invgamma(2.5, scale=0.8).cdf).pvalue > 1e-4


def test_coefficients_scale_with_sigma2(x64):
    sigma2 = jnp.asarray([0.3, 1.7])
    assert Gaussian().coefficient_scale({"sigma2": sigma2}) is sigma2


def test_evidence_of_one_cell_is_a_student_t(x64):
    """y ~ N(b, s^2), b ~ N(0, s^2 v): a t with 2 a0 degrees of freedom and scale^2 (1 + v) b0 / a0."""
    family, y, v = Gaussian(a0=1.5, b0=0.7), 0.9, 4.0
    S0, SN = 1 / v, 1 / v + 1
    evidence = family.log_evidence(jnp.ones(1), np.log(S0 / SN), jnp.asarray([y**2]), jnp.asarray([y**2 / SN]))
    np.testing.assert_allclose(evidence, stats.t(3.0, 0, np.sqrt((1 + v) * 0.7 / 1.5)).logpdf(y))


@pytest.mark.parametrize("bad", [{"a0": 0.0}, {"b0": -1.0}, {"a0": float("nan")}])
def test_hyperparameters_must_be_positive(bad):
    with pytest.raises(ValueError, match="must be finite and positive"):
        Gaussian(**bad)
