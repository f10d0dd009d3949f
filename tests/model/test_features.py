"""The feature map against NumPy, finite differences and the kernel it estimates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm.model import features as module

features, features_and_slopes, sincos = map(jax.jit, (module.features, module.features_and_slopes, module.sincos))
kernel = jax.jit(module.kernel)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3))
W = 2 * RNG.normal(size=(5, 3))


def test_squared_norm_is_one_for_the_waves_and_one_for_the_bias(x64):
    Phi = features(jnp.asarray(X), jnp.asarray(W))
    assert Phi.shape == (6, 11)
    np.testing.assert_allclose(jnp.sum(Phi[:, :-1] ** 2, axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(Phi[:, -1], 1)


def test_features_are_cosines_then_sines(x64):
    angle = X @ W.T
    expected = np.column_stack([np.cos(angle), np.sin(angle)]) / np.sqrt(5)
    np.testing.assert_allclose(features(jnp.asarray(X), jnp.asarray(W))[:, :-1], expected, atol=1e-15)


@pytest.mark.parametrize("largest", [100.0, 1e5])
def test_sincos_equals_numpy_in_float64(x64, largest):
    edges = np.arange(-8, 9) * np.pi / 4
    angle = np.concatenate([np.linspace(-largest, largest, 20_001), edges, np.nextafter(edges, np.inf)])
    sine, cosine = sincos(jnp.asarray(angle))
    np.testing.assert_allclose(sine, np.sin(angle), rtol=0, atol=4e-16)
    np.testing.assert_allclose(cosine, np.cos(angle), rtol=0, atol=4e-16)


@pytest.mark.parametrize("largest", [100.0, 1e5])
def test_sincos_equals_numpy_in_float32(largest):
    """The error may be no more than that of the float32 angle itself."""
    angle = np.linspace(-largest, largest, 20_001).astype(np.float32)
    sine, cosine = sincos(jnp.asarray(angle))
    assert sine.dtype == cosine.dtype == jnp.float32
    tolerance = 2e-7 + np.spacing(np.float32(largest))
    np.testing.assert_allclose(sine, np.sin(angle.astype(float)), rtol=0, atol=tolerance)
    np.testing.assert_allclose(cosine, np.cos(angle.astype(float)), rtol=0, atol=tolerance)


def test_sincos_gradients_are_cos_and_minus_sin_to_second_order(x64):
    angle = jnp.linspace(-20.0, 20.0, 101)
    for i, derivatives in enumerate([(np.cos, lambda a: -np.sin(a)), (lambda a: -np.sin(a), lambda a: -np.cos(a))]):
        first = jax.grad(lambda a, i=i: sincos(a)[i])
        np.testing.assert_allclose(jax.jit(jax.vmap(first))(angle), derivatives[0](np.asarray(angle)), atol=1e-15)
        np.testing.assert_allclose(
            jax.jit(jax.vmap(jax.grad(first)))(angle), derivatives[1](np.asarray(angle)), atol=1e-15
        )


def test_slopes_equal_central_differences(x64):
    Phi, slopes = features_and_slopes(jnp.asarray(X), jnp.asarray(W))
    np.testing.assert_array_equal(Phi, features(jnp.asarray(X), jnp.asarray(W)))
    for d in range(3):
        step = 1e-6 * np.eye(3)[d]
        difference = features(jnp.asarray(X + step), jnp.asarray(W)) - features(jnp.asarray(X - step), jnp.asarray(W))
        np.testing.assert_allclose(slopes[d], difference / 2e-6, atol=1e-8)


def test_products_of_features_are_the_kernel_at_the_lags(x64):
    Phi = np.asarray(features(jnp.asarray(X), jnp.asarray(W)))[:, :-1]
    lags = (X[:, None] - X[None]).reshape(-1, 3)
    np.testing.assert_allclose((Phi @ Phi.T).ravel(), kernel(jnp.asarray(lags), jnp.asarray(W)), atol=1e-14)


def test_kernel_of_normal_frequencies_tends_to_the_rbf(x64):
    """Cosines have variance (1 - k^2)^2 / 2; a correct kernel fails at 5 standard errors with probability 1e-5."""
    H = 100_000
    frequencies = np.random.default_rng(1).normal(size=(H, 2))
    lags = np.random.default_rng(2).normal(size=(20, 2))
    rbf = np.exp(-0.5 * np.sum(lags**2, axis=1))
    error = np.asarray(kernel(jnp.asarray(lags), jnp.asarray(frequencies))) - rbf
    assert np.abs(error / ((1 - rbf**2) / np.sqrt(2 * H))).max() < 5
