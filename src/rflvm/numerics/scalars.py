"""Single numbers and flags as parameters. An array in their place would be compared to several answers at once, or be
saved and shown as an array.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from .errors import InputError, InputTypeError


def real(name: str, value: Any) -> float:
    """A finite number."""
    number = _number(name, value)
    if not math.isfinite(number):
        raise InputError("{parameter} must be finite, got {value}", parameter=name, value=value)
    return number


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = _number(name, value)
    if not (math.isfinite(number) and number > 0):
        raise InputError("{parameter} must be finite and positive, got {value}", parameter=name, value=value)
    return number


def probability(name: str, value: Any) -> float:
    """A number between 0 and 1, neither of them."""
    number = _number(name, value)
    if not 0 < number < 1:
        raise InputError("{parameter} must be between 0 and 1, got {value}", parameter=name, value=value)
    return number


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError("{parameter} must be True or False, got {value}", parameter=name, value=repr(value))
    return bool(value)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, numbers.Real):
        raise InputTypeError("{parameter} must be a number, got {value}", parameter=name, value=repr(value))
    return float(value)
