"""The figures of a report, each drawn twice: for a light page and for a dark one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from .. import plots
from ..estimator import RFLVM
from ..plots.axes import matplotlib
from ..plots.colours import Colouring
from .payload import titled_columns

DPI = 150
N_TUNING = 2  # columns whose expected value is drawn
INK = {"light": "#23262b", "dark": "#dcdfe4"}


class Figure(NamedTuple):
    """A figure as data URIs, what it is, and how to read it; or why there is none."""

    title: str
    caption: str
    light: str
    dark: str
    problem: str = ""


def draw(
    model: RFLVM,
    columns: Mapping[str, Any],
    colourings: Mapping[str, Colouring],
    image_shape: tuple[int, int] | None,
    most_varying: list[int],
) -> list[Figure]:
    """All figures that make sense for a model."""
    fitted = model.fitted_
    plane = fitted.n_components > 1
    jobs: list[tuple[str, str, Callable[..., Any]]] = []
    for name in list(colourings)[:3] or [None]:
        jobs.append(
            (
                "Rows in latent space" + (f", by {name}" if name else ""),
                "Each point is a row at its posterior mean. Ellipses are 90 % credible regions, of some of the rows.",
                lambda ax, name=name: plots.latent(model, None if name is None else columns[name], label=name, ax=ax),
            )
        )
    if plane:
        caption = "Histogram of all draws of all rows; dots are posterior means. A wide spread is a wide posterior."
        title = "Density of the draws"
        if fitted.streamed is not None:
            title, caption = "All rows", f"Histogram of the positions of all {len(model.embedding_):,} rows."
        jobs.append((title, caption, lambda ax: plots.density(model, ax=ax)))
    if image_shape is not None and plane:
        caption = "Rows as images, in random order; those that would overlap are left out."
        jobs.append(("Images at their positions", caption, lambda ax: plots.images(model, image_shape, ax=ax)))
    if image_shape is None:
        names = titled_columns(fitted)
        caption = "Expected value over the latent space; each row has the colour (or height) of its observed value."
        for j in most_varying[:N_TUNING]:
            title = f"Expected value of {names[j]}"
            jobs.append((title, caption, lambda ax, j=j: plots.tuning(model, j, ax=ax)))
    caption = "Cells against what is expected of them given their row, with 90 % intervals. About 90 % should be within"
    counts = fitted.likelihood.counts
    caption += "; more where counts are small, as intervals end at whole numbers." if counts else "."
    jobs.append(("Observed and predicted", caption, lambda ax: plots.predictions(model, ax=ax)))
    if fitted.draws.run is not None:
        caption = "Chains should lie on one level and show no trend."
        jobs.append(("Log joint density", caption, lambda ax: plots.trace(model, ax=ax)))
        if len(fitted.draws["log_joint"]) > 1:
            caption = "Each chain should be near the dashed line: no chain keeps to high or to low values."
            jobs.append(("Ranks of the log joint density", caption, lambda ax: plots.ranks(model, ax=ax)))
    caption = "Prior correlation of a function's values at two positions, by their distance; 90 % band over draws."
    jobs.append(("Kernel", caption, lambda ax: plots.kernel(model, ax=ax)))
    caption = "Distribution of the frequencies along the first dimension: mass far from 0 means wiggly functions."
    jobs.append(("Spectral density", caption, lambda ax: plots.spectrum(model, ax=ax)))
    return [_figure(*job) for job in jobs]


def _figure(title: str, caption: str, function: Callable[..., Any]) -> Figure:
    library = matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with library.rc_context(_style(INK["light"])):
        figure = library.figure.Figure(figsize=(4.8, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.add_subplot()
        ax.spines[["top", "right"]].set_visible(False)
        try:
            function(ax)
        except ValueError as error:  # a figure that the model cannot give must not take the report with it
            return Figure(title, caption, "", "", f"This figure could not be drawn: {error}.")
        light = _uri(figure)
    with library.rc_context(_style(INK["dark"])):
        _recolour(library, figure)
        return Figure(title, caption, light, _uri(figure))


def _style(ink: str) -> dict[str, Any]:
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return dict.fromkeys(inked, ink) | {"axes.facecolor": "none", "font.size": 9}


def _recolour(library: Any, figure: Any) -> None:
    """Give text, ticks and frames in the ink of a light page that of a dark one."""
    to_hex = library.colors.to_hex
    for artist in figure.findobj(lambda artist: isinstance(artist, library.text.Text | library.lines.Line2D)):
        if to_hex(artist.get_color()) == INK["light"]:
            artist.set_color(INK["dark"])
    for patch in figure.findobj(library.patches.Patch):
        if to_hex(patch.get_edgecolor()) == INK["light"]:
            patch.set_edgecolor(INK["dark"])


def _uri(figure: Any) -> str:
    """A data URI of a figure on a transparent ground, with a palette: a third of the size."""
    from PIL import Image

    drawn, packed = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI, transparent=True)
    Image.open(drawn).quantize(192, method=Image.Quantize.FASTOCTREE).save(packed, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(packed.getvalue()).decode()
