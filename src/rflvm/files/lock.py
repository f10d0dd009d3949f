"""One process at a time in a folder that is written to.

The lock is the operating system's, on a file in the folder: it ends with the process that holds it, however that ends,
and on network file systems it holds between machines where the server knows locks (NFS 4, NFS 3 with its lock daemon,
SMB). Where the file system has none, a warning says so and the run goes on.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from ..numerics.errors import Sentence
from .npz import FileError

logger = logging.getLogger(__name__)

NAME = ".lock"
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


class LockedError(FileError):
    """Another process is writing to the folder."""


@contextlib.contextmanager
def held(folder: str | os.PathLike | None) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is not there; None for no folder.

    Raises
    ------
    LockedError
        When another process holds it, or another thread of this one.
    """
    if folder is None:
        yield
        return
    path = Path(folder) / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _take(path)
    try:
        yield
    finally:
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(descriptor)
        with contextlib.suppress(OSError):
            path.unlink()
        if sys.platform != "win32":
            os.close(descriptor)


def _take(path: Path) -> int:
    """The open file on which the lock is held, and in which the holder has left its name."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _TAKEN:
                raise LockedError(_refusal(path)) from None
            if error.errno not in _NO_LOCKS:
                raise
            logger.warning("the file system of %s has no locks: no other process may use this folder", path.parent)
            return os.open(os.devnull, os.O_RDWR)
        if _is(descriptor, path):
            holder = {"process": os.getpid(), "machine": platform.node()}
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(holder).encode())
            return descriptor
        os.close(descriptor)  # the holder before has removed it between our opening and locking it


def _is(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _refusal(path: Path) -> Sentence:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        who = f"process {int(holder['process'])} on {holder['machine']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just beginning, or this is Windows
        who = "another process"
    return Sentence(
        "{folder} is in use by {who}: wait until it has ended, or {other_out:use another folder}",
        folder=str(path.parent),
        who=who,
    )


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
