"""The scikit-learn door: its checks, round trips, every family, continuing, files, and odd input."""

from __future__ import annotations

import logging
import os
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rflvm
from rflvm import RFLVM, fitting, likelihoods
from rflvm.data import checks
from rflvm.datasets import make_s_curve
from rflvm.fitted import rows
from rflvm.sampling import chain

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MAP: dict[str, Any] = {
    "inference": "map", "kernel": "rbf", "init": "pca", "n_features": 6, "max_iter": 3, "random_state": 0,
}  # fmt: skip
GIBBS: dict[str, Any] = {
    "init": "pca", "n_features": 6, "n_samples": 6, "n_burnin": 4, "n_chains": 2, "random_state": 0,
}  # fmt: skip
ENGINES = {"map": MAP, "gibbs": GIBBS}
N, J = 12, 5
FAMILIES = {
    "gaussian": likelihoods.Gaussian(),
    "poisson": likelihoods.Poisson(),
    "bernoulli": likelihoods.Bernoulli(),
    "binomial": likelihoods.Binomial(trials=4),
    "negative-binomial": likelihoods.NegativeBinomial(),
    "multinomial": likelihoods.Multinomial(),
}
OTHER_THAN_TRANSFORM = (
    "embedding_ is the posterior mean (or mode) over the chain; transform integrates over each row's position given "
    "the functions. They agree within a fraction of a standard deviation, not to 1e-2"
)
EXCEPTIONS = {
    "check_transformer_general": OTHER_THAN_TRANSFORM,
    "check_transformer_data_not_an_array": OTHER_THAN_TRANSFORM,
}


def changed(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return settings | changes


def table(name: str = "poisson", n: int = N) -> np.ndarray:
    """A table with a gap: tests that share shapes, and whether there is one, share what is compiled."""
    rng = np.random.default_rng(0)
    Y = {
        "gaussian": rng.normal(size=(n, J)),
        "bernoulli": rng.integers(0, 2, size=(n, J)),
        "binomial": rng.integers(0, 5, size=(n, J)),
    }.get(name, rng.poisson(3, size=(n, J))).astype(float)
    Y[0, 1] = np.nan
    return Y


@pytest.fixture(scope="module", params=ENGINES)
def fitted(request) -> RFLVM:
    """Fitted to a Poisson table."""
    with pytest.warns(ConvergenceWarning):
        return RFLVM(likelihood="poisson", **ENGINES[request.param]).fit(table())


@parametrize_with_checks([RFLVM(**MAP)], expected_failed_checks=lambda estimator: EXCEPTIONS)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("value", [0, -1, 2.5, np.array([1, 2])])
def test_the_limit_of_iterations_is_refused_by_its_own_name(value):
    with pytest.raises((TypeError, ValueError), match=r"^max_iter must be "):
        RFLVM(**changed(MAP, max_iter=value)).fit(np.eye(5))


@pytest.mark.long  # compiles the sampler for twenty shapes; what the checks look at is the same with both engines
@parametrize_with_checks([RFLVM(**changed(GIBBS, n_chains=1))], expected_failed_checks=lambda estimator: EXCEPTIONS)
def test_scikit_learn_with_the_sampler(estimator, check):
    check(estimator)


def long_with(engine, names):
    """All families with an engine, of which only some in the short suite."""
    return [pytest.param(n, engine, marks=() if n in names else pytest.mark.long, id=f"{n}-{engine}") for n in FAMILIES]


@pytest.mark.parametrize(
    ("name", "engine"), long_with("map", ("gaussian", "multinomial")) + long_with("gibbs", ("poisson",))
)
def test_every_family_does_everything(name, engine):
    family = FAMILIES[name]
    Y = table(name)
    offset = np.linspace(-0.2, 0.2, N)
    model = RFLVM(likelihood=family, **ENGINES[engine])
    X = model.fit_transform(Y, offset=offset)
    assert X.shape == model.embedding_std_.shape == (N, 2)
    assert (model.embedding_std_ > 0).all()
    new = table(name, n=3)
    placed, std = model.transform(new, offset=np.zeros(3), return_std=True)
    assert placed.shape == std.shape == (3, 2)
    mean, lower, upper = model.predict_intervals(new)
    assert mean.shape == (3, J)
    assert (lower <= upper).all()
    filled = model.impute(new)
    np.testing.assert_array_equal(filled[~np.isnan(new)], new[~np.isnan(new)])
    assert filled[0, 1] == mean[0, 1]
    assert model.inverse_transform(X, offset=offset).shape == (N, J)
    X_new, Y_new = model.sample(4)
    assert X_new.shape == (4, 2)
    family.check(Y_new, np.ones(Y_new.shape, bool))
    for values in (X, placed, std, mean, lower, upper, filled, Y_new, model.score_samples(Y), model.score(Y)):
        assert np.isfinite(values).all()


def test_multinomial_predictions_have_the_totals():
    Y = table("multinomial")
    model = RFLVM(likelihood="multinomial", **MAP).fit(Y)
    mean, _, _ = model.predict_intervals(Y)
    totals = Y[1:].sum(axis=1)
    np.testing.assert_allclose(mean[1:].sum(axis=1), totals, rtol=1e-6)
    assert mean[0].sum() > np.nansum(Y[0])  # one count is missing
    np.testing.assert_allclose(model.inverse_transform(np.zeros((1, 2))).sum(), totals.mean(), rtol=1e-6)
    _, drawn = model.sample(4)
    assert np.isin(drawn.sum(axis=1), totals).all()


def test_binomial_trials_per_cell_are_asked_for_again():
    Y = table("binomial")
    model = RFLVM(likelihood=likelihoods.Binomial(trials=np.full(Y.shape, 4)), **MAP).fit(Y)
    with pytest.raises(ValueError, match="trials"):
        model.transform(Y[:3])
    assert model.transform(Y[:3], trials=np.full((3, J), 4)).shape == (3, 2)
    assert model.sample(4, trials=4)[1].max() <= 4


def test_a_custom_likelihood_is_fitted_and_not_saved(tmp_path):
    Y = table("gaussian")
    custom = likelihoods.Custom(lambda y, f: -0.5 * (y - f) ** 2, mean=lambda f: f)
    model = RFLVM(likelihood=custom, **MAP).fit(Y)
    assert np.isfinite(model.impute(Y)).all()
    with pytest.raises(ValueError, match="no sample"):
        model.sample(1)
    with pytest.raises(ValueError, match="functions, which a file cannot hold"):
        model.save(tmp_path / "model.npz")


def test_a_row_without_cells_is_at_the_prior(fitted):
    X, std = fitted.transform(np.full((1, J), np.nan), return_std=True)
    np.testing.assert_allclose(X, 0, atol=0.1)
    np.testing.assert_allclose(std, 1, rtol=0.1)


def test_a_row_of_probability_zero_is_named(fitted, monkeypatch):
    monkeypatch.setattr(checks, "LARGEST_LOG_EXPOSURE", np.inf)  # by which offsets like these are refused already
    offset = np.zeros(N)
    offset[2] = 90.0  # beyond single precision, in which places are looked for
    assert np.isfinite(fitted.transform(table(), offset=offset)).all()
    offset[2] = 800.0
    with pytest.raises(ValueError, match="row 2 has probability 0 under the fit"):
        fitted.transform(table(), offset=offset)


def test_a_rows_answer_is_its_own(fitted):
    Y = table(n=300)
    Y[np.random.default_rng(0).random(Y.shape) < 0.1] = np.nan
    X, std = fitted.transform(Y, return_std=True)
    order = np.random.default_rng(1).permutation(len(Y))
    other, other_std = fitted.transform(Y[order], return_std=True)
    np.testing.assert_array_equal(other, X[order])
    np.testing.assert_array_equal(other_std, std[order])
    for n in (0, 255, 256, 299):
        np.testing.assert_array_equal(fitted.transform(Y[n : n + 1])[0], X[n])
    upper = fitted.predict_intervals(Y)[2]
    np.testing.assert_array_equal(fitted.predict_intervals(Y[299:])[2][0], upper[299])


def test_transform_finds_the_embedding():
    """Of the rows that were fitted, within a fraction of their standard deviation."""
    truth = make_s_curve(60, 30, emissions="gaussian")
    model = RFLVM(**changed(MAP, n_features=20, max_iter=40)).fit(truth.data)
    X, std = model.transform(truth.data, return_std=True)
    assert np.median(np.abs(X - model.embedding_) / model.embedding_std_) < 0.3
    np.testing.assert_allclose(np.median(std / model.embedding_std_), 1, atol=0.3)


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_of_other_kinds_give_the_same(engine):
    Y = table()
    plain = RFLVM(likelihood="poisson", **ENGINES[engine]).fit(Y)
    frame = pd.DataFrame(Y, columns=list("abcde"), index=[f"row {n}" for n in range(N)])
    for other in (frame.convert_dtypes(), sparse.csr_matrix(Y), sparse.coo_array(Y), Y.tolist(), np.asfortranarray(Y)):
        model = RFLVM(likelihood="poisson", **ENGINES[engine]).fit(other)
        np.testing.assert_array_equal(model.embedding_, plain.embedding_)
    named = RFLVM(likelihood="poisson", **ENGINES[engine]).set_output(transform="pandas")
    X = named.fit_transform(frame)
    assert list(X.columns) == ["rflvm0", "rflvm1"] == list(named.get_feature_names_out())
    assert list(X.index) == list(frame.index)
    assert list(named.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="same order"):
        named.transform(frame[list("bacde")])
    with pytest.raises(ValueError, match="X has 4 features, but RFLVM is expecting 5"):
        plain.transform(Y[:, :4])


class AnnData:
    """As much of one as is looked at."""

    def __init__(self, X):
        self.X, self.layers, self.obsm = X / 2, {"counts": X}, {}
        self.obs_names, self.var_names = [f"cell {n}" for n in range(len(X))], [f"gene {j}" for j in range(X.shape[1])]


def test_anndata_gets_the_embedding():
    data = AnnData(table())
    model = RFLVM(likelihood="poisson", **MAP)
    X = model.fit_transform(data, layer="counts")
    np.testing.assert_array_equal(data.obsm["X_rflvm"], X)
    placed = model.transform(data, layer="counts", key_added="placed")
    np.testing.assert_array_equal(data.obsm["placed"], placed)
    assert model.feature_names_in_[0] == "gene 0"


class TsdFrame:
    """As much of one as is looked at."""

    def __init__(self, t, d, time_support=None, columns=None):
        self.t, self.d, self.time_support, self.columns = np.asarray(t), np.asarray(d), time_support, columns
        self.values, self.index, self.shape = self.d, self.t, self.d.shape


def test_a_time_series_keeps_its_times():
    times = np.linspace(0, 1, N)
    X = RFLVM(likelihood="poisson", **MAP).fit_transform(TsdFrame(times, table(), "support", list(range(J))))
    assert isinstance(X, TsdFrame)
    np.testing.assert_array_equal(X.t, times)
    assert X.time_support == "support"
    assert X.d.shape == (N, 2)


def test_pipeline_grid_search_clone_and_joblib():
    Y = table("gaussian")
    pipeline = make_pipeline(StandardScaler(), RFLVM(**MAP))
    assert pipeline.fit_transform(Y).shape == (N, 2)
    grid = {"n_components": [1, 2], "likelihood": ["gaussian", "auto"]}
    search = GridSearchCV(RFLVM(**MAP), grid, cv=2).fit(Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = RFLVM(likelihood=likelihoods.Binomial(trials=3), prior=rflvm.Prior(alpha_rate=2.0), **MAP)
    copy: Any = clone(model)
    assert copy.get_params()["prior"] == model.prior
    fits: Any = Parallel(n_jobs=2, prefer="threads")(delayed(RFLVM(**MAP).fit_transform)(Y) for _ in range(2))
    np.testing.assert_array_equal(*fits)


def test_offsets_are_cut_with_the_rows_in_a_search():
    Y = table()
    with sklearn.config_context(enable_metadata_routing=True):
        model: Any = RFLVM(likelihood="poisson", **MAP)
        model.set_fit_request(offset=True).set_score_request(offset=True)
        search = GridSearchCV(model, {"max_iter": [1, 2]}, cv=2)
        search.fit(Y, offset=np.linspace(-0.1, 0.1, N))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.fixture(scope="module")
def by_totals():
    """Counts with gaps, and a model of what their rows are made of."""
    Y = make_s_curve(N, J, emissions="poisson").data * np.arange(1, N + 1)[:, None] + 1.0
    Y[2, 3] = np.nan
    return Y, RFLVM(likelihood="poisson", exposure="total", **MAP).fit(Y)


def test_totals_as_exposures_are_offsets(by_totals):
    Y, model = by_totals
    means = np.nanmean(Y, axis=0) + 0.5 / N
    offset = np.log(np.nansum(Y, axis=1) / [means[~np.isnan(row)].sum() for row in Y])
    given = RFLVM(likelihood="poisson", **MAP).fit(Y, offset=offset)
    np.testing.assert_allclose(given.embedding_, model.embedding_, atol=1e-4)
    np.testing.assert_allclose(model.transform(Y), given.transform(Y, offset=offset), atol=1e-3)
    np.testing.assert_allclose(model.impute(Y), given.impute(Y, offset=offset), rtol=1e-3)


@pytest.mark.usefixtures("x64")
def test_a_row_is_placed_by_what_it_is_made_of(by_totals):
    Y, model = by_totals
    means = np.nanmean(Y, axis=0) + 0.5 / N
    offset = rows.read(model.fitted_, np.vstack([Y[:1], 100 * Y[:1], np.full((1, J), np.nan)])).data.offset
    assert float(offset[1] - offset[0]) == pytest.approx(np.log(100))
    assert float(offset[0]) == pytest.approx(np.log(Y[0].sum() / means.sum()))
    assert float(offset[2]) == 0


def test_exposures_are_kept_with_a_model(by_totals, tmp_path):
    Y, model = by_totals
    model.save(tmp_path / "model.npz")
    again = rflvm.load(tmp_path / "model.npz")
    assert again.exposure == "total"
    np.testing.assert_array_equal(again.transform(Y), model.transform(Y))


@pytest.mark.parametrize(
    ("likelihood", "exposure", "changes", "message"),
    [
        ("gaussian", "total", {}, 'exposure="total" is for the poisson and negative_binomial likelihoods'),
        ("poisson", "totals", {}, "exposure must be one of 'total', got 'totals'"),
        ("poisson", "total", {"offset": np.zeros(N)}, "leave out offset="),
        ("poisson", "total", {"row": 0.0}, r"row 4 of Y has no counts \(1 such\)"),
        ("poisson", "total", {"row": np.inf}, r"Y\[4, 0\] is infinite"),
    ],
)
def test_exposures_that_cannot_be_had(likelihood, exposure, changes, message):
    Y = table()
    Y[4] = changes.get("row", Y[4])
    with pytest.raises(ValueError, match=message):
        RFLVM(likelihood=likelihood, exposure=exposure, **MAP).fit(Y, offset=changes.get("offset"))


def test_gaussian_by_name_is_what_the_gaps_allow():
    Y = np.random.default_rng(0).normal(size=(12, 3))

    def chosen(Y, likelihood: Any = "gaussian"):
        return fitting.family_of(likelihood, Y)[0]

    assert chosen(Y) == likelihoods.Gaussian(marginal=True)
    Y[3] = np.nan
    assert chosen(Y) == likelihoods.Gaussian(marginal=True)
    Y[4, 1] = np.nan
    assert chosen(Y) == chosen(Y, "auto") == likelihoods.Gaussian(marginal=False)
    assert chosen(Y, likelihoods.Gaussian()) == likelihoods.Gaussian(marginal=True)


def test_auto_says_what_it_chose(caplog):
    with caplog.at_level(logging.INFO, logger="rflvm"):
        model = RFLVM(likelihood="auto", **MAP).fit(table("bernoulli"))
    assert model.likelihood_.name == "bernoulli"
    assert "bernoulli" in caplog.text
    assert model.likelihood_reason_ in caplog.text


def test_more_samples_are_those_of_a_longer_run():
    Y = table()
    once = RFLVM(likelihood="poisson", **changed(GIBBS, n_samples=12)).fit(Y)
    twice = RFLVM(likelihood="poisson", **GIBBS).fit(Y).more_samples(6)
    np.testing.assert_array_equal(once.embedding_, twice.embedding_)
    np.testing.assert_array_equal(once.transform(Y), twice.transform(Y))
    assert twice.n_iter_ == 16
    with pytest.raises(ValueError, match="gibbs"):
        RFLVM(likelihood="poisson", **MAP).fit(Y).more_samples(6)


def test_checkpoint_goes_on(tmp_path):
    Y = table()
    whole = RFLVM(likelihood="poisson", **changed(GIBBS, n_samples=12)).fit(Y)
    RFLVM(likelihood="poisson", **GIBBS).fit(Y, checkpoint=tmp_path / "run")
    longer = RFLVM(likelihood="poisson", **changed(GIBBS, n_samples=12)).fit(Y, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(longer.embedding_, whole.embedding_)
    with pytest.raises(ValueError, match="gibbs"):
        RFLVM(likelihood="poisson", **MAP).fit(Y, checkpoint=tmp_path / "other")


def test_an_interrupt_leaves_a_usable_model(monkeypatch):
    Y = table()
    sweep, done = chain.compiled_sweep, []

    def interrupted(*args):
        done.append(1)
        if len(done) == 2 * 4 + 2 * 3 + 1:  # two chains: four sweeps of burn-in, three after it, and then
            raise KeyboardInterrupt
        return sweep(*args)

    monkeypatch.setattr(chain, "compiled_sweep", interrupted)
    with pytest.warns(ConvergenceWarning, match="more_samples"):
        model = RFLVM(likelihood="poisson", **GIBBS).fit(Y)
    assert model.convergence_ == "interrupted"
    assert model.draws_.n_draws == 3
    monkeypatch.undo()
    whole = RFLVM(likelihood="poisson", **GIBBS).fit(Y)
    np.testing.assert_array_equal(model.more_samples(3).embedding_, whole.embedding_)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3), 3])
def test_seeds_and_global_state(random_state):
    before = jax.config.read("jax_enable_x64"), repr(np.random.get_state()), dict(os.environ)  # noqa: NPY002
    Y = table()
    model = RFLVM(likelihood="poisson", **changed(MAP, random_state=random_state))
    model.fit(Y)
    model.transform(Y)
    model.sample(2)
    after = jax.config.read("jax_enable_x64"), repr(np.random.get_state()), dict(os.environ)  # noqa: NPY002
    assert before == after


def test_before_and_bad_settings():
    Y = table()
    with pytest.raises(NotFittedError):
        RFLVM().diagnose()
    for settings, match in (
        ({"inference": "vi"}, "inference must be one of"),
        ({"kernel": "matern"}, "kernel must be one of"),
        ({"likelihood": "gamma"}, "unknown likelihood"),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"n_components": 13}, "fewer rows"),
        ({"n_features": 5}, "even"),
        ({"random_state": -1}, "random_state"),
        ({"init": "umap"}, "init must be one of"),
        ({"inference": "gibbs", "kernel": "rbf", "init": "pca"}, "lengthscale"),
    ):
        with pytest.raises(ValueError, match=match):
            RFLVM(**changed(MAP, **{"likelihood": "poisson"} | settings)).fit(Y)
    model = RFLVM(likelihood="poisson", **MAP).fit(Y)
    with pytest.raises(ValueError, match="level"):
        model.predict_intervals(Y, level=90)
    with pytest.raises(ValueError, match=r"positions of shape \(n, 2\)"):
        model.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"Y\[1, 2\] = 0.5"):
        model.transform(np.where(np.arange(N * J).reshape(N, J) == 7, 0.5, Y))


def test_parameters_set_after_a_fit_do_not_change_what_it_says(fitted):
    page, rows, columns = fitted.diagnose(), fitted.transform(table()), list(fitted.get_feature_names_out())
    before = fitted.get_params()
    try:
        fitted.set_params(n_components=5, kernel="rbf", n_features=50, exposure="total", likelihood="gaussian")
        assert fitted.diagnose() == page
        np.testing.assert_array_equal(fitted.transform(table()), rows)
        assert list(fitted.get_feature_names_out()) == columns
        assert fitted.inverse_transform(np.zeros((1, 2))).shape == (1, J)
    finally:
        fitted.set_params(**before)


@pytest.mark.parametrize(
    ("Y", "message"),
    [(np.full((N, J), -1.0), "counts"), (np.ones((1, J + 1)), "fewer rows"), (np.full((N, J), "a"), "numbers")],
    ids=["negative", "few rows", "text"],
)
def test_a_refit_that_is_refused_leaves_the_fit_as_it_was(fitted, Y, message):
    rows, names = fitted.transform(table()), vars(fitted).keys()
    with pytest.raises((TypeError, ValueError), match=message):
        fitted.fit(pd.DataFrame(Y, columns=[f"c{j}" for j in range(Y.shape[1])]))
    assert vars(fitted).keys() == names
    assert fitted.n_features_in_ == J
    np.testing.assert_array_equal(fitted.transform(table()), rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_is_read_and_checked_once(monkeypatch, engine):
    calls = []
    for module, name in ((rflvm.data.tables, "read"), (rflvm.data.checks, "check_table")):
        original = getattr(module, name)
        counted = lambda *a, name=name, original=original: calls.append(name) or original(*a)  # noqa: E731
        monkeypatch.setattr(module, name, counted)
    model = RFLVM(likelihood="poisson", **ENGINES[engine]).fit(table())
    assert sorted(calls) == ["check_table", "read"]
    calls.clear()
    model.impute(table())
    assert calls == ["read"]


def test_diagnose_and_the_tree(fitted, capsys):
    page = fitted.diagnose()
    assert capsys.readouterr().out.strip() == page
    assert "12 rows x 5 columns, 1.7% of the cells missing" in page
    assert "What to do:" in page
    tree = fitted.posterior_predictive()
    n_draws = fitted.draws_.n_draws
    assert tree["posterior"]["X"].sizes == {"chain": len(fitted.draws_["X"]), "draw": n_draws, "row": N, "latent": 2}
    for group in ("log_likelihood", "posterior_predictive"):
        assert tree[group]["Y"].sizes["cell"] == N * J - 1
        assert np.isfinite(tree[group]["Y"]).all()
    assert float(tree["observed_data"]["Y"].sum()) == np.nansum(fitted.fitted_.about.values)
    assert "posterior_predictive" not in fitted.posterior_.children


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto distribution")
def test_loo_leaves_out_cells():
    model = RFLVM(likelihood="poisson", **changed(GIBBS, n_samples=60)).fit(table())
    result = model.loo()
    assert result.n_data_points == N * J - 1
    assert result.elpd < 0


def _with_cell(Y, value):
    Y = Y.astype(object if isinstance(value, str) else float)
    if Y.size:
        Y.flat[0] = value
    return Y


ODD: dict[str, Any] = {
    "as it is": lambda Y: Y,
    "inf": lambda Y: _with_cell(Y, np.inf),
    "nan": lambda Y: _with_cell(Y, np.nan),
    "text": lambda Y: _with_cell(Y, "x"),
    "strings": lambda Y: Y.astype(str),
    "objects": lambda Y: Y.astype(object),
    "all missing": lambda Y: Y * np.nan,
    "constant": lambda Y: Y * 0 + 1,
    "huge": lambda Y: Y * 1e300,
    "large": lambda Y: Y * 1e6,
    "negative": lambda Y: -Y,
    "fractions": lambda Y: Y / 3,
    "bool": lambda Y: Y.astype(bool),
    "unsigned": lambda Y: Y.astype(np.uint64) * np.uint64(2**63),
    "int8": lambda Y: Y.astype(np.int8),
    "complex": lambda Y: Y * 1j,
    "dates": lambda Y: Y.astype("datetime64[s]"),
    "Fortran": np.asfortranarray,
    "duplicated names": lambda Y: pd.DataFrame(Y, columns=["a"] * Y.shape[1]) if Y.ndim == 2 else Y,
    "numbers as names": lambda Y: pd.DataFrame(Y) if Y.ndim == 2 else Y,
    "sparse": lambda Y: sparse.csr_matrix(Y) if Y.ndim == 2 else Y,
    "masked": lambda Y: np.ma.masked_array(Y, Y == 1),
    "none": lambda Y: None,
    "a word": lambda Y: "counts.csv",
    "a generator": lambda Y: (row for row in Y),
}

FEW, NONE = (
    (6, 3),
    [(0, 3), (6, 0), (6,), (2, 3, 2)],
)  # few shapes are accepted, or most of the time would go to compiling
SHAPES = {"gaussian": [FEW, (1, 3), (6, 1), *NONE], "poisson": [FEW, *NONE]}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("family", SHAPES)
def test_odd_input_is_fitted_or_refused(family, kind):
    """Every outcome is a fit with finite numbers or an error that names the problem."""
    for shape in SHAPES[family]:
        Y: Any = np.random.default_rng(0).integers(0, 2, shape).astype(float)
        model = RFLVM(likelihood=family, **MAP)
        try:
            X = model.fit_transform(ODD[kind](Y))
        except (TypeError, ValueError) as error:
            assert str(error)  # noqa: PT017
            continue
        assert np.isfinite(np.asarray(X)).all()
        assert np.isfinite(model.score_samples(ODD[kind](Y))).all()
