"""The engine: reproducible, indifferent to masked cells, interruptible, within its budget, safe on odd tables."""

from __future__ import annotations

import logging
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rflvm
from equality import assert_same_draws
from rflvm import likelihoods
from rflvm.datasets import make_s_curve
from rflvm.maximum import competition
from rflvm.model.alignment import mean_latents
from rflvm.model.joint import Data, predictor
from rflvm.numerics.affine import r2_affine
from rflvm.numerics.convergence import ess, rhat
from rflvm.sampling import run
from rflvm.sampling.blocks import W, X

SHORT: dict[str, Any] = {"n_features": 6, "n_burnin": 4, "n_samples": 6, "init": "pca"}
LONGER: dict[str, Any] = SHORT | {"n_samples": 12}
MORE_BURNIN: dict[str, Any] = SHORT | {"n_burnin": 30}
FAMILIES = {
    "gaussian-marginal": likelihoods.Gaussian(),
    "gaussian": likelihoods.Gaussian(marginal=False),
    "poisson": likelihoods.Poisson(),
    "bernoulli": likelihoods.Bernoulli(),
    "binomial": likelihoods.Binomial(trials=4),
    "negative-binomial": likelihoods.NegativeBinomial(),
    "multinomial": likelihoods.Multinomial(),
}


def table(family):
    rng = np.random.default_rng(0)
    Y = {
        "gaussian": rng.normal(size=(12, 5)),
        "bernoulli": rng.integers(0, 2, size=(12, 5)),
        "binomial": rng.integers(0, 5, size=(12, 5)),
    }.get(family.name, rng.poisson(3, size=(12, 5)))
    return Y.astype(float)


ALSO_IN_OTHERS = ("gaussian", "poisson", "bernoulli", "binomial", "negative-binomial")  # multinomial has their code


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in ALSO_IN_OTHERS else ()) for n in FAMILIES]
)
def test_masked_cells_have_no_influence_and_a_seed_repeats(name):
    """Two runs whose tables differ in masked cells only are equal bit for bit."""
    family = FAMILIES[name]
    Y = table(family)
    mask = np.random.default_rng(1).random(Y.shape) > 0.2
    offset = np.linspace(-0.3, 0.3, len(Y))
    other = np.where(mask, Y, np.where(Y > 0, 0.0, 1.0))
    missing = np.where(mask, Y, np.nan)
    first = rflvm.sample(Y, family, mask=mask, offset=offset, **SHORT)
    for second in (
        rflvm.sample(other, family, mask=mask, offset=offset, **SHORT),
        rflvm.sample(missing, family, offset=offset, **SHORT),
    ):
        for quantity in first.arrays:
            np.testing.assert_array_equal(first[quantity], second[quantity])
    for values in first.arrays.values():
        assert np.isfinite(values).all()


def test_seeds_and_chains_differ_and_a_chain_does_not_depend_on_their_number():
    Y = table(FAMILIES["poisson"])
    two = rflvm.sample(Y, "poisson", n_chains=2, **SHORT)
    one = rflvm.sample(Y, "poisson", n_chains=1, **SHORT)
    other = rflvm.sample(Y, "poisson", seed=1, **SHORT)
    np.testing.assert_array_equal(two["X"][0], one["X"][0])
    assert not np.allclose(two["X"][0], two["X"][1])
    assert not np.allclose(one["X"], other["X"])


def test_thinning_keeps_every_kth_draw():
    Y = table(FAMILIES["poisson"])
    every, third = rflvm.sample(Y, "poisson", **SHORT), rflvm.sample(Y, "poisson", thin=3, **SHORT)
    assert third.n_draws == 2
    np.testing.assert_array_equal(third["X"], every["X"][:, 2::3])


def test_beta_is_thinned_to_the_budget_and_this_is_logged(caplog):
    Y = table(FAMILIES["poisson"])
    whole = rflvm.sample(Y, "poisson", **SHORT)
    assert whole.beta_thin == 1
    one_beta = whole["beta"][0, 0].nbytes
    budget = sum(values.nbytes for values in whole.arrays.values()) - 3 * one_beta
    with caplog.at_level(logging.INFO, logger="rflvm"):
        thinned = rflvm.sample(Y, "poisson", memory_budget=budget, **SHORT)
    assert thinned.beta_thin == 2
    assert sum(values.nbytes for values in thinned.arrays.values()) <= budget
    np.testing.assert_array_equal(thinned["beta"], whole["beta"][:, ::2])
    assert "every 2-th draw" in caplog.text


def test_tuning_stops_after_burnin_and_is_recorded():
    Y = table(FAMILIES["poisson"])
    short = rflvm.sample(Y, "poisson", **SHORT)
    longer = rflvm.sample(Y, "poisson", **LONGER)
    for a, b in zip(short.tuning[0], longer.tuning[0], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(short["X"], longer["X"][:, :6])


def test_progress_tells_every_sweep():
    told = []
    draws = rflvm.sample(table(FAMILIES["poisson"]), "poisson", progress=told.append, **SHORT)
    assert [p.sweep for p in told] == list(range(1, 11))
    assert all(p.n_sweeps == 10 and p.n_burnin == 4 and np.isfinite(p.log_joint) for p in told)
    assert all(p.sweeps_per_second > 0 for p in told)
    assert [bool(p.acceptance) for p in told] == [False] * 4 + [True] * 6
    assert told[-1].acceptance["X"] == pytest.approx(float(draws.info[0]["X"].acceptance))
    assert set(told[-1].acceptance) == {"W", "scale", "X", "beta"}


def test_progress_bar_shows_rate_log_joint_and_acceptance(capsys):
    rflvm.sample(table(FAMILIES["poisson"]), "poisson", progress=True, **SHORT)
    err = capsys.readouterr().err
    assert "sweep/s" in err
    assert "log joint" in err
    assert "acceptance 0." in err


def test_interrupt_keeps_the_draws_so_far(caplog):
    Y = table(FAMILIES["poisson"])

    def stop(progress):
        if progress.sweep == 7:
            raise KeyboardInterrupt

    whole = rflvm.sample(Y, "poisson", **SHORT)
    part = rflvm.sample(Y, "poisson", progress=stop, **SHORT)
    assert part.interrupted
    assert part.n_draws == 3
    np.testing.assert_array_equal(part["X"], whole["X"][:, :3])
    assert "interrupted" in caplog.text


def test_interrupt_in_burnin_is_raised():
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rflvm.sample(table(FAMILIES["poisson"]), "poisson", progress=stop, **SHORT)


def test_interrupt_at_the_start_is_raised(monkeypatch):
    """Not taken for the end of the start, after which the chains would run."""
    find = run.find_maximum

    def interrupted(data, model, kernel, init, n_iterations, seed, tell, **options):
        def stop(value):
            raise KeyboardInterrupt

        return find(data, model, kernel, "pca", n_iterations, seed, stop, **options)

    monkeypatch.setattr(run, "find_maximum", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rflvm.sample(table(FAMILIES["gaussian"]), "gaussian", n_features=6, init="map")


def test_numerical_trouble_names_the_block(monkeypatch):
    broken = lambda *a: (a[1]._replace(X=a[1].X * np.nan), X.Info(jnp.ones(()), jnp.zeros(())))  # noqa: E731
    monkeypatch.setattr(X, "step", broken)
    shape_not_compiled_before = table(FAMILIES["poisson"])[:-1]
    with pytest.raises(rflvm.NumericalError, match="block X"):
        rflvm.sample(shape_not_compiled_before, "poisson", **SHORT)


def test_global_state_is_left_alone():
    before = jax.config.read("jax_enable_x64"), repr(np.random.get_state())  # noqa: NPY002
    rflvm.sample(table(FAMILIES["poisson"]), "poisson", **SHORT)
    assert jax.config.read("jax_enable_x64") == before[0]
    assert repr(np.random.get_state()) == before[1]  # noqa: NPY002


@pytest.mark.parametrize(
    ("likelihood", "within"), [("poisson", 0.05), pytest.param("negative_binomial", 2.0, marks=pytest.mark.long)]
)
def test_constant_columns_and_counts_of_a_million_are_fitted(likelihood, within):
    """The negative binomial starts at r = 1, a spread of its own size, and r grows slowly from there."""
    Y = table(FAMILIES["poisson"])
    Y[:, 0], Y[:, 1], Y[:, 2] = 0, 7, np.random.default_rng(0).poisson(1e6, len(Y))
    draws = rflvm.sample(Y, likelihood, **MORE_BURNIN)
    for values in draws.arrays.values():
        assert np.isfinite(values).all()
    last = draws.states[0]
    with jax.enable_x64(True):
        F = predictor(last, Data(jnp.asarray(Y), None, jnp.zeros(len(Y)), None))
        mean = np.asarray(draws.model.likelihood.mean(F, last.theta))
    assert np.abs(np.log(mean[:, 2] / Y[:, 2])).max() < within


@pytest.mark.parametrize(
    ("shape", "n_components"),
    [((1, 5), 1), pytest.param((12, 1), 2, marks=pytest.mark.long)],
    ids=["a single row", "a single column"],
)
def test_smallest_tables_are_fitted(shape, n_components):
    draws = rflvm.sample(np.ones(shape), "poisson", n_components=n_components, **SHORT)
    for values in draws.arrays.values():
        assert np.isfinite(values).all()


def test_a_target_that_cannot_be_evaluated_names_the_block(monkeypatch):
    """A factor that fails at every state would otherwise reject every proposal in silence."""
    failing = lambda A: (jnp.full_like(A, jnp.nan), jnp.asarray(1e-2))  # noqa: E731
    monkeypatch.setattr(W.linalg, "cholesky", failing)
    shape_not_compiled_before = table(FAMILIES["gaussian"])[:-1]
    with pytest.raises(rflvm.NumericalError, match=r"block W.*jitter: 1\.0e-02"):
        rflvm.sample(shape_not_compiled_before, "gaussian", **SHORT)


def test_polya_gamma_coefficients():
    family = FAMILIES["bernoulli"]
    Y = table(family)
    mask = np.random.default_rng(1).random(Y.shape) > 0.2
    other = np.where(mask, Y, 1 - np.minimum(Y, 1))
    first, second = (rflvm.sample(T, family, mask=mask, coefficients="polya-gamma", **SHORT) for T in (Y, other))
    np.testing.assert_array_equal(first["beta"], second["beta"])
    assert np.isfinite(first["beta"]).all()


def test_map_latents_and_the_papers_frequencies():
    Y = table(FAMILIES["poisson"])
    draws = rflvm.sample(Y, "poisson", latents="map", frequencies="prior", **SHORT)
    assert np.isfinite(draws["log_joint"]).all()
    with pytest.raises(ValueError, match="marginal=False"):
        rflvm.sample(table(FAMILIES["gaussian"]), FAMILIES["gaussian-marginal"], latents="map", **SHORT)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.long)])
def test_six_draws_and_six_more_are_twelve(dtype):
    Y = table(FAMILIES["poisson"])
    options: dict[str, Any] = {"n_chains": 2, "dtype": dtype}
    told = []
    six = rflvm.sample(Y, "poisson", **options, **SHORT)
    twelve = run.continue_sampling(Y, six, 6, progress=told.append)
    assert_same_draws(twelve, rflvm.sample(Y, "poisson", **options, **LONGER))
    assert six.n_draws == 6
    assert [(p.sweep, p.n_sweeps, p.n_burnin) for p in told] == [(t, 16, 4) for t in range(11, 17)]


def test_an_interrupted_run_goes_on_between_two_kept_draws():
    Y, mask = table(FAMILIES["poisson"]), np.random.default_rng(1).random((12, 5)) > 0.2
    offset = np.linspace(-0.3, 0.3, len(Y))

    def stop(progress):
        if progress.sweep == 12:  # eight after burn-in, two more than the last that was kept
            raise KeyboardInterrupt

    options: dict[str, Any] = LONGER | {"mask": mask, "offset": offset, "thin": 3}
    part = rflvm.sample(Y, "poisson", progress=stop, **options)
    assert (part.n_draws, part.interrupted) == (2, True)
    rest = run.continue_sampling(np.where(mask, Y, np.nan), part, 4, offset=offset)
    assert_same_draws(rest, rflvm.sample(Y, "poisson", **options))


def test_going_on_keeps_the_thinning_of_beta_or_says_that_it_cannot():
    Y = table(FAMILIES["poisson"])
    whole = rflvm.sample(Y, "poisson", **LONGER)
    six = rflvm.sample(Y, "poisson", **SHORT)
    budget = sum(values.nbytes for values in six.arrays.values()) - 2 * six["beta"][0, 0].nbytes
    thinned = rflvm.sample(Y, "poisson", memory_budget=budget, **SHORT)
    assert thinned.beta_thin == 2
    with pytest.raises(ValueError, match=r"1 chain\(s\) of 7 draws, with beta for every 2-th .*: raise the budget"):
        run.continue_sampling(Y, thinned, 1, memory_budget=budget)
    np.testing.assert_array_equal(run.continue_sampling(Y, thinned, 6)["beta"], whole["beta"][:, ::2])


def test_going_on_needs_the_same_table_and_chains():
    Y = table(FAMILIES["poisson"])
    draws = rflvm.sample(Y, "poisson", **SHORT)
    for other in ({"Y": Y + 1}, {"Y": Y, "offset": np.ones(12)}, {"Y": Y, "mask": Y > 0}):
        with pytest.raises(ValueError, match="must be those that the draws were made from"):
            run.continue_sampling(draws=draws, n_samples=1, **other)
    run.continue_sampling(np.asfortranarray(Y), draws, 1)
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        run.continue_sampling(Y, draws, 0)
    with pytest.raises(ValueError, match="no chains to go on with"):
        run.continue_sampling(Y, rflvm.Draws(draws.model, draws.arrays, 1), 1)


def test_fixed_frequencies_stay_where_they_start():
    Y = table(FAMILIES["negative-binomial"])
    draws = rflvm.sample(Y, FAMILIES["negative-binomial"], frequencies="fixed", **SHORT)
    start = draws.states[0]
    for name in ("W", "mu", "Sigma", "z", "alpha"):
        assert (draws[name] == np.asarray(getattr(start, name)).astype(draws[name].dtype)).all()
    for name in ("X", "beta", "r", "h", "log_joint"):
        values = draws[name][0].reshape(6, -1)
        assert (values[1:] != values[:-1]).any(axis=1).all()
    assert set(draws.info[0]) == {"X", "theta", "beta"}


def test_trouble_with_fixed_frequencies_names_the_block(monkeypatch):
    broken = lambda *a: (a[1]._replace(X=a[1].X * np.nan), X.Info(jnp.ones(()), jnp.zeros(())))  # noqa: E731
    monkeypatch.setattr(X, "step", broken)
    shape_not_compiled_before = table(FAMILIES["poisson"])[:-2]
    with pytest.raises(rflvm.NumericalError, match="block X"):
        rflvm.sample(shape_not_compiled_before, "poisson", frequencies="fixed", **SHORT)


@pytest.mark.parametrize("name", ["pca", "isomap", "tsne", "kernel"])
def test_chains_start_where_they_are_told(monkeypatch, name):
    Y = table(FAMILIES["poisson"])
    start = np.random.default_rng(0).normal(size=(len(Y), 2))
    named = []

    def embed(name, table, D, seed):
        named.append(name)
        return start

    monkeypatch.setattr(run.starts, "embed", embed)
    options: list[dict[str, Any]] = [SHORT | {"init": init} for init in (name, start)]
    draws, given = (rflvm.sample(Y, "poisson", **option) for option in options)
    np.testing.assert_array_equal(draws["X"], given["X"])
    assert named == [name]


def test_chains_start_from_different_finalists(monkeypatch, caplog):
    """Where other pictures come close to the highest, which is here always."""
    monkeypatch.setattr(competition, "CLOSE", np.inf)
    truth = make_s_curve(40, 6, emissions="poisson", seed=1)
    with caplog.at_level(logging.INFO, logger="rflvm"):
        draws = rflvm.sample(
            truth.data, "poisson", n_chains=3, n_features=6, n_burnin=0, n_samples=1, frequencies="fixed"
        )
    likeness = [r2_affine(draws["X"][0, 0], draws["X"][c, 0]) for c in (1, 2)]
    assert max(likeness) < competition.SAME_PICTURE
    scales = [np.linalg.norm(W[0]) for W in draws["W"]]
    assert len(np.unique(np.round(scales, 3))) == 3
    assert "chains after the first start from: " in caplog.text


def test_custom_family_equals_the_built_in_one():
    """A Poisson written by the user makes the same draws as ours."""
    Y = table(FAMILIES["poisson"])
    custom = likelihoods.Custom(lambda y, f: y * f - jnp.exp(f))
    start = np.random.default_rng(0).normal(size=(len(Y), 2))
    ours = rflvm.sample(Y, "poisson", init=start, n_features=6, n_burnin=0, n_samples=1)
    theirs = rflvm.sample(Y, custom, init=start, n_features=6, n_burnin=0, n_samples=1)
    np.testing.assert_allclose(ours["X"], theirs["X"], atol=1e-3)


@pytest.mark.long  # the short suite finds the S-curve in tests/maximum/test_maximise.py
def test_s_curve_is_recovered():
    truth = make_s_curve(500, 100, emissions="poisson")
    draws = rflvm.sample(truth.data, "poisson", n_features=100, n_burnin=40, n_samples=40, init="pca")
    assert r2_affine(truth.X, mean_latents(draws)) > 0.9


def test_ess_and_rhat_know_independent_and_stuck_chains():
    rng = np.random.default_rng(0)
    independent = rng.normal(size=(4, 1000))
    assert abs(ess(independent) / 4000 - 1) < 0.15
    assert abs(rhat(independent) - 1) < 0.01
    walk = np.zeros((4, 4000))
    for t in range(1, 4000):
        walk[:, t] = 0.9 * walk[:, t - 1] + rng.normal(size=4)
    assert abs(ess(walk) / (16000 * (1 - 0.9) / (1 + 0.9)) - 1) < 0.25
    stuck = independent + np.arange(4)[:, None] * 10
    assert ess(stuck) < 10
    assert rhat(stuck) > 3
