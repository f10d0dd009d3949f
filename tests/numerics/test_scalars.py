"""Numbers and flags as parameters: what is refused, and that the error names the parameter."""

import math

import numpy as np
import pytest

from rflvm import Prior, likelihoods
from rflvm.numerics import scalars
from rflvm.numerics.errors import InputError, InputTypeError


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5)])
def test_numbers_of_every_kind_become_floats(value):
    for check in (scalars.real, scalars.positive, scalars.probability):
        assert check("level", value) == 0.5
        assert type(check("level", value)) is float


@pytest.mark.parametrize("value", [np.array([0.1, 0.2]), np.array(0.1), "0.1", None, [0.1], 1j])
@pytest.mark.parametrize("check", [scalars.real, scalars.positive, scalars.probability, scalars.flag])
def test_what_is_no_number_is_refused_by_name(check, value):
    with pytest.raises(InputTypeError, match=r"^level must be (a number|True or False), got ") as refused:
        check("level", value)
    assert refused.value.parameter == "level"


def test_numbers_out_of_range_are_refused():
    for check, values in (
        (scalars.real, (math.nan, math.inf)),
        (scalars.positive, (math.nan, math.inf, 0, -1)),
        (scalars.probability, (math.nan, 0, 1, 90)),
    ):
        for value in values:
            with pytest.raises(InputError, match=rf"^level must be .*, got {value}$"):
                check("level", value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Prior(alpha_shape=math.nan), r"^prior.alpha_shape must be finite and positive"),
        (lambda: likelihoods.Gaussian(a0=-1.0), r"^a0 must be finite and positive"),
        (lambda: likelihoods.NegativeBinomial(g0=math.inf), r"^g0 must be finite and positive"),
        (lambda: likelihoods.get(np.ones(2)), r"^unknown likelihood array"),  # pyright: ignore
    ],
)
def test_hyperparameters_are_named(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()
