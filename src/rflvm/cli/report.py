"""``rflvm report``: the page of a saved model, made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..files.npz import FileError
from . import messages
from .columns import Wanted
from .families import family_option
from .options import check_pixels, force_option, form_options, model_argument, table_options


@click.command("report")
@model_argument
@click.argument("table", metavar="[TABLE]", required=False)
@family_option
@click.option("--out", metavar="FILE", help="Where to write.  [default: report.html beside the model]")
@click.option("--title", metavar="TEXT", help="The heading.  [default: the name of TABLE, or of MODEL]")
@form_options
@table_options
@force_option
def command(
    model: str, table: str | None, likelihood: Any, out: str | None, title: str | None, wanted: Wanted, force: bool,
    **form: Any,
) -> None:  # fmt: skip
    """Make the report of MODEL anew.

    MODEL is a model.npz or the folder of a run. TABLE is the table that it was fitted to: its columns can colour the
    rows (--colour) and name them (--labels); without it the report is in one colour.

    \b
    Examples:
      rflvm report run/ --force
      rflvm report run/ counts.csv --colour party --out parties.html
    """  # fmt: skip
    from . import models, output, reading

    beside = Path(model) if Path(model).is_dir() else Path(model).absolute().parent
    path = beside / "report.html" if out is None else Path(out)
    if path.is_dir():
        raise FileError(f"--out {path} is a folder: give the path of a file")
    if path.exists() and not force:
        raise FileError(f"{path} exists: give another --out, or --force to replace it")
    if table is None and (wanted.labels or wanted.classes):
        raise click.UsageError("--labels and --colour name columns of TABLE: give it", click.get_current_context())
    fitted = models.load(model, likelihood)
    N, J = fitted.fitted_.about.values.shape
    check_pixels(model, J, form["image_shape"])
    labels = colours = None
    if table is not None:
        rows = reading.read_rows(table, wanted, fitted)
        if len(rows.values) != N:
            raise FileError(
                f"{table} has {len(rows.values)} rows, the model was fitted to {N}: give the table of the fit"
            )
        labels, colours = rows.labels, rows.colours() or None
    from ..report import write_report

    name = title or Path(table or model).name or model
    with messages.captured():
        about = {"row_labels": labels, "colours": colours, "title": name}
        write_report(fitted, path, **about, ambiguous=True, say=messages.in_options, **form)
    click.echo(f"wrote {path} ({output.size(path)})")
