"""Two fits at once, in threads and in processes: each is the fit that it would be alone, or refused; never a hang.

Each script runs in a process of its own, which can be stopped if it hangs. Its pool has two threads, and its matrices
are large enough for jaxlib to split a batch of them over the pool: without the lock of ``rflvm.numerics.compilation``
about every pair of fits in threads hangs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from functools import partial

import pytest

SECONDS = 300

BEGIN = """
import multiprocessing, os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import rflvm

Y = np.random.default_rng(0).poisson(3, (60, 64)).astype(float)

def sample(seed):
    return rflvm.sample(Y, "poisson", n_features=40, n_samples=3, n_burnin=3, init="pca", seed=seed)["X"]

def maximise(seed):
    return rflvm.maximise(Y, "poisson", n_features=40, n_iterations=5, init="pca", kernel="rbf", seed=seed).X

def small(seed):
    return rflvm.maximise(Y[:9, :5], "gaussian", n_features=4, n_iterations=3, init="pca", kernel="rbf", seed=seed).X

def in_fork(function, *arguments):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(function, arguments).get(timeout=100)
"""


def run(script: str) -> str:
    """What a script prints; an error if it fails or hangs."""
    code = BEGIN + textwrap.dedent(script)
    environment = os.environ | {"NPROC": "2"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("fit", ["sample", "maximise"])
def test_fits_in_threads_are_those_made_one_after_the_other(fit):
    run(f"""
    alone = [{fit}(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            for one, other in zip(alone, pool.map({fit}, (1, 2))):
                np.testing.assert_array_equal(one, other)
    """)


def test_fits_in_threads_of_joblib_are_all_the_same():
    run("""
    from joblib import Parallel, delayed
    from sklearn.base import clone

    model = rflvm.RFLVM(inference="map", likelihood="poisson", n_features=40, max_iter=2, init="pca", random_state=0)
    fits = Parallel(n_jobs=2, backend="threading")(delayed(clone(model).fit_transform)(Y) for _ in range(4))
    for fit in fits:
        np.testing.assert_array_equal(fit, fits[0])
    """)


def test_a_grid_search_in_two_processes_after_a_fit():
    """The processes of joblib's loky are not forks."""
    run("""
    import warnings
    from sklearn.model_selection import GridSearchCV

    model = rflvm.RFLVM(inference="map", likelihood="gaussian", n_features=4, max_iter=2, init="pca", kernel="rbf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two iterations do not converge
        model.fit(Y[:20, :5])
        search = GridSearchCV(model, {"n_components": [1, 2]}, cv=2, n_jobs=2, error_score="raise").fit(Y[:20, :5])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    """)


forks = partial(pytest.mark.skipif, not hasattr(os, "fork"), reason="there are no forks here")


@forks()
def test_a_fork_before_the_first_use_computes():
    run("""
    np.testing.assert_array_equal(in_fork(small, 0), small(0))
    """)


@forks()
def test_a_fork_after_use_is_refused_with_the_remedy():
    """Whatever is asked for first, and also when another thread computed at the time of the fork."""
    run("""
    model = rflvm.RFLVM(inference="map", likelihood="gaussian", n_features=4, max_iter=2, init="pca", kernel="rbf")
    model.fit(Y[:9, :5])
    stop = threading.Event()

    def compute():
        while not stop.is_set():
            model.transform(Y[:9, :5])

    thread = threading.Thread(target=compute)
    thread.start()
    calls = [
        (small, 0), (model.fit, Y[:9, :5]), (model.fit, Y[:8, :4]), (model.transform, Y[:9, :5]),
        (model.impute, Y[:8, :5]), (model.inverse_transform, np.zeros((3, 2))), (model.sample, 4),
    ]
    for call in calls:
        try:
            in_fork(*call)
        except RuntimeError as error:
            assert "forked" in str(error) and "spawn" in str(error), error
        else:
            raise AssertionError(call)
    stop.set()
    thread.join()
    np.testing.assert_array_equal(small(0), small(0))  # the parent goes on
    """)


@forks()
def test_a_fork_after_the_users_own_use_of_jax_is_refused():
    run("""
    import jax.numpy as jnp

    jnp.ones(3).sum()
    try:
        in_fork(small, 0)
    except RuntimeError as error:
        assert "forked" in str(error)
    else:
        raise AssertionError("it was not refused")
    """)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way there")
def test_an_interrupt_ends_the_wait_for_another_thread_and_leaves_its_fit_alone():
    run("""
    from rflvm.numerics import compilation

    alone = sample(1)
    increment = compilation.compiled(lambda x: x + 1)
    increment(1.0)
    held, release = threading.Event(), threading.Event()

    def hold():
        with compilation._queue.lock:
            held.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        increment(1.0)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("it did not wait")
    release.set()
    holder.join()
    assert increment(1.0) == 2

    def interrupt(progress):
        if progress.sweep == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(sample, 1)
        settings = dict(n_features=40, n_samples=50, n_burnin=2, init="pca")
        draws = rflvm.sample(Y, "poisson", progress=interrupt, **settings)
        assert draws.interrupted and draws["X"].shape[1] == 2
        np.testing.assert_array_equal(other.result(), alone)
    """)
