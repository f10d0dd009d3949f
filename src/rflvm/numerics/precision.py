"""The precision in which JAX computes, whatever the user has set: the package uses JAX only within ``precision``."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax

from . import forks


def precision(dtype: str) -> AbstractContextManager:
    """Compute in "float32" or "float64" for a while, in this thread; an error in a process that cannot compute."""
    forks.refuse()
    return jax.enable_x64(dtype == "float64")
