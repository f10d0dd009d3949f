"""How much memory there is, asked before a table is expanded that says itself how large it will be."""

from __future__ import annotations

from pathlib import Path

from ..numerics import cgroups
from ..numerics.errors import InputError

# Of the memory that is free, what one table may take. A fit holds the table about twice more: the mask and offsets,
# and the copy that the estimator keeps.
SHARE = 0.5

# What the draws of a fit may take unless the user says otherwise.
BUDGET = 1e9

_MEMINFO = Path("/proc/meminfo")


def available() -> int | None:
    """Bytes of memory that can be had without swapping, on the machine and within the limit of a container.

    None on systems that do not tell.
    """
    return min((free for free in (_of_the_machine(), cgroups.available()) if free is not None), default=None)


def _of_the_machine() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
    except (OSError, ValueError, IndexError):
        return None


def check(name: str, n_bytes: int, form: str) -> None:
    """Raise when a table, in the form that it is about to take, would need more than ``SHARE`` of the free memory."""
    free = available()
    if free is not None and n_bytes > SHARE * free:
        raise InputError(
            "{parameter} needs {needed} of memory {form}, and {free} are free, of which a table may take {share:.0%}: "
            "keep fewer columns or rows, or use a machine with more memory",
            parameter=name,
            needed=gigabytes(n_bytes),
            form=form,
            free=gigabytes(free),
            share=SHARE,
        )


def gigabytes(n_bytes: float) -> str:
    """A size for a person to read."""
    return f"{n_bytes / 1e9:,.3g} GB" if n_bytes < 1e15 else f"{n_bytes / 1e9:.1e} GB"
