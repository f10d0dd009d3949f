"""VAE: its bound, its networks, its stopping."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.neighbors import NearestNeighbors

from rflvm.baselines import VAE, vae
from rflvm.datasets import make_s_curve


@pytest.mark.parametrize("decoder", ["gaussian", "poisson"])
def test_the_bound_is_below_log_p_and_meets_it_at_the_posterior(decoder):
    """One row, one latent dimension; the encoder is a constant, the best one found on a grid."""
    J = 3
    target = np.array([[2.0, 0.0, 1.0]], np.float32)
    weights = vae.initial(jax.random.key(1), J, 1, jnp.zeros(J))
    weights = weights._replace(log_noise=jnp.asarray(-0.3))
    weights.decoder[-1]["W"] = 5 * weights.decoder[-1]["W"]

    def density(x):
        f = np.asarray(vae.apply(weights.decoder, jnp.full((1, 1), x, jnp.float32)))[0]
        if decoder == "gaussian":
            cells = -0.5 * ((target[0] - f) * np.exp(0.3)) ** 2 + 0.3
        else:
            cells = target[0] * f - np.exp(f)
        return float(np.exp(cells.sum()) * stats.norm.pdf(x))

    grid = np.linspace(-6, 6, 301)
    heights = np.array([density(x) for x in grid])
    log_p = float(np.log(integrate.trapezoid(heights, grid)))

    @jax.jit
    def value(mean, log_variance):
        last = weights.encoder[-1] | {"W": jnp.zeros((vae.HIDDEN, 2)), "b": jnp.stack([mean, log_variance])}
        fixed = weights._replace(encoder=[*weights.encoder[:-1], last])
        rows = vae.Rows(jnp.zeros((4000, J)), jnp.broadcast_to(target, (4000, J)))
        return vae.bound(jax.random.key(0), fixed, rows, decoder)

    posterior = heights / heights.sum()
    mean = float(grid @ posterior)
    variance = float(((grid - mean) ** 2) @ posterior)
    best = float(value(mean, np.log(variance)))
    assert log_p - 0.15 < best < log_p + 0.05  # four standard errors of the mean over 4000 draws, and some
    assert float(value(mean + 1.0, np.log(variance))) < best - 0.2
    assert float(value(mean, np.log(variance) + 2)) < best - 0.2


@pytest.mark.parametrize("likelihood", ["gaussian", pytest.param("poisson", marks=pytest.mark.long)])
def test_the_curve_is_seen(likelihood):
    """A row's nearest neighbour in the picture is near on the curve, which is 9.4 long."""
    truth = make_s_curve(200, 60, emissions="poisson", seed=1)
    model = VAE(likelihood=likelihood, random_state=0).fit(truth.data)
    nearest = NearestNeighbors(n_neighbors=1).fit(model.embedding_).kneighbors(return_distance=False)[:, 0]
    assert np.median(np.abs(truth.t - truth.t[nearest])) < 0.4
    assert model.convergence_ == "converged"
    best = int(np.argmax(model.bound_))
    assert model.n_iter_ == best + vae._PATIENCE + 1


def test_the_scale_of_real_numbers_does_not_matter():
    Y = make_s_curve(40, 8, emissions="gaussian").data
    models = [VAE(max_iter=3, random_state=0) for _ in range(2)]
    with pytest.warns(match="raise max_iter"):
        one, other = (model.fit_transform(table) for model, table in zip(models, (Y, 1000 * Y + 5), strict=True))
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="likelihood must be one of"):
        VAE(likelihood="bernoulli").fit(np.ones((5, 3)))
    with pytest.raises(ValueError, match="at least 3"):
        VAE().fit(np.ones((2, 3)))
