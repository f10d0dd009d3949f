"""What figures and reports need of a fit: draws of X, covariances of rows, responses by member, labels."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..data import checks
from ..numerics.precision import precision
from ..numerics.units import coefficients
from . import rows
from .fit import Fitted
from .members import Members, held


def latent_draws(fitted: Fitted) -> Float[np.ndarray, "S N D"]:
    """Aligned draws of X of the chains that show the picture, one after the other."""
    X = fitted.pictured["X"]
    return X.reshape(-1, *X.shape[2:])


def row_covariances(fitted: Fitted) -> Float[np.ndarray, "N D D"]:
    """Posterior covariance of each row's position, from the draws; the variances are those of ``embedding_std``."""
    X = latent_draws(fitted)
    away = X - X.mean(axis=0)
    covariance = np.einsum("snd,sne->nde", away, away) / len(X)
    std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    scale = fitted.embedding_std / np.where(std > 0, std, 1)
    return covariance * scale[:, :, None] * scale[:, None, :]


def typical_trials(fitted: Fitted) -> np.ndarray | None:
    """Trials of each column for a position that is not that of a row; None for a family without trials."""
    return fitted.likelihood.typical_trials(fitted.about.values.shape[1])


def expected(fitted: Fitted, X: np.ndarray) -> Float[np.ndarray, "n K"]:
    """E[y | x], its median over members, with typical trials where the fit had one number per cell."""
    return rows.expected(fitted, X, trials=typical_trials(fitted))


def expected_by_member(fitted: Fitted, X: np.ndarray) -> Float[np.ndarray, "S n K"]:
    """The same under each of the draws of the functions that predictions are summarised over."""
    return rows.expected_by_member(fitted, X, trials=typical_trials(fitted))


def predictors_by_member(fitted: Fitted, X: np.ndarray) -> Float[np.ndarray, "S n J"]:
    """f at positions under each member as predictions hold it, of average rows without offset, in the table's units."""
    functions = members_in_units(fitted).functions
    with precision("float64"):
        return np.stack([
            np.asarray(held(jnp.asarray(X, float), jax.tree.map(lambda part, s=s: jnp.asarray(part[s]), functions)))
            for s in range(len(functions.W))
        ])  # fmt: skip


def members_in_units(fitted: Fitted) -> Members:
    """The members, with what is in the units of the table: beta and its ranges, theta and F."""
    members, units = fitted.members, fitted.units
    if units is None:
        return members
    theta = {name: np.asarray(value) for name, value in members.theta.items()}
    changed: Any = {
        "beta": coefficients(np.asarray(members.beta), units),
        "lowest": units.location + units.scale * np.asarray(members.lowest),
        "highest": units.location + units.scale * np.asarray(members.highest),
        "theta": fitted.likelihood.theta_in_units(theta, units.scale),
        "F": units.location + units.scale * np.asarray(members.F),
    }
    return members._replace(**changed)


def column_names(fitted: Fitted) -> list[str]:
    """Names of the columns, or their numbers from 0."""
    names = fitted.about.columns
    return [str(name) for name in (range(fitted.about.values.shape[1]) if names is None else names)]


def row_names(fitted: Fitted) -> list[str]:
    """Labels of the rows of the table, or their numbers from 0."""
    labels = fitted.about.rows
    return [str(row) for row in (range(len(fitted.embedding)) if labels is None else labels)]


def find_column(fitted: Fitted, column: Any) -> int:
    """The number of a column, from its name or number."""
    names = column_names(fitted)
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"no column is called {column!r}: expected a name such as {names[0]!r}, or a number")
        return names.index(column)
    number = checks.check_integer("column", column, 0)
    if number >= len(names):
        raise ValueError(f"column must be a name or a number from 0 to {len(names) - 1}, got {number}")
    return number


def check_plane(fitted: Fitted, dimensions: Any) -> tuple[int, int]:
    """Two different latent dimensions, from 0."""
    D = fitted.n_components
    if D < 2:
        raise ValueError("this figure needs two latent dimensions, and the model has 1: fit with n_components=2")
    chosen = tuple(checks.check_integer("dimensions", d, 0) for d in np.atleast_1d(np.asarray(dimensions, object)))
    if len(chosen) != 2 or chosen[0] == chosen[1] or max(chosen) >= D:
        raise ValueError(f"dimensions must be two different numbers from 0 to {D - 1}, got {dimensions!r}")
    return chosen


def image_shape_of(fitted: Fitted, image_shape: Any) -> tuple[int, int]:
    """Height and width whose product is the number of columns."""
    J = fitted.about.values.shape[1]
    shape = tuple(checks.check_integer("image_shape", side, 1) for side in image_shape)
    if len(shape) != 2 or shape[0] * shape[1] != J:
        raise ValueError(
            f"image_shape must be (height, width) with a product of {J}, the number of columns; got {image_shape!r}"
        )
    return shape
