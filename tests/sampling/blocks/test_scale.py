"""The joint stretch of X, W, mu and Sigma: it leaves F and the prior as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rflvm import likelihoods
from rflvm.model import spectral
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, Prior, State, log_joint
from rflvm.sampling.blocks import scale
from rflvm.sampling.blocks.tuning import Tuning

J = 2


def setting(D, H, N):
    model = Model(likelihoods.Poisson(), D, H, Prior(mu0=0.3, lambda0=0.6, Psi0=1.2, nu0=3.0))
    data = Data(jnp.zeros((N, J)), None, jnp.zeros(N), None)
    return model, data, Tuning(jnp.ones(()), jnp.ones(()), jnp.ones(J), jnp.ones(J), jnp.zeros((N, J)))


def prior_draws(D, H, N, R, seed):
    """States from the prior, z and alpha being given, as the block is given them."""
    rng = np.random.default_rng(seed)
    z = np.arange(H) % 2 * (H - 1)
    Sigma = np.reshape(stats.invwishart(3.0 + D - 1, 1.2 * np.eye(D)).rvs(R * H, rng), (R, H, D, D))
    root = np.linalg.cholesky(Sigma)
    mu = 0.3 + np.einsum("rhde,rhe->rhd", root, rng.normal(size=(R, H, D))) / np.sqrt(0.6)
    W = mu[:, z] + np.einsum("rhde,rhe->rhd", root[:, z], rng.normal(size=(R, H, D)))
    X, beta = rng.normal(size=(R, N, D)), rng.normal(size=(R, 2 * H + 1, J))
    arrays = X, W, np.tile(z, (R, 1)), mu, Sigma, np.ones(R), beta
    return State(*map(jnp.asarray, arrays), theta={})  # pyright: ignore[reportCallIssue]


def test_the_predictor_is_unchanged_and_everything_else_has_moved(x64):
    model, data, tuning = setting(2, 3, 4)

    old = jax.tree.map(lambda leaf: leaf[0], prior_draws(2, 3, 4, 2, seed=0))
    new, _ = jax.jit(lambda keys: jax.lax.scan(lambda s, key: scale.step(key, s, data, model, tuning), old, keys))(
        jax.random.split(jax.random.key(0), 10)
    )
    F_old, F_new = (features(state.X, state.W) @ state.beta for state in (old, new))
    np.testing.assert_allclose(F_new, F_old, rtol=0, atol=1e-10)
    for name in ("X", "W", "mu", "Sigma"):
        assert np.abs(getattr(new, name) - getattr(old, name)).max() > 1e-3, name


def test_the_acceptance_is_that_of_the_log_joint_with_the_jacobian(x64):
    """Along one stretch, the density of all the unknowns with its Jacobian, against the block's shortcut."""
    model, data, _ = setting(2, 3, 4)
    state = jax.tree.map(lambda leaf: leaf[0], prior_draws(2, 3, 4, 2, seed=1))
    u, log_c = jnp.asarray([0.6, 0.8]), jnp.asarray(0.3)
    new = jax.jit(scale.stretched)(state, u, log_c)
    joint = jax.jit(log_joint, static_argnums=2)
    K = len(set(np.asarray(state.z).tolist()))
    # X stretches by c in each of N rows; W and the means of K components shrink by c, and their K
    # symmetric matrices by |A|^{-(D + 1)}: the determinant of S -> A^{-1} S A^{-1}, by enumeration:
    basis = [np.array(b, float) for b in ([[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]])]
    inverse = np.eye(2) + (np.exp(-0.3) - 1) * np.outer(u, u)
    columns = [(inverse @ b @ inverse)[[0, 0, 1], [0, 1, 1]] for b in basis]
    log_jacobian = 4 * 0.3 - 3 * 0.3 - K * 0.3 + K * np.log(np.abs(np.linalg.det(np.array(columns))))
    full = float(joint(new, data, model) - joint(state, data, model)) + log_jacobian
    niw = model.prior.niw(2, jnp.dtype("float64"))
    occupied = np.asarray(spectral.counts(state.z)) > 0

    def short(state):
        density = np.asarray(spectral.niw_log_density(niw, state.mu, state.Sigma))
        return density[occupied].sum() - 0.5 * float(jnp.sum(state.X**2))

    np.testing.assert_allclose(short(new) - short(state) + (4 - 4 * K) * 0.3, full, rtol=1e-9)


@pytest.mark.parametrize(("D", "H", "N"), [(2, 3, 4)])
def test_prior_draws_stay_prior_draws(x64, D, H, N):
    """The likelihood plays no part, so the prior itself is left invariant. Six z-scores of paired changes of
    bounded functions: one exceeds 4.5 with probability 4e-5.
    """
    model, data, tuning = setting(D, H, N)

    def statistics(state):
        own = state.z[0]
        return jnp.stack([
            jnp.sum(state.X**2), jnp.tanh(jnp.sum(state.W**2)), jnp.tanh(state.mu[own, 0]),
            jnp.log(jnp.linalg.det(state.Sigma[own])), jnp.tanh(state.X[0, 0] * state.W[0, 0]),
            jnp.tanh(state.W[0, -1]),
        ])  # fmt: skip

    def replicate(key, state):
        new, info = jax.lax.scan(
            lambda state, key: scale.step(key, state, data, model, tuning), state, jax.random.split(key, 5)
        )
        return statistics(new) - statistics(state), info.acceptance

    keys = jax.random.split(jax.random.key(2), 3_000)
    changes, acceptance = jax.jit(jax.vmap(replicate))(keys, prior_draws(D, H, N, 3_000, seed=2))
    changes = np.asarray(changes)
    assert 0.2 < float(acceptance.mean()) < 0.95
    assert np.abs(changes.mean(0) / (changes.std(0) / np.sqrt(len(changes)))).max() < 4.5
