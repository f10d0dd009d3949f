"""What a streamed fit carries."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..maximum import draws as around
from ..maximum.result import Fit
from ..model.draws import Draws


class Epoch(NamedTuple):
    """What came of an epoch.

    Attributes
    ----------
    rows : str
        "sample" or "all".
    held_out : float
        Mean log density of a cell that is held out; NaN where no rows are.
    move : float
        Root mean square of how far f moved at the anchors.
    objective : float
        The objective per row before the update, up to a constant; docs/design/streaming.md defines it.
    rows_per_second : float
        Of the visit.
    """

    rows: str
    held_out: float
    move: float
    objective: float
    rows_per_second: float


@dataclasses.dataclass
class StreamFit:
    """A fit of all rows of a table that was streamed.

    Attributes
    ----------
    X : array (N, D)
        Positions of all rows, in single precision; the file of ``out=`` as a memory map, if one was asked for.
    covariance : array (N, D (D + 1) / 2)
        Lower triangles of the rows' posterior covariances given the functions, row by row.
    landmarks : Fit
        The landmarks under the functions of all rows: kernel, coefficients with the factors of their covariance, the
        family's own parameters, units.
    rows : array (L,)
        Numbers of the landmarks in the table.
    values : array (L, J)
        Cells of the landmarks, NaN where missing.
    offset : array (L,)
        Their offsets, exposure included.
    anchors : array (A, D)
        Positions beside which rows are placed.
    epochs : tuple of Epoch
        What came of each, those on a sample first.
    convergence : str
        "converged" (the density of rows held out has stopped rising), "epoch limit" or "interrupted".
    """

    X: Float[np.ndarray, "N D"]
    covariance: Float[np.ndarray, "N T"]
    landmarks: Fit
    rows: Int[np.ndarray, " L"]
    values: Float[np.ndarray, "L J"]
    offset: Float[np.ndarray, " L"]
    anchors: Float[np.ndarray, "A D"]
    epochs: tuple[Epoch, ...]
    convergence: str

    @property
    def held_out(self) -> float:
        """Mean log density of a cell that was held out, after the last epoch."""
        return self.epochs[-1].held_out if self.epochs else np.nan

    @property
    def std(self) -> Float[np.ndarray, "N D"]:
        """Posterior standard deviations of all rows' positions."""
        return standard_deviations(self.covariance, self.X.shape[1])


def standard_deviations(triangles: Float[np.ndarray, "N T"], D: int) -> Float[np.ndarray, "N D"]:
    """From lower triangles of covariances, row by row."""
    return np.sqrt(triangles[:, np.cumsum(np.arange(1, D + 1)) - 1])


def draws_of(fit: StreamFit, n_draws: int, seed: int) -> Draws:
    """Draws of the functions, and of the positions of the landmarks, from their normal approximations."""
    rng = np.random.default_rng(seed)
    X = around.draw_positions(rng, fit.landmarks, n_draws)
    return around.gathered(fit.landmarks, X, around.draw_normal(rng, fit.landmarks, n_draws))
