"""The latent plane: rows with their colours and spread, the density of all draws, images at their places."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2

from ..data.checks import check_integer
from ..data.tables import numeric
from ..estimator import RFLVM
from ..fitted.modes import two_modes
from ..fitted.summaries import check_plane, image_shape_of, latent_draws, row_covariances
from ..numerics import scalars
from .axes import axes, dimension, fit_of, matplotlib, name_dimensions, short
from .colours import COLOURS, MISSING, Colouring, of_class, read_colours


def latent(
    model: RFLVM,
    colour: Any = None,
    *,
    label: str | None = None,
    dimensions: tuple[int, int] = (0, 1),
    n_ellipses: int = 30,
    level: float = 0.9,
    ambiguous: bool = False,
    ax: Any = None,
) -> Any:
    """The rows at their posterior means, coloured, with credible ellipses.

    Rows on which chains do not agree are in a diamond, as long as they are not most of them. A model with one
    latent dimension is drawn as a strip, its rows spread out vertically to be seen. With a
    prior over time the path of each session is drawn, on a strip against its times.

    Parameters
    ----------
    model : RFLVM
        Fitted.
    colour : array (N,), optional
        Classes (text, yes/no, or whole numbers with at most 20 different values) or numbers (all others). Floats are
        always numbers and text always classes. NaN and None are grey crosses.
    label : str, optional
        What the colours are, for the legend or colour bar.
    dimensions : (int, int)
        The latent dimensions on the axes, from 0.
    n_ellipses : int
        For how many rows, chosen at random, the ellipse is drawn.
    level : float
        Probability within an ellipse, of the Gaussian with the covariance of the row's draws.
    ambiguous : bool
        Put a ring around rows with another place that explains them (``RFLVM.ambiguous_rows``), of which an ellipse
        says nothing. It takes as long as ``transform`` of the table.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rflvm import RFLVM, plots
    >>> from rflvm.datasets import make_s_curve
    >>> truth = make_s_curve(60, 20, emissions="poisson")
    >>> model = RFLVM(likelihood="poisson", inference="map", kernel="rbf", n_features=20, init="pca", max_iter=200)
    >>> model = model.fit(truth.data)
    >>> ax = plots.latent(model, truth.t, label="place on the curve")
    >>> ax.figure.savefig("latent.png")
    """
    fitted = fit_of(model)
    level = scalars.probability("level", level)
    N = len(fitted.embedding)
    colouring = Colouring(np.zeros(N, int), None) if colour is None else read_colours(colour, N)
    with_ellipse = np.random.default_rng(0).permutation(N)[: check_integer("n_ellipses", n_ellipses, 0)]
    if fitted.n_components == 1:
        ax = axes(ax)
        points = np.column_stack([fitted.embedding[:, 0], _heights(fitted)])
        half = np.sqrt(chi2.ppf(level, 1)) * fitted.embedding_std[with_ellipse, 0]
        x, y = points[with_ellipse].T
        ax.hlines(y, x - half, x + half, color=MISSING, lw=0.8, alpha=0.6, zorder=1)
        ax.set_xlabel(dimension(0))
        if fitted.about.timeline is None:
            ax.set_yticks([])
        else:
            ax.set_ylabel("time")
    else:
        first, second = check_plane(fitted, dimensions)
        ax = axes(ax)
        points = fitted.embedding[:, [first, second]]
        covariance = row_covariances(fitted)[with_ellipse][:, [first, second]][:, :, [first, second]]
        _draw_ellipses(ax, points[with_ellipse], covariance, level)
        name_dimensions(ax, first, second)
    if fitted.about.timeline is not None:
        for rows in fitted.about.timeline.slices:
            ax.plot(*points[rows].T, color=MISSING, lw=0.6, alpha=0.5, zorder=1)
    _draw_points(ax, points, colouring, label, plain=colour is None)
    if ambiguous:
        ax.scatter(*points[two_modes(fitted)].T, s=60, facecolors="none", edgecolors=MISSING, lw=0.9)
    if 0 < 2 * len(fitted.disagreeing) <= N:
        ringed = points[fitted.disagreeing]
        ax.scatter(*ringed.T, s=4 * _size(N), marker="D", facecolors="none", edgecolors=MISSING, lw=0.9, zorder=3)
    return ax


def _size(N: int) -> float:
    """Area of a point."""
    return float(np.clip(9000 / N, 11, 26))


def _heights(fitted: Any) -> Float[np.ndarray, " N"]:
    """Of the rows of a strip: their times, if they have any."""
    timeline = fitted.about.timeline
    return spread(len(fitted.embedding)) if timeline is None else timeline.times


def spread(N: int) -> Float[np.ndarray, " N"]:
    """Heights for the rows of a strip: a low-discrepancy sequence, multiples of the golden ratio modulo 1."""
    return (0.5 + np.arange(N) * 0.6180339887498949) % 1


def _draw_ellipses(ax: Any, points: np.ndarray, covariance: np.ndarray, level: float) -> None:
    EllipseCollection = matplotlib().collections.EllipseCollection
    variance, axes_ = np.linalg.eigh(covariance)
    widths = 2 * np.sqrt(chi2.ppf(level, 2) * np.maximum(variance, 0))
    angles = np.degrees(np.arctan2(axes_[:, 1, 1], axes_[:, 0, 1]))
    ellipses = EllipseCollection(
        widths[:, 1], widths[:, 0], angles, units="xy", offsets=points, transOffset=ax.transData,
        facecolors="none", edgecolors=MISSING, linewidths=0.7, alpha=0.6, zorder=1,
    )  # fmt: skip
    ax.add_collection(ellipses)


def _draw_points(ax: Any, points: np.ndarray, colouring: Colouring, label: str | None, plain: bool) -> None:
    size = _size(len(points))
    values, names = colouring
    if plain:
        ax.scatter(*points.T, s=size, color=COLOURS[0], lw=0)
        return
    if names is None:
        known = np.isfinite(values)
        drawn = ax.scatter(*points[known].T, s=size, c=values[known], cmap="viridis", lw=0.3, edgecolors=MISSING)
        ax.figure.colorbar(drawn, ax=ax, label=short(label or ""), shrink=0.85, pad=0.02)
        handles = []
    else:
        known = values >= 0
        handles = []
        for code, name in enumerate(names):
            colour, marker = of_class(code)
            handles.append(
                ax.scatter(*points[values == code].T, s=size, color=colour, marker=marker, lw=0, label=short(name))
            )
    if not known.all():
        colour, marker = of_class(-1)
        missing = points[~known].T
        handles.append(ax.scatter(*missing, s=size, color=colour, marker=marker, lw=0.8, label="missing"))
    if handles:
        columns = 1 if len(handles) <= 14 else 2
        legend = ax.legend(
            handles=handles, title=short(label) if names is not None and label else None, loc="upper left",
            bbox_to_anchor=(1.01, 1), frameon=False, borderaxespad=0, handletextpad=0.3, ncols=columns,
        )  # fmt: skip
        for handle in legend.legend_handles:
            handle.set_sizes([30])


def density(model: RFLVM, *, dimensions: tuple[int, int] = (0, 1), n_bins: int = 80, ax: Any = None) -> Any:
    """Where the posterior puts the rows: a histogram of all aligned draws of X, with the rows' means on it.

    Of a fit by ``inference="stream"`` a histogram of the positions of all rows.

    Parameters
    ----------
    model : RFLVM
        Fitted, with two latent dimensions or more.
    dimensions : (int, int)
        The latent dimensions on the axes, from 0.
    n_bins : int
        Bins along each axis.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    fitted = fit_of(model)
    first, second = check_plane(fitted, dimensions)
    n_bins = check_integer("n_bins", n_bins, 1)
    ax = axes(ax)
    if fitted.streamed is not None:
        counts, *edges = np.histogram2d(*fitted.streamed.embedding[:, [first, second]].T, bins=n_bins)
        norm = matplotlib().colors.LogNorm()
        mesh = ax.pcolormesh(*edges, np.ma.masked_equal(counts.T, 0), cmap="viridis", norm=norm, rasterized=True)
        ax.figure.colorbar(mesh, ax=ax, label="rows per cell", shrink=0.85, pad=0.02)
        name_dimensions(ax, first, second)
        return ax
    draws = latent_draws(fitted)[..., [first, second]]
    counts, *edges = np.histogram2d(*draws.reshape(-1, 2).T, bins=n_bins)
    share = np.ma.masked_equal(counts.T / len(draws), 0)
    mesh = ax.pcolormesh(*edges, share, cmap="viridis", rasterized=True)
    size = float(np.clip(2000 / len(fitted.embedding), 2, 10))
    ax.scatter(*fitted.embedding[:, [first, second]].T, s=size, color="white", edgecolors="black", lw=0.4)
    ax.figure.colorbar(mesh, ax=ax, label="expected rows per cell", shrink=0.85, pad=0.02)
    name_dimensions(ax, first, second)
    return ax


def images(
    model: RFLVM,
    image_shape: tuple[int, int],
    *,
    images: Any = None,
    dimensions: tuple[int, int] = (0, 1),
    size: float = 0.045,
    cmap: str = "gray",
    random_state: int = 0,
    ax: Any = None,
) -> Any:
    """Images at the latent positions of their rows, in random order, leaving out those that would overlap.

    Parameters
    ----------
    model : RFLVM
        Fitted, its columns the pixels.
    image_shape : (int, int)
        Height and width; their product is the number of columns.
    images : array (N, J), optional
        Other pixels than those of the table.
    dimensions : (int, int)
        The latent dimensions on the axes, from 0.
    size : float
        Longer side of an image, as a fraction of the larger range of positions.
    cmap : str
        A colour map of matplotlib.
    random_state : int
        Another number puts the images in another order.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    fitted = fit_of(model)
    first, second = check_plane(fitted, dimensions)
    height, width = image_shape_of(fitted, image_shape)
    table = fitted.about.values
    pixels = table if images is None else numeric("images", images, 2)
    if pixels.shape != table.shape:
        raise ValueError(f"images must have the shape of the table, {table.shape}, got {pixels.shape}")
    if not 0 < size < 1:
        raise ValueError(f"size must be between 0 and 1, got {size}")
    ax = axes(ax)
    points = fitted.embedding[:, [first, second]]
    paste(ax, points, pixels.reshape(-1, height, width), size, cmap, random_state)
    name_dimensions(ax, first, second)
    ax.set_aspect("equal", adjustable="box")
    return ax


def paste(
    ax: Any,
    points: Float[np.ndarray, "N 2"],
    pixels: Float[np.ndarray, "N height width"],
    size: float,
    cmap: Any = "gray",
    seed: int = 0,
) -> None:
    """Images centred at points, without those that would overlap one before them; the axes are limited to them."""
    height, width = pixels.shape[1:]
    side = size * np.ptp(points, axis=0).max() / max(height, width)
    extent = side * np.array([width, height])
    limits = {"vmin": np.nanmin(pixels), "vmax": np.nanmax(pixels), "cmap": cmap}
    for n in without_overlap(points, extent[0], extent[1], seed):
        (x, y), (w, h) = points[n], extent / 2
        ax.imshow(pixels[n], extent=(x - w, x + w, y - h, y + h), interpolation="antialiased", zorder=2, **limits)
    low, high = points.min(axis=0) - extent, points.max(axis=0) + extent
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])


def without_overlap(points: Float[np.ndarray, "N 2"], width: float, height: float, seed: int) -> list[int]:
    """Rows, in random order, whose boxes do not overlap the box of any row before them."""
    kept: list[int] = []
    for n in np.random.default_rng(seed).permutation(len(points)).tolist():
        away = np.abs(points[kept] - points[n])
        if not np.any((away[:, 0] < width) & (away[:, 1] < height)):
            kept.append(n)
    return kept
