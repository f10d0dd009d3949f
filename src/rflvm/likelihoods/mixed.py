"""Tables whose columns are of several families: each column is modelled by its own, with its own parameters.

Every method asks the families of the columns and puts their answers side by side. Which family a cell belongs to rides
along where trials do, because an engine may look at some columns only: the trials themselves for binomial columns, and
-(k + 1) for the columns of family k. The families' own parameters have one entry for each column of the table, which is
1 where the column is of another family, and stays so: log theta = 0 is the mode of what stands for their prior.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..numerics.errors import InputError, Sentence
from ..numerics.units import Units
from .base import Likelihood, Theta, sum_observed
from .gaussian import Gaussian

# Half of the variance of a column on the standard scale, with which the noise of Gaussian columns starts; a gap between
# categories that nothing is beyond.
FIRST_SIGMA2, HUGE = 0.5, 50.0


@dataclasses.dataclass(frozen=True)
class GaussianBeside(Gaussian):
    """Gaussian columns beside others: beta_j ~ N(0, B0) as theirs, whatever the noise is."""

    conjugate: ClassVar[bool] = False

    @property
    def integrates_coefficients(self):
        return False

    def coefficient_scale(self, theta):
        return jnp.ones_like(theta["sigma2"])

    def first_theta(self, Y, mask, offset, trials):
        return {"sigma2": np.full(Y.shape[1], FIRST_SIGMA2)}

    def update_theta(self, key, theta, y, f, mask):
        n = sum_observed(jnp.ones_like(y), mask, axis=0)
        rate = self.b0 + 0.5 * sum_observed((y - f) ** 2, mask, axis=0)
        return {"sigma2": rate / jax.random.gamma(key, self.a0 + 0.5 * n, dtype=f.dtype)}


class Part(NamedTuple):
    """The columns of one family."""

    label: str  # its name, numbered where there are several of the name
    family: Likelihood
    columns: np.ndarray  # their numbers
    code: int  # of its cells, where it has no trials; 0 where it has


@dataclasses.dataclass(frozen=True)
class Mixed(Likelihood):
    """Columns of several families.

    ``RFLVM(likelihood={"poisson": ["visits", "calls"], "bernoulli": ["smokes"], "gaussian": ["age"]})`` makes one, and
    so does a list of pairs, ``[(Binomial(trials=10), [0, 1]), ("poisson", slice(2, 5))]``.

    Parameters
    ----------
    families : sequence of Likelihood
        One for each group of columns.
    columns : sequence of sequences of int
        The numbers of the columns of each, counted from 0; every column of the table once.
    """

    families: Sequence[Likelihood]
    columns: Sequence[Sequence[int]]

    name: ClassVar[str] = "mixed"

    def __post_init__(self):
        make = object.__setattr__
        make(self, "families", tuple(_beside(family) for family in self.families))
        make(self, "columns", tuple(tuple(int(j) for j in columns) for columns in self.columns))
        every = sorted(j for columns in self.columns for j in columns)
        if len(self.families) != len(self.columns) or every != list(range(len(every))) or not every:
            raise ValueError("a mixed likelihood needs a family for every column, and for none of them two")
        make(self, "concave", all(family.concave for family in self.families))
        make(self, "counts", all(family.counts for family in self.families))
        make(self, "log_link", all(family.log_link for family in self.families))
        make(self, "offsets", self.log_link)
        make(self, "theta_dimensions", {
            f"{label}_{name}": tuple(d if d == "predictor" else f"{label}_{d}" for d in dimensions)
            for label, family in zip(self._labels, self.families, strict=True)
            for name, dimensions in family.theta_dimensions.items()
        })  # fmt: skip

    @property
    def _labels(self) -> list[str]:
        names = [family.name for family in self.families]
        return [name if names[:k].count(name) == 0 else f"{name}_{names[:k].count(name) + 1}" for k, name in
                enumerate(names)]  # fmt: skip

    @property
    def J(self) -> int:
        """Columns of the table."""
        return sum(map(len, self.columns))

    @functools.cached_property
    def parts(self) -> tuple[Part, ...]:
        """The groups of columns."""
        parts = []
        for k, (label, family, columns) in enumerate(zip(self._labels, self.families, self.columns, strict=True)):
            code = -(k + 1) if family.typical_trials(len(columns)) is None else 0
            parts.append(Part(label, family, np.array(columns, int), code))
        if sum(part.code == 0 for part in parts) > 1:
            raise ValueError("a mixed table takes one family with trials: give trials for each of its columns")
        return tuple(parts)

    @functools.cached_property
    def _theta(self) -> dict[str, dict[str, bool]]:
        """By label the names of a family's own parameters, and whether they have one entry for each column."""
        shapes = {}
        for part in self.parts:
            draw = functools.partial(part.family.sample_theta, J=2, dtype=jnp.float32)
            drawn = jax.eval_shape(draw, jax.random.key(0))
            shapes[part.label] = {name: value.ndim > 0 for name, value in drawn.items()}
        return shapes

    # The table

    def _of_columns(self, *tables: np.ndarray | None) -> Iterator[tuple[Any, ...]]:
        """Each part with its columns of the tables."""
        for part in self.parts:
            yield part, *(None if table is None else table[..., part.columns] for table in tables)

    def check(self, Y, observed):
        if Y.shape[1] != self.J:
            raise InputError(
                "the columns of the likelihood are {J}, and {Y} has {columns}", J=self.J, columns=Y.shape[1]
            )
        for part, cells, seen in self._of_columns(Y, observed):
            try:
                part.family.check(cells, seen)
            except InputError as error:
                raise InputError(_moved(error.args[0], part.columns)) from None

    def suited_to(self, observed):
        families = tuple(part.family.suited_to(seen) for part, seen in self._of_columns(observed))
        return dataclasses.replace(self, families=families)

    def learned_from(self, Y, observed):
        families = tuple(part.family.learned_from(*tables) for part, *tables in self._of_columns(Y, observed))
        return dataclasses.replace(self, families=families)

    def encode(self, Y, observed):
        cells, counted, codes = np.zeros(Y.shape), np.zeros(Y.shape, bool), np.zeros(Y.shape)
        for part, *tables in self._of_columns(Y, observed):
            values, seen, trials = part.family.encode(*tables)
            cells[:, part.columns], counted[:, part.columns] = values, seen
            codes[:, part.columns] = part.code if trials is None else trials
        return cells, counted, codes

    def units(self, Y, observed, offset):
        units, found = Units(np.zeros(self.J), np.ones(self.J)), False
        for part, *tables in self._of_columns(Y, observed):
            own = part.family.units(*tables, offset)
            if own is not None:
                units.location[part.columns], units.scale[part.columns] = own
                found = True
        return units if found else None

    def stabilise(self, Y, offset, trials):
        table = np.zeros(Y.shape)
        for part, cells, own in self._of_columns(Y, trials):
            table[:, part.columns] = part.family.stabilise(cells, offset, own if part.code == 0 else None)
        return table

    def intercepts(self, Y, mask, offset, trials):
        intercepts = np.zeros(self.J)
        for part, *tables, own in self._of_columns(Y, mask, trials):
            intercepts[part.columns] = part.family.intercepts(*tables, offset, own if part.code == 0 else None)
        return intercepts

    # Trials, and which family a cell is of

    def with_trials(self, trials):
        if np.array_equal(np.asarray(trials), self.typical_trials(self.J)):
            return self
        raise InputError(
            "{parameter} is for the binomial likelihood alone: in a mixed table trials belong to the columns",
            parameter="trials",
        )

    def trials_for(self, n, J):
        return np.broadcast_to(self.typical_trials(J), (n, J))

    def typical_trials(self, J):
        codes = np.zeros(self.J)
        for part in self.parts:
            typical = part.family.typical_trials(len(part.columns))
            codes[part.columns] = part.code if typical is None else typical
        return codes

    # The density

    def _side_by_side(self, method: Callable[[Likelihood, Any, Theta, Any], Any], trials, theta, *cells: Array) -> Any:
        """A method of each family on its cells, with harmless numbers in the place of those of others."""
        total = None
        for part in self.parts:
            here = (trials >= 0) if part.code == 0 else trials == part.code
            own = jnp.where(here, trials, 1) if part.code == 0 else None
            values = method(part.family, [jnp.where(here, x, 0) for x in cells], self._own_whole(part, theta), own)
            if total is None:
                total = jax.tree.map(jnp.zeros_like, values)
            total = jax.tree.map(lambda new, old, here=here: jnp.where(here, new, old), values, total)
        return total

    def log_factor(self, y, f, theta, trials):
        return self._side_by_side(lambda family, c, t, n: family.log_factor(c[0], c[1], t, n), trials, theta, y, f)

    def log_base(self, y, theta, trials):
        return self._side_by_side(lambda family, c, t, n: family.log_base(c[0], t, n), trials, theta, y)

    def slope_and_curvature(self, y, f, theta, trials):
        return self._side_by_side(
            lambda family, c, t, n: family.slope_and_curvature(c[0], c[1], t, n), trials, theta, y, f
        )

    def mean(self, f, theta, trials=None):
        return self._side_by_side(lambda family, c, t, n: family.mean(c[0], t, n), trials, theta, f)

    def variance(self, f, theta, trials=None):
        return self._side_by_side(lambda family, c, t, n: family.variance(c[0], t, n), trials, theta, f)

    def sample(self, key, f, theta, trials=None):
        keys = iter(jax.random.split(key, len(self.parts)))
        return self._side_by_side(lambda family, c, t, n: family.sample(next(keys), c[0], t, n), trials, theta, f)

    # The families' own parameters

    def _own_whole(self, part: Part, theta: dict[str, Any]) -> dict[str, Any]:
        """Parameters of a family, with an entry for every column that is looked at."""
        here = {name: f"{part.label}_{name}" for name in self._theta[part.label]}
        return {name: theta[label] for name, label in here.items() if label in theta}

    def _own(self, part: Part, theta: dict[str, Any]) -> dict[str, Any]:
        """Parameters of a family, with an entry for each of its own columns."""
        by_column, whole = self._theta[part.label], self._own_whole(part, theta)
        return {name: value[..., part.columns] if by_column[name] else value for name, value in whole.items()}

    def _in_table(self, part: Part, own: dict[str, Any]) -> dict[str, Any]:
        """The inverse of ``_own``, under the names that they have here; 1 in the columns of other families."""
        return {
            f"{part.label}_{name}": _in_columns(value, part.columns, self.J) if self._theta[part.label][name] else value
            for name, value in own.items()
        }

    def theta_in_units(self, theta, scale):
        changed = dict(theta)
        for part in self.parts:
            own = part.family.theta_in_units(self._own(part, theta), scale[part.columns])
            changed |= self._in_table(part, {name: np.asarray(value) for name, value in own.items()})
        return changed

    def first_theta(self, Y, mask, offset, trials):
        first = {}
        for part, *tables, own in self._of_columns(Y, mask, trials):
            given = part.family.first_theta(*tables, offset, own if part.code == 0 else None)
            first |= self._in_table(part, {name: np.asarray(value, float) for name, value in given.items()})
        return first

    def sample_theta(self, key, J, dtype):
        theta = {}
        for part, key_part in zip(self.parts, jax.random.split(key, len(self.parts)), strict=True):
            theta |= self._in_table(part, part.family.sample_theta(key_part, len(part.columns), dtype))
        return theta

    def log_prior_theta(self, theta):
        parts = []
        for part in self.parts:
            if self._theta[part.label]:
                parts.append(jnp.sum(part.family.log_prior_theta(self._own(part, theta))))
            others = np.setdiff1d(np.arange(self.J), part.columns)
            for name, value in self._own_whole(part, theta).items():
                if self._theta[part.label][name]:
                    rest = jnp.log(value[..., others])
                    parts.append(jnp.sum(-0.5 * rest**2 - rest))
        return sum(parts[1:], start=parts[0]) if parts else jnp.zeros(())

    def update_theta(self, key, theta, y, f, mask):
        theta = dict(theta)
        for part, key_part in zip(self.parts, jax.random.split(key, len(self.parts)), strict=True):
            if self._theta[part.label]:
                columns = part.columns
                seen = None if mask is None else mask[:, columns]
                own = part.family.update_theta(key_part, self._own(part, theta), y[:, columns], f[:, columns], seen)
                theta |= self._in_table(part, own)
        return theta

    # The explorer of a report, files

    def decoders(self, J):
        decoders: list[str | None] = [None] * self.J
        for part in self.parts:
            for j, decoder in zip(part.columns, part.family.decoders(len(part.columns)), strict=True):
                decoders[j] = decoder
        return tuple(decoders)

    def decoder_parameters(self, theta, J):
        merged: dict[str, np.ndarray] = {}
        for part in self.parts:
            own = part.family.decoder_parameters(self._own(part, theta), len(part.columns))
            for name, value in own.items():
                merged[name] = _merged(merged.get(name), np.asarray(value, float), part.columns, self.J)
        return merged

    def parameters(self):
        families = [
            Gaussian(a0=family.a0, b0=family.b0) if isinstance(family, GaussianBeside) else family
            for family in self.families
        ]
        return {"families": families, "columns": [list(columns) for columns in self.columns]}

    def identity(self, Y, observed):
        parts = [
            {"columns": list(map(int, part.columns)), "family": part.family.identity(*tables)}
            for part, *tables in self._of_columns(Y, observed)
        ]
        return {"family": self.name} | {part.label: own for part, own in zip(self.parts, parts, strict=True)}


def _beside(family: Likelihood) -> Likelihood:
    """The form of a family for columns beside others."""
    if family.row_totals:
        raise ValueError(
            f"the cells of {family.name} rows are modelled given their total, and cannot be a part of a mixed table: "
            "take poisson or negative_binomial for these columns, with exposure if only their shares matter"
        )
    if isinstance(family, Mixed):
        raise ValueError("a mixed likelihood cannot have another one in it: list all families in one")
    if family.trials_per_cell is not None:
        raise ValueError("in a mixed table give trials as one number, or one for each column, not for each cell")
    if type(family) is Gaussian:
        return GaussianBeside(a0=family.a0, b0=family.b0)
    return family


def _moved(sentence: Sentence, columns: np.ndarray) -> Sentence:
    """A sentence about a part of the columns, with the numbers that these have in the table."""
    parts = {
        name: _moved(value, columns) if isinstance(value, Sentence) else value for name, value in sentence.parts.items()
    }
    if "column" in parts:
        parts["column"] = int(columns[parts["column"]])
    return Sentence(sentence.template, **parts)


def _in_columns(value: Any, columns: np.ndarray, J: int) -> Any:
    """An array (..., K) in K of J columns; 1 in the others."""
    if isinstance(value, np.ndarray):
        whole = np.ones((*value.shape[:-1], J))
        whole[..., columns] = value
        return whole
    return jnp.ones((*value.shape[:-1], J), value.dtype).at[..., columns].set(value)


def _merged(before: np.ndarray | None, value: np.ndarray, columns: np.ndarray, J: int) -> np.ndarray:
    """Arrays (..., K) of several families as one (..., J); gaps between categories that a column has not are huge."""
    if before is None:
        return _in_columns(value, columns, J)
    most = tuple(map(max, zip(before.shape[:-1], value.shape[:-1], strict=True)))
    merged = np.full((*most, J), HUGE)
    merged[tuple(map(slice, before.shape))] = before
    merged[(*map(slice, value.shape[:-1]), columns)] = value
    return merged
