"""Room for compiled programs: on Linux a process may map only so many pieces of memory, and XLA crashes beyond that.

A compiled sweep takes thousands of the usual 65,530, so a process that fits tables of many different shapes, as a
search over settings does, would end in a segmentation fault.
"""

from __future__ import annotations

import logging
from pathlib import Path

import jax

logger = logging.getLogger(__name__)


SHARE = 0.5


def make(limit_file: str = "/proc/sys/vm/max_map_count", maps_file: str = "/proc/self/maps") -> None:
    """Forget what JAX has compiled when half of the pieces are taken; it is compiled again when it is needed."""
    try:
        limit = int(Path(limit_file).read_text())
        with Path(maps_file).open("rb") as file:
            used = sum(1 for _ in file)
    except OSError:
        return  # another system, another limit
    if used > SHARE * limit:
        logger.info("%d of %d memory maps are in use: compiled programs are dropped", used, limit)
        jax.clear_caches()
