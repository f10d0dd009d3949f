"""The command line ``rflvm``. Commands import JAX and the estimator only when they run: ``--help`` does not wait."""

from .program import Program
from .program import program as main

__all__ = ["Program", "main"]
