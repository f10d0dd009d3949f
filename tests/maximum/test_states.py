"""States in which chains start."""

from __future__ import annotations

import logging

import numpy as np

import rflvm
from rflvm.datasets import make_s_curve
from rflvm.numerics.affine import r2_affine


def test_sampler_starts_at_the_map_and_says_so(caplog):
    truth = make_s_curve(150, 80, emissions="gaussian")
    with caplog.at_level(logging.INFO, logger="rflvm"):
        draws = rflvm.sample(truth.data, "gaussian", n_features=40, n_burnin=5, n_samples=5, n_chains=2)
    assert "the chains start at the MAP" in caplog.text
    assert not np.array_equal(draws["beta"][0, 0], draws["beta"][1, 0])
    assert r2_affine(truth.X, draws["X"][0, -1]) > 0.8
