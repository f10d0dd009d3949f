"""``rflvm impute``: missing cells filled."""

from __future__ import annotations

from typing import Any

import click

from . import messages
from .columns import Wanted
from .families import family_option
from .options import force_option, model_argument, out_option, table_options


@click.command("impute")
@model_argument
@family_option
@click.argument("table", metavar="TABLE")
@out_option
@click.option(
    "--summary",
    type=click.Choice(["median", "mean"]),
    default="median",
    show_default=True,
    help="Of the posterior of a cell's expectation. The mean can be far above anything observed.",
)
@table_options
@force_option
def command(model: str, likelihood: Any, table: str, out: str, summary: Any, wanted: Wanted, force: bool) -> None:
    """Fill the missing cells of TABLE.

    Each gets what is expected of it under MODEL (a model.npz or the folder of a run), given the observed cells of its
    row: the posterior median of its expectation, or the mean. TABLE is the table of the fit or has new rows; its
    observed cells, row labels and classes stay as they are. A warning says how many cells these leave uncertain.

    \b
    Examples:
      rflvm impute run/model.npz counts.csv --out filled.csv
      rflvm impute run/ counts.csv --out filled.tsv --force
    """
    from . import models, output, reading

    output.check(out, force)
    fitted = models.load(model, likelihood)
    rows = reading.read_rows(table, wanted, fitted)
    with messages.captured():
        try:
            given: dict[str, Any] = {"offset": rows.offset, "covariates": rows.covariates} | rows.chronology()
            filled = fitted.impute(rows.frame(), summary=summary, **given)
        except (TypeError, ValueError) as error:
            raise rows.refusal(error) from error
        _warn_of_uncertain(fitted, rows)
    header = [*([rows.label_name] if rows.labels else []), *output.column_names(fitted), *rows.classes]
    labels = [[label] for label in rows.labels] if rows.labels else [[]] * len(filled)
    classes = list(zip(*rows.classes.values(), strict=True)) if rows.classes else [()] * len(filled)
    parts = zip(labels, filled.tolist(), classes, strict=True)
    output.write(out, header, [[*label, *cells, *more] for label, cells, more in parts])


def _warn_of_uncertain(fitted: Any, rows: Any) -> None:
    """Say how many of the filled cells are marked, and in which column most of them are."""
    import numpy as np

    missing = np.isnan(rows.values)
    # With a prior over time rows are placed together, and all of them are needed.
    gappy = missing.any(axis=1) if fitted.fitted_.model.dynamics is None else np.ones(len(missing), bool)
    if not missing.any():
        return
    given = rows.chronology()
    given["offset"] = None if rows.offset is None else rows.offset[gappy]
    given["covariates"] = rows.covariates and {name: column[gappy] for name, column in rows.covariates.items()}
    marked = fitted.uncertain_cells(rows.values[gappy], **given) & missing[gappy]
    if marked.any():
        worst = int(marked.sum(axis=0).argmax())
        messages.warn(
            f"{marked.sum()} of the {missing.sum()} filled cells are uncertain: their 90 % interval is wider than the "
            f"range of the observed cells of their column ({marked[:, worst].sum()} of them in {rows.column(worst)})"
        )
