"""Chains side by side: the draws of chains one after the other, with the same progress, interrupts and checkpoints."""

from __future__ import annotations

import os
from typing import Any

import jax.numpy as jnp
import joblib
import numpy as np
import pytest

import rflvm
from equality import assert_same_draws
from rflvm.sampling import parallel

Y = np.random.default_rng(0).poisson(3, size=(12, 5)).astype(float)
Y[0, 1] = np.nan
Settings = dict[str, Any]
RUN: Settings = {"n_features": 6, "n_burnin": 4, "n_samples": 20, "init": "pca", "n_chains": 2, "thin": 2}


@pytest.fixture(scope="module")
def whole():
    """The run of one chain after the other."""
    return rflvm.sample(Y, "poisson", **RUN)


def test_processes_make_the_same_draws_and_go_on_after_an_interrupt(whole, tmp_path, monkeypatch):
    """By loky, in one go to save its start: progress, an interrupt, a checkpoint that is resumed."""
    monkeypatch.setattr(parallel, "SECONDS", 0.01)
    told = []

    def stop(progress):
        told.append(progress.sweep)
        if progress.sweep > 8:
            raise KeyboardInterrupt

    part = rflvm.sample(Y, "poisson", n_jobs=2, checkpoint=tmp_path, progress=stop, **RUN)
    assert part.interrupted
    assert told[0] == 1
    assert 4 in told  # a batch ends where burn-in does
    np.testing.assert_array_equal(part["X"], whole["X"][:, : part.n_draws])
    assert_same_draws(rflvm.sample(Y, "poisson", n_jobs=2, checkpoint=tmp_path, **RUN), whole)


def test_threads_make_the_same_draws_from_another_point_on(whole):
    """In batches of one length and another; -1 is as many as there are chains."""
    with joblib.parallel_config(backend="threading"):
        shorter: Settings = RUN | {"n_samples": 7}
        first = rflvm.sample(Y, "poisson", n_jobs=-1, **shorter)
        assert_same_draws(rflvm.continue_sampling(Y, first, 13, n_jobs=2), whole)


def test_functions_of_the_user_are_carried_and_errors_come_back():
    """One that cannot be pickled by name, and does not want to be computed elsewhere."""
    here = os.getpid()

    def log_prob(y, f):
        if os.getpid() != here:
            raise rflvm.NumericalError("block X, in another process")
        return y * f - jnp.exp(f)

    with pytest.raises(rflvm.NumericalError, match="in another process"):
        rflvm.sample(Y, rflvm.likelihoods.Custom(log_prob), n_jobs=2, **RUN)


def test_one_job_is_this_process_and_the_context_of_joblib_counts():
    assert parallel.jobs(None, 4) == 1
    assert parallel.jobs(8, 4) == 4
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert parallel.jobs(None, 4) == 3
    with pytest.raises(ValueError, match="n_jobs == 0"):
        parallel.jobs(0, 4)


def test_batches_grow_towards_the_time_they_are_to_take():
    batches = parallel.Batches()
    batches.after(1, 30.0)  # with compilation
    assert batches.n == 1
    batches.after(1, 0.01)
    assert batches.n == 4
    batches.after(4, 0.04)
    assert batches.n == 16
    batches.after(16, 16 * 0.5)
    assert batches.n == 4


@pytest.mark.long
def test_a_dask_cluster_makes_the_same_draws(whole, tmp_path):
    """Two workers, each a process, as `joblib.parallel_config(backend="dask")` finds them."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "local_directory": tmp_path}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert parallel.jobs(None, 2) == 2
        assert_same_draws(rflvm.sample(Y, "poisson", **RUN), whole)
