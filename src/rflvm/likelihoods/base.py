"""What every observation family provides: the observation part of Eq. 5, y_nj ~ L(g(f_nj), theta_j).

A family is a small frozen object; families with equal parameters are equal and hash alike, so that a program compiled
for one serves the other. Everything that depends on the family is a method or a class attribute here, and nothing
outside this package asks which family it has.

The methods of the density work cell by cell on arrays of one shape: ``y``, the linear predictor ``f`` (offset
included), the family's own parameters ``theta`` (a dict of arrays with one entry per column, empty for most families)
and ``trials`` (None for most families). They are JAX; what prepares a table before it is on the device is NumPy.

A parameter of shape (J,) meets cells of shape (N, J) as ``theta["r"][None]``, so that a family can also be used where
JAX's rank promotion is switched off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float

from ..numerics.errors import InputError, Sentence
from ..numerics.units import Units

LARGEST_COUNT = 2.0**53  # every float beyond is a whole number, and neighbouring whole numbers are the same float

Theta = dict[str, Array]
Trials = Any  # Float[Array, "N J"], or None for families without trials


class Likelihood:
    """Base of all families; the methods that raise are what a new family must write.

    Class attributes
    ----------------
    name
        What a user calls the family.
    aliases
        Other names by which it can be asked for.
    counts
        Cells are whole numbers from 0 upwards.
    log_link
        The mean of a cell is proportional to e^f, so the offset of a row is the log of an exposure.
    offsets
        The offset of a row acts on all columns; where it does not, there can be none.
    row_totals
        The cells of a row are modelled given their total, so that a single cell has no density of its own.
    polya_gamma
        The family has the form of Eq. 7 and gives its ``exponents``.
    unit_shape
        b = 1 of Eq. 7 in every cell, for which there is a faster exact Polya-gamma sampler.
    conjugate
        beta_j and a noise variance sigma_j^2 (``theta["sigma2"]``) have a normal-inverse-gamma posterior.
    concave
        log p is concave in f, or its curvature as ``slope_and_curvature`` gives it does not depend on f. Otherwise
        gradients of Laplace's approximation take a few matrix products more.
    theta_dimensions
        For ArviZ, the dimensions of each of the family's own parameters: ``("predictor",)`` for one per column.
    decoder
        How the explorer of a report computes means and intervals in the browser (``report.js``); None: it
        interpolates means that ``respond`` has tabulated, and has no intervals.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    counts: ClassVar[bool] = False
    log_link: ClassVar[bool] = False
    offsets: ClassVar[bool] = True
    row_totals: ClassVar[bool] = False
    polya_gamma: ClassVar[bool] = False
    unit_shape: ClassVar[bool] = False
    conjugate: ClassVar[bool] = False
    concave: ClassVar[bool] = True
    theta_dimensions: ClassVar[dict[str, tuple[str, ...]]] = {}
    decoder: ClassVar[str | None] = None

    # The table

    def check(self, Y: np.ndarray, observed: np.ndarray) -> None:
        """Raise ValueError when an observed cell is outside the family's support."""

    def suited_to(self, observed: np.ndarray) -> Likelihood:
        """The form of this family that is fastest for a table with these observed cells; the posterior is the same."""
        return self

    def learned_from(self, Y: np.ndarray, observed: np.ndarray) -> Likelihood:
        """The family with what it takes from the table that is to be fitted, such as the categories there are."""
        return self

    def encode(self, Y: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The table as the engines see it: cells, which of them count, and trials per cell."""
        return np.where(observed, Y, 0), observed, None

    def units(self, Y: np.ndarray, observed: np.ndarray, offset: np.ndarray) -> Units | None:
        """Location and scale of each column of an encoded table, of which the engines see the standardised cells.

        For families of locations and scales: location + scale * y of a y with (f, theta) has to be distributed like a
        y with (location + scale * f, ``theta_in_units``). Priors are then stated on the standard scale, and offsets are
        in the units of the table, and taken out first. None: cells have no unit and are seen as they are.
        """
        return None

    def theta_in_units(self, theta: dict[str, np.ndarray], scale: Float[np.ndarray, " J"]) -> dict[str, np.ndarray]:
        """The family's own parameters (..., J) on the standard scale, in ``units`` of this scale."""
        return theta

    def stabilise(self, Y: np.ndarray, offset: np.ndarray, trials: np.ndarray | None) -> np.ndarray:
        """The encoded cells on a scale where their noise is roughly even, offset (N, 1) taken out: for the starts."""
        return Y

    def intercepts(
        self, Y: np.ndarray, mask: np.ndarray, offset: np.ndarray, trials: np.ndarray | None
    ) -> Float[np.ndarray, " J"]:
        """The linear predictor with which each encoded column has its mean when all else is zero; offset is (N, 1)."""
        return np.zeros(Y.shape[1])

    def first_theta(
        self, Y: np.ndarray, mask: np.ndarray, offset: np.ndarray, trials: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Where a fit starts with the family's own parameters, of the encoded table; those not given start at 1."""
        return {}

    # Trials, of families that have them

    def with_trials(self, trials: Any) -> Likelihood:
        """The family with the trials of other rows."""
        raise InputError(
            "trials= is for the binomial likelihood: {family} has none", parameter="trials", family=self.name
        )

    def trials_for(self, n: int, J: int) -> np.ndarray | None:
        """Trials per cell (n, J) for n rows."""
        return None

    def typical_trials(self, J: int) -> np.ndarray | None:
        """Trials of each column (J,) for a position that is no row: those of the fit, or their rounded mean."""
        return None

    @property
    def trials_per_cell(self) -> np.ndarray | None:
        """Trials (N, J) that were given one by one, which other rows cannot take over."""
        return None

    # The density

    def log_factor(
        self, y: Float[Array, "N J"], f: Float[Array, "N J"], theta: Theta, trials: Trials
    ) -> Float[Array, "N J"]:
        """The part of the log density of each cell that depends on f."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_factor")

    def log_base(self, y: Float[Array, "N J"], theta: Theta, trials: Trials) -> Float[Array, "N J"]:
        """The rest of the log density of each cell."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_base")

    def log_prob(
        self,
        y: Float[Array, "N J"],
        f: Float[Array, "N J"],
        theta: Theta,
        trials: Trials = None,
    ) -> Float[Array, "N J"]:
        """Log density (or log probability) of each cell."""
        return self.log_factor(y, f, theta, trials) + self.log_base(y, theta, trials)

    def mean(self, f: Float[Array, "N J"], theta: Theta, trials: Trials = None) -> Float[Array, "N J"]:
        """E[y | f]."""
        raise NotImplementedError(f"{type(self).__name__} does not define mean")

    def variance(self, f: Float[Array, "N J"], theta: Theta, trials: Trials = None) -> Float[Array, "N J"]:
        """Var[y | f]."""
        raise NotImplementedError(f"{type(self).__name__} does not define variance")

    def sample(self, key: Array, f: Float[Array, "N J"], theta: Theta, trials: Trials = None) -> Float[Array, "N J"]:
        """Draw y given f."""
        raise NotImplementedError(f"{type(self).__name__} does not define sample")

    def slope_and_curvature(
        self, y: Float[Array, "N J"], f: Float[Array, "N J"], theta: Theta, trials: Trials
    ) -> tuple[Float[Array, "N J"], Float[Array, "N J"], Float[Array, "N J"]]:
        """``log_factor`` of each cell, its derivative in f, and a curvature that is not negative.

        The curvature is -d^2 log p / df^2, or 0 where that is negative: for Newton's method, the determinants of
        Laplace's approximation and the metric of a row. A family whose log density is not concave in f may give its
        Fisher information in its place.
        """
        return slope_and_curvature(lambda f: self.log_factor(y, f, theta, trials), f)

    def exponents(
        self, y: Float[Array, "N J"], theta: Theta, trials: Trials
    ) -> tuple[Float[Array, "N J"], Float[Array, "N J"]]:
        """(a, b) of Eq. 7, where ``polya_gamma``."""
        raise NotImplementedError(f"{type(self).__name__} does not define exponents")

    # The family's own parameters

    def sample_theta(self, key: Array, J: int, dtype: DTypeLike) -> Theta:
        """Draw the family's own parameters from their prior."""
        return {}

    def log_prior_theta(self, theta: Theta) -> Float[Array, ""]:
        """Log prior density of the family's own parameters."""
        return jnp.zeros(())

    def update_theta(
        self,
        key: Array,
        theta: Theta,
        y: Float[Array, "N J"],
        f: Float[Array, "N J"],
        mask: Bool[Array, "N J"] | None,
    ) -> Theta:
        """Draw theta from its conditional given f (a Gibbs step)."""
        return theta

    def coefficient_scale(self, theta: Theta) -> Float[Array, " J"] | float:
        """Factor on the prior variance of beta_j: sigma_j^2 for the conjugate Gaussian, else 1."""
        return 1.0

    # Closed forms, where ``conjugate``

    @property
    def integrates_coefficients(self) -> bool:
        """Whether X and W move with beta and sigma^2 integrated out."""
        return False

    def noise_posterior(
        self, n: Float[Array, " J"], yy: Float[Array, " J"], explained: Float[Array, " J"]
    ) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Shape and rate (a_N, b_N) of the inverse-gamma posterior of sigma_j^2, beta_j integrated out.

        From n cells, y'y and beta_N' S_N beta_N of each column.
        """
        raise NotImplementedError(f"{type(self).__name__} is not conjugate")

    def log_evidence(
        self,
        n: Float[Array, " J"],
        logdet_ratio: Float[Array, "*J"],
        yy: Float[Array, " J"],
        explained: Float[Array, " J"],
    ) -> Float[Array, " J"]:
        """Log of Eq. 12 for each column; ``logdet_ratio`` is log |S_0| - log |S_N|."""
        raise NotImplementedError(f"{type(self).__name__} is not conjugate")

    # Rows in the columns of the table

    def totals(self, values: np.ndarray) -> np.ndarray | None:
        """Totals of the rows of a table, where ``row_totals``; NaN where a cell is missing."""
        return None

    def implied_totals(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Totals of rows with gaps from what was counted and the expected share of each cell; else zeros."""
        return np.zeros(len(values))

    def respond(self, f: Float[Array, "N J"], theta: Theta, trials: Trials) -> Float[Array, "N K"]:
        """E[y | f] in the columns of the table, where ``row_totals`` as shares of the total."""
        return self.mean(f, theta, trials)

    def draw_rows(
        self, key: Array, f: Float[Array, "N J"], theta: Theta, trials: Trials, totals: Float[Array, " N"]
    ) -> Float[Array, "N K"]:
        """Draw rows given f, in the columns of the table; ``totals`` count where ``row_totals``."""
        return self.sample(key, f, theta, trials)

    def draw_cells(
        self, key: Array, f: Float[Array, "N J"], theta: Theta, mask: Bool[Array, "N J"] | None, trials: Trials
    ) -> tuple[Float[Array, "N J"], Trials]:
        """Draw the encoded cells of a table of the same design anew, and the trials they then have."""
        y = self.sample(key, f, theta, trials)
        return y if mask is None else jnp.where(mask, y, 0), trials

    # The explorer of a report

    def decoders(self, J: int) -> tuple[str | None, ...]:
        """``decoder`` of each column of the table."""
        return (self.decoder,) * J

    def decoder_parameters(self, theta: dict[str, Any], J: int) -> dict[str, np.ndarray]:
        """What the explorer decodes with besides f: arrays by member and column (S, ..., J), or by column (..., J)."""
        return {name: value for name, value in theta.items() if value.ndim > 1}

    # Files

    def parameters(self) -> dict[str, Any]:
        """The arguments that make this family again: numbers, text and arrays, as a file can hold them."""
        if not dataclasses.is_dataclass(self):
            raise ValueError(
                f"{type(self).__name__} cannot be written to a file: make it a frozen dataclass of numbers and arrays"
            )
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def identity(self, Y: np.ndarray, observed: np.ndarray) -> Any:
        """What tells this family from others in a checkpoint of a run on the encoded table ``Y``."""
        try:
            return {"family": self.name} | self.parameters()
        except ValueError as error:
            raise ValueError(f"checkpoint needs to tell likelihoods apart: {error}") from None


class Logistic(Likelihood):
    """Families of Eq. 7, (e^f)^a / (1 + e^f)^b, open to Polya-gamma augmentation.

    A family gives ``exponents``; kappa = a - b/2 and omega ~ PG(b, f) follow (Eq. 14).
    """

    polya_gamma: ClassVar[bool] = True

    def log_factor(
        self, y: Float[Array, "N J"], f: Float[Array, "N J"], theta: Theta, trials: Trials
    ) -> Float[Array, "N J"]:
        a, b = self.exponents(y, theta, trials)
        return a * f - b * softplus(f)

    def intercepts(
        self, Y: np.ndarray, mask: np.ndarray, offset: np.ndarray, trials: np.ndarray | None
    ) -> Float[np.ndarray, " J"]:
        n = np.maximum(mask.sum(0), 1)
        total = n if trials is None else np.where(mask, trials, 0).sum(0)
        successes = Y.sum(0)
        return np.log((successes + 0.5) / (total - successes + 0.5)) - np.where(mask, offset, 0).sum(0) / n


class SuccessCounts(Logistic):
    """y successes out of known trials, with success probability sigmoid(f): Eq. 7 with a = y, b = trials."""

    counts: ClassVar[bool] = True

    def exponents(self, y, theta, trials):
        return y, trials

    def log_base(self, y, theta, trials):
        return gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1) + jnp.zeros_like(y)

    def mean(self, f, theta, trials=None):
        return trials * jax.nn.sigmoid(f)

    def variance(self, f, theta, trials=None):
        return trials * jax.nn.sigmoid(f) * jax.nn.sigmoid(-f)

    def sample(self, key, f, theta, trials=None):
        return jax.random.binomial(key, trials, jax.nn.sigmoid(f), dtype=f.dtype)


@jax.custom_jvp
def softplus(f: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """log(1 + e^f) without overflow; its derivative is the sigmoid, also at 0."""
    return jnp.maximum(f, 0) + jnp.log1p(jnp.exp(-jnp.abs(f)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    return softplus(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


def slope_and_curvature(
    log_factor: Callable[[Array], Array], F: Float[Array, "N J"]
) -> tuple[Float[Array, "N J"], Float[Array, "N J"], Float[Array, "N J"]]:
    """log p of each cell, its derivative in f, and its curvature -d^2 log p / df^2, taken as 0 where it is negative.

    ``log_factor`` works cell by cell, so a directional derivative along ones has all second derivatives at once.
    """

    def slope(f):
        cells, pullback = jax.vjp(log_factor, f)
        return pullback(jnp.ones_like(cells))[0], cells

    first, second, cells = jax.jvp(slope, (F,), (jnp.ones_like(F),), has_aux=True)
    return cells, first, jnp.maximum(-second, 0)


def sum_observed(values: Float[Array, "N J"], mask: Bool[Array, "N J"] | None, axis: int | None = None) -> Array:
    """Sum over observed cells: all of them when there is no mask."""
    return jnp.sum(values if mask is None else jnp.where(mask, values, 0), axis=axis)


def first_bad_cell(bad: np.ndarray, Y: np.ndarray) -> Sentence:
    """Name the first offending cell of a table, as a part of an error message."""
    n, j = (int(i[0]) for i in np.nonzero(bad))
    return Sentence(
        "{where:Y[{row}, {column}]} = {value:g} ({such} such {cells})",
        row=n,
        column=j,
        value=float(Y[n, j]),
        such=int(bad.sum()),
        cells="cell" if bad.sum() == 1 else "cells",
    )


def check_counts(Y: np.ndarray, observed: np.ndarray, family: str) -> None:
    """Raise unless every observed cell is a whole number >= 0, and small enough to be told from its neighbours."""
    negative = observed & (Y < 0)
    if negative.any():
        raise InputError("{family} needs counts >= 0, got {cell}", family=family, cell=first_bad_cell(negative, Y))
    fractional = observed & (np.floor(Y) != Y)
    if fractional.any():
        raise InputError(
            "{family} needs whole numbers, got {cell}; {gaussian:for real-valued data use the gaussian likelihood}",
            family=family,
            cell=first_bad_cell(fractional, Y),
        )
    large = observed & (Y >= LARGEST_COUNT)
    if large.any():
        raise InputError(
            "{family} needs counts below 2**53, up to which a float holds them exactly, got {cell}; count in larger "
            "units, or {gaussian:for real-valued data use the gaussian likelihood}",
            family=family,
            cell=first_bad_cell(large, Y),
        )


def log_mean_intercepts(Y: np.ndarray, mask: np.ndarray, offset: np.ndarray) -> Float[np.ndarray, " J"]:
    """Intercepts of counts with a log link: the log of each column's total over its exposure, kept off zero."""
    return np.log((Y.sum(0) + 0.5) / (np.where(mask, np.exp(offset), 0).sum(0) + 0.5))
