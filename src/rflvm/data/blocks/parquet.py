"""Files of Parquet, and folders of them, read a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...files.npz import FileError
from ...numerics.errors import InputTypeError
from .sources import Source, of_block, reading


class ParquetRows(Source):
    """The numbers of one file, or of all files of a folder in the order of their names.

    Parameters
    ----------
    path : Path
        A file, or a folder.
    """

    kind = "frame"

    def __init__(self, path: Path):
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError(f"reading {path} needs pyarrow: pip install 'rflvm[files]'") from error
        paths = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not paths:
            raise FileError(f"{path} is a folder without any .parquet file: give the path of a table")
        self._open = lambda path: ParquetFile(path, pre_buffer=False)
        self._files: list[tuple[Path, int]] = []
        nulls = False
        for part in paths:
            try:
                file = self._open(part)
            except Exception as error:
                raise FileError(f"{part} cannot be read ({' '.join(str(error).split())})") from error
            names, types = _columns(file.schema_arrow)
            if not self._files:
                self.columns, self._types = names, types
            elif names != self.columns:
                raise FileError(f"{part} has other columns than {paths[0]}: the files of a folder must have the same")
            nulls |= _has_nulls(file.metadata, set(names))
            self._files.append((part, file.metadata.num_rows))
        kinds = [np.dtype(kind.to_pandas_dtype()) for kind in self._types]
        self.dtype = np.result_type(*kinds, *([np.float32] if nulls else []))
        assert self.columns is not None
        self.shape = sum(n for _, n in self._files), len(self.columns)

    def blocks(self, size, start=0, stop=None):
        stop = self.shape[0] if stop is None else stop
        held, first = np.zeros((0, self.shape[1]), self.dtype), start
        batches = self._batches(size, start)
        while first < stop:
            n = min(size, stop - first)
            with reading(first, first + n):
                while len(held) < n and (batch := next(batches, None)) is not None:
                    held = np.concatenate([held, batch])
            yield first, of_block(held[:n], first, first + n, self.shape)
            held, first = held[n:], first + n

    def _batches(self, size: int, start: int) -> Iterator[np.ndarray]:
        """The rows from ``start`` on, a batch at a time; groups of rows before it are not read."""
        done = 0
        for path, n in self._files:
            if done + n <= start:
                done += n
                continue
            file = self._open(path)
            counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            skipped = 0
            while done + counts[skipped] <= start:
                done += counts[skipped]
                skipped += 1
            groups = list(range(skipped, len(counts)))
            for batch in file.iter_batches(size, row_groups=groups, columns=list(self.columns or ())):
                cells = self._cells(batch)
                yield cells[max(start - done, 0) :]
                done += len(cells)

    def _cells(self, batch: Any) -> np.ndarray:
        cells = np.empty((batch.num_rows, self.shape[1]), self.dtype)
        for j, name in enumerate(self.columns or ()):
            cells[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
        return cells


def _columns(schema: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Names and types of the columns, without those in which pandas keeps the labels of rows."""
    from pyarrow import types

    index = (schema.pandas_metadata or {}).get("index_columns", [])
    fields = [field for field in schema if field.name not in index]
    for field in fields:
        kind = field.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise InputTypeError(
                "column {label} of {Y} must hold numbers, got {kind}: leave it out of the file",
                label=repr(field.name),
                kind=str(kind),
            )
    return tuple(field.name for field in fields), [field.type for field in fields]


def _has_nulls(metadata: Any, names: set[str]) -> bool:
    """Whether a cell may be missing without being NaN: then whole numbers are read as floats."""
    for group in range(metadata.num_row_groups):
        for j in range(metadata.num_columns):
            column = metadata.row_group(group).column(j)
            known = column.is_stats_set and column.statistics.has_null_count
            if column.path_in_schema in names and not (known and column.statistics.null_count == 0):
                return True
    return False
