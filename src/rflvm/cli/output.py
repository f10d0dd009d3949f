"""Tables that the program writes: whole or not at all, over another file only by force."""

from __future__ import annotations

import csv
import io as text_io
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..files import npz
from ..files.npz import FileError
from .table import FileTable

STDOUT = "-"
DELIMITERS = {".csv": ",", ".tsv": "\t"}


def check(out: str, force: bool) -> None:
    """Raise, before anything is computed, when the output cannot go there."""
    if out == STDOUT:
        return
    path = Path(out)
    if path.suffix.lower() not in DELIMITERS:
        raise FileError(f"--out {out}: the output is text, so its name must end in .csv or .tsv, or be - for stdout")
    if path.is_dir():
        raise FileError(f"--out {out} is a folder: give the path of a file")
    if path.exists() and not force:
        raise FileError(f"{out} exists: give another --out, or --force to replace it")
    if not path.absolute().parent.is_dir():
        raise FileError(f"--out {out}: there is no folder {path.parent} to write it to")


def write(out: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a delimited table with one line of names."""
    if out == STDOUT:
        sys.stdout.write(delimited(header, rows, ","))
        sys.stdout.flush()
        return
    try:
        npz.write_text(out, delimited(header, rows, DELIMITERS[Path(out).suffix.lower()]))
    except OSError as error:
        error.filename = out
        raise


def delimited(header: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """The text of a table: every number with as many digits as it needs, nothing where it is missing."""
    buffer = text_io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def size(path: Path) -> str:
    """How large a file is, for a person to read."""
    n_bytes = path.stat().st_size
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{max(n_bytes, 1000) / 1e3:.0f} kB"


def latent_columns(table: FileTable, X: Any, std: Any) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of a table of positions: label, x, standard deviations, classes."""
    D = X.shape[1]
    header = [table.label_name, *(f"x{d + 1}" for d in range(D)), *(f"sd{d + 1}" for d in range(D)), *table.classes]
    classes = zip(*table.classes.values(), strict=True) if table.classes else [()] * len(X)
    parts = zip(table.row_names(), X, std, classes, strict=True)
    return header, [[label, *map(float, x), *map(float, sd), *more] for label, x, sd, more in parts]


def column_names(model: Any) -> list[str]:
    """The columns of the table that a model was fitted to."""
    names = getattr(model, "feature_names_in_", None)
    return [f"column{j + 1}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def _cell(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return ""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
