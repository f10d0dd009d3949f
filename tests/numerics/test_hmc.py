"""Hamiltonian Monte Carlo on targets whose law is known."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from rflvm.numerics import hmc

ONE = np.ones(())


def test_a_correlated_gaussian_is_left_invariant(x64):
    """Exact draws, five trajectories each: KS of the two white coordinates and their product's z, at 1e-4 each."""
    covariance = np.array([[2.0, 0.9], [0.9, 0.7]])
    precision, root, R = jnp.asarray(np.linalg.inv(covariance)), np.linalg.cholesky(covariance), 4_000
    start = np.random.default_rng(0).normal(size=(R, 2)) @ root.T

    def chain(key, q):
        def one(q, key):
            return hmc.step(key, q, lambda q: -0.5 * q @ precision @ q, jnp.asarray(0.5), 4, jnp.ones(2))

        q, info = jax.lax.scan(one, q, jax.random.split(key, 5))
        return q, info.acceptance

    q, acceptance = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), R), jnp.asarray(start))
    assert 0.5 < float(acceptance.mean()) < 0.97  # rejections matter
    white = np.linalg.solve(root, np.asarray(q).T)
    assert np.abs(np.corrcoef(start[:, 0], np.asarray(q)[:, 0])[0, 1]) < 0.5  # it moves
    for row in white:
        assert stats.kstest(row, stats.norm.cdf).pvalue > 1e-4
    assert abs(np.mean(white[0] * white[1])) * np.sqrt(R) < 3.9


def test_columns_are_independent_targets_with_their_own_acceptance(x64):
    """Three columns of very different scales and step sizes: three KS tests at 1e-4."""
    scale, R = np.array([0.1, 1.0, 30.0]), 4_000
    start = np.random.default_rng(1).normal(size=(R, 1, 3)) * scale
    step_size = jnp.asarray([0.15, 1.0, 0.003])  # the first is too long, the last far too short

    def log_density(q):
        return -0.5 * jnp.sum((q / scale[None]) ** 2, axis=0)

    def chain(key, q):
        def one(q, key):
            return hmc.step(key, q, log_density, step_size, 3, jnp.ones(()))

        q, info = jax.lax.scan(one, q, jax.random.split(key, 5))
        return q, info.acceptance

    q, acceptance = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(1), R), jnp.asarray(start))
    assert acceptance.shape == (R, 5, 3)
    rates = np.asarray(acceptance).mean((0, 1))
    assert rates[0] < 0.9
    assert rates[2] > 0.9999
    for j in range(3):
        assert stats.kstest(np.asarray(q)[:, 0, j] / scale[j], stats.norm.cdf).pvalue > 1e-4


def test_a_pytree_with_masses_is_left_invariant(x64):
    """Two KS tests at 1e-4."""
    R = 4_000
    rng = np.random.default_rng(2)
    start = {"a": jnp.asarray(rng.normal(size=(R, 2))), "b": jnp.asarray(5 * rng.normal(size=R))}
    mass = {"a": jnp.ones(()), "b": jnp.asarray(0.04)}

    def chain(key, q):
        def one(q, key):
            target = lambda q: -0.5 * jnp.sum(q["a"] ** 2) - 0.02 * q["b"] ** 2  # noqa: E731
            return hmc.step(key, q, target, jnp.asarray(1.0), 2, mass)

        return jax.lax.scan(one, q, jax.random.split(key, 4))[0]

    q = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(2), R), start)
    assert stats.kstest(np.asarray(q["a"])[:, 0], stats.norm.cdf).pvalue > 1e-4
    assert stats.kstest(np.asarray(q["b"]) / 5, stats.norm.cdf).pvalue > 1e-4


def test_rejection_falls_with_the_square_of_the_step_size(x64):
    """Leapfrog's energy error is of second order, so the mean rejection, of the order of its square, of fourth."""
    start = jnp.asarray(np.random.default_rng(3).normal(size=(500, 3)))

    def acceptance(step_size, n):
        target = lambda q: -0.5 * jnp.sum(q**2) - 0.1 * jnp.sum(q**4)  # noqa: E731
        one = lambda key, q: hmc.step(key, q, target, step_size, n, jnp.ones(3))[1].acceptance  # noqa: E731
        return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), 500), start)

    # Same keys, so the same momenta and the same length of trajectory.
    error = [np.abs(np.log(acceptance(jnp.asarray(0.8 / n), n))).max() for n in (8, 16)]
    assert 3 < error[0] / error[1] < 5
    assert error[1] < 0.04


def test_a_nan_log_density_is_rejected(x64):
    q = jnp.asarray([[0.5, 0.5]])
    target = lambda q: jnp.where(q[0] == 0.5, -(q[0] ** 2), jnp.array([jnp.nan, 0.0]) - q[0] ** 2)  # noqa: E731
    new, info = jax.jit(lambda key: hmc.step(key, q, target, jnp.full(2, 0.1), 3, jnp.ones(())))(jax.random.key(0))
    assert float(new[0, 0]) == 0.5
    assert float(new[0, 1]) != 0.5
    np.testing.assert_array_equal(np.asarray(info.acceptance) > 0, [False, True])


def test_an_infinitely_unlikely_point_is_rejected(x64):
    target = lambda q: jnp.where(q > 0, -q, -jnp.inf)  # noqa: E731
    steps = jax.vmap(lambda key: hmc.step(key, jnp.asarray(0.01), target, jnp.asarray(1.0), 3, jnp.ones(()))[0])
    assert np.asarray(jax.jit(steps)(jax.random.split(jax.random.key(0), 100))).min() > 0


def test_adaptation_moves_towards_the_target_acceptance(x64):
    new = hmc.adapt(jnp.asarray([1.0, 1.0, 1.0]), jnp.asarray([0.2, 0.8, 1.0]), jnp.asarray(0.5))
    np.testing.assert_allclose(new, np.exp([-0.3, 0, 0.1]), rtol=1e-12)
