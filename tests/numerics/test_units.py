"""Columns brought to the standard scale and back, against NumPy, at the ends of what a float can hold."""

from __future__ import annotations

import numpy as np
import pytest

from rflvm.numerics.units import Units, coefficients, log_scales, mean_and_deviation, restored, standardised

N = 40
RNG = np.random.default_rng(0)
Y = RNG.normal(size=(N, 3)) * [1, 2, 5] + [0, 7, -3]
OBSERVED = RNG.random(Y.shape) > 0.2
OFFSET = np.zeros(N)


def test_mean_and_deviation_are_those_of_the_observed_cells():
    units = mean_and_deviation(np.where(OBSERVED, Y, 1e9), OBSERVED, OFFSET)
    cells = np.where(OBSERVED, Y, np.nan)
    np.testing.assert_allclose(units.location, np.nanmean(cells, axis=0), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(units.scale, np.nanstd(cells, axis=0), rtol=1e-14)


def test_standardised_cells_have_mean_0_and_deviation_1_without_their_offset():
    offset = RNG.normal(size=N)
    given = Y + offset[:, None]
    units = mean_and_deviation(given, OBSERVED, offset)
    inside = standardised(given, OBSERVED, offset, units)
    assert (inside[~OBSERVED] == 0).all()
    np.testing.assert_allclose(inside.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose((inside**2).sum(axis=0), OBSERVED.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(restored(inside, offset, units)[OBSERVED], given[OBSERVED], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(units.location, mean_and_deviation(Y, OBSERVED, OFFSET).location, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("power", [-1000, -60, 3, 900, 1010])
def test_a_power_of_two_changes_units_exactly(power):
    """Squares of such cells would be zero or infinite."""
    once, scaled = mean_and_deviation(Y, OBSERVED, OFFSET), mean_and_deviation(Y * 2.0**power, OBSERVED, OFFSET)
    np.testing.assert_array_equal(scaled, [part * 2.0**power for part in once])
    expected = standardised(Y, OBSERVED, OFFSET, once)
    np.testing.assert_array_equal(standardised(Y * 2.0**power, OBSERVED, OFFSET, scaled), expected)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 3e-320])
def test_a_constant_column_has_scale_1(value):
    units = mean_and_deviation(np.full((7, 1), value), np.ones((7, 1), bool), np.zeros(7))
    np.testing.assert_array_equal(units, [[value], [1.0]])


def test_a_column_that_is_constant_but_for_the_rounding_of_its_offset_has_scale_1():
    offset = 1e3 * RNG.random(N)
    given = (0.1 + offset)[:, None]
    assert np.ptp(given[:, 0] - offset) > 0
    assert mean_and_deviation(given, np.ones((N, 1), bool), offset).scale == 1


def test_a_single_cell_has_scale_1():
    one = np.arange(N)[:, None] == [0, 5, 9]
    np.testing.assert_array_equal(mean_and_deviation(Y, one, OFFSET), [Y[[0, 5, 9], range(3)], np.ones(3)])


def test_small_noise_around_a_large_number_is_kept():
    units = mean_and_deviation(1e8 + Y, OBSERVED, OFFSET)
    plain = mean_and_deviation(Y, OBSERVED, OFFSET)
    np.testing.assert_allclose(units.scale, plain.scale, rtol=1e-8)
    np.testing.assert_allclose(units.location - 1e8, plain.location, atol=1e-7)


def test_a_deviation_below_the_smallest_float_is_none():
    cells = np.zeros((N, 1))
    cells[0] = 5e-324
    np.testing.assert_array_equal(mean_and_deviation(cells, np.ones((N, 1), bool), OFFSET).scale, [1.0])


def test_cells_that_differ_by_more_than_a_float_holds_are_infinite_without_a_warning():
    ends = np.array([[1.7e308], [-1.7e308], [-1.7e308], [-1.7e308]])
    everywhere, none = np.ones((4, 1), bool), np.zeros(4)
    units = mean_and_deviation(ends, everywhere, none)
    assert np.isfinite(units).all()
    assert np.isinf(standardised(ends, everywhere, none, units)).any()


def test_coefficients_in_units_predict_in_units():
    units, Phi, beta = (
        Units(np.array([3.0, -1e6]), np.array([1e-3, 50.0])),
        RNG.normal(size=(6, 5)),
        RNG.normal(size=(5, 2)),
    )
    Phi[:, -1] = 1
    np.testing.assert_allclose(Phi @ coefficients(beta, units), units.location + units.scale * (Phi @ beta), rtol=1e-12)


def test_without_units_nothing_changes():
    assert standardised(Y, OBSERVED, OFFSET + 1, None) is Y
    assert restored(Y, OFFSET + 1, None) is Y
    assert coefficients(Y, None) is Y
    assert not log_scales(OBSERVED, None).any()
