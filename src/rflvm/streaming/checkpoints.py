"""A folder from which a run goes on after a kill, to the same fit, bit for bit.

``stream.npz`` is replaced after the functions have grown on the sample, after all rows are placed, and after every
epoch; it holds the functions and the modes of all rows. Randomness depends on the seed and on numbers of rows alone, so
nothing else is needed.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..files import npz
from ..numerics.errors import InputError
from .functions import Functions
from .result import Epoch

KIND = "stream checkpoint"
VERSION = 1


class Progress(NamedTuple):
    """How far a run has come.

    Attributes
    ----------
    functions : Functions
        As they are now.
    anchors : array (A, D)
        Positions beside which rows are placed.
    X : array (N, D) or None
        Modes of all rows; None before they are placed.
    factor : array (J, M, M) or None
        As in ``update.Update``; None before the first epoch.
    epochs : tuple of Epoch
        Those done.
    """

    functions: Functions
    anchors: np.ndarray
    X: np.ndarray | None = None
    factor: np.ndarray | None = None
    epochs: tuple[Epoch, ...] = ()

    def as_arrays(self) -> dict[str, np.ndarray]:
        """All but the epochs, by name."""
        arrays = {name: value for name, value in self.functions._asdict().items() if name != "theta"}
        arrays |= {f"theta.{name}": value for name, value in self.functions.theta.items()}
        arrays |= {"anchors": self.anchors}
        return arrays | {name: value for name in ("X", "factor") if (value := getattr(self, name)) is not None}


def from_arrays(arrays: dict[str, np.ndarray], epochs: tuple[Epoch, ...]) -> Progress:
    """What ``Progress.as_arrays`` made arrays of."""
    theta = {name[6:]: array for name, array in arrays.items() if name.startswith("theta.")}
    fields = {name: arrays[name] for name in Functions._fields if name != "theta"}
    functions = Functions(theta=theta, **fields)
    return Progress(functions, arrays["anchors"], arrays.get("X"), arrays.get("factor"), epochs)


class Checkpoint:
    """One folder; a run with other settings is refused."""

    def __init__(self, folder: str | PathLike, settings: dict[str, Any]):
        self.folder, self.path = Path(folder), Path(folder) / "stream.npz"
        self._settings = json.loads(json.dumps(settings, default=str))
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.glob(f".*{npz.TEMPORARY}"):
            leftover.unlink()

    def read(self) -> Progress | None:
        """The run as it was last written; None if it was not."""
        if not self.path.exists():
            return None
        try:
            header, arrays = npz.read(self.path, KIND)
        except npz.FileError as error:
            raise npz.FileError(f"{error}; or delete it, and the run begins anew") from error
        if header.get("version") != VERSION:
            raise npz.FileError(f"{self.path} was written by another version of rflvm: use another folder")
        for name, value in self._settings.items():
            if header["settings"].get(name) != value:
                raise InputError(
                    "{folder} holds a run with another {parameter} ({old}, now {new}): "
                    "{other_folder:use another folder}",
                    folder=str(self.folder),
                    parameter=name,
                    old=repr(header["settings"].get(name)),
                    new=repr(value),
                )
        return from_arrays(arrays, tuple(Epoch(*fields) for fields in header["epochs"]))

    def write(self, progress: Progress) -> None:
        """Replace what was written before, all of it at once."""
        header = {
            "kind": KIND,
            "version": VERSION,
            "settings": self._settings,
            "epochs": [list(epoch) for epoch in progress.epochs],
        }
        npz.write(self.path, header, progress.as_arrays())


def digest(*arrays: np.ndarray | None) -> str:
    """One digest of some arrays."""
    parts = ["" if array is None else f"{array.dtype}{array.shape}{npz.digest(array)}" for array in arrays]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
