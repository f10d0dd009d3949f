"""What the program says to a person: lines on stderr, in the words of the command line and not of Python."""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import click

# What the library calls a thing, and what the command line calls it.
_WORDS = (
    (r"Call more_samples\(n\), or raise n_samples or n_chains", "give --resume and a larger --samples"),
    (r"more_samples\(n\) goes on with chains; or fit again", "rflvm fit --resume goes on with chains; or fit again"),
    (r", or init= with positions that you trust", ""),
    (r"fewer components", "fewer --components"),
    (r": raise max_iter", ": good for a first look; without --quick or --inference map the chains go on from there"),
    (r'exposure="total"', "--exposure total"),
    (r'inference="gibbs"', "--inference gibbs"),
    (r"n_components", "--components"),
    (r"n_features", "--features"),
    (r"n_samples", "--samples"),
    (r"n_burnin", "--burnin"),
    (r"n_chains", "--chains"),
    (r"random_state", "--seed"),
    (r"\bfor real-valued data use the gaussian likelihood", "for real numbers give --likelihood gaussian"),
    (r": use another folder", ": give the settings of that run, or another --out"),
)
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
    text = _one_line(str(error))
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        advice = _ADVICE.get(error.errno or 0)
        return f"{where}{error.strerror.lower()}" + (f"; {advice}" if advice else "")
    if isinstance(error, MemoryError):
        return f"not enough memory ({text}): fit fewer rows, columns, --features or --samples"
    if isinstance(error, ValueError | TypeError | OSError | ImportError | ArithmeticError):
        return in_options(text)
    return f"unexpected {type(error).__name__} ({text}): this is a mistake in rflvm, and --debug shows where"


def in_options(text: str) -> str:
    """The same, with options in place of parameters."""
    for words, option in _WORDS:
        text = re.sub(words, option, text)
    return text


@contextlib.contextmanager
def hearing() -> Iterator[Heard]:
    """Warnings become lines on stderr, and what the library logs is kept for ``log.json``."""
    heard = Heard([], [])

    class Keep(logging.Handler):
        def emit(self, record):
            heard.notes.append(_one_line(record.getMessage()))

    def show(message, category, filename, lineno, file=None, line=None):
        text = in_options(_one_line(str(message)))
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
