"""Tables whose columns are pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Images(NamedTuple):
    """Images as rows, what they show, and their height and width."""

    data: np.ndarray
    target: np.ndarray
    shape: tuple[int, int]


def quarter(images: Images, n_rows: int) -> Images:
    """The first rows, every other pixel in both directions: enough to see that everything works."""
    height, width = images.shape
    small = images.data[:n_rows].reshape(-1, height, width)[:, ::2, ::2]
    return Images(small.reshape(len(small), -1), images.target[:n_rows], (small.shape[1], small.shape[2]))
