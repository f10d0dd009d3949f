"""Options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from .columns import Wanted


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How a table is to be read: the function gets a ``Wanted``, as ``wanted``."""
    names = ("labels", "classes", "offset", "ignored", "missing", "layer")

    @functools.wraps(function)
    def with_wanted(**options: Any) -> Any:
        wanted = Wanted(**{name: options.pop(name) for name in names})
        return function(wanted=wanted, **options)

    column: dict[str, Any] = {"metavar": "COLUMN"}
    for option in reversed(
        (
            click.option("--labels", **column, help="Column with the rows' names, by its name or number. Default: the "
                         "first one if it has no name or holds text."),
            click.option("--classes", multiple=True, **column, help="Column with classes of the rows, to colour "
                         "them by (repeatable)."),
            click.option("--offset", **column, help="Column that is added to every linear predictor of its row: for "
                         "counts the log of an exposure, such as a document's length."),
            click.option("--ignore", "ignored", multiple=True, **column, help="Column to leave out (repeatable)."),
            click.option("--missing", multiple=True, metavar="MARK", help="What marks a missing cell, besides an empty "
                         "cell, NA, N/A, NaN, null and none (repeatable)."),
            click.option("--layer", metavar="NAME", help="Layer of an h5ad file, or array of an npz file."),
        )
    ):  # fmt: skip
        option(with_wanted)
    return with_wanted


model_argument = click.argument("model", metavar="MODEL")
force_option = click.option("--force", is_flag=True, help="Replace the output file if there is one.")
out_option = click.option("--out", required=True, metavar="FILE", help="Where to write: .csv or .tsv, or - for stdout.")
