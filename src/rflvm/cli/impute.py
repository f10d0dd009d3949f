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
@table_options
@force_option
def command(model: str, likelihood: Any, table: str, out: str, wanted: Wanted, force: bool) -> None:
    """Fill the missing cells of TABLE.

    Each gets its posterior mean under MODEL (a model.npz or the folder of a run), given the observed cells of its row.
    TABLE is the table of the fit or has new rows; its observed cells, row labels and classes stay as they are.

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
            filled = fitted.impute(rows.frame(), offset=rows.offset)
        except (TypeError, ValueError) as error:
            raise rows.refusal(error) from error
    header = [*([rows.label_name] if rows.labels else []), *output.column_names(fitted), *rows.classes]
    labels = [[label] for label in rows.labels] if rows.labels else [[]] * len(filled)
    classes = list(zip(*rows.classes.values(), strict=True)) if rows.classes else [()] * len(filled)
    parts = zip(labels, filled.tolist(), classes, strict=True)
    output.write(out, header, [[*label, *cells, *more] for label, cells, more in parts])
