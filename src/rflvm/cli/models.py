"""A fitted model from its file, or from the folder of its run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..files.npz import FileError

if TYPE_CHECKING:
    from ..estimator import RFLVM


def load(path: str) -> RFLVM:
    """Read a model."""
    from ..estimator import load

    file = Path(path)
    if file.is_dir():
        if not (file / "model.npz").exists():
            raise FileError(f"{path} has no model.npz: give the folder of a run that has ended, or the path of a model")
        file = file / "model.npz"
    return load(file)
