"""A folder that a run is written to as it goes, from which the same call takes it up again, bit for bit.

``header.npz`` says which run it is. ``start.npz`` holds the chains as they start; during burn-in it is replaced from
time to time, and last at its end. From then on every ``segment-*.npz`` adds the draws kept since the one before and the
chains as they were at its end. Randomness depends on the seed and the number of a sweep alone, so nothing else is
needed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..data.checks import Table
from ..files import npz
from ..files.trees import arrays_of, by_name, restore
from ..model.draws import Recorder, Run
from ..model.joint import Model
from ..numerics.errors import InputError

SECONDS = 10.0  # between two writes, at least
# Of the format of a folder. Version 1, of rflvm 0.1, has no version number; before version 3 the chains of a Gaussian
# table were not on the standard scale.
VERSION = 3


Chains = list[Any]  # of ``chain.Chain``


def settings(table: Table, model: Model, run: Run, init: str | np.ndarray, n_chains: int, dtype: str) -> dict[str, Any]:
    """All that the draws of a run depend on, as JSON, with arrays as digests."""
    values = {
        "likelihood": model.likelihood.identity(table.Y, table.observed),
        "mask": table.observed,  # named before Y, whose hidden cells are set to zero
        "Y": table.Y,
        "offset": table.offset,
        "trials": table.trials,
        "covariates": table.covariates,
        "n_components": model.D,
        "n_features": 2 * model.H,
        "prior": model.prior,
        "init": init,
        "n_chains": n_chains,
        "dtype": dtype,
    }
    if table.timeline is not None:
        values |= {"dynamics": model.dynamics, "gap": table.timeline.gap, "first": table.timeline.first}
    values |= {name: getattr(run, name) for name in ("seed", "n_burnin", "thin")}
    values |= dict(zip(("latents", "frequencies", "coefficients"), run.moves, strict=True))
    return {name: _describe(value) for name, value in values.items()}


def _describe(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}, {npz.digest(value)}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _describe(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {name: _describe(part) for name, part in value.items()}
    return value.item() if isinstance(value, np.generic) else value


class Checkpoint:
    """One folder, and how far the run in it has been written; a run with other settings is refused.

    ``beta_thin`` is the thinning of beta in the folder, None when it is new.
    """

    def __init__(self, folder: str | PathLike, settings: dict[str, Any]):
        self.folder = Path(folder)
        self.beta_thin: int | None = None
        self._settings = json.loads(json.dumps(settings))
        self._last: tuple[Run | None, int] = None, 0  # the run as last written, and in how many segments
        self._time = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.glob(f".*{npz.TEMPORARY}"):
            leftover.unlink()
        if (self.folder / "header.npz").exists():
            header, _ = self._open("header.npz")
            if header.get("version", 1) != VERSION:
                raise npz.FileError(
                    f"{self.folder} was written by another version of rflvm, and this one cannot go on with its run: "
                    "use another folder"
                )
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
            self.beta_thin = header["beta_thin"]

    def read(self, recorder: Recorder, run: Run, n_sweeps: int, like: Chains) -> tuple[Run, Chains] | None:
        """Fill the recorder with the draws in the folder, and return the run and its chains as last written.

        None if nothing was written. ``like`` are chains of the shapes and dtypes to expect, ``n_sweeps`` the length
        that the run is to have.
        """
        if self.beta_thin is None:
            header = {
                "kind": "checkpoint header",
                "version": VERSION,
                "settings": self._settings,
                "beta_thin": recorder.beta_thin,
            }
            npz.write(self.folder / "header.npz", header, {})
            self.beta_thin = recorder.beta_thin
        segments = sorted(self.folder.glob("segment-*.npz"))
        if not segments and not (self.folder / "start.npz").exists():
            return None
        header, arrays = self._open("start.npz")
        chains = self._chains("start.npz", arrays, [chain._replace(info_sum={}) for chain in like])
        run = run._replace(n_sweeps=header["n_sweeps"])
        for path in segments:
            go_on = f"delete it and all later segments in {self.folder}, and the run goes on from what is before it"
            header, arrays = self._open(path.name, go_on)
            if header["after"] != run.n_sweeps:
                raise npz.FileError(
                    f"{path} goes on from sweep {header['after']}, what is before it ends at {run.n_sweeps}: {go_on}"
                )
            kept, run = run.n_kept, run._replace(n_sweeps=header["n_sweeps"])
            if run.n_sweeps > n_sweeps:
                raise InputError(
                    "{folder} already has {written} or more sweeps after burn-in, {n_samples} asks for {asked}: raise "
                    "{n_samples} or {other_out:use another folder}",
                    folder=str(self.folder),
                    written=run.n_sampled,
                    asked=n_sweeps - run.n_burnin,
                )
            recorder.fill(kept, {name[6:]: array for name, array in arrays.items() if name[:6] == "draws."})
            if path == segments[-1]:
                last = self._chains(path.name, arrays, [chain._replace(tuning=None) for chain in like])
                chains = [after._replace(tuning=chain.tuning) for after, chain in zip(last, chains, strict=True)]
        self._last = run, len(segments)
        return run, chains

    def write(self, run: Run, chains: Chains, recorder: Recorder, now: bool) -> None:
        """Write what is new, ``now`` or when it is time."""
        last, n_segments = self._last
        due = now or run.n_sweeps == run.n_burnin or time.monotonic() - self._time >= SECONDS
        if not due or run == last:
            return
        header = {"kind": "checkpoint part", "run": self._id(), "n_sweeps": run.n_sweeps}
        if last is None or run.n_sampled == 0:
            npz.write(self.folder / "start.npz", header, arrays_of({"chains": chains}))
        else:
            # The tuning stays what it was at the end of burn-in.
            tree = {"chains": [chain._replace(tuning=None) for chain in chains]}
            tree |= {"draws": recorder.arrays(run.n_kept, last.n_kept)}
            header["after"] = last.n_sweeps
            npz.write(self.folder / f"segment-{n_segments:06d}.npz", header, arrays_of(tree))
            n_segments += 1
        # One assignment: an interrupt before it has the same file written again, with more in it.
        self._last = run, n_segments
        self._time = time.monotonic()

    def _id(self) -> str:
        return hashlib.sha256(json.dumps([self._settings, self.beta_thin], sort_keys=True).encode()).hexdigest()

    def _open(self, name: str, remedy: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        path = self.folder / name
        remedy = remedy or f"delete all files in {self.folder}, and the run begins anew"
        try:
            header, arrays = npz.read(path, "checkpoint header" if name == "header.npz" else "checkpoint part")
        except npz.FileError as error:
            raise npz.FileError(f"{error}; or {remedy}") from error
        if header.get("run", self._id()) != self._id():
            raise npz.FileError(f"{path} is part of another run: {remedy}")
        return header, arrays

    def _chains(self, name: str, arrays: dict[str, np.ndarray], like: Chains) -> Chains:
        expected = by_name({"chains": like})
        for part, leaf in expected.items():
            if part not in arrays or (arrays[part].shape, arrays[part].dtype) != (leaf.shape, leaf.dtype):
                raise npz.FileError(f"{self.folder / name} was written by another version of rflvm: use another folder")
        return restore({"chains": like}, arrays)["chains"]
