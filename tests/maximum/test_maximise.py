"""The MAP engine as a whole: reproducible, deaf to masked cells, and it finds the S-curve."""

from __future__ import annotations

import logging
from typing import Any

import jax
import numpy as np
import pytest

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.maximum.states import from_prior
from rflvm.numerics.affine import r2_affine
from searches import LEARNED, SMALL, search_on, table


def test_same_seed_same_fit():
    first, second = (rflvm.maximise(table("poisson"), "poisson", **SMALL) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.beta, second.beta)


def test_a_second_fit_compiles_nothing(x64, caplog):
    """Nor does the paper's start of a chain, which shares no program with a fit."""
    Y = table("poisson")
    data, model, search = search_on("poisson", "rbf", Y)
    X = np.asarray(search.parameters.X)
    n_compiled = []
    for _ in range(2):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
            rflvm.maximise(Y, "poisson", **LEARNED)
            from_prior(jax.random.key(0), X, data, model)
        n_compiled.append(sum("Finished XLA compilation" in record.message for record in caplog.records))
    assert n_compiled[0] > 0
    assert n_compiled[1] == 0


def test_masked_cells_have_no_influence():
    Y = table("poisson")
    mask = np.random.default_rng(1).random(Y.shape) > 0.2
    other = np.where(mask, Y, 50.0)
    first, second = (rflvm.maximise(T, "poisson", mask=mask, **SMALL) for T in (Y, other))
    np.testing.assert_array_equal(first.X, second.X)


@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (6, 2)])
def test_smallest_tables_are_fitted(shape):
    fit = rflvm.maximise(np.ones(shape), "poisson", n_components=1, n_features=4, n_iterations=3)
    assert np.isfinite(fit.X).all()


def test_bad_arguments_are_refused():
    bad: list[tuple[dict[str, Any], str]] = [
        ({"kernel": "matern"}, "kernel must be one of"),
        ({"init": "umap"}, "init must be one of"),
        ({"n_iterations": 0}, "n_iterations must be"),
        ({"dtype": "float16"}, "dtype must be one of"),
    ]
    for named, message in bad:
        with pytest.raises(ValueError, match=message):
            rflvm.maximise(table("poisson"), "poisson", **named)


def test_s_curve_is_found():
    truth = make_s_curve(emissions="poisson")
    fit = rflvm.maximise(truth.data, "poisson", kernel="rbf", init="isomap", n_iterations=24)
    assert r2_affine(truth.X, fit.X) > 0.97
