"""Compiled programs: ``compiled`` stands where ``jax.jit`` would.

What runs tens of times and not thousands is compiled with ``quick=True``. XLA takes seconds to optimise a large
program, and a fit of a small table is over sooner than that. With ``QUICK`` it takes half the time, and the program is
somewhat slower (``benchmarks/compilation.py``).

At most one program of the package runs at a time in a process. jaxlib 0.10.0 to 0.11.0 splits a batched LAPACK call
over XLA's pool of threads and waits for the parts on a thread of the same pool: as many such calls at once as the
pool has threads wait for each other for ever, as two fits in threads did on two cores
(``benchmarks/threads.py``). Programs of the user's own are not held back: one that makes batched LAPACK calls while
a fit runs in another thread can still hang together with it.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
from jax.core import Tracer

from . import forks

QUICK: dict[str, Any] = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}


class compiled:  # noqa: N801  (used as a decorator)
    """A function compiled by ``jax.jit`` when it is first called.

    A call waits until no other program of the package runs, and returns when its own result is ready. Within a
    function that is being traced it becomes a part of that function's program, as with ``jax.jit``; a transformation
    that is not compiled itself, such as ``jax.vmap``, would run it without waiting.

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
        _every_compiled.add(self)

    @functools.cached_property
    def _program(self) -> Any:
        """What ``jax.jit`` made."""
        return self._make()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        forks.refuse()
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, named))):
            return self._program(*arguments, **named)
        return _queue.run(lambda: self._program(*arguments, **named))

    def eval_shape(self, *arguments: Any, **named: Any) -> Any:
        """Shapes and dtypes of the result, without computing anything."""
        return self._program.eval_shape(*arguments, **named)

    def drop(self) -> None:
        """Forget what has been compiled; the next call compiles again."""
        if "_program" in vars(self):
            self._program.clear_cache()


_every_compiled: weakref.WeakSet[compiled] = weakref.WeakSet()


def drop_programs() -> None:
    """Forget what has been compiled for the package, and nothing of the user's own."""
    with _queue.lock:
        for function in list(_every_compiled):
            function.drop()


class _Queue:
    """Lets one program run at a time.

    Attributes
    ----------
    abandoned : Any
        Result of a program whose caller was interrupted (Ctrl-C). XLA cannot stop it, so it may still run: the next
        program waits for it, the interrupted caller does not.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin anew, as after a fork: the thread that held the lock may not be there to release it."""
        self.lock = threading.RLock()
        self.abandoned: Any = None

    def run(self, program: Callable[[], Any]) -> Any:
        """The result of a program, when it is ready."""
        with self.lock:
            if self.abandoned is not None:
                with suppress(RuntimeError):  # nobody waits for its result any more
                    jax.block_until_ready(self.abandoned)
                self.abandoned = None
            result = program()
            try:
                return jax.block_until_ready(result)
            except KeyboardInterrupt:
                self.abandoned = result
                raise


_queue = _Queue()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_queue.renew)


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
