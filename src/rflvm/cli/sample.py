"""``rflvm sample``: new rows from a fitted model."""

from __future__ import annotations

from typing import Any

import click

from .families import family_option
from .options import force_option, model_argument, out_option


@click.command("sample")
@model_argument
@family_option
@click.option("-n", "n_rows", metavar="N", default=100, type=click.IntRange(1), help="How many rows.")
@out_option
@click.option(
    "--seed", metavar="N", default=0, type=click.IntRange(0, 2**31 - 1), help="Another number gives other rows."
)
@force_option
def command(model: str, likelihood: Any, n_rows: int, out: str, seed: int, force: bool) -> None:
    """Simulate rows from MODEL, a model.npz or the folder of a run.

    Positions are drawn from their prior, and cells given the fitted functions there. The offset is 0, and
    covariates are those of an average row.

    \b
    Examples:
      rflvm sample run/model.npz -n 100 --out simulated.csv
      rflvm sample run/ -n 5 --out -
    """
    from . import models, output

    output.check(out, force)
    fitted = models.load(model, likelihood)
    _, Y = fitted.sample(n_rows, random_state=seed)
    output.write(out, output.column_names(fitted), Y.tolist())
