"""The memory that Linux control groups leave a process: containers and batch systems set a limit that the machine's
free memory says nothing of.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_MEMBERSHIP = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


def available() -> int | None:
    """Bytes up to the nearest limit of a group that the process is in; None where there are no groups."""
    room = [free for folder, names in _groups() if (free := _room(folder, *names)) is not None]
    return min(room, default=None)


def _groups() -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """Folders of the groups and all above them, and the names of limit, use and reclaimable cache in them."""
    try:
        lines = _MEMBERSHIP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, names = _MOUNT, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            mount, names = _MOUNT / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        folder = mount / path.lstrip("/")
        # Within a container the path may be that of the host, of which only the root can be seen.
        yield from ((group, names) for group in (folder, *folder.parents) if group.is_relative_to(mount))


def _room(folder: Path, limit: str, use: str, cache: str) -> int | None:
    try:
        most, used = int((folder / limit).read_text()), int((folder / use).read_text())
        entries = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(most - used + next((int(value) for name, value in entries if name == cache), 0), 0)
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
