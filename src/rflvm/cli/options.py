"""Options that several commands have."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import click

from .columns import Wanted


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How a table is to be read: the function gets a ``Wanted``, as ``wanted``."""
    names = ("labels", "classes", "offset", "time", "session", "ignored", "missing", "layer")

    @functools.wraps(function)
    def with_wanted(**options: Any) -> Any:
        wanted = Wanted(**{name: options.pop(name) for name in names})
        return function(wanted=wanted, **options)

    column: dict[str, Any] = {"metavar": "COLUMN"}
    for option in reversed(
        (
            click.option("--labels", **column, help="Column with the rows' names, by its name or number. Default: the "
                         "first one if it has no name or holds text."),
            click.option("--colour", "--color", "--classes", "classes", multiple=True, **column, help="Column to "
                         "colour the rows by, classes or numbers; it is no part of the table (repeatable)."),
            click.option("--offset", **column, help="Column that is added to every linear predictor of its row: for "
                         "counts the log of an exposure, such as a document's length."),
            click.option("--time", **column, help="Column with the times of the rows, numbers or dates, for "
                         "--dynamics."),
            click.option("--session", **column, help="Column that names the session of each row, for --dynamics."),
            click.option("--ignore", "ignored", multiple=True, **column, help="Column to leave out (repeatable)."),
            click.option("--missing", multiple=True, metavar="MARK", help="What marks a missing cell, besides an empty "
                         "cell, NA, N/A, NaN, null and none (repeatable)."),
            click.option("--layer", metavar="NAME", help="Layer of an h5ad file, array of an npz file, or sheet of "
                         "a workbook."),
        )
    ):  # fmt: skip
        option(with_wanted)
    return with_wanted


class ImageShape(click.ParamType):
    """Height and width, as in 28x28."""

    name = "HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Two numbers from text."""
        sides = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", str(value))
        if not sides:
            self.fail(f"{value!r} is not height x width, such as 28x28", param, ctx)
        return int(sides[1]), int(sides[2])


def form_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How the report shows a row: ``image_shape`` and ``ordered``."""

    @functools.wraps(function)
    def checked(**options: Any) -> Any:
        if options["ordered"] and options["image_shape"] is not None:
            context = click.get_current_context()
            raise click.UsageError(
                "--ordered draws curves, --image-shape draws images: leave out one of the two", context
            )
        return function(**options)

    shape = click.option("--image-shape", type=ImageShape(), metavar="HxW", help="Columns are pixels, row by row: draw "
                         "images in the report.")  # fmt: skip
    ordered = click.option("--ordered", is_flag=True, help="Columns are in order (time, wavelength, position): draw "
                           "curves in the report.")  # fmt: skip
    return shape(ordered(checked))


def check_pixels(path: Any, n_columns: int, image_shape: tuple[int, int] | None) -> None:
    """Refuse images whose pixels are not the columns."""
    if image_shape is not None and math.prod(image_shape) != n_columns:
        height, width = image_shape
        raise click.UsageError(
            f"--image-shape {height}x{width} is {height * width} pixels, and {path} has {n_columns} columns",
            click.get_current_context(),
        )


model_argument = click.argument("model", metavar="MODEL")
force_option = click.option("--force", is_flag=True, help="Replace the output file if there is one.")
out_option = click.option("--out", required=True, metavar="FILE", help="Where to write: .csv or .tsv, or - for stdout.")
