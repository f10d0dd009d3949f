"""Runs of the sampler with a prior over time: what is drawn, going on with them, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import rflvm
from rflvm.model.dynamics import Matern
from rflvm.model.joint import log_joint

SETTINGS: dict[str, Any] = {
    "n_features": 6,
    "n_burnin": 4,
    "init": "pca",
    "dynamics": Matern(per_dimension=False),
    "sessions": [0, 12],
}
OTHER: dict[str, Any] = SETTINGS | {"sessions": [0, 11]}


@pytest.fixture(scope="module")
def Y():
    Y = np.random.default_rng(0).poisson(3, (20, 4)).astype(float)
    Y[5], Y[8, 1] = np.nan, np.nan
    return Y


@pytest.fixture(scope="module")
def run(Y, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return rflvm.sample(Y, "poisson", n_samples=6, checkpoint=folder, **SETTINGS), folder


def test_paths_and_their_lengthscale_are_drawn(run):
    draws, _ = run
    assert draws["lengthscale"].shape == (1, 6, 1)
    assert len(np.unique(draws["lengthscale"])) > 1
    assert np.isfinite(draws["log_joint"]).all()
    assert "lengthscale" not in draws.theta
    info = draws.info[0]
    assert 0 < info["X"].of_paths <= 1
    assert info["lengthscale"].acceptance.shape == (2,)


def test_a_run_that_goes_on_is_the_run_that_was_longer(run, Y):
    draws, folder = run
    longer = rflvm.sample(Y, "poisson", n_samples=8, **SETTINGS)
    on = rflvm.continue_sampling(Y, draws, 2, sessions=SETTINGS["sessions"])
    again = rflvm.sample(Y, "poisson", n_samples=8, checkpoint=folder, **SETTINGS)
    for name in longer.arrays:
        np.testing.assert_array_equal(on[name], longer[name])
        np.testing.assert_array_equal(again[name], longer[name])


def test_another_chronology_is_another_run(run, Y):
    draws, folder = run
    with pytest.raises(ValueError, match="times and sessions must be those"):
        rflvm.continue_sampling(Y, draws, 2, sessions=[0, 11])
    with pytest.raises(ValueError, match="another gap"):
        rflvm.sample(Y, "poisson", n_samples=6, checkpoint=folder, **OTHER)


def test_rows_that_are_moved_one_by_one_are_refused(Y):
    with pytest.raises(ValueError, match='latents="map" moves rows one by one'):
        rflvm.sample(Y, "poisson", latents="map", **SETTINGS)


def test_the_last_state_has_the_log_joint_density_that_was_recorded(run, Y):
    from rflvm import likelihoods
    from rflvm.data import checks

    draws, _ = run
    table = checks.as_table(Y, likelihoods.Poisson(), None, None, 2, SETTINGS["dynamics"], None, SETTINGS["sessions"])
    with jax.enable_x64(True):
        value = jax.jit(log_joint, static_argnums=2)(draws.states[0], checks.to_device(table, "float64"), draws.model)
    assert float(value) == pytest.approx(draws["log_joint"][0, -1])
