"""The log joint density against slow loops, the evidence against a dense multivariate t, and prior draws."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy import integrate
from scipy.special import expit

from rflvm import likelihoods
from rflvm.model import conjugate, dynamics, joint
from rflvm.model.dynamics import Matern
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, Prior, State

stats: Any = scipy.stats  # its frozen distributions are typed as discrete and continuous at once

N, D, H, J = 5, 2, 3, 2
PRIOR = Prior(mu0=0.2, lambda0=0.7, Psi0=1.3, nu0=2.5, alpha_shape=1.7, alpha_rate=0.6, beta_scale=0.8, bias_scale=3.0)
MASK = np.array([[True, False], [True, True], [False, True], [True, True], [False, True]])
OFFSET = np.array([0.3, -0.2, 0.0, 0.5, 1.0])
TRIALS = np.array([[4.0, 2.0], [7.0, 7.0], [1.0, 0.0], [3.0, 5.0], [6.0, 2.0]])

FAMILIES = {
    "gaussian": likelihoods.Gaussian(a0=1.5, b0=0.7),
    "poisson": likelihoods.Poisson(),
    "bernoulli": likelihoods.Bernoulli(),
    "binomial": likelihoods.Binomial(trials=1),
    "multinomial": likelihoods.Multinomial(),
    "negative_binomial": likelihoods.NegativeBinomial(a0=1.5, b0=2.0, g0=0.8),
}
log_joint = jax.jit(joint.log_joint, static_argnums=2)


THETA = {
    "gaussian": {"sigma2": np.array([0.6, 1.9])},
    "negative_binomial": {"r": np.array([0.7, 3.1]), "h": np.array(0.9)},
}


def problem(name, masked=True):
    """A model, a state and data, all without compilation."""
    rng = np.random.default_rng(0)
    Sigma = stats.invwishart(4, np.eye(D)).rvs(H, rng)
    theta = {key: jnp.asarray(value) for key, value in THETA.get(name, {}).items()}
    z = jnp.array([2, 0, 2])
    X, W, mu, beta = (jnp.asarray(rng.normal(size=shape)) for shape in [(N, D), (H, D), (H, D), (2 * H + 1, J)])
    state = State(X, W, z, mu, jnp.asarray(Sigma), jnp.asarray(1.4), beta, theta)
    trials = TRIALS if name in ("binomial", "multinomial") else None
    Y = rng.normal(size=(N, J)) if name == "gaussian" else rng.integers(0, 2, (N, J)).astype(float)
    Y = np.where(MASK, Y, 0) if masked else Y
    data = Data(
        Y=jnp.asarray(Y if trials is None else np.minimum(Y, trials)),
        mask=jnp.asarray(MASK) if masked else None,
        offset=jnp.asarray(OFFSET),
        trials=None if trials is None else jnp.asarray(trials),
    )
    return Model(FAMILIES[name], D, H, PRIOR), state, data


def numpy(tree):
    return jax.tree.map(np.asarray, tree)


def log_cell(name, y, f, theta, j, trials):
    if name == "gaussian":
        return stats.norm(f, np.sqrt(theta["sigma2"][j])).logpdf(y)
    if name == "poisson":
        return stats.poisson(np.exp(f)).logpmf(y)
    if name == "bernoulli":
        return stats.bernoulli(expit(f)).logpmf(y)
    if name == "negative_binomial":
        return stats.nbinom(theta["r"][j], 1 - expit(f)).logpmf(y)
    return stats.binom(trials, expit(f)).logpmf(y)


def slow_log_joint(name, state, data):
    """The sum of all log densities of Eq. 5, one by one."""
    X, W, z, mu, Sigma, alpha, beta, theta, _ = numpy(state)
    Y, mask, offset, trials, *_ = numpy(data)
    total = stats.gamma(1.7, scale=1 / 0.6).logpdf(alpha)
    total += {
        "gaussian": lambda: stats.invgamma(1.5, scale=0.7).logpdf(theta["sigma2"]).sum(),
        "negative_binomial": lambda: (
            stats.gamma(1.5, scale=1 / theta["h"]).logpdf(theta["r"]).sum()
            + stats.gamma(2.0, scale=1 / 0.8).logpdf(theta["h"])
        ),
    }.get(name, lambda: 0.0)()
    for h in range(H):
        earlier = np.sum(z[:h] == z[h])
        total += np.log((earlier if earlier else alpha) / (h + alpha))
        total += stats.multivariate_normal.logpdf(W[h], mu[z[h]], Sigma[z[h]])
    for k in set(z.tolist()):
        total += stats.invwishart.logpdf(Sigma[k], 2.5 + D - 1, 1.3 * np.eye(D))
        total += stats.multivariate_normal.logpdf(mu[k], np.full(D, 0.2), Sigma[k] / 0.7)
    for j in range(J):
        noise = np.sqrt(theta["sigma2"][j]) if name == "gaussian" else 1.0
        for m in range(2 * H + 1):
            total += stats.norm(0, noise * (3.0 if m == 2 * H else 0.8)).logpdf(beta[m, j])
    for n in range(N):
        total += stats.norm.logpdf(X[n]).sum()
        phi = [np.cos(w @ X[n]) / np.sqrt(H) for w in W] + [np.sin(w @ X[n]) / np.sqrt(H) for w in W] + [1.0]
        for j in range(J):
            if mask is None or mask[n, j]:
                f = np.dot(phi, beta[:, j]) + offset[n]
                total += log_cell(name, Y[n, j], f, theta, j, None if trials is None else trials[n, j])
    return total


@pytest.mark.parametrize("name", FAMILIES)
def test_log_joint_equals_the_slow_sum(x64, name):
    full, state, data = problem(name)
    np.testing.assert_allclose(log_joint(state, data, full), slow_log_joint(name, state, data), rtol=1e-11)


def test_log_joint_without_a_mask_uses_every_cell(x64):
    full, state, data = problem("poisson", masked=False)
    np.testing.assert_allclose(log_joint(state, data, full), slow_log_joint("poisson", state, data), rtol=1e-11)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "multinomial", "negative_binomial"])
def test_log_joint_does_not_depend_on_what_masked_cells_hold(x64, name):
    full, state, data = problem(name)
    for content in (3.0, np.nan):
        assert data.mask is not None
        spoiled = data._replace(Y=jnp.where(data.mask, data.Y, content))
        assert float(log_joint(state, spoiled, full)) == float(log_joint(state, data, full))


def test_log_joint_does_not_depend_on_empty_slots(x64):
    full, state, data = problem("poisson")
    other = state._replace(mu=state.mu.at[1].set(9.0), Sigma=state.Sigma.at[1].set(7 * jnp.eye(D)))
    np.testing.assert_allclose(log_joint(other, data, full), log_joint(state, data, full), rtol=1e-14)


@pytest.mark.parametrize("reflect", [False, True])
def test_log_joint_is_invariant_under_rotation_and_reflection(x64, reflect):
    full, state, data = problem("poisson")
    full = Model(full.likelihood, D, H, Prior(mu0=0.0, Psi0=1.3, nu0=2.5))
    angle = 0.7
    Q = jnp.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ jnp.diag(
        jnp.array([1.0, -1.0 if reflect else 1.0])
    )
    turned = state._replace(X=state.X @ Q, W=state.W @ Q, mu=state.mu @ Q, Sigma=Q.T @ state.Sigma @ Q)
    np.testing.assert_allclose(log_joint(turned, data, full), log_joint(state, data, full), rtol=1e-12)


# The Gaussian evidence


@pytest.mark.parametrize("masked", [False, True])
def test_evidence_equals_a_dense_multivariate_t(x64, masked):
    full, state, data = problem("gaussian", masked)
    actual = jax.jit(conjugate.log_evidence, static_argnums=2)(features(state.X, state.W), data, full)
    angle = np.asarray(state.X) @ np.asarray(state.W).T
    Phi = np.column_stack([np.cos(angle), np.sin(angle), np.full(N, np.sqrt(H))]) / np.sqrt(H)
    B0 = np.diag([0.8**2] * (2 * H) + [3.0**2])
    for j in range(J):
        seen = MASK[:, j] if masked else np.ones(N, bool)
        y = np.asarray(data.Y)[seen, j] - OFFSET[seen]
        shape = 0.7 / 1.5 * (np.eye(seen.sum()) + Phi[seen] @ B0 @ Phi[seen].T)
        expected = stats.multivariate_t.logpdf(y, np.zeros(seen.sum()), shape, 3.0)
        np.testing.assert_allclose(actual[j], expected, rtol=1e-11)


def test_evidence_does_not_depend_on_what_masked_cells_hold(x64):
    full, state, data = problem("gaussian")
    evidence = jax.jit(lambda Y: conjugate.log_evidence(features(state.X, state.W), data._replace(Y=Y), full))
    expected = evidence(data.Y)
    for content in (1e6, np.nan):
        assert data.mask is not None
        np.testing.assert_array_equal(evidence(jnp.where(data.mask, data.Y, content)), expected)


def test_evidence_gradient_with_a_mask_is_finite(x64):
    full, state, data = problem("gaussian")
    slope = jax.jit(jax.grad(lambda W: conjugate.log_evidence(features(state.X, W), data, full).sum()))(state.W)
    assert np.isfinite(slope).all()


# Draws from the prior


def test_prior_draws_have_the_announced_shapes_and_precision():
    full = Model(likelihoods.NegativeBinomial(), D, H)
    state = jax.eval_shape(lambda key: joint.sample_prior(key, full, N, J), jax.random.key(0))
    assert {name: value.shape for name, value in state._asdict().items() if hasattr(value, "shape")} == {
        "X": (N, D), "W": (H, D), "z": (H,), "mu": (H, D), "Sigma": (H, D, D), "alpha": (), "beta": (2 * H + 1, J),
    }  # fmt: skip
    assert {name: value.shape for name, value in state.theta.items()} == {"r": (J,), "h": ()}
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(state._replace(z=state.alpha)))
    assert state.z.dtype == jnp.int32
    assert state.lengthscale is None


@pytest.fixture(scope="module")
def prior_draws():
    with jax.enable_x64(True):
        full = Model(FAMILIES["gaussian"], D, H, PRIOR)
        draw = jax.vmap(lambda key: joint.sample_prior(key, full, N, J, jnp.dtype("float64")))
        return numpy(jax.jit(draw)(jax.random.split(jax.random.key(5), 3_000)))


def test_prior_marginals_are_their_known_laws(prior_draws):
    """Eight Kolmogorov-Smirnov tests at 1e-5 each."""
    noise = np.sqrt(prior_draws.theta["sigma2"][:, 0])
    tests = {
        "X": (prior_draws.X[:, 1, 0], stats.norm()),
        "alpha": (prior_draws.alpha, stats.gamma(1.7, scale=1 / 0.6)),
        "sigma2": (prior_draws.theta["sigma2"][:, 1], stats.invgamma(1.5, scale=0.7)),
        "beta": (prior_draws.beta[:, 2, 0] / noise, stats.norm(0, 0.8)),
        "bias": (prior_draws.beta[:, -1, 0] / noise, stats.norm(0, 3.0)),
        "Sigma": (prior_draws.Sigma[:, 1, 0, 0], stats.invgamma(1.25, scale=0.65)),
        "mu": (prior_draws.mu[:, 2, 1], stats.t(2.5, 0.2, np.sqrt(1.3 / (0.7 * 2.5)))),
        "W": (prior_draws.W[:, 2, 1], stats.t(2.5, 0.2, np.sqrt(1.3 * 1.7 / (0.7 * 2.5)))),
    }
    for name, (draws, law) in tests.items():
        assert stats.kstest(draws, law.cdf).pvalue > 1e-5, name


def test_frequencies_share_a_component_as_often_as_the_process_says(prior_draws):
    """One z-score: exceeds 4.5 with probability 7e-6."""
    together = prior_draws.z[:, 0] == prior_draws.z[:, 1]
    alpha_law = stats.gamma(1.7, scale=1 / 0.6)
    p = integrate.quad(lambda alpha: alpha_law.pdf(alpha) / (1 + alpha), 0, np.inf)[0]
    assert abs(together.mean() - p) / np.sqrt(p * (1 - p) / len(together)) < 4.5


def test_frequencies_are_normal_around_their_component(prior_draws):
    """Kolmogorov-Smirnov at 1e-5."""
    R = np.arange(len(prior_draws.z))
    k = prior_draws.z[:, 1]
    white = np.linalg.solve(
        np.linalg.cholesky(prior_draws.Sigma[R, k]), (prior_draws.W[:, 1] - prior_draws.mu[R, k])[..., None]
    )
    assert stats.kstest(np.sum(white**2, axis=(1, 2)), stats.chi2(D).cdf).pvalue > 1e-5


@pytest.mark.parametrize("name", FAMILIES)
def test_sampled_tables_are_zero_outside_the_mask_and_possible(x64, name):
    full, state, design = problem(name)
    data = jax.jit(lambda key: joint.sample_data(key, state, design, full))(jax.random.key(0))
    assert (np.asarray(data.Y)[~MASK] == 0).all()
    assert np.isfinite(log_joint(state, data, full))


def test_sampled_multinomial_rows_have_the_totals_of_the_design_after_the_missing_cell(x64):
    full, state, design = problem("multinomial")
    data = jax.jit(lambda key: joint.sample_data(key, state, design, full))(jax.random.key(0))
    assert data.trials is not None
    np.testing.assert_array_equal(data.trials[2, 1], TRIALS[2, 1])
    np.testing.assert_array_equal(data.trials[4, 1], TRIALS[4, 1])
    np.testing.assert_array_equal(data.trials[[1, 3], 0], TRIALS[[1, 3], 0])
    np.testing.assert_array_equal(data.trials[[1, 3], 1], TRIALS[[1, 3], 0] - data.Y[[1, 3], 0])


# A prior over time


GAPS, FIRST = np.array([0.0, 1.0, 2.5, 0.0, 0.5]), np.array([True, False, False, True, False])


def sessions():
    return dynamics.Chronology(jnp.asarray(GAPS), jnp.asarray(FIRST), jnp.asarray(1.0))


def dense_covariance(lengthscale):
    """The covariance matrix of one dimension over the rows of ``sessions``."""
    time, session = np.cumsum(GAPS), np.cumsum(FIRST)
    r = np.sqrt(3) * np.abs(time[:, None] - time) / lengthscale
    return np.where(session[:, None] == session, (1 + r) * np.exp(-r), 0)


@pytest.mark.parametrize("lengthscale", [[0.7, 4.0], [2.0]])
def test_the_joint_density_with_a_prior_over_time(x64, lengthscale):
    """Against the density without time: the dense process in place of N(0, I), and log-normal lengthscales."""
    model, state, data = problem("poisson")
    process = Matern(per_dimension=len(lengthscale) > 1)
    timed = dataclasses.replace(model, dynamics=process)
    plain = log_joint(state, data, model)
    found = log_joint(state._replace(lengthscale=jnp.asarray(lengthscale)), data._replace(chronology=sessions()), timed)
    X, each = np.asarray(state.X), np.resize(lengthscale, D)
    on_paths = sum(stats.multivariate_normal.logpdf(X[:, d], cov=dense_covariance(each[d])) for d in range(D))
    prior = stats.lognorm(dynamics.LOG_DEVIATION, scale=dynamics.TYPICAL_GAPS).logpdf(lengthscale).sum()
    expected = plain - stats.norm.logpdf(X).sum() + on_paths + prior
    assert float(found) == pytest.approx(float(expected))


def test_paths_from_the_prior_have_the_covariances_of_the_process(x64):
    """Three covariances of 4000 draws, each within 4.5 standard errors (at most 0.1)."""
    model = Model(FAMILIES["poisson"], D, H, PRIOR, Matern(lengthscale=(0.7, 4.0)))
    draw = jax.vmap(lambda key: joint.sample_prior(key, model, N, J, jnp.dtype("float64"), sessions()))
    drawn = numpy(jax.jit(draw)(jax.random.split(jax.random.key(6), 4_000)))
    np.testing.assert_array_equal(drawn.lengthscale, np.tile([0.7, 4.0], (4_000, 1)))
    for d, lengthscale in enumerate([0.7, 4.0]):
        np.testing.assert_allclose(np.cov(drawn.X[:, :, d].T), dense_covariance(lengthscale), atol=0.1)


def test_learned_lengthscales_are_log_normal_around_ten_gaps(x64):
    """Two Kolmogorov-Smirnov tests at 1e-5 each."""
    draw = jax.vmap(lambda key: Matern().sample(key, sessions(), D))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(7), 2_000)))
    law = stats.lognorm(dynamics.LOG_DEVIATION, scale=dynamics.TYPICAL_GAPS)
    assert all(stats.kstest(drawn[:, d], law.cdf).pvalue > 1e-5 for d in range(D))
