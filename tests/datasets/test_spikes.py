"""Place cells."""

import io

import numpy as np
from scipy.io import savemat

from rflvm.datasets import load_hippocampus


def test_hippocampus(real):
    rat = real(load_hippocampus)
    assert rat.data.shape == (858, 30)
    assert rat.data.sum() == 17_754
    assert rat.positions.shape == (858, 2)
    assert np.bincount(rat.target).tolist() == [124, 507, 227]


def test_the_cuts_are_where_nobody_goes(real):
    rat = real(load_hippocampus)
    x = rat.positions[:, 0]
    ends = [(x[rat.target == arm].min(), x[rat.target == arm].max()) for arm in range(3)]
    assert ends[1][0] - ends[0][1] > 5
    assert ends[2][0] - ends[1][1] > 2


def test_arms_are_told_by_x(plant):
    buffer = io.BytesIO()
    positions = np.array([[10.0, 90], [14.4, 15], [30, 15], [42.6, 15], [52, 0]])
    savemat(buffer, {"spks": np.arange(10, dtype=np.uint8).reshape(5, 2), "xpos": positions})
    rat = load_hippocampus(data_home=plant("hippocampus", {"hip_data.mat": buffer.getvalue()}))
    assert rat.target_names[rat.target].tolist() == ["left", "left", "centre", "right", "right"]
    assert rat.data.tolist() == np.arange(10).reshape(5, 2).tolist()
    np.testing.assert_array_equal(rat.positions, positions)
