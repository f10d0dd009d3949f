"""Convergence told apart from its absence, row by row, and advice that fits."""

from __future__ import annotations

import numpy as np

from rflvm.fitted import arrangements, diagnostics
from rflvm.fitted.stacking import Arrangement


def draws(shift: float, n_draws: int = 400, N: int = 60, n_shifted: int = 6) -> dict[str, np.ndarray]:
    """Independent draws of two chains; in the second the first rows lie elsewhere."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, n_draws, N, 2))
    X[1, :, :n_shifted] += shift
    return {
        "X": X,
        "W": rng.normal(size=(2, n_draws, 4, 2)),
        "F": rng.normal(size=(2, n_draws, N, 2)),
        "log_joint": rng.normal(size=(2, n_draws)),
    }


def test_chains_that_agree_have_converged():
    quantities = diagnostics.summary(draws(0.0))
    assert all(q.converged and q.settled for q in quantities)
    assert diagnostics.advice("converged", quantities) == ""
    assert diagnostics.disagreeing(tuple(quantities)).size == 0
    assert diagnostics.rows_told(quantities, 2) == [
        f"{name}: 60 of 60 rows agree between chains" for name in ("positions", "predictions", "kernel between rows")
    ]


def test_chains_that_disagree_are_noticed_and_the_rows_are_named():
    found = diagnostics.summary(draws(5.0))
    quantities = {q.name: q for q in found}
    assert quantities["log joint density"].converged
    assert quantities["predictions"].converged
    assert not quantities["positions"].converged
    assert quantities["positions"].disagreeing.tolist() == [0, 1, 2, 3, 4, 5]
    assert diagnostics.disagreeing(tuple(found)).tolist() == [0, 1, 2, 3, 4, 5]
    told = diagnostics.rows_told(found, 2)[0]
    assert told == "positions: 54 of 60 rows agree between chains; 6 rows do not (listed in diagnostics_)"
    advice = diagnostics.advice("not converged", found)
    assert "n_burnin" in advice
    assert "lower bound" not in advice


def test_predictions_that_disagree_are_noticed():
    arrays = draws(0.0)
    arrays["F"][1, :, :6, 1] += 2.0
    quantities = {q.name: q for q in diagnostics.summary(arrays)}
    assert quantities["positions"].converged
    assert not quantities["predictions"].converged
    assert quantities["predictions"].disagreeing.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_kernel_that_has_not_mixed_is_shown_but_no_reason_to_warn():
    arrays = draws(0.0)
    arrays["W"][1] *= 0.01
    quantities = diagnostics.summary(arrays)
    kernel = next(q for q in quantities if q.name == "kernel between rows")
    assert not kernel.settled
    assert all(q.converged for q in quantities)
    assert len(kernel.disagreeing) > 30


def test_where_most_rows_disagree_the_spread_is_a_lower_bound():
    advice = diagnostics.advice("not converged", diagnostics.summary(draws(5.0, n_shifted=40)))
    assert "their spread is a lower bound of the uncertainty" in advice


def test_few_draws_are_noticed():
    quantities = diagnostics.summary(draws(0.0, n_draws=20))
    assert "more_samples" in diagnostics.advice("not converged", [q._replace(rhat=1.0) for q in quantities])
    assert not any(q.settled for q in diagnostics.summary(draws(0.0, n_draws=3)))


def test_what_never_changes_has_converged_and_a_single_row_has_no_distances():
    constant = {"X": np.ones((2, 100, 1, 2)), "W": np.ones((2, 100, 4, 2)), "log_joint": np.zeros((2, 100))}
    quantities = diagnostics.summary(constant)
    assert [q.name for q in quantities] == ["positions", "log joint density"]
    assert all(q.converged for q in quantities)


def test_arrangements_are_told_with_their_weights():
    assert arrangements.told((Arrangement((0, 1)),)) == ""
    told = arrangements.told((Arrangement((1, 2), 0.8, -1.0, 0.3), Arrangement((0,), 0.2, -1.1, 0.0)))
    assert "two arrangements of the rows, with weights 0.80 and 0.20" in told
    assert "Pareto k is above 0.7 for 30% of them" in told
    assert "are those of chains 2 and 3, chain 1 is elsewhere" in told
