"""A table from a file of any format that is supported; the suffix of its name says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..files.npz import FileError
from ..numerics.errors import InputError
from . import arrays, delimited, frames, matrix_market, messages, workbooks
from .columns import Wanted
from .table import FileTable, with_chronology

READERS = {
    ".csv": delimited.read,
    ".tsv": delimited.read,
    ".txt": delimited.read,
    ".xlsx": workbooks.read,
    ".npy": arrays.read_npy,
    ".npz": arrays.read_npz,
    ".mtx": matrix_market.read,
    ".parquet": frames.read_parquet,
    ".h5ad": frames.read_h5ad,
}
COMPRESSIBLE = (".csv", ".tsv", ".txt", ".mtx")  # may be followed by .gz


def read(path: str | Path, wanted: Wanted) -> FileTable:
    """Read a table.

    Raises
    ------
    FileError
        When it is no table of numbers; the message says where and what to do.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    kind = Path(path.stem).suffix.lower() if suffix == ".gz" else suffix
    if kind not in READERS or (suffix == ".gz" and kind not in COMPRESSIBLE):
        hint = " (save the spreadsheet as .xlsx or CSV)" if kind in (".xls", ".xlsb", ".ods") else ""
        raise FileError(
            f"{path}: the name does not say what kind of table this is: expected {', '.join(READERS)}, "
            f"or {', '.join(f'{name}.gz' for name in COMPRESSIBLE)}{hint}"
        )
    if path.is_dir():
        raise FileError(f"{path} is a folder: give the path of a table")
    if wanted.layer is not None and kind not in (".h5ad", ".npz", ".xlsx"):
        raise FileError(f"{path} has no layers: --layer is for .h5ad, .npz and .xlsx files")
    with path.open("rb"):  # so that a file which cannot be opened has the same message in every format
        pass
    try:
        more = tuple(name for name in (wanted.time, wanted.session) if name is not None and name not in wanted.classes)
        return with_chronology(READERS[kind](path, wanted._replace(classes=(*wanted.classes, *more))), wanted)
    except InputError as error:  # the size that the file declares does not fit into memory
        raise FileError(messages.describe(error)) from None
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise FileError(f"{path} needs more memory than there is{why}: keep fewer columns or rows") from None


def read_rows(path: str | Path, wanted: Wanted, model: Any, *, show_notes: bool = True) -> FileTable:
    """Read rows with the columns of a fitted model, in its order, and print what was assumed of the file.

    Covariates of the fit are looked for by their names. A column may be constant among a few new rows, and is one of
    the model's all the same.
    """
    names = getattr(model, "feature_names_in_", None)
    about = model.fitted_.about
    wanted = wanted._replace(
        known=None if names is None else tuple(names),
        whole=True,
        covariates=tuple(covariate.name for covariate in about.coding),
        categories=tuple(covariate.name for covariate in about.coding if covariate.categories is not None),
    )
    table = read(path, wanted)
    if table.values.shape[1] != model.n_features_in_:
        raise FileError(
            f"{path} has {table.values.shape[1]} columns of numbers, the model was fitted to {model.n_features_in_}: "
            "name those that are not cells by --labels, --colour, --offset or --ignore"
        )
    for text in table.notes if show_notes else ():
        messages.note(text)
    if table.offset is None and about.offset.any() and about.exposure is None:
        messages.warn("the model was fitted with an offset, and none is given (--offset): it is taken to be 0")
    return table
