"""beta given X and W: every column is an independent copy of one small problem, compared with its exact law."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln

from rflvm import likelihoods
from rflvm.model.joint import Data, Model, Prior, State
from rflvm.sampling.blocks import beta
from rflvm.sampling.blocks.tuning import Tuning

N, D, H, M = 6, 1, 1, 3
PRIOR = Prior(beta_scale=1.2, bias_scale=1.5)
B0 = np.array([1.2, 1.2, 1.5]) ** 2
X = np.array([[-1.5], [-0.6], [0.0], [0.4], [1.1], [1.9]])
W = np.array([[1.3]])
PHI = np.column_stack([np.cos(X @ W.T), np.sin(X @ W.T), np.ones(N)])
OFFSET = np.array([0.2, -0.3, 0.0, 0.5, 0.1, -0.4])
SEEN = np.array([True, True, True, True, True, False])


def problem(family, y, J, theta, masked=True, trials=None):
    """J columns that hold the same y; the hidden cell holds an absurd number."""
    y = np.where(SEEN, y, 77.0) if masked else y
    columns = lambda values: jnp.asarray(np.tile(np.asarray(values, float)[:, None], (1, J)))  # noqa: E731
    data = Data(
        columns(y), columns(SEEN).astype(bool) if masked else None, jnp.asarray(OFFSET),
        None if trials is None else columns(trials),
    )  # fmt: skip
    zero = jnp.zeros
    state = State(
        jnp.asarray(X), jnp.asarray(W), zero(H, int), zero((H, D)), jnp.ones((H, D, D)), jnp.ones(()), zero((M, J)),
        {name: jnp.full(J, value) for name, value in theta.items()},
    )  # fmt: skip
    tuning = Tuning(jnp.ones(()), jnp.ones(()), jnp.full(J, 0.35), jnp.full(J, 0.6), zero((N, J)))
    return Model(family, D, H, PRIOR), state, data, tuning


@partial(jax.jit, static_argnums=(3, 5, 6))
def run(key, state, data, model, tuning, n_steps, step=beta.step):
    return jax.lax.scan(lambda state, key: step(key, state, data, model, tuning), state, jax.random.split(key, n_steps))


both_steps = pytest.mark.parametrize("step", [beta.step, beta.step_polya_gamma])


def assert_columns_follow(draws, log_lik, masked=True):
    """KS of each coefficient against its marginal on a grid, 1e-5 each, and a z-score of each product."""
    axis = np.linspace(-6, 6, 97)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, M)
    seen = SEEN if masked else np.ones(N, bool)
    F = grid @ PHI[seen].T + OFFSET[seen]
    log_p = log_lik(F, seen) - 0.5 * np.sum(grid**2 / B0, axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    cube = p.reshape(97, 97, 97)
    for m in range(M):
        marginal = cube.sum(axis=tuple(k for k in range(M) if k != m))
        middle = np.cumsum(marginal) - marginal / 2
        cdf = lambda b, c=middle: np.interp(b, axis, c)  # noqa: E731
        assert stats.kstest(draws[m], cdf).pvalue > 1e-5
    for m, k in [(0, 1), (0, 2), (1, 2)]:
        products, expected = draws[m] * draws[k], np.sum(p * grid[:, m] * grid[:, k])
        assert abs(products.mean() - expected) / (products.std() / np.sqrt(products.size)) < 4.5


@pytest.mark.parametrize("masked", [False, True])
def test_gaussian_draws_follow_the_normal_inverse_gamma_posterior(x64, masked):
    """Five KS tests at 1e-5 each: sigma^2, each white coefficient, and their squared length."""
    J, y = 4_000, np.array([0.3, -1.0, 0.8, 2.0, 1.1, 0.2])
    family = likelihoods.Gaussian(a0=1.5, b0=0.7)
    model, state, data, tuning = problem(family, y, J, {"sigma2": 1.0}, masked)
    state, info = run(jax.random.key(0), state, data, model, tuning, 1)
    seen = SEEN if masked else np.ones(N, bool)
    S = PHI[seen].T @ PHI[seen] + np.diag(1 / B0)
    residual = (y - OFFSET)[seen]
    mean = np.linalg.solve(S, PHI[seen].T @ residual)
    aN, bN = 1.5 + seen.sum() / 2, 0.7 + (residual @ residual - mean @ S @ mean) / 2
    sigma2 = np.asarray(state.theta["sigma2"])
    white = np.linalg.cholesky(S).T @ (np.asarray(state.beta) - mean[:, None]) / np.sqrt(sigma2)
    assert stats.kstest(sigma2, stats.invgamma(aN, scale=bN).cdf).pvalue > 1e-5
    for row in white:
        assert stats.kstest(row, stats.norm.cdf).pvalue > 1e-5
    assert stats.kstest(np.sum(white**2, axis=0), stats.chi2(M).cdf).pvalue > 1e-5
    assert (np.asarray(info.acceptance) == 1).all()
    assert (np.asarray(info.jitter) == 0).all()


@both_steps
def test_bernoulli_chains_reach_the_exact_posterior(x64, step):
    y = np.array([1.0, 0, 0, 1, 1, 0])
    model, state, data, tuning = problem(likelihoods.Bernoulli(), y, 2_000, {})
    state, _ = run(jax.random.key(1), state, data, model, tuning, 25, step)
    log_lik = lambda F, seen: np.sum(y[seen] * F - np.logaddexp(0, F), axis=1)  # noqa: E731
    assert_columns_follow(np.asarray(state.beta), log_lik)


@both_steps
def test_binomial_chains_reach_the_exact_posterior(x64, step):
    y, trials = np.array([1.0, 0, 2, 4, 1, 0]), np.array([2.0, 0, 5, 9, 1, 3])
    model, state, data, tuning = problem(likelihoods.Binomial(trials=1), y, 2_000, {}, trials=trials)
    state, _ = run(jax.random.key(2), state, data, model, tuning, 25, step)
    log_lik = lambda F, seen: np.sum(y[seen] * F - trials[seen] * np.logaddexp(0, F), axis=1)  # noqa: E731
    assert_columns_follow(np.asarray(state.beta), log_lik)


@both_steps
def test_negative_binomial_chains_reach_the_exact_posterior_without_a_mask(x64, step):
    y, r = np.array([1.0, 0, 2, 6, 3, 0]), 1.7
    model, state, data, tuning = problem(likelihoods.NegativeBinomial(), y, 2_000, {"r": r}, masked=False)
    state, _ = run(jax.random.key(3), state, data, model, tuning, 25, step)
    log_lik = lambda F, seen: np.sum(np.log(expit(F)) * y + np.log(expit(-F)) * r, axis=1)  # noqa: E731
    assert_columns_follow(np.asarray(state.beta), log_lik, masked=False)


def test_poisson_chains_reach_the_exact_posterior(x64):
    y = np.array([1.0, 0, 2, 4, 1, 0])
    model, state, data, tuning = problem(likelihoods.Poisson(), y, 2_000, {})
    state, info = run(jax.random.key(4), state, data, model, tuning, 25)
    assert 0.5 < np.asarray(info.acceptance).mean() < 0.995
    assert info.acceptance.shape == (25, 2_000)
    log_lik = lambda F, seen: np.sum(y[seen] * F - np.exp(F) - gammaln(y[seen] + 1), axis=1)  # noqa: E731
    assert_columns_follow(np.asarray(state.beta), log_lik)


def test_adaptation_is_per_column(x64):
    _, _, _, tuning = problem(likelihoods.Poisson(), np.ones(N), 2, {})
    info = beta.Info(jnp.asarray([0.1, 1.0]), jnp.zeros(()))
    tuning = tuning._replace(beta_step=jnp.full(2, 0.2))
    new = beta.adapt(tuning, info, jnp.asarray(1.0)).beta_step
    assert new[0] < 0.2 < new[1]


def test_a_trajectory_never_goes_beyond_a_quarter_turn(x64):
    _, _, _, tuning = problem(likelihoods.Poisson(), np.ones(N), 2, {})
    info = beta.Info(jnp.ones(2), jnp.zeros(()))
    new = beta.adapt(tuning, info, jnp.asarray(100.0)).beta_step
    np.testing.assert_allclose(new * beta.N_LEAPFROG, np.pi / 2)
