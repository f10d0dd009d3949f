"""``rflvm reproduce``: the experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import messages

if TYPE_CHECKING:
    from ..experiments.store import Step

EXPERIMENTS = ("table", "figure-gaussian", "figure-poisson", "figure-hippocampus", "figure-mnist", "figure-faces")


def time_left(seconds: float | None) -> str:
    """Words for the time left; none where it is not known."""
    if seconds is None:
        return ""
    return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"


def print_step(step: Step) -> None:
    """Print a line before each fit."""
    if step.name:
        messages.note(f"{step.begun + 1} of {step.total}: {step.name}{time_left(step.seconds_left)}")


@click.command("reproduce", short_help="The paper's experiments.")
@click.argument("experiment", type=click.Choice([*EXPERIMENTS, "all"]))
@click.option("--out", default="reproduction", metavar="FOLDER", help="Where to write.")
@click.option("--quick", is_flag=True, help="Small tables and one run: to check that everything runs, not for results.")
@click.option(
    "--jobs", default=1, type=click.IntRange(1), metavar="N", help="Fits at a time, each with its share of the cores."
)
@click.pass_context
def command(context: click.Context, experiment: str, out: str, quick: bool, jobs: int) -> None:
    """Repeat an experiment of the paper: a table (JSON, Markdown) or a figure (PNG, PDF, JSON).

    Every fit is kept in FOLDER/fits: after an interruption the same command goes on. The real tables come from the
    folder that RFLVM_DATA names, or are downloaded (rflvm datasets list). Needs pip install 'rflvm[all]'.

    \b
    Examples:
      rflvm reproduce figure-poisson --out reproduction/
      rflvm reproduce table --quick --out quick/
      rflvm reproduce all --jobs 2
    """
    from ..experiments.reproduce import reproduce

    folder = Path(out)
    files = []
    try:
        for name in EXPERIMENTS if experiment == "all" else (experiment,):
            files += reproduce(name, folder, quick, print_step, jobs)
    except KeyboardInterrupt:
        messages.error("interrupted: the fits that are done are kept, and the same command goes on")
        context.exit(130)
    click.echo("\n".join(map(str, files)))
