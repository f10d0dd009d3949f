"""Tables that are streamed: from file to fit, resumed after a kill, refused by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils import Bunch

import rflvm
from rflvm import likelihoods
from rflvm.metrics import r2_affine
from rflvm.numerics.errors import InputError
from rflvm.streaming import checkpoints, landmarks
from rflvm.streaming.landmarks import take_sample

N, J = 700, 30
SETTINGS: dict[str, Any] = {"n_features": 20, "init": "pca", "n_iterations": 30, "max_epochs": 3}


@pytest.fixture(scope="module")
def truth():
    """Counts of rows all over the plane: smooth functions, of which one dimension is not the square of another."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, 2))
    angle = 0.6 * X @ rng.standard_normal((2, 100))
    waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / 10
    return Bunch(X=X, data=rng.poisson(np.exp(1 + waves @ rng.standard_normal((200, J)))))


@pytest.fixture(scope="module", autouse=True)
def small_samples():
    """Landmarks and sample of a size that leaves most rows to be placed; blocks of 64 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landmarks, "N_LANDMARKS", 150)
        patch.setattr(landmarks, "N_SAMPLE", 400)
        patch.setattr(landmarks, "SAMPLE_CELLS", 2**20)
        patch.setattr(landmarks, "HELD_OUT_SHARE", 10)
        patch.setattr("rflvm.data.blocks.encoding.MOST_ROWS", 64)
        yield


@pytest.fixture(scope="module")
def fit(truth, tmp_path_factory):
    """A fit that was written to a folder."""
    folder = tmp_path_factory.mktemp("whole")
    counts = truth.data.astype(np.uint8)
    return rflvm.stream(counts, "poisson", **SETTINGS, checkpoint=folder, out=folder / "x.npy")


def test_rows_lie_where_they_were_and_their_errors_are_as_large_as_is_said(fit, truth):
    X = np.asarray(fit.X, float)
    assert X.shape == (N, 2)
    assert r2_affine(truth.X, X) > 0.9
    held_out = [epoch.held_out for epoch in fit.epochs]
    assert {epoch.rows for epoch in fit.epochs} == {"sample", "all"}
    assert held_out[-1] > held_out[0] - 0.01
    design = np.column_stack([X, np.ones(N)])
    A = np.linalg.lstsq(design, truth.X, rcond=None)[0]
    error = truth.X - design @ A
    spread = np.einsum("nde,dk,ek->nk", covariances(fit), A[:2], A[:2])
    assert 0.7 < np.median(np.abs(error) / np.sqrt(spread)) / 0.674 < 1.6


def covariances(fit):
    """Covariances of all rows, D = 2."""
    xx, xy, yy = fit.covariance.T
    return np.stack([np.stack([xx, xy], -1), np.stack([xy, yy], -1)], -1)


def test_positions_are_in_the_file_and_landmarks_are_rows_of_the_table(fit, truth):
    assert isinstance(fit.X, np.memmap)
    assert fit.X.dtype == np.float32
    np.testing.assert_array_equal(fit.landmarks.X, fit.X[fit.rows])
    np.testing.assert_array_equal(fit.values, truth.data[fit.rows])
    np.testing.assert_allclose(fit.std**2, fit.covariance[:, [0, 2]], rtol=1e-6)


class KilledError(Exception):
    """As if the process had ended."""


@pytest.mark.parametrize("n_writes", [1, 2, 3])
def test_a_run_that_was_killed_ends_the_same_bit_for_bit(fit, truth, n_writes, tmp_path, monkeypatch):
    """After the growth, after placing, after an epoch: killed in the middle of what comes next."""
    written, whole = [], checkpoints.Checkpoint.write

    def write(self, progress):
        if len(written) == n_writes:
            raise KilledError
        written.append(progress)
        whole(self, progress)

    counts = truth.data.astype(np.uint8)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.Checkpoint, "write", write)
        with pytest.raises(KilledError):
            rflvm.stream(counts, "poisson", **SETTINGS, checkpoint=tmp_path)
    monkeypatch.setattr("rflvm.streaming.stream.maximise", None)  # the landmarks are not fitted again
    again = rflvm.stream(counts, "poisson", **SETTINGS, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.X, fit.X)
    np.testing.assert_array_equal(again.covariance, fit.covariance)
    np.testing.assert_array_equal(again.landmarks.beta, fit.landmarks.beta)
    assert [epoch.held_out for epoch in again.epochs] == [epoch.held_out for epoch in fit.epochs]


def test_a_bad_cell_is_named_and_nothing_is_lost(truth, tmp_path):
    counts = truth.data.astype(np.int32)
    row = np.setdiff1d(np.arange(300, N), take_sample(open_counts(counts), 0).rows)[0]
    counts[row, 4] = -1
    with pytest.raises(InputError, match=rf"poisson needs counts >= 0, got Y\[{row}, 4\] = -1"):
        rflvm.stream(counts, "poisson", **SETTINGS, checkpoint=tmp_path)
    counts[row, 4] = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rflvm.streaming.stream.maximise", None)
        once: dict[str, Any] = SETTINGS | {"max_epochs": 1}
        rflvm.stream(counts, "poisson", **once, checkpoint=tmp_path)


def open_counts(counts):
    """The table as a source."""
    from rflvm.data.blocks.sources import open_table

    return open_table(counts)


def test_a_folder_of_another_run_is_refused(truth, fit):
    counts = truth.data.astype(np.uint8)
    folder = fit.X.filename
    assert folder is not None
    with pytest.raises(InputError, match="holds a run with another seed"):
        rflvm.stream(counts, "poisson", **SETTINGS, seed=1, checkpoint=str(folder).rsplit("/", 1)[0])


def test_the_sample_stands_for_the_table():
    source = open_counts(np.arange(10_000).reshape(1000, 10))
    sample = take_sample(source, 0)
    assert len(sample.rows) == 400
    assert not sample.whole
    np.testing.assert_array_equal(sample.values[:, 0], 10 * sample.rows)
    assert not set(sample.landmarks) & set(sample.held_out)
    assert len(sample.landmarks) == 150
    assert len(sample.held_out) == 40
    np.testing.assert_array_equal(sample.landmark_values()[:, 1], 10 * sample.landmark_rows + 1)


@pytest.mark.parametrize(
    ("name", "D", "kernel"),
    [
        ("gaussian", 1, "rbf"),
        ("negative_binomial", 3, "learned"),
        *(pytest.param(name, 2, "rbf", marks=pytest.mark.long) for name in ("multinomial", "ordinal", "student_t")),
    ],
)
def test_other_families_gaps_offsets_and_dimensions(name, D, kernel):
    rng = np.random.default_rng(0)
    Y = rng.poisson(3.0, (450, 6)).astype(float)
    Y = np.clip(Y, 0, 4) if name == "ordinal" else Y
    Y[rng.random(Y.shape) < 0.1] = np.nan
    offset = rng.normal(0, 0.1, 450)
    settings: dict[str, Any] = SETTINGS | {"n_features": 6, "n_iterations": 4, "max_epochs": 1, "n_components": D}
    fit = rflvm.stream(Y, name, kernel=kernel, offset=offset, **settings)
    assert fit.X.shape == (450, D)
    assert np.isfinite(fit.X).all()
    assert (fit.std > 0).all()
    # Of noise alone little can be told: the parameters are those of the table.
    if name == "gaussian":
        assert 0.6 < np.median(fit.landmarks.theta["sigma2"]) < 1.2


@pytest.mark.long
def test_trials_of_every_cell_are_those_of_the_row():
    rng = np.random.default_rng(0)
    trials = rng.integers(1, 30, (450, 6))
    Y = rng.binomial(trials, 0.3)
    settings: dict[str, Any] = SETTINGS | {"n_features": 6, "n_iterations": 4, "max_epochs": 1}
    fit = rflvm.stream(Y, likelihoods.Binomial(trials=trials), **settings)
    f = fit.landmarks.beta[-1]
    np.testing.assert_allclose(1 / (1 + np.exp(-f)), 0.3, atol=0.08)
