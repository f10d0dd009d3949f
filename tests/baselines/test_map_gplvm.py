"""MAP-GPLVM: F given X, the ascent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm.baselines import MAPGPLVM, map_gplvm
from rflvm.baselines.poisson import Columns
from rflvm.datasets import make_s_curve


@pytest.mark.usefixtures("x64")
def test_F_is_a_maximum():
    """The slope of log p(Y, F, X) in F is zero there, and its value is what F and X give; a fifth is missing."""
    rng = np.random.default_rng(0)
    observed = rng.random((12, 4)) > 0.2
    Y = np.where(observed, rng.poisson(3.0, (12, 4)), 0.0)
    Y[2, 1], observed[2, 1] = 300, True
    X, table = jnp.asarray(rng.standard_normal((12, 2))), Columns(jnp.asarray(Y), jnp.asarray(observed, float))

    def log_joint(F):
        cells = table.Y * F - table.observed * jnp.exp(F)
        return cells.sum() + map_gplvm.log_density_of_F(X, F, 1e-2)

    F, value = map_gplvm.find_F(X, jnp.zeros((12, 4)), table, 1e-2)
    at_F, slope = jax.value_and_grad(log_joint)(F)
    np.testing.assert_allclose(slope, 0, atol=0.05)
    assert float(value) == pytest.approx(float(at_F), rel=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_round_goes_down():
    truth = make_s_curve(60, 20, emissions="poisson", seed=1)
    hidden = np.random.default_rng(0).random(truth.data.shape) < 0.1
    model = MAPGPLVM(max_iter=4).fit(np.where(hidden, np.nan, truth.data))
    assert (np.diff(model.log_joint_) > -1e-4).all()
    assert np.mean((model.F_ - truth.F)[hidden] ** 2) < np.var(truth.F[hidden])


def test_noise_must_be_positive():
    with pytest.raises(ValueError, match="noise must be finite and at least 1e-8, got 0"):
        MAPGPLVM(noise=0.0).fit(np.ones((5, 3)))
