"""Whether chains have converged, by split R-hat and effective sample size (Vehtari et al. 2021), and what to do if not.

What matters are positions and predictions, and they are judged row by row, among the chains that show the same picture:
X, aligned, and the linear predictors of some cells. The kernel at distances between rows and the log joint density are
shown beside them: they may move long after the picture has settled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..numerics.convergence import ess, esses, rhat, rhats
from ..numerics.errors import Sentence
from ..sampling import agreement
from ..sampling.agreement import ESS, RHAT, Agreement
from ..sampling.progress import acceptance_rates

POSITIONS, PREDICTIONS, KERNEL, HEIGHT = "positions", "predictions", "kernel between rows", "log joint density"
DECISIVE = (POSITIONS, PREDICTIONS)
N_ROWS = 1000  # of which the kernel is looked at
DISAGREE = 1.1  # R-hat from which chains do not agree on a row; at 100 effective draws noise alone hardly comes to it

_ADVICE = {  # by what stopped a fit; templates of sentences
    "interrupted": (
        "interrupted: the result is what there was so far. {go_on:more_samples()} goes on with chains; or fit again"
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
    row_rhat: np.ndarray | None = None  # of each row, NaN where it was not looked at
    row_ess: np.ndarray | None = None

    @property
    def converged(self) -> bool:
        """Whether nothing needs to be done; of what only informs, always."""
        return self.name not in DECISIVE or self.settled

    @property
    def settled(self) -> bool:
        """Whether it has settled."""
        return self.rhat <= RHAT and self.ess >= ESS

    @property
    def disagreeing(self) -> np.ndarray:
        """Rows on which chains do not agree, by number."""
        return np.zeros(0, int) if self.row_rhat is None else np.flatnonzero(self.row_rhat > DISAGREE)


def summary(arrays: dict[str, np.ndarray], seed: int = 0) -> list[Quantity]:
    """Convergence of the aligned draws of one arrangement."""
    X, W = arrays["X"], arrays["W"]
    N = X.shape[2]
    quantities = [_of_rows(POSITIONS, agreement.of_rows(X))]
    if "F" in arrays:
        quantities.append(_of_rows(PREDICTIONS, agreement.of_predictors(arrays["F"])))
    if N > 1:
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.permutation(N)[:N_ROWS])
        partners = (rows + rng.integers(1, N, len(rows))) % N
        kernels = np.stack([_kernels(X[c], W[c], rows, partners) for c in range(len(X))])
        quantities.append(_of_rows(KERNEL, Agreement(rhats(kernels), esses(kernels)), rows, N))
    if "lengthscale" in arrays:
        logs = np.log(arrays["lengthscale"])
        quantities.append(Quantity("log lengthscale", float(rhats(logs).max()), float(esses(logs).min())))
    heights = arrays["log_joint"]
    return [*quantities, Quantity(HEIGHT, rhat(heights), ess(heights))]


def _kernels(X: np.ndarray, W: np.ndarray, rows: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """k(x_n, x_m) of pairs of rows (draw, pair), draw by draw to save memory."""
    lags = X[:, rows] - X[:, partners]
    return np.stack([np.cos(lag @ w.T).mean(axis=1) for lag, w in zip(lags, W, strict=True)])


def _of_rows(name: str, agreed: Agreement, rows: np.ndarray | None = None, N: int = 0) -> Quantity:
    """What was found of the rows, of all or of those with these numbers among N."""
    by_row = list(agreed)
    if rows is not None:
        by_row = [np.full(N, np.nan), np.full(N, np.nan)]
        for values, found in zip(by_row, agreed, strict=True):
            values[rows] = found
    return Quantity(name, agreed.worst, float(np.median(agreed.ess)), *by_row)


def disagreeing(quantities: tuple[Quantity, ...]) -> np.ndarray:
    """Rows on whose position or predictions chains do not agree."""
    found = [quantity.disagreeing for quantity in quantities if quantity.name in DECISIVE]
    return np.unique(np.concatenate([np.zeros(0, int), *found]))


def table(quantities: list[Quantity], n_draws: int) -> list[str]:
    """Lines for a person to read."""
    head = f"{'':24}{'R-hat':>8}{'effective draws of ' + str(n_draws):>26}"
    return [head, *(f"{q.name:24}{q.rhat:8.2f}{q.ess:26.0f}{'' if q.converged else '   <-'}" for q in quantities)]


def rows_told(quantities: list[Quantity], n_chains: int) -> list[str]:
    """For how many rows chains agree, a line for each kind of quantity."""
    between = "between chains" if n_chains > 1 else "between the halves of the chain"
    lines = []
    for q in quantities:
        if q.row_rhat is None:
            continue
        n, n_not = int(np.isfinite(q.row_ess).sum()) if q.row_ess is not None else 0, len(q.disagreeing)
        text = f"{q.name}: {n - n_not} of {n} rows agree {between}"
        if n_not:
            text += f"; {n_not} {'rows do' if n_not > 1 else 'row does'} not (listed in diagnostics_)"
        lines.append(text)
    return lines


def acceptance(info: list[dict[str, Any]]) -> str:
    """The same for a person to read."""
    return ", ".join(f"{name} {rate:.2f}" for name, rate in acceptance_rates(info).items())


def advice(convergence: str, quantities: list[Quantity]) -> Sentence:
    """What to do about a fit that has not converged; nothing for one that has."""
    if convergence != "not converged":
        return Sentence(_ADVICE.get(convergence, ""))
    decisive = [quantity for quantity in quantities if quantity.name in DECISIVE]
    worst = max(decisive, key=lambda q: q.rhat)
    fewest = min(decisive, key=lambda q: q.ess)
    if worst.rhat <= RHAT:
        return Sentence(
            "few effective draws: {ess:.0f} of {quantity} ({limit} are wanted). "
            "{more_draws:Call more_samples(), or raise n_samples or n_chains}",
            ess=fewest.ess,
            quantity=fewest.name,
            limit=ESS,
        )
    n_rows = 0 if worst.row_rhat is None else len(worst.row_rhat)
    return Sentence(
        "the draws have not settled: R-hat of {quantity} is {rhat:.2f} (at most {limit} is wanted){lower_bound}. "
        "{more_draws:Call more_samples(), or raise n_samples and n_burnin}; if that does not help, try another "
        "{random_state}{other_starts:, fewer components, or init= with positions that you trust}",
        quantity=worst.name,
        rhat=worst.rhat,
        limit=RHAT,
        lower_bound=LOWER_BOUND if 2 * len(worst.disagreeing) > n_rows else "",
    )


LOWER_BOUND = (
    ", and for most rows the chains do not agree: the draws explore a neighbourhood of one maximum, and their spread "
    "is a lower bound of the uncertainty"
)
