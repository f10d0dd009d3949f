"""Columns and cells: a column as a function of the latent position, and observed against predicted cells."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..data.checks import check_choice, check_integer
from ..estimator import RFLVM
from ..fitted.fit import Fitted
from ..fitted.summaries import (
    check_plane,
    column_names,
    expected,
    expected_by_member,
    find_column,
    predictors_by_member,
)
from .axes import axes, dimension, fit_of, name_dimensions, short
from .colours import COLOURS

MARGIN = 0.08
MOST_ROWS = 60


def tuning(
    model: RFLVM,
    column: int | str,
    *,
    scale: Literal["mean", "predictor"] = "mean",
    dimensions: tuple[int, int] = (0, 1),
    n_grid: int = 60,
    ax: Any = None,
) -> Any:
    """A column as a function of the latent position: E[y_j | x], or f_j(x), with the rows on it.

    The functions are uncertain: E[y_j | x] is shown by its median over draws, f_j(x) in the plane by its mean.

    Two dimensions are drawn as filled contours (with more, the plane of two of them, the others at 0), one as a curve
    with its 90 % band over draws. Colours span the range of the function at the rows; far from them it is a guess. On
    the scale of the mean each row has the colour, or height, of its observed value.

    Parameters
    ----------
    model : RFLVM
        Fitted.
    column : int or str
        Which column of the table.
    scale : {"mean", "predictor"}
        E[y_j | x], or the linear predictor f_j.
    dimensions : (int, int)
        The latent dimensions on the axes, from 0.
    n_grid : int
        Points along each axis.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    fitted = fit_of(model)
    j = find_column(fitted, column)
    check_choice("scale", scale, ("mean", "predictor"))
    if scale == "predictor" and j >= fitted.members.beta.shape[2]:
        raise ValueError(
            f'the last category of {fitted.likelihood.name} rows, column {j}, has no predictor: use scale="mean"'
        )
    name = column_names(fitted)[j]
    title = f"E[y | x], {short(name)}" if scale == "mean" else f"f(x), {short(name)}"
    observed = fitted.about.values[:, j] if scale == "mean" else None
    if fitted.n_components == 1:
        return _curve(fitted, j, scale, title, observed, n_grid, axes(ax))
    first, second = check_plane(fitted, dimensions)
    points = fitted.embedding[:, [first, second]]
    sides = [_range(points[:, d], n_grid) for d in (0, 1)]
    plane = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    X = np.zeros((len(plane), fitted.n_components))
    X[:, [first, second]] = plane

    def function(X: np.ndarray) -> np.ndarray:
        return expected(fitted, X)[:, j] if scale == "mean" else predictors_by_member(fitted, X)[..., j].mean(axis=0)

    values, at_rows = function(X).reshape(n_grid, n_grid), function(fitted.embedding)
    levels = np.linspace(at_rows.min(), at_rows.max(), 13)
    levels = levels if levels[-1] > levels[0] else levels[0] + np.linspace(-0.5, 0.5, 13)
    ax = axes(ax)
    drawn = ax.contourf(*sides, values, levels=levels, cmap="viridis", extend="both")
    dots = {"s": float(np.clip(4000 / len(points), 6, 22)), "linewidths": 0.5, "edgecolors": "white"}
    if observed is None:
        ax.scatter(*points.T, color="none", **dots)
    else:
        seen = ~np.isnan(observed)
        ax.scatter(*points[~seen].T, color="none", **dots)
        ax.scatter(*points[seen].T, c=observed[seen], cmap=drawn.cmap, norm=drawn.norm, **dots)
    ax.figure.colorbar(drawn, ax=ax, label=title, shrink=0.85, pad=0.02)
    name_dimensions(ax, first, second)
    ax.set_xlim(sides[0][0], sides[0][-1])
    ax.set_ylim(sides[1][0], sides[1][-1])
    ax.set_aspect("equal", adjustable="box")
    return ax


def _curve(fitted: Fitted, j: int, scale: str, title: str, observed: np.ndarray | None, n_grid: int, ax: Any) -> Any:
    x = _range(fitted.embedding[:, 0], max(n_grid, 120))
    by_member = expected_by_member if scale == "mean" else predictors_by_member
    values = by_member(fitted, x[:, None])[..., j]
    lower, upper = np.quantile(values, [0.05, 0.95], axis=0)
    if observed is not None:
        ax.scatter(fitted.embedding[:, 0], observed, s=10, color=COLOURS[1], lw=0, alpha=0.8, label="observed")
    ax.fill_between(x, lower, upper, color=COLOURS[0], alpha=0.25, lw=0)
    ax.plot(x, np.median(values, axis=0), color=COLOURS[0], lw=1.8, label="model")
    ax.set_xlim(x[0], x[-1])
    ax.set_xlabel(dimension(0))
    ax.set_ylabel(title)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2)
    return ax


def _range(positions: np.ndarray, n: int) -> np.ndarray:
    margin = MARGIN * np.ptp(positions) or 1.0
    return np.linspace(positions.min() - margin, positions.max() + margin, n)


def predictions(model: RFLVM, *, n_cells: int = 200, level: float = 0.9, random_state: int = 0, ax: Any = None) -> Any:
    """Observed cells against what is expected of them, with predictive intervals.

    Each cell is predicted given all observed cells of its row, itself included: this shows whether the family and its
    noise fit the table, not how well gaps would be filled. Counts are on a square-root scale.

    Parameters
    ----------
    model : RFLVM
        Fitted.
    n_cells : int
        How many observed cells, chosen at random among those of at most 60 rows.
    level : float
        Probability of the intervals.
    random_state : int
        Another number gives other cells.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    fitted = fit_of(model)
    n_cells = check_integer("n_cells", n_cells, 1)
    rng = np.random.default_rng(random_state)
    about = fitted.about
    rows = np.sort(rng.permutation(len(about.values))[:MOST_ROWS])
    values, trials = about.values[rows], fitted.likelihood.trials_per_cell
    # With a prior over time the rows of a session are predicted together.
    asked, timeline = rows if about.timeline is None else np.arange(len(about.values)), about.timeline
    parts = model.predict_intervals(
        about.values[asked],
        level,
        offset=about.offset[asked] if about.exposure is None else None,
        trials=None if trials is None else trials[asked],
        times=None if timeline is None else timeline.times,
        sessions=None if timeline is None else timeline.session,
    )
    parts = parts if timeline is None else [part[rows] for part in parts]
    n, j = np.nonzero(~np.isnan(values))
    chosen = rng.permutation(len(n))[:n_cells]
    n, j = n[chosen], j[chosen]
    y, (predicted, lower, upper) = values[n, j], (part[n, j] for part in parts)
    inside = (lower <= y) & (y <= upper)
    ax = axes(ax)
    for chosen, colour, words in ((inside, COLOURS[0], "within"), (~inside, COLOURS[4], "outside")):
        ax.vlines(predicted[chosen], lower[chosen], upper[chosen], color=colour, lw=0.8, alpha=0.45)
        ax.scatter(
            predicted[chosen], y[chosen], s=10, color=colour, lw=0, label=f"{words}: {chosen.mean():.0%}", zorder=3
        )
    if fitted.likelihood.counts:
        _square_root_scale(ax, float(max(predicted.max(), upper.max(), y.max())))
    ends = [max(ax.get_xlim()[0], ax.get_ylim()[0]), min(ax.get_xlim()[1], ax.get_ylim()[1])]
    ax.plot(ends, ends, color="0.55", lw=0.8, zorder=0)
    ax.set_xlabel("predicted")
    ax.set_ylabel("observed")
    ax.legend(title=f"{level:.0%} interval", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, borderaxespad=0)
    return ax


def _square_root_scale(ax: Any, largest: float) -> None:
    def square(v: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(v, 0))

    def root(v: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(v, 0))

    steps = [0.0, *(m * 10.0**e for e in range(-3, 9) for m in (1, 4))]
    ticks = [t for t in steps if t == 0 or largest / 150 < t <= largest]
    for axis in ("x", "y"):
        getattr(ax, f"set_{axis}scale")("function", functions=(root, square))
        getattr(ax, f"set_{axis}lim")(-0.0, 1.1 * largest)
        getattr(ax, f"set_{axis}ticks")(ticks, [f"{t:g}" for t in ticks])
