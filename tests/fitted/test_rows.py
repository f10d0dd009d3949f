"""Predictions of rows and positions: their blocks, their summaries, and the cells that are marked."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import small_models
from rflvm import RFLVM
from rflvm.fitted import prediction, rows
from rflvm.fitted.fit import Fitted
from rflvm.report import payload

X = np.random.default_rng(0).normal(size=(40, 2))


def with_beta(fitted: Fitted, column: int, spread: float) -> Fitted:
    """The fit with intercepts of one column that differ between members."""
    beta = np.array(fitted.members.beta)
    beta[:, -1, column] += np.linspace(-spread, spread, len(beta))
    return dataclasses.replace(fitted, members=fitted.members._replace(beta=beta))


def adopted(fitted: Fitted) -> RFLVM:
    model = RFLVM()
    model._adopt(fitted)
    return model


def test_positions_and_new_rows_in_blocks_are_those_of_one_block(monkeypatch):
    fitted = small_models.poisson().fitted_
    made = lambda: (rows.expected(fitted, X), rows.expected_by_member(fitted, X), *rows.generate(fitted, 40, 3))  # noqa: E731
    monkeypatch.setattr(prediction, "BLOCK_CELLS", 65_536)
    assert prediction.block_size(small_models.J) > len(X)
    whole = made()
    monkeypatch.setattr(prediction, "BLOCK_CELLS", 1)
    assert prediction.block_size(small_models.J) == 16
    for block, part in zip(made(), whole, strict=True):
        np.testing.assert_allclose(block, part, rtol=1e-12)


def test_a_position_has_the_same_answer_alone_and_in_a_batch():
    model = small_models.poisson()
    together = model.inverse_transform(X)
    np.testing.assert_array_equal(model.inverse_transform(X[7:8])[0], together[7])
    assert model.inverse_transform(np.zeros((0, 2))).shape == (0, small_models.J)


def test_the_summary_is_over_members():
    model = small_models.poisson()
    by_member = rows.expected_by_member(model.fitted_, X)
    np.testing.assert_allclose(model.inverse_transform(X), np.median(by_member, axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.inverse_transform(X, summary="mean"), by_member.mean(axis=0), rtol=1e-12)
    lower, upper = rows.expected_bounds(model.fitted_, X, 0.5)
    np.testing.assert_allclose([lower, upper], np.quantile(by_member, [0.25, 0.75], axis=0), rtol=1e-12)


def test_every_method_takes_the_summary():
    model, Y = small_models.poisson(), small_models.poisson().fitted_.about.values
    for summary in ("median", "mean"):
        expected, _, _ = model.predict_intervals(Y, summary=summary)
        filled = model.impute(Y, summary=summary)
        np.testing.assert_array_equal(filled[0, 1], expected[0, 1])
    assert model.impute(Y)[0, 1] != model.impute(Y, summary="mean")[0, 1]
    unknown: Any = "mode"
    for refused in (lambda: model.impute(Y, summary=unknown), lambda: model.inverse_transform(X, summary=unknown)):
        with pytest.raises(ValueError, match="summary must be one of 'median', 'mean', got 'mode'"):
            refused()


def test_shares_of_a_row_sum_to_its_total():
    model = small_models.small("multinomial")
    assert model.fitted_.totals is not None
    total = model.fitted_.totals.mean()
    positions = np.random.default_rng(0).normal(size=(5, 3))
    by_member = rows.expected_by_member(model.fitted_, positions)
    assert np.abs(np.median(by_member, axis=0).sum(axis=1) / total - 1).max() > 1e-4
    np.testing.assert_allclose(model.inverse_transform(positions).sum(axis=1), total, rtol=1e-9)
    Y = np.array(model.fitted_.about.values)
    expected, _, _ = model.predict_intervals(Y)
    np.testing.assert_allclose(expected.sum(axis=1), Y.sum(axis=1), rtol=1e-9)


def test_cells_are_marked_where_the_interval_is_wider_than_the_observed_range():
    fitted = small_models.poisson().fitted_
    Y = np.array(fitted.about.values[:20])
    Y[:, 0] = np.nan  # else members that are at odds with the column would have little weight for the position
    model = adopted(with_beta(fitted, 0, 6.0))
    marked = model.uncertain_cells(Y)
    observed = fitted.about.values
    range_of = np.nanmax(observed, axis=0) - np.nanmin(observed, axis=0)
    wide = lambda model: np.subtract(*model.predict_intervals(Y)[:0:-1]) > range_of  # noqa: E731
    np.testing.assert_array_equal(marked, wide(adopted(rows.unheld(model.fitted_))))
    assert marked[:, 0].all()
    assert not wide(model)[:, 0].any()  # predictions are held to the range that is known, the marks are not
    assert marked[:, 1:].mean() < 0.05
    assert model.uncertain_cells(Y, 0.01)[:, 0].mean() < 0.5
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 90"):
        model.uncertain_cells(Y, 90)


def test_columns_that_the_table_says_little_about_come_last():
    fitted = small_models.poisson().fitted_
    first = payload.variation(fitted).order[0]
    values = np.array(fitted.about.values)
    sparse = int(payload.variation(fitted).order[1])
    values[5:, sparse] = np.nan
    doubtful = with_beta(
        dataclasses.replace(fitted, about=dataclasses.replace(fitted.about, values=values)), first, 6.0
    )
    found = payload.variation(doubtful)
    assert {int(j) for j in np.flatnonzero(found.doubtful)} == {int(first), sparse} == set(map(int, found.order[-2:]))
    assert sorted(found.order) == list(range(small_models.J))
