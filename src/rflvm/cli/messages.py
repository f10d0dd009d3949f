"""What the program says to a person: lines on stderr, in the words of the command line and not of Python."""

from __future__ import annotations

import contextlib
import errno
import logging
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import click

from ..numerics.errors import told

# What the command line says where a sentence of the library has a name: options for parameters, and its own remedies.
OPTIONS = {
    "Y": "the table",
    "exposure_total": "--exposure total",
    "inference_gibbs": "--inference gibbs",
    "n_burnin": "--burnin",
    "n_chains": "--chains",
    "n_components": "--components",
    "n_features": "--features",
    "n_samples": "--samples",
    "offset": "--offset",
    "random_state": "--seed",
    "seed": "--seed",
    "drop_it": "leave it out",
    "gaussian": "for real numbers give --likelihood gaussian",
    "go_on": "rflvm fit --resume",
    "longer_climb": "good for a first look; without --quick or --inference map the chains go on from there",
    "more_draws": "Give --resume and a larger --samples",
    "or_float64": "",
    "other_folder": "give the settings of that run, or another --out",
    "other_out": "give another --out",
    "other_starts": " or fewer --components",
    "reshape": "",
}
_ADVICE = {
    errno.ENOSPC: "free some space or write to another disk",
    errno.EDQUOT: "free some space or write to another disk",
    errno.EFBIG: "the disk or a limit allows no larger file: write elsewhere",
    errno.EACCES: "choose a place that you may read and write",
    errno.EPERM: "choose a place that you may read and write",
    errno.EROFS: "choose a place that can be written to",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENOENT: "check the path",
}
_PLUMBING = (DeprecationWarning, FutureWarning, ImportWarning, PendingDeprecationWarning, ResourceWarning)


class Heard(NamedTuple):
    """What the library said meanwhile."""

    notes: list[str]
    warnings: list[str]


def error(text: str) -> None:
    """Why the program fails."""
    click.echo(f"rflvm: error: {_one_line(text)}", err=True)


def warn(text: str) -> None:
    """What the user should know of a result."""
    click.echo(f"rflvm: warning: {_one_line(text)}", err=True)


def note(text: str) -> None:
    """What the program took for granted."""
    click.echo(f"rflvm: {_one_line(text)}", err=True)


def describe(error: BaseException) -> str:
    """An exception for a person who has not written the code that raised it."""
    text = _one_line(told(error, OPTIONS))
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        advice = _ADVICE.get(error.errno or 0)
        return f"{where}{error.strerror.lower()}" + (f"; {advice}" if advice else "")
    if isinstance(error, MemoryError):
        return f"not enough memory ({text}): fit fewer rows, columns, --features or --samples"
    if isinstance(error, ValueError | TypeError | OSError | ImportError | ArithmeticError):
        return text
    return f"unexpected {type(error).__name__} ({text}): this is a mistake in rflvm, and --debug shows where"


def in_options(text: str) -> str:
    """A sentence of the library, with options in place of parameters."""
    return told(text, OPTIONS)


@contextlib.contextmanager
def hearing() -> Iterator[Heard]:
    """Warnings become lines on stderr, and what the library logs is kept for ``log.json``."""
    heard = Heard([], [])

    class Keep(logging.Handler):
        def emit(self, record):
            heard.notes.append(_one_line(record.getMessage()))

    def show(message, category, filename, lineno, file=None, line=None):
        text = _one_line(told(message, OPTIONS))
        # An interrupt has a message of its own.
        if not issubclass(category, _PLUMBING) and text not in heard.warnings and not text.startswith("interrupted: "):
            heard.warnings.append(text)
            warn(text)

    logger, handler = logging.getLogger("rflvm"), Keep()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            yield heard
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _one_line(text: str) -> str:
    return " ".join(text.split())
