"""What is special about the binomial family: its trials. The rest is in test_base.py."""

import numpy as np
import pytest

from rflvm.likelihoods import Binomial

Y = np.array([[0.0, 3.0], [2.0, 1.0], [1.0, 0.0]])
ALL = np.ones(Y.shape, bool)


@pytest.mark.parametrize("trials", [4, np.array([4, 5]), np.full((3, 2), 6)])
def test_trials_are_one_number_or_one_per_column_or_one_per_cell(trials):
    cells, observed, per_cell = Binomial(trials=trials).encode(Y, ALL)
    np.testing.assert_array_equal(per_cell, np.broadcast_to(trials, Y.shape))
    np.testing.assert_array_equal(cells, Y)
    assert observed.all()


def test_trials_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"one per column \(2,\) or one per cell \(3, 2\), got shape \(3,\)"):
        Binomial(trials=np.array([1, 2, 3])).check(Y, ALL)


@pytest.mark.parametrize(
    ("trials", "message"),
    [(-1, "whole numbers >= 0"), (np.array([1.5, 2]), "whole numbers >= 0"), (np.array([np.nan, 2]), "finite")],
)
def test_trials_must_be_whole_numbers(trials, message):
    with pytest.raises(ValueError, match=message):
        Binomial(trials=trials)


def test_more_successes_than_trials_are_refused_unless_hidden():
    with pytest.raises(ValueError, match=r"y <= trials, got Y\[0, 1\] = 3"):
        Binomial(trials=2).check(Y, ALL)
    Binomial(trials=2).check(Y, Y <= 2)


def test_trials_are_small_enough_to_be_told_from_their_neighbours():
    assert Binomial(trials=2**53 - 1).trials == 2**53 - 1
    with pytest.raises(ValueError, match=r"^binomial trials must be below 2\*\*53, got 9.0072e\+15"):
        Binomial(trials=2**53)


def test_intercepts_are_finite_where_every_trial_succeeds():
    trials = np.full((3, 2), 1e15)
    intercepts = Binomial(10**15).intercepts(trials, np.ones((3, 2), bool), np.zeros((3, 1)), trials)
    np.testing.assert_allclose(intercepts, np.log(6e15 + 1), rtol=1e-6)
