"""The mixture over frequencies against SciPy, enumeration of partitions and numerical integration."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.special import gammaln

from rflvm.model import spectral
from rflvm.model.spectral import NIW

stats: Any = scipy.stats  # its frozen distributions are typed as discrete and continuous at once


def niw(m, lam, Psi, nu):
    return NIW(jnp.asarray(m, float), jnp.asarray(lam, float), jnp.asarray(Psi, float), jnp.asarray(nu, float))


def prior_2d():
    return niw([0.3, -0.2], 0.7, [[1.5, 0.4], [0.4, 0.8]], 4.5)


def repeated(prior, K):
    return NIW(*(jnp.broadcast_to(part, (K, *part.shape)) for part in prior))


def partitions(n):
    """All partitions of n items, clusters numbered in order of appearance."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*z, k] for z in found for k in range(max(z) + 2)]
    return np.array(found)


def canonical(z):
    """Renumber the clusters of each row in order of appearance."""
    first = np.argmax(z[:, :, None] == z[:, None, :], axis=2)
    opens = first == np.arange(z.shape[1])
    return np.take_along_axis(np.cumsum(opens, axis=1) - 1, first, axis=1)


def partition_counts(z, table):
    return np.array([(canonical(z) == row).all(axis=1).sum() for row in table])


def sequential_log_crp(z, alpha):
    total = 0.0
    for h in range(len(z)):
        n = int(np.sum(z[:h] == z[h]))
        total += math.log((n if n else alpha) / (h + alpha))
    return total


# Normal-inverse-Wishart


def test_niw_posterior_equals_a_loop_over_clusters(x64):
    rng = np.random.default_rng(0)
    W, z, prior = rng.normal(size=(7, 2)), np.array([4, 0, 4, 2, 0, 4, 4]), prior_2d()
    posterior = jax.jit(spectral.niw_posterior)(prior, jnp.asarray(W), jnp.asarray(z))
    m0, lam0, Psi0, nu0 = map(np.asarray, prior)
    for k in (0, 2, 4):
        members = W[z == k]
        n, mean = len(members), members.mean(0)
        Psi = Psi0 + sum(np.outer(w - mean, w - mean) for w in members)
        Psi = Psi + lam0 * n / (lam0 + n) * np.outer(mean - m0, mean - m0)
        np.testing.assert_allclose(posterior.Psi[k], Psi, rtol=1e-12)
        np.testing.assert_allclose(posterior.m[k], (lam0 * m0 + members.sum(0)) / (lam0 + n), rtol=1e-12)
        np.testing.assert_allclose([posterior.lam[k], posterior.nu[k]], [lam0 + n, nu0 + n])


def test_empty_slots_keep_the_niw_prior(x64):
    W, z, prior = np.random.default_rng(0).normal(size=(4, 2)), jnp.array([1, 1, 3, 1]), prior_2d()
    posterior = jax.jit(spectral.niw_posterior)(prior, jnp.asarray(W), z)
    for k in (0, 2):
        for actual, expected in zip(posterior, prior, strict=True):
            np.testing.assert_allclose(actual[k], expected, rtol=1e-14)


def test_niw_log_density_equals_inverse_wishart_times_normal(x64):
    rng = np.random.default_rng(1)
    prior = prior_2d()
    mu, Sigma = rng.normal(size=(5, 2)), stats.invwishart(5, np.eye(2)).rvs(5, rng)
    m, lam, Psi, nu = (np.asarray(part) for part in prior)
    expected = [
        stats.invwishart.logpdf(S, float(nu), Psi) + stats.multivariate_normal.logpdf(u, m, S / lam)
        for u, S in zip(mu, Sigma, strict=True)
    ]
    actual = jax.jit(spectral.niw_log_density)(prior, jnp.asarray(mu), jnp.asarray(Sigma))
    np.testing.assert_allclose(actual, expected, rtol=1e-11)


def test_log_normal_equals_scipy_for_every_pair(x64):
    rng = np.random.default_rng(2)
    W, mu, Sigma = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), stats.invwishart(5, np.eye(2)).rvs(4, rng)
    expected = [[stats.multivariate_normal.logpdf(w, mu[k], Sigma[k]) for k in range(4)] for w in W]
    actual = jax.jit(spectral.log_normal)(jnp.asarray(W)[:, None], jnp.asarray(mu)[None], jnp.asarray(Sigma)[None])
    np.testing.assert_allclose(actual, expected, rtol=1e-11)


def test_sample_niw_has_the_right_moments(x64):
    """Eight z-scores: a correct sampler exceeds 4.5 with probability 6e-5."""
    prior = prior_2d()._replace(nu=jnp.asarray(14.0))
    K = 40_000
    mu, Sigma = jax.jit(spectral.sample_niw)(jax.random.key(0), repeated(prior, K))
    m, lam, Psi, nu = (np.asarray(part) for part in prior)
    expected_Sigma = Psi / (nu - 3)
    away = np.asarray(mu) - m
    for values, mean in [
        (np.asarray(mu), m),
        (np.asarray(Sigma), expected_Sigma),
        (away[:, :, None] * away[:, None, :], expected_Sigma / lam),
    ]:
        z = (values.mean(0) - mean) / (values.std(0) / np.sqrt(K))
        assert np.abs(z).max() < 4.5


def test_sample_niw_has_inverse_gamma_and_t_marginals(x64):
    """Four Kolmogorov-Smirnov tests at 1e-4 each, and the mixed fourth shows whether mu and Sigma belong together."""
    prior = prior_2d()
    mu, Sigma = (np.asarray(x) for x in jax.jit(spectral.sample_niw)(jax.random.key(1), repeated(prior, 20_000)))
    m, lam, Psi, nu = (np.asarray(part) for part in prior)
    dof = nu - 1
    for d in range(2):
        assert stats.kstest(Sigma[:, d, d], stats.invgamma(dof / 2, scale=Psi[d, d] / 2).cdf).pvalue > 1e-4
    assert stats.kstest(mu[:, 0], stats.t(dof, m[0], np.sqrt(Psi[0, 0] / (lam * dof))).cdf).pvalue > 1e-4
    white = np.linalg.solve(np.linalg.cholesky(Sigma), (mu - m)[..., None])[..., 0] * np.sqrt(lam)
    assert stats.kstest(np.sum(white**2, axis=1), stats.chi2(2).cdf).pvalue > 1e-4


def test_new_cluster_weight_equals_a_multivariate_t(x64):
    prior, W = prior_2d(), np.random.default_rng(3).normal(size=(6, 2))
    m, lam, Psi, nu = (np.asarray(part) for part in prior)
    dof = float(nu) - 1
    expected = stats.multivariate_t.logpdf(W, m, Psi * (lam + 1) / (lam * dof), dof)
    np.testing.assert_allclose(jax.jit(spectral.log_new_cluster)(prior, jnp.asarray(W)), expected, rtol=1e-11)


def test_new_cluster_weight_equals_the_integral_of_the_normal_over_the_niw(x64):
    prior = niw([0.3], 0.7, [[1.2]], 2.5)
    log_s2, shift = np.meshgrid(np.linspace(-4, 16, 1200), np.linspace(-9, 9, 181), indexing="ij")
    s2 = np.exp(log_s2.ravel())
    mu = 0.3 + shift.ravel() * np.sqrt(s2 / 0.7)
    W = jnp.asarray([[-1.0], [0.1], [2.0]])
    components = jnp.asarray(mu)[:, None], jnp.asarray(s2)[:, None, None]
    log_prior = jax.jit(spectral.niw_log_density)(prior, *components)
    log_w = jax.jit(spectral.log_normal)(W[:, None], *(part[None] for part in components))
    cell = 20 / 1199 * 18 / 180 * s2 * np.sqrt(s2 / 0.7)  # d sigma^2 d mu
    integral = np.sum(np.exp(np.asarray(log_prior[None] + log_w)) * cell, axis=1)
    np.testing.assert_allclose(np.exp(spectral.log_new_cluster(prior, W)), integral, rtol=1e-5)


# The Chinese restaurant process


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.5])
def test_crp_sums_to_one_over_all_partitions_and_equals_the_sequential_product(x64, alpha):
    table = partitions(5)
    assert len(table) == 52
    log_p = jax.jit(jax.vmap(spectral.log_crp, (0, None)))(jnp.asarray(table), jnp.asarray(alpha))
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-13)
    np.testing.assert_allclose(log_p, [sequential_log_crp(z, alpha) for z in table], rtol=1e-12)


def test_sample_crp_visits_partitions_with_their_probabilities(x64):
    """A chi-squared test at 1e-4."""
    table, alpha, R = partitions(4), jnp.asarray(1.3), 40_000
    z = jax.jit(jax.vmap(spectral.sample_crp, (0, None, None)), static_argnums=2)(
        jax.random.split(jax.random.key(0), R), alpha, 4
    )
    np.testing.assert_array_equal(z, canonical(np.asarray(z)))
    expected = R * np.exp([sequential_log_crp(row, 1.3) for row in table])
    assert stats.chisquare(partition_counts(np.asarray(z), table), expected, sum_check=False).pvalue > 1e-4


# Assignments

W_1D = np.array([-1.0, -0.7, 0.6, 1.2])
PRIOR_1D = {"m": [0.1], "lam": 0.5, "Psi": [[0.4]], "nu": 2.0}


def log_marginal(w):
    """log p(w_1..w_n) of one cluster in one dimension, mu and Sigma integrated out."""
    m, lam, Psi, nu = 0.1, 0.5, 0.4, 2.0
    n, mean = len(w), w.mean()
    lam_n, nu_n = lam + n, nu + n
    Psi_n = Psi + np.sum((w - mean) ** 2) + lam * n / lam_n * (mean - m) ** 2
    gammas = gammaln(nu_n / 2) - gammaln(nu / 2)
    return gammas + nu / 2 * np.log(Psi) - nu_n / 2 * np.log(Psi_n) + 0.5 * np.log(lam / lam_n) - n / 2 * np.log(np.pi)


def test_assignments_and_components_visit_partitions_with_their_posterior_probabilities(x64):
    """Independent chains from the state with all slots full; a chi-squared test of their ends, at 1e-4."""
    table, alpha, R, sweeps = partitions(4), 1.3, 5_000, 20
    prior, W = niw(**PRIOR_1D), jnp.asarray(W_1D)[:, None]

    def sweep(carry, key):
        key_z, key_components = jax.random.split(key)
        z, mu, Sigma = carry
        z, _, _ = spectral.sample_assignments(key_z, z, W, mu, Sigma, jnp.asarray(alpha), prior)
        mu, Sigma = spectral.sample_niw(key_components, spectral.niw_posterior(prior, W, z))
        return (z, mu, Sigma), None

    def chain(key):
        start = (jnp.arange(4), W, jnp.ones((4, 1, 1)))
        return jax.lax.scan(sweep, start, jax.random.split(key, sweeps))[0][0]

    z = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), R))
    log_p = [
        sequential_log_crp(row, alpha) + sum(log_marginal(W_1D[row == k]) for k in range(max(row) + 1)) for row in table
    ]
    p = np.exp(log_p) / np.sum(np.exp(log_p))
    assert p.max() < 0.5  # the posterior is not trivial
    assert p.min() * R > 30
    assert stats.chisquare(partition_counts(np.asarray(z), table), R * p, sum_check=False).pvalue > 1e-4


def test_one_pass_from_all_slots_full_has_the_exact_probability(x64):
    """Two frequencies, each alone: how often they end together. A z-test at 4 standard errors, 6e-5."""
    alpha, R = 0.8, 30_000
    prior, w = niw(**PRIOR_1D), np.array([-0.2, 0.5])
    mu, s2 = np.array([-0.4, 0.3]), np.array([0.5, 0.9])
    one_pass = jax.vmap(spectral.sample_assignments, (0, None, None, None, None, None, None))
    z, new_mu, _ = jax.jit(one_pass)(
        jax.random.split(jax.random.key(4), R), jnp.arange(2), jnp.asarray(w)[:, None], jnp.asarray(mu)[:, None],
        jnp.asarray(s2)[:, None, None], jnp.asarray(alpha), prior,
    )  # fmt: skip
    together = np.asarray(z[:, 0] == z[:, 1])

    opening = [alpha * np.exp(log_marginal(w[h : h + 1])) for h in range(2)]
    join_first, join_second = stats.norm.pdf(w, mu[1], np.sqrt(s2[1]))
    first_joins = join_first / (join_first + opening[0])
    # If the first opened a cluster, its parameters are drawn given itself alone: average over them.
    lam, nu, m = 1.5, 3.0, (0.5 * 0.1 + w[0]) / 1.5
    Psi = 0.4 + 0.5 / 1.5 * (w[0] - 0.1) ** 2
    quantiles = (np.arange(1000) + 0.5) / 1000
    variances = stats.invgamma(nu / 2, scale=Psi / 2).ppf(quantiles)[:, None]
    means = m + np.sqrt(variances / lam) * stats.norm.ppf(quantiles)
    density = stats.norm.pdf(w[1], means, np.sqrt(variances))
    joins_new = np.mean(density / (density + opening[1]))
    p = first_joins * join_second / (join_second + opening[1]) + (1 - first_joins) * joins_new
    assert abs(together.mean() - p) / np.sqrt(p * (1 - p) / R) < 4
    # A cluster that was joined keeps its parameters, one that was opened has its own.
    kept = together & (np.asarray(z[:, 0]) == 1)
    at_slot = np.asarray(new_mu)[np.arange(R), np.asarray(z[:, 0]), 0]
    assert kept.any()
    assert (at_slot[kept] == mu[1]).all()


# The concentration


def last_alphas(z, key, R=4_000, steps=10):
    shape, rate = jnp.asarray(2.0), jnp.asarray(1.5)

    def chain(key):
        draw = lambda alpha, key: (spectral.sample_concentration(key, alpha, z, shape, rate), None)  # noqa: E731
        return jax.lax.scan(draw, jnp.asarray(1.0), jax.random.split(key, steps))[0]

    return np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(key, R)))


def test_concentration_follows_its_posterior_with_H_atoms_and_not_with_2H(x64):
    """Kolmogorov-Smirnov at 1e-4 against numerical integration; the variant with 2H atoms must fail it."""
    z = jnp.array([0, 3, 0, 0, 5, 3])
    H, K = 6, 3
    grid = np.linspace(1e-4, 40, 40_001)
    log_p = np.log(grid) - 1.5 * grid + K * np.log(grid) + gammaln(grid) - gammaln(grid + H)
    cumulative = np.cumsum(np.exp(log_p - log_p.max()))

    def cdf(alpha):
        return np.interp(alpha, grid, cumulative / cumulative[-1])

    assert stats.kstest(last_alphas(z, jax.random.key(5)), cdf).pvalue > 1e-4
    twice = jnp.concatenate([z, jnp.zeros(6, z.dtype)])  # as many clusters, twice the atoms
    assert stats.kstest(last_alphas(twice, jax.random.key(6)), cdf).pvalue < 1e-20
