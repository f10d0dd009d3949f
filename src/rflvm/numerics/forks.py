"""Forks: a process that was forked does not have the threads of XLA, and would wait for them for ever.

A fork before the first use of JAX does no harm. This module is imported with the package, before JAX, for a fork is
noticed only from then on.
"""

from __future__ import annotations

import os
import sys


class _Process:
    """What is known of this process.

    Attributes
    ----------
    used : bool
        Whether JAX has been used here, or in a process that this one was forked from.
    broken : bool
        Whether that was before a fork.
    """

    def __init__(self) -> None:
        self.used = self.broken = False

    def before_fork(self) -> None:
        self.used = self.used or jax_has_started()

    def after_fork(self) -> None:
        """In the child."""
        self.broken = self.used


_process = _Process()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_process.before_fork, after_in_child=_process.after_fork)


def refuse() -> None:
    """To be called before JAX is used: an error where it cannot compute."""
    if _process.broken:
        raise RuntimeError(
            "this process was forked from one in which JAX had been used, and JAX cannot compute here: start processes "
            'by "spawn" or "forkserver", as in multiprocessing.get_context("spawn"), or use joblib with its default '
            "backend, loky"
        )
    _process.used = True


def jax_has_started() -> bool:
    """Whether anybody has used JAX in this process; JAX has no public name for it."""
    if "jax" not in sys.modules:
        return False
    try:
        from jax._src.xla_bridge import backends_are_initialized
    except ImportError:
        return False  # what this package does is noticed by ``refuse``
    return backends_are_initialized()
