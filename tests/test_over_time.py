"""The estimator with a prior over time: fit, sessions placed as a whole, forecasts, trajectories, files."""

from __future__ import annotations

import json
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import rflvm
from rflvm import RFLVM, dynamics, plots
from rflvm.numerics.affine import r2_affine
from rflvm.report import payload

N, J = 48, 6
STARTS = [0, 30]
SETTINGS: dict[str, Any] = {
    "likelihood": "poisson", "n_features": 12, "kernel": "rbf", "init": "pca", "random_state": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def Y():
    t = np.arange(N) / 6
    rng = np.random.default_rng(0)
    rate = np.exp(1.5 + np.sin(t[:, None] * rng.uniform(0.5, 1, J) + rng.uniform(0, 6, J)))
    Y = rng.poisson(rate).astype(float)
    Y[12:14] = np.nan
    Y[20, 3] = np.nan
    return Y


@pytest.fixture(scope="module")
def model(Y):
    times = np.arange(N) * 0.5
    return RFLVM(2, inference="map", dynamics="matern32", max_iter=60, **SETTINGS).fit(Y, times=times, sessions=STARTS)


def of_session(Y, rows):
    return Y[rows], {"times": np.arange(N)[rows] * 0.5}


def test_a_session_has_the_same_answer_alone_and_beside_others(model, Y):
    """Bit for bit, wherever it stands."""
    times = np.arange(N) * 0.5
    both = model.transform(Y, times=times, sessions=STARTS, return_std=True)
    first, second = slice(0, 30), slice(30, N)
    for rows in (first, second):
        part, where = of_session(Y, rows)
        alone = model.transform(part, **where, return_std=True)
        for found, expected in zip(alone, both, strict=True):
            np.testing.assert_array_equal(found, expected[rows])
        filled = model.impute(Y, times=times, sessions=STARTS)[rows]
        np.testing.assert_array_equal(model.impute(part, **where), filled)
    swapped = np.r_[np.arange(30, N), np.arange(30)]
    other = model.transform(Y[swapped], times=times[swapped], sessions=[0, N - 30])
    np.testing.assert_array_equal(other, both[0][swapped])


def test_sessions_of_the_table_are_placed_where_the_fit_has_them(model, Y):
    X, std = model.transform(Y, times=np.arange(N) * 0.5, sessions=STARTS, return_std=True)
    assert r2_affine(model.embedding_, X) > 0.95
    assert std[13].sum() > std[[11, 14]].mean(axis=0).sum()
    assert model.lengthscale_.shape == (2,)


def test_neighbours_tell_where_a_row_without_cells_is(model, Y):
    """Its cells are filled nearer to what was there than the mean of the column is."""
    times = np.arange(N) * 0.5
    hidden = Y.copy()
    hidden[40:42] = np.nan
    filled = model.impute(hidden, times=times, sessions=STARTS, summary="mean")[40:42]
    assert np.mean((filled - Y[40:42]) ** 2) < np.mean((np.nanmean(Y, axis=0) - Y[40:42]) ** 2)


def test_densities_of_rows_add_up_and_order_counts(model, Y):
    times = np.arange(N) * 0.5
    density = model.score_samples(Y, times=times, sessions=STARTS)
    assert model.score(Y, times=times, sessions=STARTS) == pytest.approx(density.mean())
    mixed = np.random.default_rng(0).permutation(np.arange(30, N))
    shuffled = model.score_samples(Y[mixed], times=times[30:])
    assert density[30:].sum() > shuffled.sum() + 5


def test_a_forecast_is_rows_without_cells_after_the_last(model, Y):
    ahead = model.forecast(8)
    np.testing.assert_allclose(ahead.times, (N + np.arange(8)) * 0.5)
    assert ahead.X.shape == (8, 2)
    assert ahead.lower.shape == (8, J)
    assert (np.diff(ahead.X_std.sum(axis=1)) > 0).all()
    assert (ahead.lower <= ahead.upper).all()
    longer = np.concatenate([Y[30:], np.full((8, J), np.nan)])
    again = model.predict_intervals(longer, times=np.arange(30, N + 8) * 0.5)
    np.testing.assert_array_equal(again[0][-8:], ahead.expected)
    first = model.forecast(2, session=0, times=[15.5, 17.0])
    np.testing.assert_array_equal(first.times, [15.5, 17.0])
    with pytest.raises(ValueError, match="session must be one of"):
        model.forecast(2, session="b")
    with pytest.raises(ValueError, match="times must be the 2 times"):
        model.forecast(2, times=[15.5])


def test_new_rows_are_whole_paths(model):
    X, Y = model.sample(200, random_state=1)
    assert (X.shape, Y.shape) == ((200, 2), (200, J))
    steps = np.diff(X, axis=0)
    assert steps.std() < 0.5 * X.std()
    again, _ = model.sample(200, random_state=1)
    np.testing.assert_array_equal(X, again)
    X, _ = model.sample(4, sessions=["a", "a", "b", "b"])
    assert X.shape == (4, 2)


def test_a_saved_model_knows_times_and_sessions(model, Y, tmp_path):
    model.save(tmp_path / "model.npz")
    loaded = rflvm.load(tmp_path / "model.npz")
    assert loaded.get_params()["dynamics"] == "matern32"
    timeline = loaded.fitted_.about.timeline
    assert timeline is not None
    assert timeline.labels == (0, 1)
    np.testing.assert_array_equal(loaded.forecast(3).expected, model.forecast(3).expected)
    np.testing.assert_array_equal(loaded.lengthscale_, model.lengthscale_)


def test_figures_draw_the_path_of_each_session(model):
    """In the order of time, and the cells of whole sessions are predicted; the report has times and sessions."""
    before = mpl.get_backend()
    plt.switch_backend("agg")
    ax = plots.latent(model)
    paths = [line.get_xydata() for line in ax.lines]
    np.testing.assert_array_equal(paths[0], model.embedding_[:30])
    np.testing.assert_array_equal(paths[1], model.embedding_[30:])
    assert plots.predictions(model).get_xlabel() == "predicted"
    plt.close("all")
    plt.switch_backend(before)
    page = payload.build(model.fitted_, [str(n) for n in range(N)], {}, None, False, np.zeros(N, bool))
    header = json.loads(page.header)
    assert header["sessions"] == ["0", "1"]
    assert {"times", "session"} <= set(header["arrays"])


def test_rows_without_times_are_as_far_apart_as_those_of_the_fit(model, Y):
    given = model.transform(Y[30:], times=0.5 * np.arange(N - 30))
    np.testing.assert_array_equal(model.transform(Y[30:]), given)


def test_times_need_a_prior_over_time_and_it_needs_increasing_times(Y):
    with pytest.raises(ValueError, match="times needs a prior over time"):
        RFLVM(inference="map", **SETTINGS).fit(Y[:10], times=np.arange(10))
    with pytest.raises(ValueError, match="times must increase within a session"):
        RFLVM(inference="map", dynamics="ou", **SETTINGS).fit(Y, times=np.zeros(N))
    with pytest.raises(ValueError, match='"stream" takes rows for independent'):
        RFLVM(inference="stream", dynamics="ou", **SETTINGS).fit(Y)
    with pytest.raises(ValueError, match="dynamics must be None"):
        RFLVM(dynamics="rbf", **SETTINGS).fit(Y)


@pytest.fixture(scope="module")
def sampled(Y):
    settings: dict[str, Any] = SETTINGS | {"kernel": "learned"}
    process = dynamics.Matern(0.5)
    with pytest.warns(Warning, match="draws"):
        return RFLVM(2, dynamics=process, n_samples=4, n_burnin=4, **settings).fit(Y, sessions=STARTS)


def test_chains_with_a_prior_over_time_are_kept_whole(sampled, Y, tmp_path):
    """Saved, loaded and continued: the draws of a longer run."""
    sampled.save(tmp_path / "model.npz")
    loaded = rflvm.load(tmp_path / "model.npz")
    assert loaded.get_params()["dynamics"] == dynamics.Matern(0.5)
    with pytest.warns(Warning, match="draws"):
        loaded.more_samples(2)
    assert loaded.draws_["lengthscale"].shape == (2, 6, 2)
    np.testing.assert_array_equal(loaded.draws_["X"][:, :4], sampled.draws_["X"])
    assert "log lengthscale" in [quantity.name for quantity in sampled.diagnostics_]
    assert sampled.transform(Y[:5]).shape == (5, 2)


def test_arviz_has_the_lengthscale_of_each_dimension(sampled):
    pytest.importorskip("xarray")
    posterior = sampled.posterior_["posterior"]
    assert posterior["lengthscale"].dims == ("chain", "draw", "latent")
