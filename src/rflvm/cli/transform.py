"""``rflvm transform``: positions of new rows."""

from __future__ import annotations

from typing import Any

import click

from . import messages
from .columns import Wanted
from .families import family_option
from .options import force_option, model_argument, out_option, table_options


@click.command("transform")
@model_argument
@family_option
@click.argument("table", metavar="TABLE")
@out_option
@table_options
@force_option
def command(model: str, likelihood: Any, table: str, out: str, wanted: Wanted, force: bool) -> None:
    """Find the latent positions of the rows of TABLE under MODEL.

    MODEL is a model.npz or the folder of a run. TABLE must have the columns of the fit, covariates
    among them; others are left out. Every row
    is placed on its own: its position does not depend on the others. Of a fit with --dynamics the rows of a session are
    placed together. The output has the posterior mean and standard deviation of each row's position.

    \b
    Examples:
      rflvm transform run/model.npz new.csv --out new_latent.csv
      rflvm transform run/ new.csv --out - | head
    """
    from . import models, output, reading

    output.check(out, force)
    fitted = models.load(model, likelihood)
    rows = reading.read_rows(table, wanted, fitted)
    with messages.captured():
        try:
            given: dict[str, Any] = {"offset": rows.offset, "covariates": rows.covariates} | rows.chronology()
            X, std = fitted.transform(rows.frame(), return_std=True, **given)
        except (TypeError, ValueError) as error:
            raise rows.refusal(error) from error
    output.write(out, *output.latent_columns(rows, X, std))
