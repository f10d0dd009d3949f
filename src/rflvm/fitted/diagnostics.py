"""Whether chains have converged, by split R-hat and effective sample size (Vehtari et al. 2021), and what to do if not.

A draw of X can be turned and reflected without changing anything, so convergence is judged by what does not turn with
it, distances and kernels between rows and the log joint density, and only then by X itself, aligned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..numerics.convergence import ess, rhat
from ..numerics.errors import Sentence
from ..sampling.progress import acceptance_rates

N_PAIRS, N_ROWS = 50, 200  # pairs of rows and rows that are looked at
RHAT, ESS = 1.1, 50  # the largest R-hat and the fewest effective draws with which nothing need be done

_ADVICE = {  # by what stopped a fit; templates of sentences
    "interrupted": (
        "interrupted: the result is what there was so far. {go_on:more_samples(n)} goes on with chains; or fit again"
    ),
    "iteration limit": "the maximum was not reached: {longer_climb:raise max_iter}",
    "line search failed": "the climb stopped where rounding errors hide the way up: the result can be used",
    "modes not found": (
        "the coefficients of some columns were not found: look for columns that are constant or have extreme values"
    ),
}


class Quantity(NamedTuple):
    """How well some numbers that are alike have converged."""

    name: str
    rhat: float  # 95th percentile of split R-hat over the numbers
    ess: float  # median effective sample size

    @property
    def converged(self) -> bool:
        """Whether nothing needs to be done."""
        return self.rhat <= RHAT and self.ess >= ESS


def summary(arrays: dict[str, np.ndarray], seed: int = 0) -> list[Quantity]:
    """Convergence of aligned draws, from what does not depend on the orientation to X."""
    X, W = arrays["X"], arrays["W"]
    N = X.shape[2]
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, N, (2, N_PAIRS if N > 1 else 0))
    rows = rng.permutation(N)[:N_ROWS]
    lags = X[:, :, pairs[0]] - X[:, :, pairs[1]]
    kernels = np.mean(np.cos(lags @ np.swapaxes(W, -1, -2)), axis=-1)
    quantities = {
        "log joint density": arrays["log_joint"][..., None],
        "kernel between rows": kernels,
        "distances between rows": np.linalg.norm(lags, axis=-1),
        "X, aligned": X[:, :, rows].reshape(*X.shape[:2], -1),
    }
    return [quantity(name, draws) for name, draws in quantities.items() if draws.shape[-1]]


def quantity(name: str, draws: np.ndarray) -> Quantity:
    """Several scalars (chain, draw, scalar), summarised; those that never change count as converged."""
    columns = np.moveaxis(draws, -1, 0)
    worst = np.quantile([rhat(c) for c in columns], 0.95, method="nearest")
    return Quantity(name, float(worst), float(np.median([ess(c) for c in columns])))


def table(quantities: list[Quantity], n_draws: int) -> list[str]:
    """Lines for a person to read."""
    head = f"{'':24}{'R-hat':>8}{'effective draws of ' + str(n_draws):>26}"
    return [head, *(f"{q.name:24}{q.rhat:8.2f}{q.ess:26.0f}{'' if q.converged else '   <-'}" for q in quantities)]


def acceptance(info: list[dict[str, Any]]) -> str:
    """The same for a person to read."""
    return ", ".join(f"{name} {rate:.2f}" for name, rate in acceptance_rates(info).items())


def advice(convergence: str, quantities: list[Quantity]) -> Sentence:
    """What to do about a fit that has not converged; nothing for one that has."""
    if convergence == "not converged":
        worst = max(quantities, key=lambda q: q.rhat)
        fewest = min(quantities, key=lambda q: q.ess)
        if worst.rhat > RHAT:
            return Sentence(
                "the draws have not settled: R-hat of {quantity} is {rhat:.2f} (at most {limit} is wanted). Raise "
                "{n_burnin} and {n_samples}; if that does not help, draws sit in different arrangements of the rows: "
                "try another {random_state}{other_starts:, fewer components, or init= with positions that you trust}",
                quantity=worst.name,
                rhat=worst.rhat,
                limit=RHAT,
            )
        return Sentence(
            "few effective draws: {ess:.0f} of {quantity} ({limit} are wanted). "
            "{more_draws:Call more_samples(n), or raise n_samples or n_chains}",
            ess=fewest.ess,
            quantity=fewest.name,
            limit=ESS,
        )
    return Sentence(_ADVICE.get(convergence, ""))
