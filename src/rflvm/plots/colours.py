"""A column of classes or numbers, read as colours that people with any colour vision can tell apart.

Six colours of Okabe & Ito that show on white and on black, each with four markers: 24 classes.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
MARKERS = ("o", "^", "s", "D")
MISSING = "#8A8A8A"
MOST_CLASSES = len(COLOURS) * len(MARKERS)
FEW = 20  # a column of whole numbers with at most this many different values is one of classes


class Colouring(NamedTuple):
    """One value per row: codes of classes (-1: missing), or numbers (NaN: missing) and no names."""

    values: np.ndarray
    names: list[str] | None


def read_colours(values: Any, N: int) -> Colouring:
    """Classes from text, yes/no and few whole numbers; numbers from everything else that is a number.

    None, NaN and NaT are missing. Beyond 24 classes the rarest are put together as the last.
    """
    column = np.asarray(values)
    if column.shape != (N,):
        raise ValueError(f"colours must be one value per row, {N} of them, got shape {column.shape}")
    whole = column.dtype.kind in "iu" and len(np.unique(column)) <= FEW
    if column.dtype.kind in "iuf" and not whole:
        return Colouring(np.where(np.isfinite(column), column, np.nan).astype(float), None)
    missing = np.array([value is None or value != value for value in column.tolist()], bool)
    names = np.array([str(value) for value in column.tolist()], object)
    classes = sorted(set(names[~missing].tolist()), key=_by_number)
    if len(classes) > MOST_CLASSES:
        common = sorted(classes, key=lambda name: (-np.sum(names[~missing] == name), name))[: MOST_CLASSES - 1]
        others = f"{len(classes) - len(common)} others"
        names = np.array([name if name in common else others for name in names], object)
        classes = [*sorted(common, key=_by_number), others]
    code = {name: k for k, name in enumerate(classes)}
    return Colouring(np.array([-1 if m else code[n] for n, m in zip(names, missing, strict=True)], int), classes)


def _by_number(name: str) -> list[Any]:
    """For sorting: day 2 before day 10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def of_class(code: int) -> tuple[str, str]:
    """Colour and marker of a class."""
    if code < 0:
        return MISSING, "x"
    return COLOURS[code % len(COLOURS)], MARKERS[code // len(COLOURS) % len(MARKERS)]
