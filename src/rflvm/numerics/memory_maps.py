"""Memory maps: on Linux a process may have only so many of them, and XLA crashes beyond that.

A compiled sweep takes thousands of the usual 65,530, so a process that fits tables of many different shapes, as a
search over settings does, would end in a segmentation fault.
"""

from __future__ import annotations

import logging
from pathlib import Path

from .compilation import drop_programs

logger = logging.getLogger(__name__)


SCARCE = 0.5  # share of the limit in use from which programs are dropped: the next fit may take thousands more


def free_if_scarce(limit_file: str = "/proc/sys/vm/max_map_count", maps_file: str = "/proc/self/maps") -> None:
    """Drop the package's compiled programs when many memory maps are in use; they are compiled again when needed.

    What the user has compiled is kept.
    """
    try:
        limit = int(Path(limit_file).read_text())
        with Path(maps_file).open("rb") as file:
            used = sum(1 for _ in file)
    except OSError:
        return  # another system, another limit
    if used > SCARCE * limit:
        logger.info("%d of %d memory maps are in use: compiled programs are dropped", used, limit)
        drop_programs()
