"""When a run ends: after a given number of sweeps, or in rounds until the picture and the predictions have settled.

A run has settled when, among chains in one arrangement, the 95th percentile over rows of split R-hat is at most
``agreement.RHAT``, for the aligned positions and for the linear predictors of some cells, and there are
``agreement.ESS`` effective draws. That is looked at after every ``N_ROUND`` sweeps, counted from the end of burn-in, so
a run that was interrupted ends where it would have ended.
"""

from __future__ import annotations

import math
import time
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from ..data import checks
from ..data.footprint import SINGLE, Size
from ..model.draws import N_CELLS, Run
from ..numerics import scalars
from . import agreement

AUTO: Literal["auto"] = "auto"
N_BURNIN = 200  # sweeps of burn-in where nothing else is asked for
N_ROUND = 100  # sweeps between two looks
N_ROUNDS = 2  # before the first look; chains that started at different pictures may still meet
MOST_SAMPLES = 2000  # sweeps after burn-in of a run that does not settle
N_ROWS = 500  # rows that are looked at
THIN = 4  # sweeps for one kept draw: what forgets fastest, cells of F, has an autocorrelation time of about as many
SHARE = 0.5  # of the memory for draws, what all unknowns but beta may take

Ended = Literal["settled", "length", "limit", "time", "interrupted", ""]


class Lengths(NamedTuple):
    """How long a run is to be."""

    n_samples: int  # at most
    n_burnin: int
    thin: int
    settles: bool  # whether it ends as soon as it has settled
    lean: bool  # whether draws are left out that would add little


def lengths(n_samples: Any, n_burnin: Any, thin: Any) -> Lengths:
    """The lengths that were asked for, as numbers or "auto"."""
    settles = isinstance(n_samples, str) and n_samples == AUTO
    lean = isinstance(thin, str) and thin == AUTO
    run = checks.check_run(
        MOST_SAMPLES if settles else n_samples,
        N_BURNIN if isinstance(n_burnin, str) and n_burnin == AUTO else n_burnin,
        (THIN if settles else 1) if lean else thin,
    )
    return Lengths(settles=settles, lean=lean, **run)


def within(lengths: Lengths, size: Size, n_chains: int, memory_budget: float) -> Lengths:
    """For a run that ends by itself, at most as many sweeps as the draws of all unknowns but beta have room for."""
    if not lengths.settles:
        return lengths
    per_draw = SINGLE * n_chains * (size.N * (size.D + N_CELLS) + size.H * (2 * size.D + size.D**2 + 2) + 2 * size.J)
    n_rounds = int(SHARE * memory_budget / per_draw) * lengths.thin // N_ROUND
    return lengths._replace(n_samples=min(lengths.n_samples, max(n_rounds, N_ROUNDS) * N_ROUND))


class End(NamedTuple):
    """When a run ends, at the latest or because it has settled."""

    n_sweeps: int
    settles: bool = False
    deadline: float = math.inf  # by ``time.monotonic``

    def is_time(self, run: Run) -> bool:
        """Whether the time is over; a run is not without draws."""
        return run.n_kept > 1 and time.monotonic() >= self.deadline

    def to_be_judged(self, run: Run) -> bool:
        """Whether a round ends here."""
        n = run.n_sampled
        return self.settles and n >= N_ROUNDS * N_ROUND and n % N_ROUND == 0

    def next_look(self, run: Run) -> int:
        """The next sweep after which something has to be decided or written."""
        if run.n_sweeps < run.n_burnin:
            return min(run.n_burnin, self.n_sweeps)
        to_go = N_ROUND - run.n_sampled % N_ROUND
        return min(run.n_sweeps + to_go, self.n_sweeps) if self.settles else self.n_sweeps


def deadline(max_time: Any) -> float:
    """When so many seconds from now will have passed."""
    return math.inf if max_time is None else time.monotonic() + scalars.positive("max_time", max_time)


class Judgement(NamedTuple):
    """How far a run is."""

    settled: bool
    share: float  # of the rows whose positions have settled
    n_arrangements: int


def judge(X: Float[np.ndarray, "C S N D"], F: Float[np.ndarray, "C S N K"]) -> Judgement:
    """How far the positions and predictions have settled, within arrangements."""
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[2])[:N_ROWS])
    X, F = X[:, :, rows], F[:, :, rows]
    groups = [list(group) for group in agreement.arrangements(X)]
    positions = [agreement.of_rows(agreement.aligned(X[group])) for group in groups]
    share = min(float(np.mean(agreed.rhat <= agreement.RHAT)) for agreed in positions)
    if any(agreed.worst > agreement.RHAT for agreed in positions):
        return Judgement(False, share, len(groups))
    looked_at = positions, [agreement.of_predictors(F[group]) for group in groups]
    n_effective = min(sum(float(np.median(agreed.ess)) for agreed in kind) for kind in looked_at)
    worst = max(agreed.worst for kind in looked_at for agreed in kind)
    return Judgement(worst <= agreement.RHAT and n_effective >= agreement.ESS, share, len(groups))
