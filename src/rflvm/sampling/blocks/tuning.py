"""What the blocks adapt in burn-in and keep fixed afterwards."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...likelihoods.base import sum_observed
from ...model.joint import Data, Model, State, is_marginal, predictor
from ...model.rows import cell_expansion


class PathTuning(NamedTuple):
    """What a prior over time adds."""

    step: Float[Array, ""]  # leapfrog step of whole paths
    information: Float[Array, "N D D"]  # mean of what the cells of each row say about its position
    lengthscale_steps: Float[Array, "2"]  # widths of the proposals with X held and with its innovations held


class Tuning(NamedTuple):
    """Step sizes and the preconditioner. Fixed numbers after burn-in, so that the sampler is exact."""

    X_step: Float[Array, ""]  # of Langevin proposals in the rows' metric, or of HMC when beta is integrated out
    W_step: Float[Array, ""]  # leapfrog step of the frequencies
    beta_step: Float[Array, " J"]  # leapfrog step of each column's coefficients
    curvature: Float[Array, " J"]  # mean over the N rows of -d^2 log p(y | f) / df^2
    fitted: Float[Array, "N J"]  # mean of F, offset included
    path: PathTuning | None = None  # with a prior over time


def initial(state: State, data: Data, model: Model) -> Tuning:
    """Cautious first values."""
    dtype, J = data.Y.dtype, data.Y.shape[1]
    return Tuning(
        X_step=jnp.asarray(0.02 if is_marginal(model) else 1.0, dtype),
        W_step=jnp.asarray(0.02, dtype),
        beta_step=jnp.full(J, 0.2, dtype),
        curvature=mean_curvature(state, data, model),
        fitted=predictor(state, data),
        path=None if model.dynamics is None else _initial_path(state, data, model),
    )


def _initial_path(state: State, data: Data, model: Model) -> PathTuning:
    dtype = data.Y.dtype
    return PathTuning(
        step=jnp.asarray(0.2, dtype),
        information=_information(state, data, model),
        lengthscale_steps=jnp.full(2, 0.2, dtype),
    )


def track(tuning: Tuning, state: State, data: Data, model: Model, rate: Array) -> Tuning:
    """Move the running means of curvature and F towards the state."""
    curvature, F = mean_curvature(state, data, model), predictor(state, data)
    if tuning.path is not None:
        mean = tuning.path.information
        mean = mean + rate * (_information(state, data, model) - mean)
        tuning = tuning._replace(path=tuning.path._replace(information=mean))
    return tuning._replace(
        curvature=tuning.curvature + rate * (curvature - tuning.curvature),
        fitted=tuning.fitted + rate * (F - tuning.fitted),
    )


def _information(state: State, data: Data, model: Model) -> Float[Array, "N D D"]:
    return cell_expansion(state.X, state.W, state.beta, state.theta, data, model).metric


def mean_curvature(state: State, data: Data, model: Model) -> Float[Array, " J"]:
    """-d^2 log p(y | f) / df^2 of each column at the state, summed over observed cells, per row."""
    F = predictor(state, data)
    _, _, curvature = model.likelihood.slope_and_curvature(data.Y, F, state.theta, data.trials)
    return sum_observed(curvature, data.mask, axis=0) / F.shape[0]
