"""Covariates of rows through the whole library: engines, predictions, files, ArviZ."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import rflvm
from rflvm import RFLVM
from rflvm.datasets import make_s_curve
from rflvm.maximum.starts import without_effects
from rflvm.metrics import log_predictive_density, r2_affine
from rflvm.numerics.errors import InputError

N, J = 60, 12
SETTINGS: dict[str, Any] = {"n_features": 10, "init": "pca", "random_state": 0}
MAP: dict[str, Any] = SETTINGS | {"inference": "map", "kernel": "rbf", "max_iter": 60}
GIBBS: dict[str, Any] = SETTINGS | {"n_samples": 30, "n_burnin": 30, "n_chains": 1}
BATCH = np.array(["left", "right", "right"])[np.arange(N) % 3]
EFFECT = np.linspace(-1.5, 1.5, J)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@functools.cache
def table(family: str) -> np.ndarray:
    """Cells of an S-curve to which being "right" adds ``EFFECT``, with a gap."""
    F = make_s_curve(N, J, emissions="gaussian", seed=0).F + np.where(BATCH == "right", 1, 0)[:, None] * EFFECT
    rng = np.random.default_rng(0)
    Y = {"gaussian": lambda: 100 + 10 * (F + 0.2 * rng.normal(size=F.shape)), "poisson": lambda: rng.poisson(np.exp(F))}
    Y = Y[family]().astype(float)
    Y[3, 2] = np.nan
    return Y


@functools.cache
def fitted(family: str, inference: str) -> RFLVM:
    settings = MAP if inference == "map" else GIBBS
    return RFLVM(likelihood=family, **settings).fit(table(family), covariates={"side": BATCH})


@pytest.mark.parametrize(("family", "inference"), [("gaussian", "map"), ("poisson", "map"), ("poisson", "gibbs")])
def test_effects_are_found_in_the_units_of_the_table(family, inference):
    model = fitted(family, inference)
    effects = model.effects_
    assert effects.covariates == ("side = left", "side = right")
    assert effects.mean.shape == effects.lower.shape == (2, J)
    assert (effects.lower <= effects.mean).all()
    assert (effects.mean <= effects.upper).all()
    unit = 10 if family == "gaussian" else 1
    difference = (effects.mean[1] - effects.mean[0]) / unit
    assert np.corrcoef(difference, EFFECT)[0, 1] > 0.9
    assert np.abs(difference - EFFECT).max() < 1.0


def test_rows_are_decoded_with_their_own_covariates():
    model = fitted("gaussian", "map")
    X = model.embedding_[:5]
    sides = [model.inverse_transform(X, covariates={"side": [side] * 5}, summary="mean") for side in ("left", "right")]
    average = model.inverse_transform(X, summary="mean")
    shares = [np.mean(BATCH == "left"), np.mean(BATCH == "right")]
    np.testing.assert_allclose(shares[0] * sides[0] + shares[1] * sides[1], average, rtol=1e-9)
    members = np.asarray(model.fitted_.members.beta)[:, 10:-1]
    units = model.fitted_.units
    assert units is not None
    difference = units.scale * (members[:, 1] - members[:, 0]).mean(axis=0)
    np.testing.assert_allclose(sides[1] - sides[0], np.tile(difference, (5, 1)), rtol=1e-6)


@pytest.mark.parametrize(("family", "inference"), [("gaussian", "map"), ("poisson", "gibbs")])
def test_a_row_has_one_answer_alone_and_in_a_batch(family, inference):
    model, Y = fitted(family, inference), table(family)
    together = model.transform(Y, covariates={"side": BATCH})
    alone = model.transform(Y[7:8], covariates={"side": BATCH[7:8]})
    np.testing.assert_array_equal(together[7:8], alone)
    other = model.transform(Y[7:8], covariates={"side": ["left" if BATCH[7] == "right" else "right"]})
    assert np.abs(other - alone).max() > 1e-3
    right = model.score_samples(Y, covariates={"side": BATCH})
    wrong = model.score_samples(Y, covariates={"side": np.where(BATCH == "left", "right", "left")})
    assert right.mean() > wrong.mean()
    assert model.score(Y, covariates={"side": BATCH}) == right.mean()


def test_cells_are_imputed_and_sampled_with_covariates():
    model, Y = fitted("poisson", "map"), table("poisson")
    filled = model.impute(Y, covariates={"side": BATCH})
    np.testing.assert_array_equal(filled[~np.isnan(Y)], Y[~np.isnan(Y)])
    _, lower, upper = model.predict_intervals(Y, covariates={"side": BATCH})
    assert lower[3, 2] <= filled[3, 2] <= upper[3, 2]
    assert model.uncertain_cells(Y, covariates={"side": BATCH}).shape == Y.shape
    n = 400
    _, left = model.sample(n, covariates={"side": ["left"] * n})
    _, right = model.sample(n, covariates={"side": ["right"] * n})
    assert np.corrcoef(np.log1p(right.mean(axis=0)) - np.log1p(left.mean(axis=0)), EFFECT)[0, 1] > 0.8
    assert model.sample(3)[1].shape == (3, J)


def test_what_is_given_must_match_the_fit():
    model, Y = fitted("poisson", "map"), table("poisson")
    with pytest.raises(InputError, match="fitted with covariates of the rows, 'side': give covariates"):
        model.transform(Y)
    with pytest.raises(InputError, match=r"'side' is 'up' in row 0 \(1 such\), which is none of the categories"):
        model.transform(Y[:1], covariates={"side": ["up"]})
    with pytest.raises(InputError, match="'side' is missing in row 1"):
        RFLVM(likelihood="poisson", **MAP).fit(Y, covariates={"side": ["left", None, *BATCH[2:]]})
    short: dict[str, Any] = MAP | {"max_iter": 1}
    without = RFLVM(likelihood="poisson", **short).fit(Y)
    with pytest.raises(ValueError, match="fitted without covariates"):
        without.effects_  # noqa: B018


@pytest.mark.parametrize(("family", "inference"), [("gaussian", "map"), ("poisson", "gibbs")])
def test_a_saved_model_says_the_same(family, inference, tmp_path):
    model, Y = fitted(family, inference), table(family)
    model.save(tmp_path / "model.npz")
    again = rflvm.load(tmp_path / "model.npz")
    assert again.fitted_.about.coding == model.fitted_.about.coding
    for a, b in zip(again.effects_, model.effects_, strict=True):
        np.testing.assert_array_equal(a, b)
    given: dict[str, Any] = {"covariates": {"side": BATCH}}
    np.testing.assert_array_equal(again.transform(Y, **given), model.transform(Y, **given))
    if inference == "gibbs":
        np.testing.assert_array_equal(again.more_samples(2).draws_["X"], model.more_samples(2).draws_["X"])
        fitted.cache_clear()


def test_effects_are_in_the_posterior_for_arviz():
    pytest.importorskip("xarray")
    model = fitted("gaussian", "map")
    coefficients = model.posterior_["coefficients"]
    assert coefficients["beta"].shape[-2:] == (11, J)
    assert list(coefficients["covariate"].values) == ["side = left", "side = right"]
    np.testing.assert_allclose(coefficients["effect"].mean(("chain", "draw")), model.effects_.mean)


def test_a_checkpoint_is_of_its_covariates(tmp_path):
    settings: dict[str, Any] = {"n_features": 10, "n_samples": 2, "n_burnin": 1, "init": "pca"}
    Y = table("poisson")
    first = rflvm.sample(Y, "poisson", covariates=BATCH, checkpoint=tmp_path, **settings)
    again = rflvm.sample(Y, "poisson", covariates=BATCH, checkpoint=tmp_path, **settings)
    np.testing.assert_array_equal(first["beta"], again["beta"])
    assert first["beta"].shape[-2] == 10 + 2 + 1
    with pytest.raises(InputError, match="another covariates"):
        rflvm.sample(Y, "poisson", covariates=np.roll(BATCH, 1), checkpoint=tmp_path, **settings)
    longer = rflvm.continue_sampling(Y, first, 1, covariates=BATCH)
    assert longer.n_draws == 3
    with pytest.raises(ValueError, match="covariates, times and sessions must be those"):
        rflvm.continue_sampling(Y, first, 1, covariates=np.roll(BATCH, 1))
    held_out = np.zeros(Y.shape, bool)
    held_out[3, 2] = True
    assert log_predictive_density(first, np.nan_to_num(Y), held_out, covariates=BATCH) < 0


def test_starts_look_at_the_table_without_its_effects():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 2))
    Z -= Z.mean(axis=0)
    rest = rng.normal(size=(400, 5))
    table = rest + Z @ rng.normal(size=(2, 5))
    mask = rng.random(table.shape) < 0.7
    for observed in (np.ones_like(mask), mask):
        left = without_effects(table, observed, Z)
        slopes = np.array([np.linalg.lstsq(np.column_stack([Z, np.ones(400)])[o], y[o])[0][:2] for y, o in
                           zip(left.T, observed.T, strict=True)])  # fmt: skip
        assert np.abs(slopes).max() < 0.02


@pytest.mark.long
def test_a_batch_effect_does_not_spoil_the_picture():
    """The picture is as near to the truth as without the effect."""
    truth = make_s_curve(150, 40, emissions="gaussian", noise=0.3, seed=0)
    rng = np.random.default_rng(0)
    batch = rng.integers(0, 3, 150)
    Y = truth.data + rng.normal(size=(3, 40))[batch]
    settings: dict[str, Any] = MAP | {"n_features": 30, "init": "auto", "max_iter": 60}
    clean = r2_affine(truth.X, RFLVM(**settings).fit(truth.data).embedding_)
    corrected = r2_affine(truth.X, RFLVM(**settings).fit(Y, covariates=batch.astype(str)).embedding_)
    assert corrected > clean - 0.02
