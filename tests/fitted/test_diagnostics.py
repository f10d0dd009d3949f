"""Convergence told apart from its absence, and advice that fits."""

from __future__ import annotations

import numpy as np

from rflvm.fitted import diagnostics


def draws(shift: float, n_draws: int = 400) -> dict[str, np.ndarray]:
    """Independent draws of two chains; in the second the first row lies elsewhere."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, n_draws, 6, 2))
    X[1, :, :3] += shift
    return {"X": X, "W": rng.normal(size=(2, n_draws, 4, 2)), "log_joint": rng.normal(size=(2, n_draws))}


def test_chains_that_agree_have_converged():
    quantities = diagnostics.summary(draws(0.0))
    assert all(q.converged for q in quantities)
    assert diagnostics.advice("converged", quantities) == ""


def test_chains_that_disagree_are_noticed():
    quantities = {q.name: q for q in diagnostics.summary(draws(5.0))}
    assert quantities["log joint density"].converged
    assert not quantities["distances between rows"].converged
    assert not quantities["X, aligned"].converged
    assert "n_burnin" in diagnostics.advice("not converged", list(quantities.values()))


def test_few_draws_are_noticed():
    quantities = diagnostics.summary(draws(0.0, n_draws=20))
    assert "more_samples" in diagnostics.advice("not converged", [q._replace(rhat=1.0) for q in quantities])
    assert not any(q.converged for q in diagnostics.summary(draws(0.0, n_draws=3)))


def test_what_never_changes_has_converged_and_a_single_row_has_no_distances():
    constant = {"X": np.ones((2, 100, 1, 2)), "W": np.ones((2, 100, 4, 2)), "log_joint": np.zeros((2, 100))}
    quantities = diagnostics.summary(constant)
    assert [q.name for q in quantities] == ["log joint density", "X, aligned"]
    assert all(q.converged for q in quantities)
