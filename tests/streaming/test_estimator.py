"""``RFLVM(inference="stream")``: everything that can be done after a fit."""

from __future__ import annotations

from typing import Any

import anndata
import numpy as np
import pytest

import rflvm
import small_models
from rflvm import RFLVM
from rflvm.datasets import make_s_curve
from rflvm.numerics.errors import InputError
from rflvm.report import write_report

N, J = 500, 12
SETTINGS: dict[str, Any] = {
    "likelihood": "poisson", "inference": "stream", "kernel": "rbf", "n_features": 12, "init": "pca", "max_iter": 15,
    "random_state": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return make_s_curve(N, J, emissions="poisson", seed=3).data.astype(np.uint8)


@pytest.fixture(scope="module")
def model(table):
    """A fit of which 100 rows are landmarks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rflvm.streaming.landmarks.N_LANDMARKS", 100)
        return RFLVM(**SETTINGS).fit(table)


def test_all_rows_are_in_the_embedding_and_the_landmarks_in_the_rest(model, table):
    assert model.embedding_.shape == model.embedding_std_.shape == (N, 2)
    fitted = model.fitted_
    np.testing.assert_array_equal(fitted.about.values, table[fitted.streamed.rows])
    np.testing.assert_allclose(fitted.embedding, model.embedding_[fitted.streamed.rows])
    assert "500 rows x 12 columns" in (page := model.diagnose())
    assert "all rows" in page


def test_rows_are_placed_fast_and_exactly(model, table):
    rows = table[:40]
    fast, std = model.transform(rows, fast=True, return_std=True)
    np.testing.assert_allclose(fast, model.embedding_[:40], atol=0.05)
    exact = model.transform(rows)
    assert np.median(np.linalg.norm(fast - exact, axis=1) / np.linalg.norm(std, axis=1)) < 0.7
    empty = np.full((1, J), np.nan)
    np.testing.assert_allclose(model.transform(empty, fast=True), 0, atol=1e-5)
    with pytest.raises(InputError, match="X has 3 features"):
        model.transform(rows[:, :3], fast=True)


def test_gaps_are_filled_and_rows_are_drawn(model, table):
    gaps = table[:10].astype(float)
    gaps[:, ::4] = np.nan
    filled = model.impute(gaps)
    assert np.isfinite(filled).all()
    assert np.isfinite(model.score(table[:10]))
    X, Y = model.sample(5)
    assert (X.shape, Y.shape) == ((5, 2), (5, J))


def test_a_saved_model_says_the_same(model, table, tmp_path):
    model.save(tmp_path / "m.npz")
    again = rflvm.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.embedding_std_, model.embedding_std_)
    np.testing.assert_array_equal(again.transform(table[:7], fast=True), model.transform(table[:7], fast=True))
    assert again.diagnose() == model.diagnose()


def test_the_report_says_that_it_shows_a_sample(model, tmp_path):
    page = write_report(model, tmp_path / "report.html").read_text()
    assert "500 rows x 12 columns" in page
    assert "100 of 500 rows, chosen at random" in page


def test_tables_of_other_kinds_and_what_is_refused(model, table, tmp_path):
    file = tmp_path / "y.npy"
    np.save(file, table)
    cells = anndata.AnnData(table.astype(np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rflvm.streaming.landmarks.N_LANDMARKS", 100)
        X = RFLVM(**SETTINGS).fit(file, out=tmp_path / "x.npy").embedding_
        RFLVM(**SETTINGS).fit(cells)
    np.testing.assert_array_equal(X, model.embedding_)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)
    np.testing.assert_allclose(cells.obsm["X_rflvm"], X, atol=1e-5)
    with pytest.raises(ValueError, match="out= is for"):
        RFLVM(inference="map").fit(table, out="x.npy")
    with pytest.raises(ValueError, match="fast=True needs"):
        small_models.poisson().transform(table[:3], fast=True)
