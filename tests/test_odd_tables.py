"""Odd tables and settings: a finite fit or an error that names the cell or the parameter, by both engines.

The tables of a family have one shape, so that they share what is compiled. Whether the fits are any good is not asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rflvm
from rflvm import RFLVM, Prior, likelihoods
from rflvm.data.checks import LARGEST_HYPERPARAMETER, LARGEST_MU0, LEAST_HYPERPARAMETER

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, J = 8, 3
COUNTS = np.random.default_rng(0).poisson(3.0, (N, J)).astype(float)
ENGINES: dict[str, dict[str, Any]] = {
    "map": {"inference": "map", "kernel": "rbf", "max_iter": 2},
    "gibbs": {"n_samples": 2, "n_burnin": 1, "n_chains": 1},
}
SMALL = {"init": "pca", "n_features": 2, "random_state": 0}


def one_cell(value: float, others: np.ndarray) -> np.ndarray:
    """A table with one extreme cell."""
    return np.where(np.arange(N * J).reshape(N, J) == 7, value, others)


def one_row(value: float) -> np.ndarray:
    """An offset that is 0 but for one row."""
    return np.where(np.arange(N) == 4, value, 0.0)


ZEROS = np.zeros((N, J))
TABLES = {
    "a count of 1e12 among zeros": (one_cell(1e12, ZEROS), None),
    "a count of 1e15 among others": (one_cell(1e15, COUNTS), None),
    "counts near 1e15": (1e15 + 1e13 * COUNTS, None),
    "zeros": (ZEROS, None),
    "a column of zeros": (COUNTS * [1, 0, 1], None),
    "rows all equal": (np.tile(COUNTS[:1], (N, 1)), None),
    "offset 50": (COUNTS, one_row(50.0)),
    "offset -50": (COUNTS, one_row(-50.0)),
}


def check_finite(model: RFLVM, Y: np.ndarray, offset: np.ndarray | None) -> None:
    """All that a fit says is finite."""
    gap = one_cell(np.nan, Y) if Y.shape == (N, J) else Y
    said: dict[str, Any] = {
        "embedding": model.embedding_,
        "embedding_std": model.embedding_std_,
        "draws": list(model.draws_.arrays.values()),
        "transform": model.transform(gap, offset=offset, return_std=True),
        "score": model.score(gap, offset=offset),
        "impute": model.impute(gap, offset=offset),
        "intervals": model.predict_intervals(gap, offset=offset),
    }
    for name, values in said.items():
        for value in values if isinstance(values, tuple | list) else [values]:
            assert np.isfinite(value).all(), name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("name", TABLES)
def test_odd_counts_have_a_finite_fit(name, family, engine):
    Y, offset = TABLES[name]
    check_finite(RFLVM(likelihood=family, **SMALL, **ENGINES[engine]).fit(Y, offset=offset), Y, offset)


def test_columns_without_trials_and_many_trials_have_a_finite_fit():
    trials = np.array([0, 10**12, 5])
    Y = np.minimum(COUNTS, trials)
    Y[0, 1] = 1e12
    check_finite(RFLVM(likelihood=likelihoods.Binomial(trials), **SMALL, **ENGINES["map"]).fit(Y), Y, None)


def test_a_large_total_has_a_finite_fit():
    Y = one_cell(1e15, ZEROS)
    check_finite(RFLVM(likelihood="multinomial", **SMALL, **ENGINES["map"]).fit(Y), Y, None)


@pytest.mark.parametrize("shape", [(N, 1), (2, J)])
def test_one_column_and_two_rows_have_a_finite_fit(shape):
    Y = COUNTS[: shape[0], : shape[1]]
    check_finite(RFLVM(likelihood="poisson", **SMALL, **ENGINES["map"]).fit(Y), Y, None)


@pytest.mark.parametrize("family", ["poisson", "negative_binomial", "multinomial"])
def test_a_count_that_no_float_holds_exactly_is_refused_by_its_cell(family):
    for fit in (rflvm.maximise, rflvm.sample):
        with pytest.raises(ValueError, match=r"counts below 2\*\*53, .* got Y\[2, 1\] = 1e\+30"):
            fit(one_cell(1e30, ZEROS), family)


EDGES = [
    (name, sign * value)
    for name in ("mu0", "lambda0", "Psi0", "nu0", "alpha_shape", "alpha_rate", "beta_scale", "bias_scale")
    for value in (
        (LARGEST_MU0,)
        if name == "mu0"
        else (LEAST_HYPERPARAMETER.get(name, 1 / LARGEST_HYPERPARAMETER), LARGEST_HYPERPARAMETER)
    )
    for sign in ((-1, 1) if name == "mu0" else (1,))
]


@pytest.mark.parametrize(("name", "value"), EDGES)
def test_beyond_the_edges_a_hyperparameter_is_refused_by_its_name(name, value):
    beyond = 1.01 * value if abs(value) > 1 else 0.99 * value
    for fit in (rflvm.maximise, rflvm.sample):
        with pytest.raises(ValueError, match=rf"^prior\.{name} must be from "):
            fit(COUNTS, "poisson", prior=Prior(**{name: beyond}))


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["rbf", "learned"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", ["poisson", "gaussian"])
@pytest.mark.parametrize(("name", "value"), EDGES)
def test_at_the_edges_of_a_hyperparameter_the_fit_is_finite(name, value, family, engine, kernel):
    if (engine, kernel) == ("gibbs", "rbf"):
        pytest.skip("takes its lengthscale from the start at the maximum")
    settings = SMALL | ENGINES[engine] | {"kernel": kernel, "prior": Prior(**{name: value})}
    check_finite(RFLVM(likelihood=family, **settings).fit(COUNTS), COUNTS, None)
