"""``rflvm compare``: which of two fits predicts better, and whether the difference is more than noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..files.npz import FileError
from . import messages
from .columns import Wanted
from .families import family_option
from .options import table_options

if TYPE_CHECKING:
    import numpy as np

    from ..estimator import RFLVM

NOISE = 2  # standard errors below which a difference is called noise


class Score(NamedTuple):
    """Log predictive densities of rows or cells under one model."""

    model: str
    log_densities: Any  # array


@click.command("compare", short_help="Say which of two fits predicts better.")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.argument("table", metavar="[HELD-OUT]", required=False)
@family_option
@table_options
def command(a: str, b: str, table: str | None, wanted: Wanted, likelihood: Any) -> None:
    """Compare the fits A and B (folders of runs or model.npz files).

    The measure is the log predictive density; higher is better. It is that of the rows of HELD-OUT, which neither fit
    has seen; or, without HELD-OUT, the leave-one-out density of the cells of the table that both were fitted to, by
    Pareto-smoothed importance sampling (PSIS-LOO). A difference below two standard errors is called noise.

    \b
    Examples:
      rflvm compare run2/ run3/ held-out.csv
      rflvm compare run2/ run3/
    """
    from . import models

    fits = {name: models.load(name, likelihood) for name in (a, b)}
    if len(fits) < 2:
        raise click.UsageError(f"A and B are the same run ({a})", click.get_current_context())
    if len({fit.likelihood_.row_totals for fit in fits.values()}) > 1:
        raise FileError("a multinomial fit takes the totals of rows as given: compare it with another multinomial one")
    with messages.captured():
        if table is None:
            scores = _left_out_cells(fits)
            what = f"{len(scores[0].log_densities)} left-out cells (PSIS-LOO)"
        else:
            scores = [Score(name, _held_out_rows(fit, table, wanted, name == a)) for name, fit in fits.items()]
            what = f"{len(scores[0].log_densities)} held-out rows of {table}"
    click.echo(f"log predictive density of {what}")
    click.echo("\n".join(_page(*scores)))


def _held_out_rows(fit: RFLVM, table: str, wanted: Wanted, show_notes: bool) -> np.ndarray:
    from . import reading

    rows = reading.read_rows(table, wanted, fit, show_notes=show_notes)
    chronology = {} if fit.fitted_.model.dynamics is None else rows.chronology()
    try:
        return fit.score_samples(rows.frame(), offset=rows.offset, covariates=rows.covariates, **chronology)
    except (TypeError, ValueError) as error:
        raise rows.refusal(error) from error


def _left_out_cells(fits: dict[str, RFLVM]) -> list[Score]:
    import numpy as np

    first, second = (fit.fitted_.about.values for fit in fits.values())
    if not np.array_equal(first, second, equal_nan=True):
        raise FileError(
            f"the two were fitted to different tables ({_shape(first)} and {_shape(second)}), and PSIS-LOO compares "
            "fits of one table: give a table of held-out rows"
        )
    if any(fit.draws_.run is None for fit in fits.values()):
        messages.note(
            "draws of --quick or --inference map are a Gaussian approximation: PSIS-LOO is as rough as they are"
        )
    return [Score(name, np.asarray(fit.loo().elpd_i).ravel()) for name, fit in fits.items()]


def _page(a: Score, b: Score) -> list[str]:
    """A small table and a verdict."""
    import numpy as np

    n = len(a.log_densities)
    error = lambda terms: float(np.sqrt(n) * np.std(terms, ddof=1)) if n > 1 else float("nan")  # noqa: E731
    width = max(len(a.model), len(b.model), 5)
    lines = [f"{'':{width}}{'total':>14}{'standard error':>18}"]
    for model, log_densities in (a, b):
        lines.append(f"{model:{width}}{log_densities.sum():14.1f}{error(log_densities):18.1f}")
    difference = a.log_densities - b.log_densities
    total, spread = float(difference.sum()), error(difference)
    lines += [f"{'A - B':{width}}{total:14.1f}{spread:18.1f}", ""]
    if not abs(total) > NOISE * spread > 0:
        return [*lines, f"The difference is within the noise: less than {NOISE} standard errors."]
    better = a.model if total > 0 else b.model
    return [*lines, f"{better} predicts better: the difference is {abs(total) / spread:.1f} standard errors."]


def _shape(values: np.ndarray) -> str:
    return f"{values.shape[0]} x {values.shape[1]}"
