"""Parquet and h5ad files, for which pandas with pyarrow, or anndata, must be installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..data import memory, tables
from ..files.npz import FileError
from ..numerics.errors import InputError, reworded
from .columns import LABELS, Roles, Wanted, assign
from .kinds import Cells, settle
from .messages import OPTIONS
from .problems import ProblemsError
from .table import FileTable, covariates_of


def read_parquet(path: Path, wanted: Wanted) -> FileTable:
    """Read a data frame. Its index has the row labels, unless it is a ``RangeIndex``."""
    _require(path, "pandas", "pyarrow")
    import pandas as pd
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
        memory.check(str(path), 8 * about.num_rows * about.num_columns, "as a table of numbers")
        frame = pd.read_parquet(path, engine="pyarrow")
    except (InputError, MemoryError):
        raise
    except Exception as error:  # pyarrow has its own classes of errors
        raise FileError(f"{path} is not a whole Parquet file ({error}): take another copy of it") from None
    if 0 in frame.shape:
        raise FileError(f"{path} has {frame.shape[0]} rows and {frame.shape[1]} columns: expected at least one of each")
    has_labels = not isinstance(frame.index, pd.RangeIndex)
    if has_labels:
        frame = frame.reset_index(names=frame.index.name or "")
    frame.columns = [str(name) for name in frame.columns]
    names = list(frame.columns)
    first = frame.iloc[:, 0]
    why_labels = "it is the index" if has_labels else "it holds text" if first.dtype.kind not in "biuf" else ""
    roles = assign(path, names, len(names), wanted, why_labels)
    text = lambda j: [str(value) for value in frame.iloc[:, j]]  # noqa: E731
    settled = settle(_cells_of(path, frame.iloc[:, roles.cells], roles, wanted), wanted)
    if settled.problems:
        raise ProblemsError(path, settled.problems)
    if not settled.kept:
        raise FileError(f"{path} has no column of numbers")
    return FileTable(
        path=path,
        values=settled.values,
        columns=settled.names,
        labels=None if roles.labels is None else text(roles.labels),
        label_name=(roles.labels is not None and names[roles.labels]) or LABELS,
        classes={name: text(j) for name, j in roles.classes.items()},
        numbers=[roles.cells[j] + 1 for j in settled.kept],
        covariates=_covariates({name: frame.iloc[:, j] for name, j in roles.covariates.items()}, wanted),
        offset=None if roles.offset is None else _offset(path, frame.iloc[:, roles.offset]),
        notes=roles.notes + settled.notes,
        marks=wanted.marks,
    )


def read_h5ad(path: Path, wanted: Wanted) -> FileTable:
    """Read a layer of an AnnData, or its X; classes, covariates and offset are columns of ``obs``, labels its index."""
    _require(path, "anndata")
    import anndata  # pyright: ignore[reportMissingImports]

    try:
        memory.check(str(path), _stored(path), "as it is stored in the file, expanded")
        data = anndata.read_h5ad(path)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # h5py and anndata have many ways to stumble over a damaged file
        raise FileError(f"{path} is not a whole h5ad file ({error}): take another copy of it") from None
    try:
        reading = tables.read(data, wanted.layer)
    except (TypeError, ValueError) as error:
        raise FileError(f"{path}: {reworded(error, OPTIONS | {'Y': 'it'})}; --layer names a layer") from None
    columns = [str(name) for name in data.var_names]
    roles = assign(path, columns, len(columns), Wanted(ignored=wanted.ignored, known=wanted.known))
    labels = data.obs_names if wanted.labels is None else _observed(path, data, wanted.labels)
    offset = None if wanted.offset is None else _offset(path, _observed(path, data, wanted.offset))
    observed = {name: _observed(path, data, name, " (a covariate)") for name in wanted.covariates}
    return FileTable(
        path=path,
        values=np.where(np.isin(reading.values, wanted.numeric_marks), np.nan, reading.values)[:, roles.cells],
        columns=tuple(columns[j] for j in roles.cells),
        labels=[str(label) for label in labels],
        label_name=wanted.labels or LABELS,
        classes={name: [str(value) for value in _observed(path, data, name)] for name in wanted.classes},
        numbers=[j + 1 for j in roles.cells],
        covariates=_covariates(observed, wanted),
        offset=offset,
        notes=roles.notes,
    )


def _stored(path: Path) -> int:
    """Bytes that all arrays of an HDF5 file take once they are read, by the sizes that the file declares."""
    import h5py

    sizes = []
    with h5py.File(path) as file:
        file.visititems(lambda name, item: sizes.append(item.nbytes) if isinstance(item, h5py.Dataset) else None)
    return sum(sizes)


def _require(path: Path, *packages: str) -> None:
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        raise FileError(f"reading {path} needs {' and '.join(absent)}: pip install 'rflvm[files]'")


def _cells_of(path: Path, frame: Any, roles: Roles, wanted: Wanted) -> Cells:
    """Numbers as they are, missing cells of any kind as NaN, and what is neither as text."""
    import pandas as pd

    values = np.full(frame.shape, np.nan)
    text: dict[int, dict[int, str]] = {}
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if column.dtype.kind in "biuf":
            values[:, j] = pd.to_numeric(column).to_numpy(float, na_value=np.nan)
            continue
        for n in np.flatnonzero(column.notna().to_numpy()):
            value = column.iloc[n]
            cell = value.isoformat() if hasattr(value, "isoformat") else str(value).strip()
            number = value if isinstance(value, int | float) else None
            if number is not None:
                values[n, j] = number
            elif cell.lower() not in wanted.marks:
                text.setdefault(j, {})[int(n)] = cell
    infinite = np.argwhere(np.isinf(values))
    names = None if roles.names is None else tuple(roles.names[j] for j in roles.cells)
    cells = Cells(path, values, names, [j + 1 for j in roles.cells], text, {}, list(range(1, len(values) + 1)), "row")
    if len(infinite):
        n, j = infinite[0]
        raise FileError(f"{path}, {cells.where(n, j)} is infinite; leave the cell empty if it is missing")
    values[np.isin(values, wanted.numeric_marks)] = np.nan
    return cells


def _covariates(columns: dict[str, Any], wanted: Wanted) -> Any:
    text = {
        name: ["" if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)]
        for name, column in columns.items()
    }
    return covariates_of(text, wanted, [name for name, column in columns.items() if column.dtype == "category"])


def _observed(path: Path, data: Any, name: str, what: str = "") -> Any:
    if name not in data.obs:
        raise FileError(f"{path} has no column {name!r}{what} in obs; it has {', '.join(data.obs.columns) or 'none'}")
    return data.obs[name]


def _offset(path: Path, column: Any) -> np.ndarray:
    try:
        return tables.numeric("the offset", column.to_numpy(), 1)
    except (TypeError, ValueError) as error:
        raise FileError(f"{path}: {error}") from None
