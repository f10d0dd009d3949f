"""Observation families. A new one is one file with a subclass of ``Likelihood`` or ``Logistic``."""

from collections.abc import Callable

from ..numerics.names import hint, plain
from .auto import choose
from .base import Likelihood, Logistic
from .bernoulli import Bernoulli
from .binomial import Binomial
from .custom import Custom
from .gaussian import Gaussian
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
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "StudentT",
    "ZeroInflatedNegativeBinomial",
    "ZeroInflatedPoisson",
    "choose",
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


def get(likelihood: str | Likelihood) -> Likelihood:
    """A family from its name, in any spelling, or the object itself."""
    if isinstance(likelihood, Likelihood):
        return likelihood
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
