"""What figures and reports ask of a fitted ``RFLVM``: draws of X, spread of a row, responses by member, labels."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from .. import likelihoods
from ..data import checks
from ..estimator import RFLVM
from . import prediction


def latent_draws(model: RFLVM) -> Float[np.ndarray, "S N D"]:
    """Aligned draws of X, chains one after the other."""
    check_is_fitted(model)
    X = model._aligned()["X"]
    return X.reshape(-1, *X.shape[2:])


def row_covariances(model: RFLVM) -> Float[np.ndarray, "N D D"]:
    """Posterior covariance of each row's position, from the draws; the variances are those of ``embedding_std_``."""
    X = latent_draws(model)
    away = X - X.mean(axis=0)
    covariance = np.einsum("snd,sne->nde", away, away) / len(X)
    drawn = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    scale = model.embedding_std_ / np.where(drawn > 0, drawn, 1)
    return covariance * scale[:, :, None] * scale[:, None, :]


def usual_trials(model: RFLVM) -> np.ndarray | None:
    """Trials of each column for a position that is no row: those of the fit, or their rounded mean over rows."""
    family = model.likelihood_
    if isinstance(family, likelihoods.Multinomial) or not isinstance(family, likelihoods.Binomial):
        return None
    trials = np.asarray(family.trials, float)
    return np.broadcast_to(np.round(trials.mean(axis=0)) if trials.ndim == 2 else trials, model.n_features_in_)


def trials_per_cell(model: RFLVM) -> np.ndarray | None:
    """Trials of a binomial family that was fitted with one number per cell, else None."""
    family = model.likelihood_
    trials = None if isinstance(family, likelihoods.Multinomial) else getattr(family, "trials", None)
    return trials if isinstance(trials, np.ndarray) and trials.ndim == 2 else None


def expected(model: RFLVM, X: np.ndarray) -> Float[np.ndarray, "n K"]:
    """``inverse_transform``, with usual trials where the fit had one number per cell."""
    return model.inverse_transform(X, trials=usual_trials(model))


def expected_by_member(model: RFLVM, X: np.ndarray) -> Float[np.ndarray, "S n K"]:
    """E[y | x] under each of the draws of the functions that predictions are averaged over."""
    check_is_fitted(model)
    with jax.enable_x64(True):
        offset, trials = jnp.zeros(len(X)), model._trials(len(X), usual_trials(model))
        Y = np.asarray(prediction.responses(jnp.asarray(X), offset, trials, model._members, model.draws_.model))
    return Y if model._totals is None else Y * np.nanmean(model._totals)


def predictors_by_member(model: RFLVM, X: np.ndarray) -> Float[np.ndarray, "S n J"]:
    """f at positions under each member, without offset."""
    check_is_fitted(model)
    members = model._members
    return np.stack([prediction._features(X, W) @ beta for W, beta in zip(members.W, members.beta, strict=True)])


def column_names(model: RFLVM) -> list[str]:
    """Names of the columns, or their numbers from 0."""
    names = model._columns()
    return [str(name) for name in (range(model.n_features_in_) if names is None else names)]


def row_names(model: RFLVM) -> list[str]:
    """Labels of the rows of the table, or their numbers from 0."""
    rows = range(len(model.embedding_)) if model._rows is None else model._rows
    return [str(row) for row in rows]


def find_column(model: RFLVM, column: Any) -> int:
    """The number of a column, from its name or number."""
    names = column_names(model)
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"no column is called {column!r}: expected a name such as {names[0]!r}, or a number")
        return names.index(column)
    number = checks.check_integer("column", column, 0)
    if number >= len(names):
        raise ValueError(f"column must be a name or a number from 0 to {len(names) - 1}, got {number}")
    return number


def check_plane(model: RFLVM, dimensions: Any) -> tuple[int, int]:
    """Two different latent dimensions of a fitted model, from 0."""
    check_is_fitted(model)
    D = model.n_components
    if D < 2:
        raise ValueError("this figure needs two latent dimensions, and the model has 1: fit with n_components=2")
    chosen = tuple(checks.check_integer("dimensions", d, 0) for d in np.atleast_1d(np.asarray(dimensions, object)))
    if len(chosen) != 2 or chosen[0] == chosen[1] or max(chosen) >= D:
        raise ValueError(f"dimensions must be two different numbers from 0 to {D - 1}, got {dimensions!r}")
    return chosen


def image_shape_of(model: RFLVM, image_shape: Any) -> tuple[int, int]:
    """Height and width whose product is the number of columns."""
    shape = tuple(checks.check_integer("image_shape", side, 1) for side in image_shape)
    if len(shape) != 2 or shape[0] * shape[1] != model.n_features_in_:
        raise ValueError(
            f"image_shape must be (height, width) with a product of {model.n_features_in_}, the number of columns; "
            f"got {image_shape!r}"
        )
    return shape
