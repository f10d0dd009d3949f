"""Observation families. A new one is one file with a subclass of ``Likelihood`` or ``Logistic``."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..numerics.names import hint, plain
from .auto import by_column, choose
from .base import Likelihood, Logistic
from .bernoulli import Bernoulli
from .binomial import Binomial
from .columns import is_specification, read
from .custom import Custom
from .gaussian import Gaussian
from .mixed import Mixed
from .multinomial import Multinomial
from .negative_binomial import NegativeBinomial
from .ordinal import Ordinal
from .poisson import Poisson
from .student_t import StudentT
from .zero_inflated import ZeroInflatedNegativeBinomial, ZeroInflatedPoisson

__all__ = [
    "Bernoulli",
    "Binomial",
    "Custom",
    "Gaussian",
    "Likelihood",
    "Logistic",
    "Mixed",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "StudentT",
    "ZeroInflatedNegativeBinomial",
    "ZeroInflatedPoisson",
    "choose",
    "for_columns",
    "get",
]

FAMILIES = (
    Bernoulli,
    Binomial,
    Gaussian,
    Multinomial,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)
_BY_NAME: dict[str, Callable[[], Likelihood]] = {
    name: family for family in FAMILIES if not issubclass(family, Binomial) for name in (family.name, *family.aliases)
}


def get(likelihood: Any) -> Likelihood:
    """A family from its name, in any spelling, the object itself, or families with the numbers of their columns."""
    if isinstance(likelihood, Likelihood):
        return likelihood
    if is_specification(likelihood):
        pairs = read(likelihood, None, None)
        return Mixed(tuple(get(family) for family, _ in pairs), tuple(tuple(columns) for _, columns in pairs))
    name = plain(likelihood) if isinstance(likelihood, str) else None
    if name == Binomial.name:
        raise ValueError("binomial needs its number of trials: pass likelihoods.Binomial(trials=...)")
    if name not in _BY_NAME:
        names = sorted({family().name for family in _BY_NAME.values()})
        raise ValueError(
            f"unknown likelihood {likelihood!r}: expected one of {', '.join(names)}, "
            f"or an object such as likelihoods.Binomial(trials=10){hint(likelihood, names)}"
        )
    return _BY_NAME[name]()


def for_columns(
    specification: Any, Y: np.ndarray, observed: np.ndarray, names: Sequence[str] | None = None
) -> tuple[Mixed, str]:
    """A family for every column of a table, and why where they were looked for.

    Parameters
    ----------
    specification : mapping, sequence of pairs, or "mixed"
        As the parameter ``likelihood`` of ``RFLVM``; a family "auto" looks at each of its columns, "mixed" at all.
    Y, observed : ndarray of shape (N, J)
        The table, and which cells to look at.
    names : sequence of str or None
        Of the columns.
    """
    whole = {"auto": range(Y.shape[1])} if isinstance(specification, str) else specification
    families, groups, reasons = [], [], []
    for family, columns in read(whole, names, Y.shape[1]):
        if not (isinstance(family, str) and plain(family) == "auto"):
            families.append(get(family))
            groups.append(tuple(columns))
            continue
        for chosen, some, reason in by_column(Y[:, columns], observed[:, columns]):
            families.append(chosen)
            groups.append(tuple(columns[j] for j in some))
            called = [str(names[j]) if names is not None else f"column {j}" for j in groups[-1]]
            listed = ", ".join(called[:4]) + f" and {len(called) - 4} more" * (len(called) > 4)
            reasons.append(f"{chosen.name} for {listed}: {reason}")
    return Mixed(tuple(families), tuple(groups)).learned_from(Y, observed), "; ".join(reasons) or "as given"
