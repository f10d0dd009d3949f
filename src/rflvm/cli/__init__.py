"""The command line ``rflvm``. Commands import what computes only when they run, so that help is there at once."""

from .program import Program
from .program import program as main

__all__ = ["Program", "main"]
