"""The sampler as a whole: it leaves the joint law invariant, and the test of that can fail."""

from __future__ import annotations

import pytest

from joint import FALSE_ALARM, FAMILIES, p_values
from rflvm.sampling.sweep import Moves

# Their update of theta, the only step that is theirs, is run alone on every commit (test_joint_planted.py).
ALSO_ALONE = ("zero-inflated-poisson", "zero-inflated-negative-binomial")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long if n in ALSO_ALONE else ()) for n in FAMILIES])
def test_joint_law_is_invariant(name):
    """Geweke's test with masks and offsets on. False-alarm rate 1e-3 per family."""
    p = p_values(FAMILIES[name])
    assert min(p.values()) > FALSE_ALARM, {k: v for k, v in p.items() if v < 0.05}


@pytest.mark.long
@pytest.mark.parametrize("name", ["bernoulli", "binomial", "negative-binomial", "multinomial"])
def test_joint_law_is_invariant_with_polya_gamma_augmentation(name):
    """False-alarm rate 1e-3 per family."""
    p = p_values(FAMILIES[name], moves=Moves(coefficients="polya-gamma"))
    assert min(p.values()) > FALSE_ALARM, {k: v for k, v in p.items() if v < 0.05}


@pytest.mark.long
def test_joint_law_is_invariant_with_the_papers_frequency_move():
    """False-alarm rate 1e-3."""
    p = p_values(FAMILIES["poisson"], moves=Moves(frequencies="prior"))
    assert min(p.values()) > FALSE_ALARM, {k: v for k, v in p.items() if v < 0.05}


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_joint_law_is_invariant_over_long_runs(name):
    """Ten times the chains, five times the rounds. False-alarm rate 1e-3 each."""
    p = p_values(FAMILIES[name], n=15_000, rounds=100, seed=1)
    assert min(p.values()) > FALSE_ALARM, {k: v for k, v in p.items() if v < 0.05}
