"""Reading in a thread that is ahead of the computation."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")

# Blocks that are read before they are asked for. With two the reader is never waited for where it is faster on average;
# a choice without a measurement.
N_AHEAD = 2

_END: Any = object()


def ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """The same items, made by a thread of their own; what it raises is raised where the item is asked for."""
    iterator = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="rflvm-reader") as pool:
        coming = deque(pool.submit(next, iterator, _END) for _ in range(N_AHEAD))
        try:
            while (item := coming.popleft().result()) is not _END:
                coming.append(pool.submit(next, iterator, _END))
                yield item
        finally:
            for future in coming:
                future.cancel()
