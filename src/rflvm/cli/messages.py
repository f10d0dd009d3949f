"""What the program says to a person: lines on stderr, in the words of the command line and not of Python."""

from __future__ import annotations

import contextlib
import errno
import logging
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import click

from ..numerics.errors import reworded
from .problems import ProblemsError

# The command line's words for the fields of a ``Sentence``: options in place of parameters, and remedies of its own.
OPTIONS = {
    "Y": "the table",
    "exposure_total": "--exposure total",
    "inference_gibbs": "--inference gibbs",
    "max_time": "--max-time",
    "n_jobs": "--jobs",
    "n_burnin": "--burnin",
    "n_chains": "--chains",
    "n_components": "--components",
    "n_features": "--features",
    "n_samples": "--samples",
    "offset": "--offset",
    "random_state": "--seed",
    "seed": "--seed",
    "sessions": "--session",
    "times": "--time",
    "dynamics": "--dynamics",
    "with_dynamics": "give --dynamics matern32",
    "or_sessions": ", or give --session where a new session begins",
    "covariates": "--covariates",
    "likelihood": "--columns",
    "give_auto": "give --columns auto=... for those that may be looked at",
    "drop_it": "leave it out",
    "gaussian": "for real numbers give --likelihood gaussian",
    "go_on": "rflvm fit --resume",
    "longer_climb": "the result will do for a first look; without --quick or --inference map chains start from it",
    "more_draws": "Give --resume and a larger --samples",
    "or_float64": "",
    "other_folder": "give the settings of that run, or another --out",
    "other_out": "give another --out",
    "more_epochs": "use rflvm.stream with a larger max_epochs",
    "inference_stream": "--inference stream",
    "other_starts": " or fewer --components",
    "another_start": "Another --seed may end in the other one",
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
# Categories of warnings for developers, which are not shown.
_INTERNAL = (DeprecationWarning, FutureWarning, ImportWarning, PendingDeprecationWarning, ResourceWarning)


# What of the log is shown as well: what a person may want to stop before it begins.
_SHOWN = ("rflvm.data.footprint",)


class Captured(NamedTuple):
    """What the library has logged (notes) and warned of."""

    notes: list[str]
    warnings: list[str]


def error(text: str) -> None:
    """Why the program fails."""
    lines = [_one_line(line) for line in text.split("\n")]  # of a file with several problems, one for each
    click.echo("\n".join([f"rflvm: error: {lines[0]}", *lines[1:]]), err=True)


def warn(text: str) -> None:
    """What the user should know of a result."""
    click.echo(f"rflvm: warning: {_one_line(text)}", err=True)


def note(text: str) -> None:
    """What the program has assumed, or what it is doing."""
    click.echo(f"rflvm: {_one_line(text)}", err=True)


def describe(error: BaseException) -> str:
    """An exception for a person who has not written the code that raised it."""
    if isinstance(error, ProblemsError):
        return str(error)
    text = _one_line(reworded(error, OPTIONS))
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        advice = _ADVICE.get(error.errno or 0)
        return f"{where}{error.strerror.lower()}" + (f"; {advice}" if advice else "")
    if isinstance(error, MemoryError):
        return f"not enough memory ({text}): fit fewer rows, columns, --features or --samples"
    if isinstance(error, ValueError | TypeError | OSError | ImportError | ArithmeticError):
        return text
    return f"unexpected {type(error).__name__} ({text}): this is a bug in rflvm, and --debug shows where"


def in_options(text: str) -> str:
    """A sentence of the library, with options in place of parameters."""
    return reworded(text, OPTIONS)


@contextlib.contextmanager
def captured() -> Iterator[Captured]:
    """Warnings become lines on stderr, and what the library logs is kept for ``log.json``."""
    texts = Captured([], [])

    class Keep(logging.Handler):
        def emit(self, record):
            texts.notes.append(_one_line(record.getMessage()))
            if record.name in _SHOWN:
                note(in_options(record.msg))

    def show(message, category, filename, lineno, file=None, line=None):
        text = _one_line(reworded(message, OPTIONS))
        # An interrupt has a message of its own.
        if not issubclass(category, _INTERNAL) and text not in texts.warnings and not text.startswith("interrupted: "):
            texts.warnings.append(text)
            warn(text)

    logger, handler = logging.getLogger("rflvm"), Keep()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            yield texts
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _one_line(text: str) -> str:
    return " ".join(text.split())
