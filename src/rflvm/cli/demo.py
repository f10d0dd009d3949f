"""``rflvm demo``: the paper's S-curve, from simulation to report."""

from __future__ import annotations

import sys

import click

from . import messages, programs
from .folder import Folder

FILES = ("model.npz", "s_curve.png", "report.html")


@click.command("demo", short_help="Fit the paper's S-curve, to see it work.")
@click.option("--out", default="rflvm-demo", metavar="FOLDER", help="Where to write.")
@click.option("--quick", is_flag=True, help="Find the maximum instead of sampling.")
@click.option("--force", is_flag=True, help="Replace an earlier demonstration.")
@click.option("--progress/--no-progress", default=None, help="Show progress; by default on a terminal only.")
def command(out: str, quick: bool, force: bool, progress: bool | None) -> None:
    """Simulate the paper's Poisson S-curve, fit it, and compare with the truth.

    Takes a minute or two. Writes s_curve.png, with true and inferred positions, model.npz and report.html.

    \b
    Example:
      rflvm demo --quick
    """
    folder = Folder(out, FILES, force=force)
    from .. import demo

    programs.keep()
    with folder, messages.captured():
        shown = sys.stderr.isatty() if progress is None else progress
        model, truth = demo.fit_s_curve(inference="map" if quick else "gibbs", progress=shown)
        model.save(folder.new / "model.npz")
        try:
            demo.draw_s_curve(truth, model.embedding_, folder.new / "s_curve.png")
            demo.report_s_curve(truth, model, folder.new / "report.html")
        except ImportError as error:
            messages.warn(messages.describe(error))
        files = folder.publish()
    click.echo("\n" + "\n".join(map(str, files)))
