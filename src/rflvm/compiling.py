"""Programs that are compiled soon, for what runs tens of times and not thousands.

XLA takes seconds to make the most of a large program, and a fit of a small table is over sooner than that. With these
options it takes half the time, and the program is somewhat slower (``benchmarks/compilation.py``).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import jax

OPTIONS: dict[str, Any] = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}


def compiled_soon(function: Callable, **keywords: Any) -> Callable:
    """``jax.jit``, with those of the options that this version of XLA knows and the user has not set in XLA_FLAGS."""

    @functools.cache
    def program() -> Callable:
        return jax.jit(function, compiler_options=options(), **keywords)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return program()(*arguments, **named)

    return call


@functools.cache
def options() -> dict[str, Any]:
    """Those of ``OPTIONS`` that can be given."""
    return {
        name: value
        for name, value in OPTIONS.items()
        if name not in os.environ.get("XLA_FLAGS", "") and _known(name, value)
    }


def _known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
