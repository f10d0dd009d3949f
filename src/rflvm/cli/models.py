"""A fitted model from its file, or from the folder of its run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files.npz import FileError
from . import programs

if TYPE_CHECKING:
    from ..estimator import RFLVM


def load(path: str, likelihood: Any = None) -> RFLVM:
    """Read a model; ``likelihood`` is its family, if that is not of this package."""
    programs.keep()
    from ..estimator import load
    from ..fitted.saved import UnknownFamilyError

    file = Path(path)
    if file.is_dir():
        if not (file / "model.npz").exists():
            raise FileError(f"{path} has no model.npz: give the folder of a run that has ended, or the path of a model")
        file = file / "model.npz"
    try:
        return load(file, likelihood=None if likelihood is None else type(likelihood))
    except UnknownFamilyError as error:
        raise FileError(
            f"{file} was fitted with {error.family}, which is not a likelihood of rflvm: give --likelihood "
            f"MODULE:{error.family}"
        ) from error
