"""Columns of several families: each is modelled as by its own, in every part of the library."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

import rflvm
from rflvm import RFLVM, likelihoods
from rflvm.likelihoods import Binomial, Mixed, NegativeBinomial, Ordinal, StudentT
from rflvm.likelihoods.mixed import GaussianBeside
from rflvm.numerics.errors import InputError

# Columns 0 and 5 are Gaussian, 1 and 3 binomial, 2 negative binomial, 4 ordinal, 6 Bernoulli.
FAMILY = Mixed(
    (likelihoods.Gaussian(a0=3.0, b0=2.0), Binomial(trials=np.array([4, 9])), NegativeBinomial(),
     Ordinal(low=1, high=4), likelihoods.Bernoulli()),
    ((0, 5), (1, 3), (2,), (4,), (6,)),
)  # fmt: skip
Y = np.array(
    [[0.2, 1, 3, 9, 1, -0.5, 0], [-1.0, 4, 0, 2, 4, 0.1, 1], [0.9, 0, 25, 0, 3, 2.0, 1], [0.0, 2, 1, 5, 2, 1.1, 0]]
)
ALL = np.ones(Y.shape, bool)


def parts():
    return zip(FAMILY.parts, FAMILY.families, strict=True)


def design(x64=None):
    cells, _, trials = FAMILY.encode(Y, ALL)
    theta = FAMILY.sample_theta(jax.random.key(0), 7, jnp.dtype("float64"))
    return jnp.asarray(cells), jnp.asarray(np.random.default_rng(0).normal(size=Y.shape)), theta, jnp.asarray(trials)


def test_every_column_has_the_density_of_its_own_family(x64):
    y, f, theta, trials = design()
    for method in ("log_factor", "log_base", "mean", "variance", "slope_and_curvature"):
        arguments = {"log_base": (y,), "mean": (f,), "variance": (f,)}.get(method, (y, f))
        together = getattr(FAMILY, method)(*arguments, theta, trials)
        for part, family in parts():
            columns = part.columns
            own = {n: theta[f"{part.label}_{n}"] for n in ("sigma2", "r", "h", "gaps") if f"{part.label}_{n}" in theta}
            own = {name: value[..., columns] if value.ndim else value for name, value in own.items()}
            n = trials[:, columns] if part.code == 0 else None
            alone = getattr(family, method)(*(a[:, columns] for a in arguments), own, n)
            for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
                np.testing.assert_allclose(a[:, columns], b, err_msg=f"{method} of {part.label}")


def test_a_part_of_the_columns_is_told_by_its_cells(x64):
    """Engines look at blocks of columns, the last filled up with zeros."""
    y, f, theta, trials = design()
    whole = FAMILY.log_factor(y, f, theta, trials)
    some = np.array([5, 2, 3])
    padded = lambda a: jnp.concatenate([a[..., some], jnp.zeros((*a.shape[:-1], 1))], axis=-1)  # noqa: E731
    block = {name: jnp.where(padded(a) == 0, 1, padded(a)) if a.ndim else a for name, a in theta.items()}
    np.testing.assert_array_equal(FAMILY.log_factor(padded(y), padded(f), block, padded(trials))[:, :3], whole[:, some])


def test_gradients_are_finite_where_another_family_would_overflow(x64):
    y, f, theta, trials = design()
    f = f.at[:, 0].set(800.0)  # a Gaussian column, of which e^f is infinite
    gradient = jax.grad(lambda f, theta: FAMILY.log_prob(y, f, theta, trials).sum(), argnums=(0, 1))(f, theta)
    for leaf in jax.tree.leaves(gradient):
        assert np.isfinite(leaf).all()
    assert (gradient[1]["gaussian_sigma2"][np.array([1, 2, 3, 4, 6])] == 0).all()


def test_parameters_of_other_families_stay_at_one(x64):
    y, f, theta, _ = design()
    new = FAMILY.update_theta(jax.random.key(1), theta, y, f, jnp.asarray(ALL))
    for part, _ in parts():
        others = np.setdiff1d(np.arange(7), part.columns)
        for drawn in (theta, new):
            for name, value in drawn.items():
                if name.startswith(part.label) and value.ndim:
                    assert (value[..., others] == 1).all()
                    assert (value[..., part.columns] != 1).all()
    assert set(new) == set(theta) == {"gaussian_sigma2", "negative_binomial_r", "negative_binomial_h", "ordinal_gaps"}
    ones = {name: jnp.ones_like(value) for name, value in theta.items()}

    def log_prior(log_theta):
        jacobian = sum(value.sum() for value in log_theta.values())
        return FAMILY.log_prior_theta(jax.tree.map(jnp.exp, log_theta)) + jacobian

    at_one = jax.grad(log_prior)(jax.tree.map(jnp.log, ones))
    np.testing.assert_allclose(at_one["gaussian_sigma2"][np.array([1, 2, 3, 4, 6])], 0, atol=1e-12)


def test_noise_beside_other_families_follows_its_conditional(x64):
    """sigma^2 given f: two KS tests at 1e-4."""
    family = GaussianBeside(a0=2.0, b0=1.5)
    mask = np.array([[True, True], [True, False], [True, True], [True, True]])
    y, f = np.array([[1.0, 0.2], [0.3, 9.0], [-1.0, 0.0], [2.0, 1.0]]), np.zeros((4, 2))
    draw = lambda key: family.update_theta(key, {}, jnp.asarray(y), jnp.asarray(f), jnp.asarray(mask))  # noqa: E731
    drawn = np.asarray(jax.vmap(draw)(jax.random.split(jax.random.key(0), 3000))["sigma2"])
    for j in range(2):
        law = stats.invgamma(2.0 + mask[:, j].sum() / 2, scale=1.5 + (y[mask[:, j], j] ** 2).sum() / 2)
        assert stats.kstest(drawn[:, j], law.cdf).pvalue > 1e-4


NAMES = ("age", "visits", "calls", "smokes")


@pytest.mark.parametrize(
    ("specification", "columns"),
    [
        ({"poisson": ["visits", "calls"], "bernoulli": "smokes", "gaussian": "age"}, ((1, 2), (3,), (0,))),
        ([("poisson", slice(1, 3)), ("bernoulli", -1), ("gaussian", 0)], ((1, 2), (3,), (0,))),
        ([("poisson", [False, True, True, False]), ("bernoulli", [3]), (StudentT(), [0])], ((1, 2), (3,), (0,))),
        ({"auto": ["visits", "smokes", "age"], "poisson": ["calls"]}, ((0,), (3,), (1,), (2,))),
        ("mixed", ((0,), (3,), (1, 2))),
    ],
    ids=["names", "numbers", "flags", "auto", "mixed"],
)
def test_columns_are_named_in_many_ways(specification, columns):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=40), rng.poisson(3, (40, 2)), rng.integers(0, 2, 40)]).astype(float)
    family, reason = likelihoods.for_columns(specification, table, np.ones(table.shape, bool), NAMES)
    assert family.columns == columns
    looked = specification == "mixed" or "auto" in specification
    assert ("bernoulli for smokes: all cells are 0 or 1" in reason) == looked


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"poisson": ["visits", "call"]}, "names the column 'call', which Y has not; did you mean 'calls'"),
        ({"poisson": [1, 9]}, "names the column 9, which Y has not: it has 4"),
        ({"poisson": [1, 2], "gaussian": [0, 1, 3]}, "gives column 'visits' two families"),
        ({"poisson": [1, 2], "gaussian": [0]}, "gives column 'smokes' no family"),
        (["poisson", "gaussian"], "pairs of a family and its columns, got 'poisson'"),
    ],
)
def test_what_names_no_column_is_refused(specification, message):
    with pytest.raises(InputError, match=message):
        likelihoods.for_columns(specification, np.zeros((3, 4)), np.ones((3, 4), bool), NAMES)


def test_families_that_cannot_be_a_part_are_refused():
    with pytest.raises(ValueError, match="multinomial rows are modelled given their total"):
        likelihoods.get({"multinomial": [0, 1], "gaussian": [2]})
    with pytest.raises(ValueError, match="not for each cell"):
        Mixed((Binomial(trials=np.ones((3, 2))), likelihoods.Poisson()), ((0, 1), (2,)))
    with pytest.raises(ValueError, match="a family for every column"):
        Mixed((likelihoods.Poisson(),), ((0, 2),))
    with pytest.raises(InputError, match=r"poisson needs counts >= 0, got Y\[1, 2\] = -1") as caught:
        Mixed((likelihoods.Poisson(), likelihoods.Gaussian()), ((2,), (0, 1))).check(
            np.array([[0.5, 1, 2], [0.5, 1, -1]]), np.ones((2, 3), bool)
        )
    assert caught.value.args[0].part("column") == 2


N = 60
SETTINGS: dict[str, Any] = {"n_features": 10, "init": "pca", "random_state": 0}
MAP: dict[str, Any] = SETTINGS | {"inference": "map", "kernel": "rbf", "max_iter": 40}
GIBBS: dict[str, Any] = SETTINGS | {"n_samples": 20, "n_burnin": 20, "n_chains": 1}
SPECIFICATION: dict[Any, Any] = {
    "gaussian": ["size", "weight"], Binomial(trials=10): ["right"], "poisson": ["calls", "visits"],
    "ordinal": ["mood"], "bernoulli": ["smokes", "drinks"],
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@functools.cache
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    f = np.sin(np.outer(x, [1.0, 2.0, 1.5, 1.0, 0.5, 2.0, 1.0, 3.0])) * 1.5
    table = pd.DataFrame({
        "calls": rng.poisson(np.exp(f[:, 0] + 1)), "size": 170 + 10 * (f[:, 1] + 0.3 * rng.normal(size=N)),
        "mood": np.clip(np.round(3 + f[:, 2] + 0.5 * rng.normal(size=N)), 1, 5),
        "smokes": rng.random(N) < 1 / (1 + np.exp(-2 * f[:, 3])), "right": rng.binomial(10, 1 / (1 + np.exp(-f[:, 4]))),
        "visits": rng.poisson(np.exp(f[:, 5])), "weight": 70 + 5 * (f[:, 6] + 0.3 * rng.normal(size=N)),
        "drinks": rng.random(N) < 1 / (1 + np.exp(-2 * f[:, 7])),
    }).astype(float)  # fmt: skip
    table.iloc[3, :2] = np.nan
    return table


@functools.cache
def fitted(inference: str) -> RFLVM:
    settings = MAP if inference == "map" else GIBBS
    return RFLVM(n_components=1, likelihood=SPECIFICATION, **settings).fit(frame())


@pytest.mark.parametrize("inference", ["map", "gibbs"])
def test_a_table_of_many_kinds_is_fitted_predicted_and_saved(inference, tmp_path):
    model, table = fitted(inference), frame()
    assert model.likelihood_.name == "mixed"
    filled = model.impute(table)
    assert 140 < filled[3, 1] < 200
    expected = model.inverse_transform(model.embedding_)
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    assert (expected.min(axis=0) > low - (high - low)).all()
    assert (expected.max(axis=0) < high + (high - low)).all()
    assert np.isfinite(model.score_samples(table)).all()
    _, new = model.sample(50)
    assert set(np.unique(new[:, [3, 7]])) == {0, 1}
    assert (new[:, 4] <= 10).all()
    assert set(np.unique(new[:, 2])) <= {1, 2, 3, 4, 5}
    np.testing.assert_array_equal(model.transform(table)[5:6], model.transform(table[5:6]))
    model.save(tmp_path / "model.npz")
    again = rflvm.load(tmp_path / "model.npz")
    assert again.likelihood_ == model.likelihood_
    np.testing.assert_array_equal(again.transform(table), model.transform(table))
    refit: Any = clone(again)
    family, _ = likelihoods.for_columns(
        refit.likelihood, table.to_numpy(), table.notna().to_numpy(), list(map(str, table))
    )
    assert family == model.likelihood_


def test_noise_is_in_the_units_of_its_column():
    sigma2 = fitted("map").draws_.in_units()["gaussian_sigma2"].mean(axis=(0, 1))
    assert 1 < sigma2[1] < 100
    assert 0.2 < sigma2[6] < 25
    assert (sigma2[[0, 2, 3, 4, 5, 7]] == 1).all()


def test_arviz_has_every_family():
    pytest.importorskip("xarray")
    posterior = fitted("map").posterior_["posterior"]
    assert posterior["gaussian_sigma2"].dims == ("chain", "draw", "predictor")
    assert posterior["ordinal_gaps"].dims == ("chain", "draw", "ordinal_gap", "predictor")


def test_the_explorer_knows_the_family_of_each_column():
    family = fitted("map").likelihood_
    assert family.decoders(8) == (
        "poisson", "gaussian", "ordinal", "bernoulli", "binomial", "poisson", "gaussian", "bernoulli"
    )  # fmt: skip
    given = family.decoder_parameters(fitted("map").fitted_.members.theta, 8)
    assert given["sigma2"].shape[-1] == given["gaps"].shape[-1] == 8


def test_an_offset_needs_counts_alone():
    table, offset = frame(), np.ones(N)
    with pytest.raises(InputError, match="have a meaning for counts only"):
        RFLVM(likelihood="mixed", **MAP).fit(table, offset=offset)
    with pytest.raises(InputError, match="log link, not for mixed"):
        RFLVM(likelihood="mixed", exposure="total", **MAP).fit(table)
