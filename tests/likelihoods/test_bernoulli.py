"""What is special about the Bernoulli family; the rest is in test_base.py."""

import numpy as np
import pytest

from rflvm.likelihoods import Bernoulli


@pytest.mark.parametrize("bad", [2.0, -1.0, 0.5])
def test_check_names_the_first_cell_that_is_neither_0_nor_1(bad):
    Y = np.array([[0.0, 1.0], [bad, bad]])
    with pytest.raises(ValueError, match=rf"0 or 1, got Y\[1, 0\] = {bad:g} \(2 such cells\)"):
        Bernoulli().check(Y, np.ones(Y.shape, bool))


def test_check_ignores_cells_that_were_not_observed():
    Y = np.array([[0.0, 7.0], [np.nan, 1.0]])
    Bernoulli().check(Y, np.array([[True, False], [False, True]]))
