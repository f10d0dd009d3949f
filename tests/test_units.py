"""The units of a Gaussian table do not matter: the same picture, and the same predictions in whatever units.

Every table here is one table in disguise: each column times a factor of its own and shifted, or all columns in a common
unit and with an offset of the rows.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rflvm
from equality import assert_same_draws
from rflvm import RFLVM, likelihoods
from rflvm.files import npz
from rflvm.files.npz import FileError
from rflvm.fitted.summaries import predictors_by_member
from rflvm.metrics import log_predictive_density
from rflvm.model.features import features
from rflvm.report import payload
from rflvm.sampling import checkpoints

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, J = 12, 5  # as in other modules, with which these tests share what is compiled
ENGINES: dict[str, dict[str, Any]] = {
    "map": {"inference": "map", "kernel": "rbf", "max_iter": 15},
    "gibbs": {"inference": "gibbs", "n_burnin": 3, "n_samples": 4, "n_chains": 1},
}
SAMPLE: dict[str, Any] = {"n_features": 6, "n_burnin": 3, "n_samples": 4, "init": "pca"}
SHORTER: dict[str, Any] = SAMPLE | {"n_samples": 2}
ROUNDING = 1e-6  # of agreement on the standard scale


def table() -> np.ndarray:
    """Smooth functions of one hidden number, with a little noise and three gaps."""
    t = np.linspace(0, 1, N)
    Y = np.column_stack([np.sin(3 * t), np.cos(4 * t), t**2, np.sin(6 * t + 1), t])
    Y += 0.1 * np.random.default_rng(0).normal(size=(N, J))
    Y[3, 1] = Y[7, 0] = Y[8, 4] = np.nan
    return Y


class Disguise(NamedTuple):
    """Columns times a factor and shifted, rows with an offset."""

    factor: np.ndarray
    shift: np.ndarray
    offset: np.ndarray

    def __call__(self, Y: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        return Y * self.factor + self.shift + self.offset[rows, None]

    def undone(self, Y: np.ndarray, offset: np.ndarray | float = 0.0) -> np.ndarray:
        """Predictions in the units of the plain table."""
        return (Y - np.asarray(offset)[..., None] - self.shift) / self.factor


FACTORS = np.array([1e-6, 1e-3, 1e3, 1e6, 1.0])
DISGUISES = {
    "units of each column": Disguise(FACTORS, FACTORS * [0, 5, -2, 10, 3], np.zeros(N)),
    "offset": Disguise(np.full(J, 1e3), 1e3 * np.array([2, 0, -1, 8, 0]), 1e3 * np.linspace(-1, 2, N)),
}
cases = pytest.mark.parametrize(("engine", "name"), [(engine, name) for engine in ENGINES for name in DISGUISES])


def model(engine: str) -> RFLVM:
    return RFLVM(likelihood=likelihoods.Gaussian(), n_features=6, init="pca", random_state=0, **ENGINES[engine])


@functools.cache
def plain(engine: str) -> RFLVM:
    return model(engine).fit(table())


@functools.cache
def disguised(engine: str, name: str) -> RFLVM:
    disguise = DISGUISES[name]
    return model(engine).fit(disguise(table()), offset=disguise.offset if disguise.offset.any() else None)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


@cases
def test_the_picture_is_the_same(engine, name):
    one, other = plain(engine), disguised(engine, name)
    close(other.embedding_, one.embedding_)
    close(other.embedding_std_, one.embedding_std_)
    close(other.draws_["log_joint"], one.draws_["log_joint"])


@pytest.mark.parametrize("engine", ENGINES)
def test_without_units_it_would_be_another(engine, monkeypatch):
    monkeypatch.setattr(likelihoods.Gaussian, "units", likelihoods.Likelihood.units)
    other = model(engine).fit(DISGUISES["units of each column"](table()))
    assert np.abs(other.embedding_ - plain(engine).embedding_).max() > 0.01


@cases
def test_rows_are_placed_and_predicted_as_before(engine, name):
    one, other, disguise, Y = plain(engine), disguised(engine, name), DISGUISES[name], table()
    rows = slice(2, 9)
    offset = disguise.offset[rows]
    there: dict[str, Any] = {"offset": offset}
    given = disguise(Y[rows], rows)
    close(other.transform(given, return_std=True, **there), one.transform(Y[rows], return_std=True))
    lost = (np.log(disguise.factor) * ~np.isnan(Y[rows])).sum(axis=1)
    close(other.score_samples(given, **there), one.score_samples(Y[rows]) - lost)
    close(disguise.undone(other.impute(given, **there), offset), one.impute(Y[rows]))
    for found, expected in zip(other.predict_intervals(given, **there), one.predict_intervals(Y[rows]), strict=True):
        close(disguise.undone(found, offset), expected)


@cases
def test_positions_are_decoded_and_rows_drawn_as_before(engine, name):
    one, other, disguise = plain(engine), disguised(engine, name), DISGUISES[name]
    X, offset = np.random.default_rng(1).normal(size=(3, 2)), disguise.offset[:3]
    close(disguise.undone(other.inverse_transform(X, offset=offset), offset), one.inverse_transform(X))
    close(disguise.undone(other.sample(3, offset=offset)[1], offset), one.sample(3)[1])
    close(disguise.undone(predictors_by_member(other.fitted_, X)), predictors_by_member(one.fitted_, X))


@cases
def test_the_posterior_is_in_the_units_of_the_table(engine, name):
    one, other = plain(engine).posterior_predictive(), disguised(engine, name).posterior_predictive()
    disguise, Y = DISGUISES[name], table()
    n, j = np.nonzero(~np.isnan(Y))
    close(other["posterior/sigma2"] / disguise.factor**2, one["posterior/sigma2"])
    expected = one["coefficients/beta"].values * disguise.factor
    expected[..., -1, :] += disguise.shift
    close(other["coefficients/beta"] / disguise.factor, expected / disguise.factor)
    lost = np.log(disguise.factor)[j]
    close(other["log_likelihood/Y"], one["log_likelihood/Y"].values - lost)
    np.testing.assert_array_equal(other["observed_data/Y"], disguise(Y)[n, j])
    replicated = (other["posterior_predictive/Y"].values - disguise.offset[n] - disguise.shift[j]) / disguise.factor[j]
    close(replicated, one["posterior_predictive/Y"])


@cases
def test_a_report_decodes_to_the_units_of_the_table(engine, name):
    """As the page computes: coefficients times their step, intercepts, ranges, the offset of a row."""
    fitted = disguised(engine, name).fitted_
    arrays = payload._arrays(fitted, np.arange(N), np.arange(J))
    beta = np.concatenate([arrays["beta"] * arrays["step"], arrays["bias"][:, None]], axis=1)
    W = np.broadcast_to(arrays["W"], (len(beta), *arrays["W"].shape[1:]))
    with jax.enable_x64(True):
        Phi = [np.asarray(features(jnp.asarray(arrays["X"]), jnp.asarray(w))) for w in W]
    offset = DISGUISES[name].offset
    expected = DISGUISES[name].undone(
        disguised(engine, name).inverse_transform(fitted.embedding, offset=offset), offset
    )
    ends = arrays["lowest"], arrays["highest"]
    held = [np.clip(P @ b, low, high) for P, b, low, high in zip(Phi, beta, *ends, strict=True)]
    close(DISGUISES[name].undone(np.median(held, axis=0)), expected)
    close(
        arrays["sigma2"] / DISGUISES[name].factor ** 2,
        payload._arrays(plain(engine).fitted_, np.arange(N), np.arange(J))["sigma2"],
    )


def test_cells_of_a_report_keep_the_variation_of_a_column_far_from_zero():
    Y = table()
    assert payload._observed(Y).dtype == np.dtype("<f4")
    np.testing.assert_array_equal(payload._observed(Y + 1e8), Y + 1e8)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_keeps_the_units(engine, tmp_path):
    one, disguise = disguised(engine, "offset"), DISGUISES["offset"]
    one.save(tmp_path / "model.npz")
    again = rflvm.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.fitted_.units, one.fitted_.units)
    Y = disguise(table())
    for method in ("impute", "score_samples"):
        found, expected = (getattr(fit, method)(Y, offset=disguise.offset) for fit in (again, one))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("scale", [np.zeros(J), -np.ones(J), np.full(J, np.nan), np.ones(J + 1)])
def test_units_that_make_no_sense_are_refused(scale, tmp_path):
    path = tmp_path / "model.npz"
    plain("map").save(path)
    header, arrays = npz.read(path, "model")
    npz.write(path, header | {"kind": "model"}, arrays | {"units.scale": scale})
    with pytest.raises(FileError, match=r"units\.scale"):
        rflvm.load(path)


@pytest.mark.parametrize("name", DISGUISES)
def test_chains_go_on_as_one_run(name, tmp_path):
    disguise = DISGUISES[name]
    given: dict[str, Any] = {"offset": disguise.offset}
    Y = disguise(table())
    whole = rflvm.sample(Y, "gaussian", **given, **SAMPLE)
    first = rflvm.sample(Y, "gaussian", **given, **SHORTER, checkpoint=tmp_path)
    assert_same_draws(rflvm.continue_sampling(Y, first, 2, **given), whole)
    assert_same_draws(rflvm.sample(Y, "gaussian", **given, **SAMPLE, checkpoint=tmp_path), whole)
    same = rflvm.sample(table(), "gaussian", **SAMPLE)
    close(whole.in_units()["sigma2"] / disguise.factor**2, same.in_units()["sigma2"])
    with pytest.raises(ValueError, match="Y, mask, offset, covariates, times and sessions must be those"):
        rflvm.continue_sampling(2 * Y, first, 2, **given)
    with pytest.raises(ValueError, match="no chains to go on with"):
        rflvm.continue_sampling(Y, first.in_units(), 2, **given)


def test_a_checkpoint_from_before_there_were_units_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(checkpoints, "VERSION", 2)
        rflvm.sample(table(), "gaussian", checkpoint=tmp_path, **SAMPLE)
    with pytest.raises(FileError, match=r"another version of rflvm.*use another folder"):
        rflvm.sample(table(), "gaussian", checkpoint=tmp_path, **SAMPLE)


@pytest.mark.parametrize("name", DISGUISES)
def test_held_out_cells_have_the_density_of_their_units(name):
    disguise, Y = DISGUISES[name], table()
    held_out = np.zeros(Y.shape, bool)
    held_out[[0, 5, 9], [3, 3, 2]] = True
    one = rflvm.sample(np.where(held_out, np.nan, Y), "gaussian", **SAMPLE)
    there: dict[str, Any] = {"offset": disguise.offset}
    other = rflvm.sample(np.where(held_out, np.nan, disguise(Y)), "gaussian", **there, **SAMPLE)
    expected = log_predictive_density(one, Y, held_out) - np.log(disguise.factor)[[3, 3, 2]].mean()
    close(log_predictive_density(other, disguise(Y), held_out, **there), expected)
    close(log_predictive_density(other.in_units(), disguise(Y), held_out, **there), expected)


def test_a_fit_in_units_predicts_in_units():
    disguise = DISGUISES["units of each column"]
    fit = rflvm.maximise(disguise(table()), n_features=6, init="pca", n_iterations=15)
    shown = fit.in_units()
    Phi = np.asarray(features(jnp.asarray(fit.X), jnp.asarray(fit.W)), float)
    assert fit.units is not None
    close(disguise.undone(Phi @ shown.beta), disguise.undone(fit.units.location + fit.units.scale * (Phi @ fit.beta)))
    close(shown.theta["sigma2"], fit.theta["sigma2"] * fit.units.scale**2)
    close(shown.beta_scale / fit.units.scale**2, fit.beta_scale)
    assert shown.in_units() is shown


def test_other_units_compile_nothing(caplog):
    disguised("map", "offset").impute(table())
    with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
        model("map").fit(7 * table() - 3).impute(table())
    assert not any("Finished XLA compilation" in record.message for record in caplog.records)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_constant_column_stays_what_it_is(engine):
    Y = table()
    Y[:, 2] = 0.1
    fit = model(engine).fit(Y)
    assert fit.fitted_.units is not None
    assert (fit.fitted_.units.location[2], fit.fitted_.units.scale[2]) == (0.1, 1.0)
    np.testing.assert_allclose(fit.inverse_transform(fit.embedding_)[:, 2], 0.1, atol=0.5)
    assert np.isfinite(fit.score_samples(Y)).all()


# In single precision cells on the standard scale differ in their last bit, and a climb that is cut short shows it.
@pytest.mark.parametrize(("engine", "tolerance"), [("map", 1e-2), ("gibbs", 1e-4)])
def test_noise_around_a_large_number_is_a_column_like_others(engine, tolerance):
    far = np.array([0, 0, 1e8, 0, 0])
    Y = np.round(table() * 2**20) / 2**20  # of which 1e8 takes nothing away
    near, there = (model(engine).fit(Y + shift) for shift in (0, far))
    np.testing.assert_allclose(there.embedding_, near.embedding_, atol=tolerance)
    np.testing.assert_allclose(there.impute(Y + far) - far, near.impute(Y), atol=tolerance)
    np.testing.assert_allclose(there.score_samples(Y + far), near.score_samples(Y), atol=10 * tolerance)


def test_only_families_of_locations_and_scales_have_units():
    counts = np.random.default_rng(0).poisson(3, (6, 4)).astype(float)
    everywhere, none = np.ones(counts.shape, bool), np.zeros(6)
    custom = likelihoods.Custom(lambda y, f: -((y - f) ** 2))
    families = [likelihoods.Poisson(), likelihoods.NegativeBinomial(), likelihoods.Multinomial(), custom]
    assert all(family.units(counts, everywhere, none) is None for family in families)
    assert likelihoods.Gaussian().units(counts, everywhere, none) is not None
