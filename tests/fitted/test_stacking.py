"""Weights of arrangements: the densities of left-out cells are those of arviz-stats, and the better picture wins."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base.array import array_stats
from sklearn.exceptions import ConvergenceWarning

import rflvm
from rflvm import RFLVM
from rflvm.fitted import stacking
from rflvm.fitted.densities import densities_of_cells
from rflvm.model.joint import Data


@pytest.mark.parametrize("n_draws", [30, 100, 400])
@pytest.mark.parametrize("share_effective", [1.0, 0.3])
def test_densities_and_pareto_k_are_those_of_arviz(n_draws, share_effective, monkeypatch):
    """Cells of every kind, from hardly any influence on the posterior to far too much; in parts."""
    monkeypatch.setattr(stacking, "N_AT_ONCE", 7)
    rng = np.random.default_rng(n_draws)
    log_density = -(rng.normal(size=(n_draws, 30)) ** 2) * np.linspace(0.01, 3, 30) - rng.gamma(1, 1, size=30)
    elpd, k = stacking.psis_loo(log_density, share_effective)
    expected: Any = [array_stats._loo(cell[None], share_effective) for cell in log_density.T]
    np.testing.assert_allclose(elpd, [float(e[0]) for e in expected], rtol=1e-9)
    np.testing.assert_allclose(k, [float(e[1]) for e in expected], atol=1e-9)
    assert k.min() < 0.5
    assert n_draws < 100 or k.max() > 0.7


def test_few_draws_and_densities_that_do_not_vary_are_not_smoothed():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(8, 3))
    elpd, k = stacking.psis_loo(few)
    np.testing.assert_allclose(elpd, -np.log(np.mean(np.exp(-few), axis=0)))
    assert np.isinf(k).all()
    elpd, k = stacking.psis_loo(np.full((100, 2), -1.5))
    np.testing.assert_allclose(elpd, -1.5)
    assert (k < 0).all()


def test_stacking_finds_the_weights_of_a_mixture():
    """Cells of which 70 % are predicted by one model alone; and a model that is worse everywhere has none."""
    rng = np.random.default_rng(0)
    first = rng.random(20_000) < 0.7
    elpd = np.log(np.where(np.stack([first, ~first], axis=1), 1.0, 1e-6))
    np.testing.assert_allclose(stacking.stacked(elpd), [first.mean(), 1 - first.mean()], atol=1e-4)
    worse = np.stack([elpd[:, 0], elpd[:, 0] - 0.1], axis=1)
    np.testing.assert_allclose(stacking.stacked(worse), [1, 0], atol=1e-3)


@pytest.fixture(scope="module")
def fitted():
    """Three chains, of which the first is then put into another picture: its rows permuted, its predictions wrong."""
    rng = np.random.default_rng(0)
    t = np.linspace(-2, 2, 24)
    Y = rng.poisson(np.exp(1 + np.sin(t[:, None] + np.arange(8)))).astype(float)
    settings: dict[str, Any] = {"n_features": 6, "n_samples": 60, "n_burnin": 40, "n_chains": 3, "init": "pca"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RFLVM(likelihood="poisson", random_state=0, **settings).fit(Y)
    return model


def scrambled(draws, chain, rng):
    X = draws["X"].copy()
    X[chain] = X[chain][:, rng.permutation(X.shape[2])]
    return dataclasses.replace(draws, arrays=draws.arrays | {"X": X})


def test_the_arrangement_that_predicts_better_is_used_and_all_are_kept(fitted, tmp_path):
    from rflvm.fitted.fit import from_chains

    assert [one["chains"] for one in fitted.arrangements_] == [(0, 1, 2)]
    assert fitted.arrangements_[0]["weight"] == 1.0
    draws = scrambled(fitted.draws_, 0, np.random.default_rng(1))
    apart = from_chains(draws, fitted.fitted_.about)
    assert [one.chains for one in apart.arrangements] == [(1, 2), (0,)]
    first, second = apart.arrangements
    assert first.weight > 0.95
    assert first.weight + second.weight == pytest.approx(1)
    assert first.elpd > second.elpd
    # As if there had never been another chain.
    rest = dataclasses.replace(draws, arrays={name: part[1:] for name, part in draws.arrays.items()})
    alone = from_chains(rest, fitted.fitted_.about)
    np.testing.assert_array_equal(apart.embedding, alone.embedding)
    np.testing.assert_array_equal(apart.embedding_std, alone.embedding_std)
    np.testing.assert_array_equal(apart.members.beta, alone.members.beta)
    np.testing.assert_array_equal(apart.diagnostics[0].row_rhat, alone.diagnostics[0].row_rhat)
    assert apart.aligned["X"].shape[0] == 3
    assert apart.pictured["X"].shape[0] == 2

    fitted._adopt(apart)
    page = fitted.diagnose()
    assert "two arrangements of the rows, with weights" in page
    assert "chains 2 and 3" in page
    fitted.save(tmp_path / "model.npz")
    loaded = rflvm.load(tmp_path / "model.npz")
    assert loaded.arrangements_ == fitted.arrangements_
    assert loaded.diagnose() == page
    np.testing.assert_array_equal(loaded.fitted_.disagreeing, apart.disagreeing)


def test_chains_of_a_single_draw_are_weighed(fitted):
    """What an interrupt right after burn-in leaves."""
    draws = scrambled(fitted.draws_, 0, np.random.default_rng(1))
    first = dataclasses.replace(draws, arrays={name: part[:, :1] for name, part in draws.arrays.items()})
    weighed = stacking.arrangements(first, fitted.fitted_.data)
    assert sum(one.weight for one in weighed) == pytest.approx(1)


def test_densities_of_cells_are_those_of_the_table(fitted):
    data: Data = fitted.fitted_.data()
    mask = jnp.asarray(np.random.default_rng(0).random(data.Y.shape) < 0.5)
    some = np.flatnonzero(np.asarray(mask))[::3]
    densities = densities_of_cells(fitted.draws_, data._replace(mask=mask), (2,), 5, some)
    assert densities.shape == (5, len(some))
    last = fitted.posterior_.log_likelihood["Y"].isel(chain=2, draw=-1)
    np.testing.assert_allclose(densities[-1], last.values.reshape(data.Y.shape).ravel()[some], rtol=1e-6)
