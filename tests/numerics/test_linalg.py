"""Gram matrices, Cholesky factors and Gaussian draws against dense NumPy."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from rflvm.numerics import linalg

cholesky = jax.jit(linalg.cholesky)  # the tests share one shape, for most of their time is compilation


def random_spd(rng, batch, M):
    root = rng.normal(size=(batch, M, M))
    return root @ root.swapaxes(-1, -2) + np.eye(M)


@pytest.mark.parametrize(("N", "M"), [(1, 1), (4, 7), (5, 3), (10, 7), (13, 7)])
def test_weighted_grams_equal_einsum(x64, monkeypatch, N, M):
    """Rows fewer than, equal to and more than the row block, features likewise."""
    monkeypatch.setattr(linalg, "_ROW_BLOCK", 5)
    monkeypatch.setattr(linalg, "_FEATURE_BLOCK", 3)
    rng = np.random.default_rng(N)
    Phi, weights = rng.normal(size=(N, M)), rng.normal(size=(N, 4))
    expected = np.einsum("na,nj,nb->jab", Phi, weights, Phi)
    actual = jax.jit(lambda *arrays: linalg.weighted_grams(*arrays))(Phi, weights)  # a lambda: nothing cached
    np.testing.assert_allclose(np.tril(actual), np.tril(expected), atol=1e-13)


def test_weighted_grams_with_the_real_block_sizes(x64):
    rng = np.random.default_rng(0)
    Phi, weights = rng.normal(size=(2 * 2048 + 7, 19)), rng.uniform(size=(2 * 2048 + 7, 2))
    expected = np.einsum("na,nj,nb->jab", Phi, weights, Phi, optimize=True)
    actual = jax.jit(linalg.weighted_grams)(jnp.asarray(Phi), jnp.asarray(weights))
    np.testing.assert_allclose(np.tril(actual), np.tril(expected), atol=1e-10)


def test_cholesky_of_positive_definite_matrices_needs_no_jitter(x64):
    A = random_spd(np.random.default_rng(0), 4, 4)
    L, jitter = cholesky(A)
    assert float(jitter) == 0
    np.testing.assert_allclose(L, np.linalg.cholesky(A), atol=1e-12)


@pytest.mark.parametrize("above", [1e6, np.nan])
def test_cholesky_reads_only_the_lower_triangle(x64, above):
    A = random_spd(np.random.default_rng(1), 4, 4)
    L, jitter = cholesky(np.where(np.triu(np.ones((4, 4)), 1) > 0, above, A))
    assert float(jitter) == 0
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), atol=1e-12)


def slightly_indefinite(eps):
    """Four times a matrix of rank one, less a little of the identity."""
    v = np.array([1.0, 2.0, 3.0, 4.0])
    return np.tile(np.outer(v, v) - 20 * eps * np.eye(4), (4, 1, 1))


def test_cholesky_with_jitter_reads_only_the_lower_triangle(x64):
    A = slightly_indefinite(2e-16)
    L, jitter = cholesky(np.where(np.triu(np.ones((4, 4)), 1) > 0, 1e6, A))
    L = np.tril(L)
    assert float(jitter) > 0
    np.testing.assert_allclose(L @ L.swapaxes(1, 2), A, atol=20 * float(jitter) * 7.5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky_of_a_slightly_indefinite_matrix_gets_a_small_recorded_jitter(x64, dtype):
    eps = np.finfo(dtype).eps
    A = slightly_indefinite(eps).astype(dtype)
    L, jitter = cholesky(A)
    assert jitter.dtype == L.dtype == dtype
    assert 0 < float(jitter) <= 1e4 * eps
    assert np.isfinite(np.asarray(L)).all()
    np.testing.assert_allclose(L @ L.swapaxes(1, 2), A, atol=20 * float(jitter) * 7.5)


def test_cholesky_of_singular_positive_semidefinite_matrices_is_finite(x64):
    root = np.random.default_rng(2).normal(size=(4, 4, 2))
    A = root @ root.swapaxes(1, 2)
    L, _ = cholesky(A)
    assert (np.diagonal(L, axis1=1, axis2=2) > 0).all()
    np.testing.assert_allclose(L @ L.swapaxes(1, 2), A, atol=1e-8)


def test_cholesky_of_hopeless_matrices_is_nan(x64):
    A = np.stack([-np.eye(4), np.full((4, 4), np.nan), np.diag([1.0, 1.0, 1.0, -1.0]), np.eye(4)])
    L, _ = cholesky(A)
    np.testing.assert_array_equal(np.isnan(np.asarray(L)).any(axis=(1, 2)), [True, True, True, False])


def test_only_the_failed_matrix_of_a_batch_gets_jitter(x64):
    good = random_spd(np.random.default_rng(3), 4, 4)
    mixed = good.copy()
    mixed[1] = slightly_indefinite(2e-16)[0]
    L, jitter = cholesky(mixed)
    assert float(jitter) > 0
    assert np.isfinite(np.asarray(L)).all()
    np.testing.assert_array_equal(np.asarray(L)[[0, 2, 3]], np.asarray(cholesky(good)[0])[[0, 2, 3]])


@pytest.mark.parametrize("D", [1, 3])
def test_small_factors_and_solves_equal_numpy(x64, D):
    rng = np.random.default_rng(D)
    A, rhs = random_spd(rng, 7, D), rng.normal(size=(7, D))
    rows = linalg.small_cholesky(jnp.asarray(A))
    L = np.zeros((7, D, D))
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            L[:, i, j] = entry
    np.testing.assert_allclose(L, np.linalg.cholesky(A), atol=1e-12)
    lower = linalg.small_solve_lower(rows, jnp.asarray(rhs))
    np.testing.assert_allclose(lower, np.linalg.solve(L, rhs[..., None])[..., 0], atol=1e-12)
    upper = linalg.small_solve_lower_transposed(rows, jnp.asarray(rhs))
    np.testing.assert_allclose(upper, np.linalg.solve(L.swapaxes(1, 2), rhs[..., None])[..., 0], atol=1e-12)


def test_triangular_solves_equal_numpy(x64):
    rng = np.random.default_rng(0)
    L = np.linalg.cholesky(random_spd(rng, 2, 4))
    rhs = rng.normal(size=(2, 4, 3))
    np.testing.assert_allclose(linalg.solve_lower(jnp.asarray(L), jnp.asarray(rhs)), np.linalg.solve(L, rhs))
    transposed = linalg.solve_lower_transposed(jnp.asarray(L), jnp.asarray(rhs))
    np.testing.assert_allclose(transposed, np.linalg.solve(L.swapaxes(1, 2), rhs))


def test_normal_from_precision_has_the_right_mean_and_covariance(x64):
    """18 z-scores: a correct sampler exceeds 4.5 with probability 1.2e-4."""
    rng = np.random.default_rng(4)
    precision, rhs = random_spd(rng, 2, 3), rng.normal(size=(3, 2))
    R = 40_000
    draw = jax.jit(jax.vmap(linalg.normal_from_precision, (0, None, None)))
    draws, jitter = draw(jax.random.split(jax.random.key(0), R), jnp.asarray(np.tril(precision)), jnp.asarray(rhs))
    assert np.all(np.asarray(jitter) == 0)
    for j in range(2):
        covariance = np.linalg.inv(precision[j])
        away = np.asarray(draws)[:, :, j] - covariance @ rhs[:, j]
        z = away.mean(0) / np.sqrt(np.diag(covariance) / R)
        assert np.abs(z).max() < 4.5
        variances = np.diag(covariance)
        standard_error = np.sqrt((covariance**2 + np.outer(variances, variances)) / R)
        assert np.abs((away.T @ away / R - covariance) / standard_error).max() < 4.5


def test_fits_that_overlap_have_one_blas_thread_until_the_last_ends_and_then_the_old_number():
    def numbers():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    entered, leave = threading.Event(), threading.Event()

    def other_fit():
        with linalg.one_blas_thread():
            entered.set()
            leave.wait(60)

    before = numbers()
    thread = threading.Thread(target=other_fit)
    with linalg.one_blas_thread():
        thread.start()
        entered.wait(60)
    assert set(numbers()) == {1}
    leave.set()
    thread.join()
    assert numbers() == before
