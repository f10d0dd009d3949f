"""Observation families. A new one is one file with a subclass of ``Likelihood`` or ``Logistic``."""

from collections.abc import Callable

from .auto import choose
from .base import Likelihood, Logistic
from .bernoulli import Bernoulli
from .binomial import Binomial
from .custom import Custom
from .gaussian import Gaussian
from .multinomial import Multinomial
from .negative_binomial import NegativeBinomial
from .poisson import Poisson

__all__ = [
    "Bernoulli",
    "Binomial",
    "Custom",
    "Gaussian",
    "Likelihood",
    "Logistic",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "choose",
    "get",
]

FAMILIES = (Bernoulli, Binomial, Gaussian, Multinomial, NegativeBinomial, Poisson)
_BY_NAME: dict[str, Callable[[], Likelihood]] = {
    family.name: family for family in (Bernoulli, Gaussian, Multinomial, NegativeBinomial, Poisson)
}


def get(likelihood: str | Likelihood) -> Likelihood:
    """A family from its name or the object itself."""
    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str) and likelihood == Binomial.name:
        raise ValueError("binomial needs its number of trials: pass likelihoods.Binomial(trials=...)")
    if not isinstance(likelihood, str) or likelihood not in _BY_NAME:
        raise ValueError(
            f"unknown likelihood {likelihood!r}: expected one of {', '.join(sorted(_BY_NAME))}, "
            "or an object such as likelihoods.Binomial(trials=10)"
        )
    return _BY_NAME[likelihood]()
