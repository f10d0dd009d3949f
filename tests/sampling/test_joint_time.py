"""The sampler with a prior over time leaves the joint law invariant, and bugs planted in its blocks are caught.

Two sessions with gaps, missing cells and a row without any: see ``joint.design_for``.
"""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from joint import FALSE_ALARM, FAMILIES, block_p_values, p_values
from rflvm.model import dynamics
from rflvm.model.dynamics import Matern
from rflvm.sampling.blocks import lengthscale, path, scale
from rflvm.sampling.sweep import Moves

PROCESS = Matern()


def wrong_neighbour(monkeypatch):
    """The row before the one before, in place of the one before."""
    right = dynamics.between_neighbours

    def shifted(X, V, step):
        found, late = right(X, V, step), right(jnp.roll(X, 1, axis=0), jnp.roll(V, 1, axis=0), step)
        return found._replace(mean=(found.mean + late.mean) / 2)

    monkeypatch.setattr(dynamics, "between_neighbours", shifted)


def session_boundary_ignored(monkeypatch):
    right = path._transitions

    def one_session(state, data, model):
        gap = jnp.where(data.chronology.first, 0.5, data.chronology.gap)
        first = jnp.arange(len(gap)) == 0
        return right(state, data._replace(chronology=data.chronology._replace(gap=gap, first=first)), model)

    monkeypatch.setattr(path, "_transitions", one_session)


def density_of_paths_forgotten(monkeypatch):
    """N(0, I) in the move of whole paths."""
    monkeypatch.setattr(dynamics, "log_density", lambda X, recursion: -0.5 * jnp.sum(X**2))


def scale_forgets_the_precision(monkeypatch):
    """x'x in place of x'K^{-1}x."""
    monkeypatch.setattr(scale, "log_prior_latents", lambda X, *rest: -0.5 * jnp.sum(X**2))


def lengthscale_without_the_cells(monkeypatch):
    """With its innovations held, X follows l whatever the cells say."""
    monkeypatch.setattr(lengthscale, "log_cells", lambda *given: 0.0)


PLANTED = {
    wrong_neighbour: "X",
    session_boundary_ignored: "X",
    density_of_paths_forgotten: "X",
    scale_forgets_the_precision: "scale",
    lengthscale_without_the_cells: "lengthscale",
}
N_CHAINS = {"X": 1000, "scale": 8000, "lengthscale": 1000}
EVERY_COMMIT = wrong_neighbour, session_boundary_ignored, scale_forgets_the_precision


def worst(p):
    return dict(sorted(p.items(), key=lambda item: item[1])[:5])


@pytest.mark.parametrize("block", ["X", "scale", "lengthscale"])
def test_block_alone_leaves_the_joint_law_invariant(block):
    """False-alarm rate 1e-3 for each block."""
    p = block_p_values(Moves().blocks(PROCESS)[block], FAMILIES["poisson"], n=N_CHAINS[block], process=PROCESS)
    assert min(p.values()) > FALSE_ALARM, worst(p)


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, marks=() if bug in EVERY_COMMIT else pytest.mark.long) for bug in PLANTED],
    ids=lambda bug: bug.__name__,
)
def test_bug_planted_in_a_block_is_caught(bug, monkeypatch):
    bug(monkeypatch)
    block = PLANTED[bug]
    p = block_p_values(Moves().blocks(PROCESS)[block], FAMILIES["poisson"], n=N_CHAINS[block], process=PROCESS)
    assert min(p.values()) < FALSE_ALARM / 100, worst(p)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "process"),
    [
        ("poisson", PROCESS),
        ("negative-binomial", Matern(0.5, per_dimension=False)),
        ("gaussian", Matern(lengthscale=(0.5, 2.0))),
        ("gaussian-marginal", PROCESS),
    ],
)
def test_joint_law_is_invariant(name, process):
    """False-alarm rate 1e-3 each."""
    p = p_values(FAMILIES[name], n=3000, rounds=20, process=process)
    assert min(p.values()) > FALSE_ALARM, worst(p)
