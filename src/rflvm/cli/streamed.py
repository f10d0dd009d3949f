"""Files that the streaming engine reads by itself, block by block, and never as a whole."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files.npz import FileError
from .columns import Wanted

if TYPE_CHECKING:
    import numpy as np

    from ..estimator import RFLVM

SUFFIXES = (".npy", ".zarr", ".parquet", ".h5ad")
POSITIONS = "latent.parquet"


@dataclasses.dataclass
class StreamedFile:
    """A file that is handed to the library as it is."""

    path: Path
    notes: list[str] = dataclasses.field(default_factory=list)

    labels = None
    offset = None
    covariates = None
    classes: tuple[str, ...] = ()

    def frame(self) -> Any:
        """What ``RFLVM.fit`` is given."""
        return self.path

    def colours(self) -> dict[str, Any]:
        """None: columns have no other roles than cells."""
        return {}

    def refusal(self, error: Exception) -> FileError:
        """An error of the library, with the file's name."""
        return FileError(f"{self.path}: {error}")


def is_streamed(path: str) -> bool:
    """Whether the library reads a file, or a folder of Parquet files, by itself."""
    return Path(path).suffix.lower() in SUFFIXES or Path(path).is_dir()


def open_file(path: str, wanted: Wanted) -> StreamedFile:
    """A file whose columns are all cells."""
    if not Path(path).exists():
        raise FileError(f"{path} is not there: check the path")
    given = {"--labels": wanted.labels, "--colour": wanted.classes, "--offset": wanted.offset, "--time": wanted.time,
             "--session": wanted.session, "--covariates": wanted.covariates,
             "--ignore": wanted.ignored, "--missing": wanted.missing}  # fmt: skip
    for option, value in given.items():
        if value:
            raise FileError(
                f"{path} is read block by block, all of its columns being cells: leave out {option}, or use RFLVM from "
                "Python"
            )
    return StreamedFile(Path(path))


def is_first_process() -> bool:
    """Join the processes that a launcher has started; whether this is the first of them."""
    import jax

    try:
        if not jax.distributed.is_initialized():
            jax.distributed.initialize()
    except (RuntimeError, ValueError) as error:
        why = "--distributed found no other process: start it by mpirun, srun or another launcher that JAX knows"
        raise FileError(f"{why} ({' '.join(str(error).split())})") from error
    return jax.process_index() == 0


def write_positions(model: RFLVM, path: Path) -> None:
    """Position and standard deviation of every row, in the order of the table, as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    def columns(name: str, values: np.ndarray) -> dict[str, Any]:
        return {f"{name}{d + 1}": values[:, d] for d in range(values.shape[1])}

    rows = columns("x", model.embedding_) | columns("sd", model.embedding_std_)
    parquet.write_table(pa.table(rows), path)
