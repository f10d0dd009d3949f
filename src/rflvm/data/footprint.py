"""The peak memory of a fit, estimated before it begins: what would not fit is refused now, and not killed hours later.

Counted are the arrays that grow with the table and with the features. What is left out is small beside them or beside
what compiled programs take. ``benchmarks/memory.py`` compares with what fits were seen to take.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ..likelihoods import Likelihood
from ..model.draws import N_CELLS
from ..model.laplace import COLUMN_BLOCK
from ..numerics.errors import InputError, Sentence
from . import memory
from .blocks.encoding import BLOCK_CELLS, MOST_ROWS
from .checks import Table

logger = logging.getLogger(__name__)

SINGLE, DOUBLE = 4, 8  # bytes of a number

# Numbers that are in memory at once, by the arrays of the phase and by what benchmarks/memory.py saw.
CLIMB_PROGRAMS, SWEEP_PROGRAMS, STREAM_PROGRAMS = (
    0.4e9,
    0.7e9,
    0.5e9,
)  # bytes of the compiled programs, and of compiling them
PER_CELL = 12  # copies of the table, of F and of its derivatives
PER_MODE = 4  # M x M matrices of a column while it climbs: inverses, old and new, factors, and what is at work
PER_FACTOR = 2.5  # of them in double precision while beta is drawn around the maximum

# Rows from which the streaming engine is the better one, and above which the others are refused. An evaluation of the
# MAP objective took 6.7 CPU seconds at 100,000 x 50, and a fit makes a hundred; a chain makes 400 sweeps, which take as
# long.
MANY_ROWS, MOST_ROWS_AT_ONCE = 20_000, {"map": 200_000, "gibbs": 100_000}

ROWS_OF_PRODUCTS = 2048  # rows whose products of features are made at once


class Size(NamedTuple):
    """How large a fit is."""

    N: int
    J: int
    D: int
    H: int
    n_matrices: int  # M x M matrices, one per column or, for a Gaussian table without gaps, one in all
    conjugate: bool  # whether the sampler draws beta with these matrices
    n_covariates: int = 0

    @property
    def M(self) -> int:
        """Columns of features, covariates and the intercept included."""
        return 2 * self.H + self.n_covariates + 1


def size_of(table: Table, family: Likelihood, D: int, H: int) -> Size:
    """The size of a fit to a table."""
    N, J = table.Y.shape
    n_matrices = 1 if family.conjugate and table.observed.all() else J
    n_covariates = 0 if table.covariates is None else table.covariates.shape[1]
    return Size(N, J, D, H, n_matrices, family.conjugate, n_covariates)


class Footprint(NamedTuple):
    """Bytes that a fit needs at its peak, by what they are for."""

    table: float  # copies of the cells, and arrays of their shape
    matrices: float  # M x M, one or several per column
    draws: float
    programs: float

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self)


def of_maximum(size: Size, memory_budget: float, n_draws: int) -> Footprint:
    """What the MAP engine needs, and draws around the maximum.

    Parameters
    ----------
    size : Size
        Of the fit.
    memory_budget : float
        Bytes up to which the factors of beta's covariance are kept, and beta is drawn with them.
    n_draws : int
        Draws around the maximum; ``maximise`` itself makes none.
    """
    N, J, D, H, n_matrices, *_ = size
    M = size.M
    block = min(n_matrices, COLUMN_BLOCK)
    climb = SINGLE * (PER_MODE * n_matrices + 2 * block + min(N, ROWS_OF_PRODUCTS)) * M**2
    factors = SINGLE * n_matrices * M**2
    drawn = factors + PER_FACTOR * DOUBLE * n_matrices * M**2 if n_draws and factors <= memory_budget else 0
    return Footprint(
        table=PER_CELL * DOUBLE * N * J,
        matrices=max(climb, drawn),
        draws=DOUBLE * n_draws * (3 * M * J + 2 * N * D + H * D * D),
        programs=CLIMB_PROGRAMS,
    )


def of_stream(size: Size, n_landmarks: int, sample: int, in_memory: bool) -> Footprint:
    """What the streaming engine needs, the fit of its landmarks included, besides pages of the table's file.

    Parameters
    ----------
    size : Size
        Of the fit; N counts all rows.
    n_landmarks : int
        Rows of the landmarks.
    sample : int
        Bytes of the sample, in the type of the table.
    in_memory : bool
        Whether the positions are returned in memory.
    """
    N, J, D, *_ = size
    M = size.M
    landmarks = of_maximum(size._replace(N=n_landmarks), 0, 0)
    block = min(BLOCK_CELLS, MOST_ROWS * J) * SINGLE
    curvatures = (DOUBLE + 2 * SINGLE) * J * M**2
    per_row = D * (1 + in_memory) + D * (D + 1) / 2
    return Footprint(
        table=2 * sample + PER_CELL * block + landmarks.table,
        matrices=max(landmarks.matrices, curvatures + SINGLE * ROWS_OF_PRODUCTS * M**2),
        draws=SINGLE * N * per_row,
        programs=STREAM_PROGRAMS,
    )


def of_chains(size: Size, n_chains: int, n_kept: int, memory_budget: float, at_maximum: bool) -> Footprint:
    """What the sampler needs, its start included.

    Parameters
    ----------
    size : Size
        Of the fit.
    n_chains, n_kept : int
        Chains, and draws that are kept of each.
    memory_budget : float
        Bytes that the kept draws may take.
    at_maximum : bool
        Whether the chains start at the maximum.
    """
    N, J, D, H, n_matrices, conjugate, _ = size
    M = size.M
    # A chain that starts elsewhere begins at the mode of beta there, which is found once.
    mode = 0 if conjugate else DOUBLE * n_matrices * M**2
    start = of_maximum(size, memory_budget=0, n_draws=0).matrices if at_maximum else mode
    sweep = DOUBLE * PER_MODE * (n_matrices if conjugate else 1) * M**2
    kept = SINGLE * n_chains * n_kept
    small = N * (D + N_CELLS) + 2 * H * D + H * D * D + 2 * J
    return Footprint(
        table=DOUBLE * (PER_CELL + n_chains) * N * J,
        matrices=max(start, sweep),
        draws=2 * kept * small + min(kept * M * J, memory_budget),
        programs=SWEEP_PROGRAMS,
    )


def refuse_long(N: int, inference: str) -> None:
    """Raise for more rows than an engine that looks at all of them at once is of use for."""
    most = MOST_ROWS_AT_ONCE[inference]
    parts = {"rows": f"{N:,}", "most": f"{most:,}", "inference": inference}
    if most < N:
        raise InputError(
            "{Y} has {rows} rows, more than the {most} up to which {inference} is of use: each of its steps goes over "
            'all of them. {inference_stream:inference="stream"} fits such a table in a few passes',
            **parts,
        )
    if N > MANY_ROWS:
        template = '{inference} takes long for {rows} rows: {inference_stream:inference="stream"} is made for them'
        logger.warning(Sentence(template, **parts))


def check(size: Size, footprint: Footprint) -> None:
    """Say how much memory a fit needs, and raise when that is not free."""
    free = memory.available()
    needs = Sentence(
        "a fit of {rows} x {columns} cells with {n_features} = {M} needs about {needed} of memory",
        rows=size.N,
        columns=size.J,
        M=2 * size.H,
        needed=memory.gigabytes(footprint.total),
    )
    if free is not None and footprint.total > free:
        remedies = {
            "table": "fit fewer rows or columns",
            "matrices": "lower {n_features}, or fit fewer columns",
            "draws": "lower {n_samples} or {n_chains}, or raise {thin}",
        }
        part = max(remedies, key=lambda name: getattr(footprint, name))
        raise InputError(
            "{needs}, {most} of it for {part}, and {free} are free: {remedy}",
            needs=needs,
            most=memory.gigabytes(getattr(footprint, part)),
            part="matrices of the features" if part == "matrices" else f"the {part}",
            free=memory.gigabytes(free),
            remedy=Sentence(remedies[part]),
        )
    room = "" if free is None else f", and {memory.gigabytes(free)} are free"
    logger.info(Sentence("{needs}{room}", needs=needs, room=room))
