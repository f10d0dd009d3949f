"""One experiment from its tasks to its files: results, a table or a figure, numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..files import npz
from . import figure_faces, figure_gaussian, figure_hippocampus, figure_mnist, figure_poisson, store, table
from .store import Step

FIGURES: dict[str, Any] = {
    "figure-gaussian": figure_gaussian,
    "figure-poisson": figure_poisson,
    "figure-hippocampus": figure_hippocampus,
    "figure-mnist": figure_mnist,
    "figure-faces": figure_faces,
}
EXPERIMENTS = ("table", *FIGURES)


def reproduce(
    experiment: str,
    folder: Path,
    quick: bool = False,
    on_step: Callable[[Step], None] = lambda step: None,
    jobs: int = 1,
) -> list[Path]:
    """Do what is not yet done of an experiment, and write its files; returns their paths.

    Parameters
    ----------
    experiment : str
        One of ``EXPERIMENTS``.
    folder : Path
        Where to; results of single fits are kept below it, and found there by the next call.
    quick : bool
        Small tables and one run: to check that everything runs, not for results.
    on_step : callable
        Called with a ``Step`` before each fit.
    jobs : int
        How many fits at a time, each in a process with its share of the cores.
    """
    settings = {"quick": quick, "rflvm": version("rflvm")}
    module = FIGURES.get(experiment, table)
    results = store.run(module.tasks(quick), folder / "fits" / experiment, settings, on_step, jobs)
    numbers = folder / f"{experiment}.json"
    if module is table:
        cells = table.summarise(results)
        page = folder / "table.md"
        npz.write_text(page, f"{table.markdown(cells)}\n{table.comparison(cells)}")
        seconds = round(sum(result.values["seconds"] for result in results))
        results_of_table = {"seconds_of_all_fits": seconds, "cells": [cell._asdict() for cell in cells]}
        npz.write_text(numbers, json.dumps({**settings, **results_of_table}, indent=1) + "\n")
        return [page, numbers]
    npz.write_text(numbers, json.dumps({**settings, "fits": [result.numbers for result in results]}, indent=1) + "\n")
    return [*module.draw(results, folder, quick), numbers]
