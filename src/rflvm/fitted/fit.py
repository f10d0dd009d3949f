"""What a fit leaves behind: the one object that predictions, figures, reports, files and diagnostics read.

It holds its own settings, so nothing that is done to an estimator afterwards changes what a fit says.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ..data import checks
from ..data.covariates import Covariate, Covariates
from ..data.times import Timeline
from ..likelihoods import Likelihood
from ..maximum.competition import Start
from ..maximum.draws import laplace_draws
from ..maximum.result import Fit
from ..model.alignment import align, of_chains
from ..model.draws import Draws
from ..model.joint import Data, Model
from ..numerics.errors import Sentence
from ..numerics.precision import precision
from ..numerics.units import Units
from ..streaming.functions import Functions, of_fit
from ..streaming.result import Epoch, StreamFit, draws_of, standard_deviations
from . import arrangements, diagnostics, stacking
from .members import Members, members_of
from .stacking import Arrangement

N_LAPLACE_DRAWS = 64  # around a maximum: enough for 90 % intervals, few enough to keep beta of wide tables


@dataclasses.dataclass(frozen=True)
class About:
    """The table that was fitted and the settings that it was fitted with.

    Attributes
    ----------
    values : array (N, J)
        The cells, NaN where missing.
    offset : array (N,)
        What was added to every linear predictor of a row, exposure included.
    rows : sequence or None
        Labels of the rows.
    columns : tuple of str or None
        Names of the columns.
    inference, kernel, exposure : str
        As the parameters of ``RFLVM``.
    seed : int
        What the random state of the fit came to.
    likelihood_reason : str
        Why the family was chosen.
    covariates : array (N, C) or None
        Covariates of the rows, coded.
    coding : tuple of Covariate
        What the covariates are, and how they are coded.
    timeline : Timeline or None
        Times and sessions of the rows, for a prior over time.
    """

    values: Float[np.ndarray, "N J"]
    offset: Float[np.ndarray, " N"]
    rows: Any
    columns: tuple[str, ...] | None
    inference: str
    kernel: str
    exposure: str | None
    seed: int
    likelihood_reason: str
    covariates: Float[np.ndarray, "N C"] | None = None
    coding: tuple[Covariate, ...] = ()
    timeline: Timeline | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Streamed:
    """All rows of a table that was streamed. What else a fit has is of the landmarks, a random sample of the rows.

    Attributes
    ----------
    embedding : array (N, D)
        Most probable positions of all rows, in single precision.
    covariance : array (N, D (D + 1) / 2)
        Their covariances given the functions: lower triangles, row by row.
    rows : array (L,)
        Which of them the landmarks are.
    functions : Functions
        Frequencies, coefficients and the family's own parameters, on the standard scale if the table has units.
    anchors : array (A, D)
        Positions beside which rows are placed.
    epochs : tuple of Epoch
        What came of each.
    """

    embedding: Float[np.ndarray, "N D"]
    covariance: Float[np.ndarray, "N T"]
    rows: np.ndarray
    functions: Functions
    anchors: Float[np.ndarray, "A D"]
    epochs: tuple[Epoch, ...]

    @property
    def embedding_std(self) -> Float[np.ndarray, "N D"]:
        """Standard deviations of the positions."""
        return standard_deviations(self.covariance, self.embedding.shape[1])


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A fit, read only. ``RFLVM.fitted_`` is one; methods, figures, reports and files are made from it alone.

    Attributes
    ----------
    about : About
        The table and the settings.
    draws : Draws
        Draws of all unknowns as the engine made them ("map": from its Gaussian approximation), on the standard scale if
        the table has units.
    members : Members
        The draws that predictions are summarised over, on the same scale.
    embedding, embedding_std : array (N, D)
        Posterior mean and standard deviation of the rows' positions ("map": the most probable positions); where chains
        show several pictures, of the one with the largest weight, as are the members.
    n_iter : int
        Sweeps of each chain, or iterations.
    convergence : str
        "converged", "not converged" or "interrupted"; for "map" and "stream" also what stopped it.
    diagnostics : tuple of Quantity
        R-hat and effective draws of the chains that show the picture; none for "map".
    log_posterior : float
        The height of the maximum, see ``rflvm.maximum.result.Fit``; NaN for chains.
    starts : tuple of Start
        How the starts that met the table fared, the one that was used first; none for chains.
    streamed : Streamed or None
        All rows of a table that was streamed, of which the table and all else here has a sample.
    arrangements : tuple of Arrangement
        The pictures that the chains show, with their weights, the one that is used first; none for "map".
    """

    about: About
    draws: Draws
    members: Members
    embedding: Float[np.ndarray, "N D"]
    embedding_std: Float[np.ndarray, "N D"]
    n_iter: int
    convergence: str
    diagnostics: tuple[diagnostics.Quantity, ...]
    log_posterior: float = np.nan
    starts: tuple[Start, ...] = ()
    streamed: Streamed | None = None
    arrangements: tuple[Arrangement, ...] = ()

    @property
    def everywhere(self) -> Fitted | Streamed:
        """What has the positions of all rows."""
        return self if self.streamed is None else self.streamed

    @property
    def model(self) -> Model:
        """Likelihood, sizes and prior."""
        return self.draws.model

    @property
    def likelihood(self) -> Likelihood:
        """The family that was fitted."""
        return self.model.likelihood

    @property
    def n_components(self) -> int:
        """Latent dimensions D."""
        return self.model.D

    @property
    def n_features(self) -> int:
        """Random features M = 2H."""
        return 2 * self.model.H

    @functools.cached_property
    def aligned(self) -> Draws:
        """The draws, turned onto a common reference; those around a maximum are so already."""
        return self.draws if self.draws.run is None else align(self.draws, self.chains)

    @property
    def chains(self) -> tuple[int, ...]:
        """The chains that show the picture with the largest weight."""
        return self.arrangements[0].chains if self.arrangements else tuple(range(len(self.draws["X"])))

    @property
    def pictured(self) -> Draws:
        """The aligned draws of those chains."""
        return of_chains(self.aligned, self.chains)

    @property
    def disagreeing(self) -> np.ndarray:
        """Rows on whose position or predictions the chains that show the picture do not agree, by number."""
        return diagnostics.disagreeing(self.diagnostics)

    @property
    def lengthscale(self) -> Float[np.ndarray, " D"] | None:
        """Posterior median of the lengthscale of each dimension, with a prior over time."""
        if self.model.dynamics is None:
            return None
        return np.broadcast_to(np.median(self.aligned["lengthscale"], axis=(0, 1)), (self.n_components,)).astype(float)

    @property
    def totals(self) -> np.ndarray | None:
        """Totals of the rows of a family that models them given their total, NaN where a cell is missing."""
        return self.likelihood.totals(self.about.values)

    @property
    def advice(self) -> Sentence:
        """What to do about a fit that has not converged; empty for one that has."""
        return diagnostics.advice(self.convergence, list(self.diagnostics))

    @property
    def caution(self) -> Sentence:
        """What a fit that ended well does not rule out: that another arrangement explains the table as well."""
        return arrangements.caution(self.starts, len(self.embedding)) or arrangements.told(self.arrangements)

    @property
    def units(self) -> Units | None:
        """Location and scale of each column, with which the table was standardised; None where cells have no unit."""
        return self.draws.units

    def covariates_of(self, rows: Any) -> Covariates | None:
        """Covariates of some rows of the table, for functions that take covariates."""
        Z = self.about.covariates
        return None if Z is None else Covariates(Z[rows], self.about.coding)

    def table(self) -> checks.Table:
        """The encoded table, in its units."""
        return _table(self.draws, self.about)

    def data(self) -> Data:
        """The table as the engines see it, on the device in double precision."""
        with precision("float64"):
            return _data(self.draws, self.about)


def _table(draws: Draws, about: About) -> checks.Table:
    family = draws.model.likelihood
    return checks.encode_table(about.values, family, about.offset, draws.units, about.timeline, about.covariates)


def _data(draws: Draws, about: About) -> Data:
    return checks.to_device(_table(draws, about), "float64")


def from_chains(draws: Draws, about: About) -> Fitted:
    """What draws of chains say."""
    with precision("float64"):
        pictures = stacking.arrangements(draws, lambda: _data(draws, about))
    aligned = align(draws, pictures[0].chains)
    pictured = of_chains(aligned, pictures[0].chains)
    assert draws.run is not None
    quantities = tuple(diagnostics.summary(pictured.arrays))
    fitted = Fitted(
        about=about,
        draws=draws,
        members=members_among(pictured, about),
        embedding=pictured["X"].mean(axis=(0, 1), dtype=float),
        embedding_std=pictured["X"].std(axis=(0, 1), dtype=float),
        n_iter=draws.run.n_sweeps,
        convergence="interrupted" if draws.interrupted else _convergence(quantities),
        diagnostics=quantities,
        arrangements=pictures,
    )
    fitted.__dict__["aligned"] = aligned  # what the property would compute again
    return fitted


def _convergence(quantities: tuple[diagnostics.Quantity, ...]) -> str:
    return "converged" if all(quantity.converged for quantity in quantities) else "not converged"


def from_maximum(fit: Fit, table: checks.Table, about: About) -> Fitted:
    """What a maximum and draws around it say."""
    with precision("float64"):
        data = checks.to_device(table, "float64")
    draws = laplace_draws(fit, data, N_LAPLACE_DRAWS, about.seed)
    return Fitted(
        about=about,
        draws=draws,
        members=members_among(draws, about, np.asarray(fit.X, float)),
        embedding=np.asarray(fit.X, float),
        embedding_std=np.sqrt(np.diagonal(fit.X_covariance, axis1=1, axis2=2)).astype(float),
        n_iter=fit.n_iterations,
        convergence=fit.convergence,
        diagnostics=(),
        log_posterior=fit.log_posterior,
        starts=fit.starts,
    )


def from_stream(fit: StreamFit, about: About) -> Fitted:
    """What a streamed fit says; ``about`` is of its landmarks."""
    landmarks = fit.landmarks
    draws = draws_of(fit, N_LAPLACE_DRAWS, about.seed)
    return Fitted(
        about=about,
        draws=draws,
        members=members_among(draws, about, np.asarray(landmarks.X, float)),
        embedding=np.asarray(landmarks.X, float),
        embedding_std=np.sqrt(np.diagonal(landmarks.X_covariance, axis1=1, axis2=2)).astype(float),
        n_iter=len(fit.epochs),
        convergence=fit.convergence,
        diagnostics=(),
        log_posterior=landmarks.log_posterior,
        streamed=Streamed(fit.X, fit.covariance, fit.rows, of_fit(landmarks), fit.anchors, fit.epochs),
    )


def members_among(aligned: Draws, about: About, maximum: np.ndarray | None = None) -> Members:
    """The members of aligned draws; coefficients that are draws around a maximum were drawn given the X of it."""
    family = aligned.model.likelihood
    observed = checks.encode_table(about.values, family, about.offset, aligned.units).observed
    with precision("float64"):
        return jax.tree.map(np.asarray, members_of(aligned, observed, about.seed, maximum))
