"""A folder that a command fills: all of its files or none, and never over those of another run unless forced."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path
from types import TracebackType

from ..files import lock
from ..files.npz import TEMPORARY, FileError

CHECKPOINT = "checkpoint"
STARTED = ("header.npz", "stream.npz")  # one of them is there once a run has written something


class Folder:
    """Used as a context: files are made in ``new`` and moved to their place by ``publish``, or removed with it.

    Meanwhile no other process may use the folder.

    Parameters
    ----------
    path : str
        Where.
    names : tuple of str
        The files that may be there afterwards, and that are not to be overwritten.
    resume : bool
        Go on with the run that is there.
    force : bool
        Delete the run that is there.
    """

    def __init__(self, path: str, names: tuple[str, ...], *, resume: bool = False, force: bool = False):
        self.path, self._names, self._resume, self._force = Path(path), names, resume, force
        self.checkpoint = self.path / CHECKPOINT
        self.new = self.path / f".new.{secrets.token_hex(4)}{TEMPORARY}"
        self._made: list[Path] = []
        self._lock = contextlib.ExitStack()
        self._check()

    def _check(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise FileError(f"--out {self.path} is a file: give the path of a folder")
        existing = [name for name in self._names if (self.path / name).exists()]
        if self._resume:
            if not self.has_checkpoint:
                raise FileError(f"{self.checkpoint} holds no run to go on with: leave out --resume")
        elif not self._force and (existing or self.has_checkpoint):
            go_on = ", --resume to go on with it" if self.has_checkpoint else ""
            first = existing[0] if existing else CHECKPOINT
            raise FileError(
                f"{self.path} holds a run already ({first}): give another --out{go_on}, or --force to replace it"
            )

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a run to go on with."""
        return any((self.checkpoint / name).exists() for name in STARTED)

    def __enter__(self) -> Folder:
        try:
            for folder in (self.path, *self.path.parents):
                if folder.exists():
                    break
                self._made.append(folder)
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.enter_context(lock.held(self.path))
            for leftover in self.path.glob(f".new.*{TEMPORARY}"):
                shutil.rmtree(leftover)
            self.new.mkdir()
            if self._force:
                self._remove()
        except BaseException:
            self._clean()
            raise
        return self

    def publish(self) -> list[Path]:
        """Move the new files to their place, and remove those of an earlier run that were not made again."""
        made = [name for name in self._names if (self.new / name).exists()]
        for name in self._names:
            if name in made:
                os.replace(self.new / name, self.path / name)
            else:
                (self.path / name).unlink(missing_ok=True)
        return [self.path / name for name in made]

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(self.path)
        self._clean()

    def _remove(self) -> None:
        with lock.held(self.checkpoint):  # not only this program writes there
            for name in self._names:
                (self.path / name).unlink(missing_ok=True)
            for pattern in (*STARTED, "start.npz", "segment-*.npz"):
                for file in self.checkpoint.glob(pattern):
                    file.unlink()

    def _clean(self) -> None:
        shutil.rmtree(self.new, ignore_errors=True)
        self._lock.close()
        with contextlib.suppress(OSError):  # it is not empty, or not there
            self.checkpoint.rmdir()
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()
