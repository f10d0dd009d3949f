"""The face that all baselines share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rflvm import baselines
from rflvm.baselines import base
from rflvm.datasets import make_s_curve

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SETTINGS = {
    "vae": {"max_iter": 2},
    "gplvm": {"max_iter": 3},
    "map-gplvm": {"max_iter": 1},
    "dla-gplvm": {"max_iter": 1},
}
LIGHT = sorted(set(baselines.BASELINES) - {"tsne", "umap"})  # the other two, once, in test_neighbours.py
WITH_GAPS = {"gplvm", "map-gplvm", "dla-gplvm"}
WITH_TRANSFORM = {"pca", "nmf", "isomap", "umap", "vae"}
Y = make_s_curve(20, 6, emissions="poisson").data


def make(name, **changes):
    return baselines.make(name, **({"random_state": 0} | SETTINGS.get(name, {}) | changes))


@pytest.mark.parametrize("name", LIGHT)
def test_a_baseline_embeds_rows(name):
    """As an array and as a frame, whose memory is laid out in another order, the same but for rounding."""
    model = make(name)
    X = model.fit_transform(Y)
    assert X.shape == (20, 2)
    assert X.dtype == float
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, model.embedding_)
    again: Any = clone(model)
    np.testing.assert_allclose(again.fit(pd.DataFrame(Y)).embedding_, X, atol=1e-5)
    if name in WITH_GAPS:
        assert model.F_.shape == Y.shape
        assert np.isfinite(model.F_).all()


@pytest.mark.parametrize("name", sorted(baselines.BASELINES))
def test_bad_input_is_refused(name):
    for table, reason in ((np.full((5, 3), np.inf), "infinite"), (Y[:1], "fewer rows"), (Y[0], "2 dimensions")):
        with pytest.raises(ValueError, match=reason):
            make(name).fit(table)
    with pytest.raises(ValueError, match="n_components must be at least 1"):
        make(name, n_components=0).fit(Y)
    if name in WITH_GAPS:
        with pytest.raises(ValueError, match=r"init must be finite numbers of shape \(20, 2\), got shape \(20, 3\)"):
            make(name, init=np.zeros((20, 3))).fit(Y)
    else:
        gaps = Y.copy()
        gaps[2, 3] = np.nan
        with pytest.raises(ValueError, match=r"Y\[2, 3\] is missing: \w+ needs every cell"):
            make(name).fit(gaps)


@pytest.mark.parametrize("name", ["nmf", "map-gplvm", "dla-gplvm"])
def test_methods_for_counts_refuse_negative_cells(name):
    with pytest.raises(ValueError, match=r"negative|counts >= 0"):
        make(name).fit(-Y)


@pytest.mark.parametrize("name", sorted(baselines.BASELINES))
def test_some_place_new_rows(name):
    assert hasattr(make(name), "transform") == (name in WITH_TRANSFORM)


@pytest.mark.parametrize("name", ["pca", "nmf", "isomap", "vae"])
def test_new_rows_go_where_their_copies_are(name):
    with pytest.raises(NotFittedError):
        make(name).transform(Y)
    model = make(name).fit(Y)
    np.testing.assert_allclose(model.transform(Y[3:7]), model.embedding_[3:7], atol=2e-2)
    with pytest.raises(ValueError, match="is expecting 6 features"):
        model.transform(Y[:, :5])


def test_unknown_names_and_packages_are_reported():
    with pytest.raises(ValueError, match="name must be one of 'pca', 'nmf'"):
        baselines.make("lda")
    with pytest.raises(ImportError, match=r"this needs nothing: pip install 'rflvm\[experiments\]'"):
        base.extra("rflvm_has_no_such_module", "nothing")
