"""Equality of draws to the last bit, for the tests of runs that are continued."""

import jax
import numpy as np


def assert_same_draws(draws, expected):
    """All that a run leaves behind is equal."""
    assert draws.arrays.keys() == expected.arrays.keys()
    for name in expected.arrays:
        np.testing.assert_array_equal(draws[name], expected[name], strict=True)
    for part in ("states", "tuning", "info_sums", "info", "units"):
        jax.tree.map(np.testing.assert_array_equal, getattr(draws, part), getattr(expected, part))
    assert (draws.beta_thin, draws.interrupted, draws.run) == (expected.beta_thin, expected.interrupted, expected.run)
