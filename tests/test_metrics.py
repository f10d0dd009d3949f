"""Measures of a fit, against their definitions on small cases."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from rflvm import likelihoods
from rflvm.metrics import bits_per_spike, kernel_mse, knn_accuracy, log_predictive_density, mse
from rflvm.model.draws import Draws
from rflvm.model.joint import Model
from rflvm.numerics.affine import r2_affine


def test_r2_does_not_see_an_affine_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    assert r2_affine(X, X @ rng.normal(size=(2, 2)) + 3) == pytest.approx(1)
    assert r2_affine(X, np.zeros((50, 2))) == pytest.approx(0)


def test_neighbours_of_separate_labels_agree():
    labels = np.repeat(["a", "b"], 10)
    X = np.arange(20.0)[:, None] + 100 * (labels == "b")[:, None]
    found = knn_accuracy(X, labels)
    assert found.mean == 1
    assert found.repeats.tolist() == [1] * 5


def test_neighbours_of_random_labels_are_right_by_chance():
    """1000 rows: the standard deviation of the mean is about 0.016, so the false-alarm rate is about 1e-9."""
    rng = np.random.default_rng(0)
    found = knn_accuracy(rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000), n_repeats=3)
    assert abs(found.mean - 0.5) < 0.1
    assert found.repeats.shape == (3,)
    assert found.mean == pytest.approx(found.repeats.mean())
    assert len(set(found.repeats)) > 1


def test_folds_follow_the_seed():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    first = knn_accuracy(X, labels)
    assert np.array_equal(first.repeats, knn_accuracy(X, labels).repeats)
    assert not np.array_equal(first.repeats, knn_accuracy(X, labels, seed=1).repeats)


@pytest.mark.parametrize("sizes", [[50, 2, 48], [1, 30], [2, 2, 2, 2]])
def test_labels_of_few_rows_give_no_warning(sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    found = knn_accuracy(np.random.default_rng(0).normal(size=(len(labels), 2)), labels)
    assert 0 <= found.mean <= 1


def test_a_label_that_no_other_row_has_is_never_right():
    labels = np.array([0] * 20 + [1])
    X = np.concatenate([np.zeros((20, 1)), np.ones((1, 1))])
    assert knn_accuracy(X, labels).mean == pytest.approx(0.95, abs=0.01)


def test_squared_errors_of_some_cells():
    truth, estimate = np.array([[1.0, 2], [3, np.nan]]), np.array([[1.0, 4], [0, 7]])
    assert mse(truth, estimate, ~np.isnan(truth)) == pytest.approx((4 + 9) / 3)
    assert mse(truth[:1], estimate[:1]) == 2


def test_shapes_that_would_be_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"same shape, got \(3,\), \(3, 1\)"):
        mse(np.zeros(3), np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"and \(2,\) of bool"):
        mse(np.zeros(3), np.zeros(3), np.zeros(2, bool))
    with pytest.raises(ValueError, match="of int64"):
        mse(np.zeros(3), np.zeros(3), np.zeros(3, int))


def test_the_kernel_of_many_frequencies_is_that_of_their_distribution():
    """Entries deviate by at most 1/sqrt(2 H) = 0.005 (standard deviation), so the MSE is near 2.5e-5 at most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 2)
    W = rng.normal(size=(20_000, 2))
    assert kernel_mse(K, X, W) < 1e-4
    assert kernel_mse(K, X, 3 * W) > 1e-2


def test_the_kernel_is_the_mean_over_draws_in_any_orientation():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(2, 3, 6, 2)), rng.normal(size=(2, 3, 4, 2))
    lags = X[..., :, None, :] - X[..., None, :, :]
    K = np.cos(np.einsum("cdnmk,cdhk->cdnmh", lags, W)).mean(axis=(0, 1, -1))
    assert kernel_mse(K, X, W) < 1e-25
    R = np.linalg.qr(rng.normal(size=(2, 3, 2, 2)))[0]
    assert kernel_mse(K, X @ R, W @ R) < 1e-25


def some_draws(likelihood) -> Draws:
    """Two chains of four draws for 6 rows and 3 columns, every second of them with beta."""
    rng = np.random.default_rng(0)
    shapes = {"X": (2, 4, 6, 2), "W": (2, 4, 5, 2), "beta": (2, 2, 11, 3), "log_joint": (2, 4)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return Draws(Model(likelihood, 2, 5), arrays, beta_thin=2)


@pytest.fixture
def held_out():
    """A table, the cells of it that were held out, and draws."""
    rng = np.random.default_rng(1)
    return rng.poisson(2, (6, 3)).astype(float), rng.random((6, 3)) < 0.5, some_draws(likelihoods.Poisson())


def test_the_predictive_density_is_the_mean_over_draws(held_out):
    Y, gaps, draws = held_out
    terms = []
    for chain, i in np.ndindex(2, 2):
        X, W = (draws[name][chain, 2 * i].astype(float) for name in ("X", "W"))
        Phi = np.hstack([np.cos(X @ W.T), np.sin(X @ W.T), np.full((6, 1), np.sqrt(5))]) / np.sqrt(5)
        terms.append(poisson.logpmf(Y, np.exp(Phi @ draws["beta"][chain, i] + 0.5))[gaps])
    expected = np.mean(logsumexp(terms, axis=0) - np.log(len(terms)))
    found = log_predictive_density(draws, Y, gaps, offset=np.full(len(Y), 0.5))
    assert found == pytest.approx(expected, rel=1e-5)


def test_other_cells_do_not_matter(held_out):
    Y, gaps, draws = held_out
    assert log_predictive_density(draws, np.where(gaps, Y, np.nan), gaps) == log_predictive_density(draws, Y, gaps)


def test_held_out_cells_must_be_named_and_known(held_out):
    Y, gaps, draws = held_out
    for wrong in (gaps[:, 1:], gaps.astype(int), np.zeros_like(gaps)):
        with pytest.raises(ValueError, match="held_out must be a boolean array of shape"):
            log_predictive_density(draws, Y, wrong)
    with pytest.raises(ValueError, match=r"Y\[\d+, \d+\] is held out, but its value is missing"):
        log_predictive_density(draws, np.where(gaps, np.nan, Y), gaps)


def test_cells_of_a_multinomial_row_have_no_density_of_their_own(held_out):
    Y, gaps, _ = held_out
    with pytest.raises(ValueError, match="known together"):
        log_predictive_density(some_draws(likelihoods.Multinomial()), Y, gaps)


def test_bits_per_spike_of_draws_is_their_gain_over_mean_rates(held_out):
    Y, gaps, draws = held_out
    mean = np.nanmean(np.where(gaps, np.nan, Y), axis=0)
    null = poisson.logpmf(Y, mean[None])[gaps].sum()
    total = log_predictive_density(draws, Y, gaps) * gaps.sum()
    expected = (total - null) / (np.log(2) * Y[gaps].sum())
    assert bits_per_spike(draws, Y, gaps) == pytest.approx(expected)


def test_mean_rates_have_no_bits_and_true_rates_have_some(held_out):
    Y, gaps, _ = held_out
    mean = np.broadcast_to(np.nanmean(np.where(gaps, np.nan, Y), axis=0), Y.shape)
    assert bits_per_spike(mean, Y, gaps) == 0
    assert bits_per_spike(np.maximum(Y, 0.1), Y, gaps) > 0


def test_bits_per_spike_need_spikes(held_out):
    Y, gaps, draws = held_out
    with pytest.raises(ValueError, match="no spike in its other cells"):
        bits_per_spike(draws, np.where(gaps, Y, 0), gaps)
    with pytest.raises(ValueError, match="no spike in the held-out cells"):
        bits_per_spike(draws, np.where(gaps, 0, Y + 1), gaps)
    with pytest.raises(ValueError, match="none of them negative"):
        bits_per_spike(-np.ones(Y.shape), Y, gaps)
