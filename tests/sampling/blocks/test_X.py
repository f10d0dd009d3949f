"""X given the rest: the local expansion against automatic differentiation, and rows against their exact law."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rflvm import likelihoods
from rflvm.model.conjugate import log_evidence
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, Prior, State
from rflvm.sampling.blocks import X as block  # noqa: N811
from rflvm.sampling.blocks.tuning import Tuning

D, H, J = 2, 2, 4
W = np.array([[0.9, 0.3], [-0.5, 1.1]])
BETA = np.array(
    [[0.8, -0.5, 0.3, 0.1], [0.2, 0.9, -0.7, 0.5], [-0.9, 0.4, 0.6, 1.0], [0.5, 0.7, 1.0, -0.8], [0.4, -0.2, 0.6, 0.1]]
)
THETA = {
    "gaussian": {"sigma2": np.array([0.5, 1.0, 2.0, 0.8])},
    "negative_binomial": {"r": np.array([0.5, 1.0, 2.0, 5.0]), "h": np.array(1.0)},
}
FAMILIES = {
    "gaussian": likelihoods.Gaussian(marginal=False),
    "poisson": likelihoods.Poisson(),
    "bernoulli": likelihoods.Bernoulli(),
    "negative_binomial": likelihoods.NegativeBinomial(),
}
Y_ROW = np.array([1.0, 0.0, 1.0, 1.0])
SEEN_ROW = np.array([True, True, True, False])


def problem(name, N, X):
    """N copies of one row; the last cell is hidden."""
    state = State(
        jnp.asarray(X), jnp.asarray(W), jnp.zeros(H, int), jnp.zeros((H, D)), jnp.tile(jnp.eye(D), (H, 1, 1)),
        jnp.ones(()), jnp.asarray(BETA), {key: jnp.asarray(value) for key, value in THETA.get(name, {}).items()},
    )  # fmt: skip
    mask = jnp.asarray(np.tile(SEEN_ROW, (N, 1)))
    data = Data(jnp.where(mask, jnp.asarray(np.tile(Y_ROW, (N, 1))), 55.0), mask, jnp.full(N, 0.3), None)
    tuning = Tuning(jnp.asarray(1.0), jnp.ones(()), jnp.ones(J), jnp.ones(J), jnp.zeros((N, J)))
    return Model(FAMILIES[name], D, H), state, data, tuning


@pytest.mark.parametrize("name", FAMILIES)
def test_expansion_has_the_exact_value_gradient_and_fisher_metric(x64, name):
    X = np.random.default_rng(0).normal(size=(5, D))
    model, state, data, _ = problem(name, 5, X)

    @jax.jit
    def everything(X):
        def log_factor(F):
            assert data.mask is not None
            return jnp.where(data.mask, model.likelihood.log_factor(data.Y, F, state.theta, None), 0).sum()

        def predictor(X):
            return features(X, state.W) @ state.beta + data.offset[:, None]

        curvature = -jnp.diagonal(jax.hessian(log_factor)(predictor(X)).reshape(20, 20)).reshape(5, J)
        jacobian = jnp.einsum("njnd->njd", jax.jacfwd(predictor)(X))  # rows depend on their own x alone
        gradient = jax.grad(lambda X: block.row_values(X, state, data, model).sum())(X)
        metric = jnp.eye(D)[None] + jnp.einsum("nj,njd,nje->nde", curvature, jacobian, jacobian)
        return block.expand(X, state, data, model), block.row_values(X, state, data, model), gradient, metric

    local, value, gradient, metric = everything(jnp.asarray(X))
    np.testing.assert_allclose(local.value, value, rtol=1e-12)
    np.testing.assert_allclose(local.gradient, gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(local.metric, metric, rtol=1e-10, atol=1e-12)


@partial(jax.jit, static_argnums=(3, 5, 6))
def run(key, state, data, model, tuning, n_steps, step):
    return jax.lax.scan(lambda state, key: step(key, state, data, model, tuning), state, jax.random.split(key, n_steps))


@pytest.mark.parametrize("name", ["poisson", "bernoulli"])
def test_rows_stay_at_their_exact_posterior(x64, name):
    """Rows drawn from a grid, five steps each: KS of both coordinates at 1e-5, z of their product at 4.5."""
    N, points, rng = 6_000, 401, np.random.default_rng(1)
    axis = np.linspace(-5, 5, points)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, D)
    angle = grid @ W.T
    Phi = np.column_stack([np.cos(angle) / np.sqrt(H), np.sin(angle) / np.sqrt(H), np.ones(len(grid))])
    F = (Phi @ (3 * BETA) + 0.3)[:, SEEN_ROW]  # large coefficients: far from Gaussian and from the prior
    cells = Y_ROW[SEEN_ROW] * F - (np.exp(F) if name == "poisson" else np.logaddexp(0, F))
    log_p = cells.sum(axis=1) - 0.5 * np.sum(grid**2, axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    start = grid[rng.choice(len(grid), N, p=p)] + rng.uniform(-0.5, 0.5, (N, D)) * (axis[1] - axis[0])
    model, state, data, tuning = problem(name, N, start)
    final, info = run(jax.random.key(0), state._replace(beta=3 * state.beta), data, model, tuning, 5, block.step)
    assert 0.2 < float(info.acceptance.mean()) < 0.98
    X, table = np.asarray(final.X), p.reshape(points, points)
    assert np.abs(X - start).mean() > 0.1
    for d in range(D):
        marginal = table.sum(axis=1 - d)
        middle = np.cumsum(marginal) - marginal / 2
        cdf = lambda x, c=middle: np.interp(x, axis, c)  # noqa: E731
        assert stats.kstest(X[:, d], cdf).pvalue > 1e-5
    products = X[:, 0] * X[:, 1]
    assert abs(products.mean() - axis @ table @ axis) / (products.std() / np.sqrt(N)) < 4.5


def test_rows_move_by_hmc_on_the_evidence_when_beta_is_integrated_out(x64):
    """From exact joint draws of (X, Y), five z-scores of paired changes at 4.5: false alarms 3e-5."""
    R, N, rng = 3_000, 4, np.random.default_rng(4)
    model = Model(likelihoods.Gaussian(a0=3.0, b0=2.0), 1, 2, Prior(bias_scale=2.0))
    offset = np.array([0.1, -0.5, 0.0, 0.3])
    mask = np.array([[True, False], [True, True], [False, True], [True, True]])
    frequencies = np.array([[0.8], [-1.7]])
    X = rng.normal(size=(R, N, 1))
    angle = X @ frequencies.T
    Phi = np.concatenate([np.cos(angle), np.sin(angle), np.full((R, N, 1), np.sqrt(2))], axis=2) / np.sqrt(2)
    noise = np.sqrt(2.0 / rng.gamma(3.0, size=(R, 1, 2)))
    coefficients = noise * np.array([1, 1, 1, 1, 2.0])[:, None] * rng.normal(size=(R, 5, 2))
    Y = Phi @ coefficients + offset[:, None] + noise * rng.normal(size=(R, N, 2))
    tuning = Tuning(jnp.asarray(0.3), jnp.ones(()), jnp.ones(2), jnp.ones(2), jnp.zeros((N, 2)))

    def statistics(x, evidence, y):
        return jnp.stack([jnp.tanh(x[0]), jnp.sum(x**2), jnp.tanh(evidence / 5), x[1] * x[3], jnp.tanh(x[1] * y[1, 0])])

    def replicate(key, X, Y):
        state = State(
            X, jnp.asarray(frequencies), jnp.zeros(2, int), jnp.zeros((2, 1)), jnp.ones((2, 1, 1)), jnp.ones(()),
            jnp.zeros((5, 2)), {"sigma2": jnp.ones(2)},
        )  # fmt: skip
        data = Data(jnp.where(mask, Y, 0), jnp.asarray(mask), jnp.asarray(offset), None)
        new, info = jax.lax.scan(
            lambda state, key: block.step(key, state, data, model, tuning), state, jax.random.split(key, 3)
        )
        values = [statistics(s.X[:, 0], log_evidence(features(s.X, s.W), data, model).sum(), Y) for s in (state, new)]
        return values[1] - values[0], info.acceptance

    keys = jax.random.split(jax.random.key(1), R)
    change, acceptance = jax.jit(jax.vmap(replicate))(keys, jnp.asarray(X), jnp.asarray(Y))
    change = np.asarray(change)
    assert 0.5 < float(acceptance.mean()) < 0.99
    assert np.abs(change.mean(0) / (change.std(0) / np.sqrt(R))).max() < 4.5


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_maximisation_never_lowers_a_row_and_ends_at_a_zero_gradient(x64, name):
    N = 50
    model, state, data, tuning = problem(name, N, 2 * np.random.default_rng(3).normal(size=(N, D)))
    values = jax.jit(lambda X: block.row_values(X, state, data, model))
    before = values(state.X)
    for _ in range(20):
        state, info = run(jax.random.key(0), state, data, model, tuning, 1, block.step_map)
        after = values(state.X)
        assert (np.asarray(after - before) >= -1e-13).all()
        assert 0 <= float(info.acceptance[0]) <= 1
        before = after
    state, _ = run(jax.random.key(0), state, data, model, tuning, 1_000, block.step_map)  # scoring is of first order
    gradient = jax.jit(lambda X: block.expand(X, state, data, model).gradient)(state.X)
    assert np.abs(gradient).max() < 1e-5


def test_adaptation_of_the_step_stops_at_one_and_a_half(x64):
    _, _, _, tuning = problem("poisson", 1, np.zeros((1, D)))
    new = block.adapt(tuning, block.Info(jnp.asarray(1.0), jnp.zeros(())), jnp.asarray(100.0))
    assert float(new.X_step) == 1.5
