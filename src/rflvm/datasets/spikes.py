"""Spikes of place cells and the position of the rat."""

from __future__ import annotations

import os
from io import BytesIO

import numpy as np
from scipy.io import loadmat
from sklearn.utils import Bunch

from .fetch import read
from .registry import SOURCES

# Between the arms of the maze: no bin has an x from 11.9 to 17.1 or from 41.6 to 43.7.
_CUTS = (14.5, 42.5)


def load_hippocampus(*, data_home: str | os.PathLike | None = None) -> Bunch:
    """Spikes of hippocampal cells of a rat in a W-shaped maze: 858 time bins x 30 cells, labels the three arms.

    Parameters
    ----------
    data_home : str, PathLike or None
        Folder with ``hippocampus/``; None: that of the environment variable RFLVM_DATA. The file is not downloaded.

    Returns
    -------
    Bunch
        ``data``, ``positions`` (858, 2), ``target``, ``target_names``, ``feature_names`` and ``DESCR``.
    """
    file = loadmat(BytesIO(read("hippocampus", "hip_data.mat", data_home)))
    positions = file["xpos"].astype(float)
    return Bunch(
        data=file["spks"].astype(float),
        positions=positions,
        target=np.digitize(positions[:, 0], _CUTS),
        target_names=np.array(["left", "centre", "right"]),
        feature_names=np.array([f"cell_{j}" for j in range(file["spks"].shape[1])]),
        DESCR=SOURCES["hippocampus"].describe(
            """Spikes of hippocampal place cells of a rat that runs through a W-shaped maze.

858 time bins x 30 cells, in order of time; positions (858, 2) is where the rat was in each bin. Two bins
have no spike; they are kept.

The paper colours and classifies by "three major regions" of the maze without saying which. Here they are the three
arms, each with its share of the corridor that joins them: left where x < 14.5 (124 bins), centre (507) up to x = 42.5,
right beyond (227). Both cuts lie where there is no position at all, from x = 11.9 to 17.1 and from 41.6 to 43.7."""
        ),
    )
