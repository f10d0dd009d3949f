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
    if not isinstance(value, numbers.Real):
        raise InputTypeError("{parameter} must be a number, got {value}", parameter=name, value=repr(value))
    if not math.isfinite(value):
        raise InputError("{parameter} must be finite, got {value}", parameter=name, value=value)
    return float(value)


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    if isinstance(value, numbers.Real) and not (math.isfinite(value) and value > 0):
        raise InputError("{parameter} must be finite and positive, got {value}", parameter=name, value=value)
    return real(name, value)


def probability(name: str, value: Any) -> float:
    """A number between 0 and 1, neither of them."""
    if isinstance(value, numbers.Real) and not 0 < value < 1:
        raise InputError("{parameter} must be between 0 and 1, got {value}", parameter=name, value=value)
    return real(name, value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError("{parameter} must be True or False, got {value}", parameter=name, value=repr(value))
    return bool(value)
