"""GPLVM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rflvm.baselines import GPLVM
from rflvm.datasets import make_s_curve
from rflvm.numerics.affine import r2_affine

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_the_curve_is_recovered_and_the_state_of_numpy_left_alone():
    truth = make_s_curve(60, 30, emissions="gaussian", seed=1)
    before: Any = np.random.get_state()  # noqa: NPY002
    model = GPLVM(n_inducing=12, max_iter=100, random_state=0).fit(truth.data + 100)
    after: Any = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(before[1], after[1])
    assert r2_affine(truth.X, model.embedding_) > 0.9
    assert np.mean((model.F_ - 100 - truth.F) ** 2) < 0.1


def test_missing_cells_are_expected():
    truth = make_s_curve(40, 8, emissions="gaussian", seed=1)
    hidden = np.random.default_rng(0).random(truth.data.shape) < 0.1
    model = GPLVM(n_inducing=8, max_iter=30, random_state=0).fit(np.where(hidden, np.nan, truth.data))
    assert np.mean((model.F_ - truth.data)[hidden] ** 2) < 0.7 * np.var(truth.data[hidden])


def test_settings_are_checked():
    with pytest.raises(ValueError, match="n_inducing must be at least 1"):
        GPLVM(n_inducing=0).fit(np.ones((5, 3)))
