"""Compiled programs: ``compiled`` stands where ``jax.jit`` would.

What runs tens of times and not thousands is compiled with ``quick=True``. XLA takes seconds to optimise a large
program, and a fit of a small table is over sooner than that. With ``QUICK`` it takes half the time, and the program is
somewhat slower (``benchmarks/compilation.py``).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import jax

QUICK: dict[str, Any] = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}


class compiled:  # noqa: N801  (used as a decorator)
    """A function compiled by ``jax.jit`` when it is first called.

    Parameters
    ----------
    function : callable
        Of arrays and trees of them.
    quick : bool
        Compile in less time, to a slower program.
    **keywords
        As for ``jax.jit``.
    """

    def __init__(self, function: Callable, *, quick: bool = False, **keywords: Any):
        functools.update_wrapper(self, function)
        self._make = lambda: jax.jit(function, compiler_options=quick_options() if quick else None, **keywords)

    @functools.cached_property
    def program(self) -> Any:
        """What ``jax.jit`` made."""
        return self._make()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.program(*arguments, **named)

    def eval_shape(self, *arguments: Any, **named: Any) -> Any:
        """Shapes and dtypes of the result, without computing anything."""
        return self.program.eval_shape(*arguments, **named)


@functools.cache
def quick_options() -> dict[str, Any]:
    """Those of ``QUICK`` that this version of XLA knows and the user has not set in XLA_FLAGS."""
    return {
        name: value
        for name, value in QUICK.items()
        if name not in os.environ.get("XLA_FLAGS", "") and _known(name, value)
    }


def _known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
