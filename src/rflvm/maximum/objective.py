"""What is maximised: log p(X, W, theta | Y) with beta integrated out, up to a constant, and its gradient."""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model import laplace, spectral
from ..model.conjugate import log_evidence
from ..model.features import features_and_slopes
from ..model.joint import Data, Model, log_prior_latents
from ..model.laplace import Mode
from ..numerics import linalg
from ..numerics.compilation import compiled

HELD = 5.0  # informative rows per column up to which the data hold half of F


FLAT = 1e-6  # the least mean square of X along any axis: a start of few rows may have none


Kernel = Literal["rbf", "learned"]


class Parameters(NamedTuple):
    """What is maximised over: X, the kernel's amplitude, the scale of fixed frequencies or the frequencies
    themselves, and the family's own parameters. Without an amplitude the prior of beta is as given.
    """

    X: Float[Array, "N D"]
    log_amplitude: Float[Array, ""] | None
    log_scale: Float[Array, ""] | None
    W: Float[Array, "H D"] | None
    log_theta: dict[str, Array]


class Spectrum(NamedTuple):
    """What the frequencies have as given: fixed points, the mixture, and what a row knows of its position."""

    standard: Float[Array, "H D"]
    z: Array
    mu: Float[Array, "H D"]
    Sigma: Float[Array, "H D D"]
    alpha: Float[Array, ""]
    information: Float[Array, ""]
    stretch: Float[Array, ""]  # how much of the room of X follows the frequencies


def frequencies(parameters: Parameters, spectrum: Spectrum) -> Float[Array, "H D"]:
    """W of either kernel."""
    if parameters.W is not None:
        return parameters.W
    assert parameters.log_scale is not None
    return jnp.exp(parameters.log_scale) * spectrum.standard


def basis(parameters: Parameters, spectrum: Spectrum) -> tuple[Float[Array, "N M"], Float[Array, "D N M"], Array]:
    """Phi and its slopes with the amplitude in them, and what each column was multiplied by.

    A beta of standard deviation a for Phi is the same as one of standard deviation 1 for a Phi.
    """
    Phi, slopes = features_and_slopes(parameters.X, frequencies(parameters, spectrum))
    times = jnp.ones(Phi.shape[1], Phi.dtype)
    if parameters.log_amplitude is not None:
        times = times.at[:-1].set(jnp.exp(parameters.log_amplitude))
    return Phi * times, slopes * times, times


def log_prior(parameters: Parameters, spectrum: Spectrum, model: Model) -> Float[Array, ""]:
    """log p(X, W, log theta), and two terms for what a maximum does not see of the volume around it.

    X -> XA, W -> WA^{-T} leaves the likelihood as it is, so a bare maximum would shrink X to gain
    density. The volume |A|^N of that direction, A any matrix when W is free and a multiple of I when
    it is not, puts X'X/N at I, or its mean diagonal at 1, where the posterior has it.

    With higher frequencies the rows are told apart more sharply, so each has less room, and a bare maximum
    would stretch curves out. If F got steeper in proportion, the room would change by
    |I + i W'W/H|^{-N/2}, i the information that a row would have where F has slope one; where F is held
    by the data it would not change. ``spectrum.stretch`` is the part of it that counts (docs/design.md). The
    logarithms of the amplitude and of an RBF kernel's scale are N(0, 1).
    """
    X, W = parameters.X, frequencies(parameters, spectrum)
    N, D = X.shape
    half_logdet = lambda S: linalg.small_logdet(linalg.small_cholesky(S + FLAT * jnp.eye(D, dtype=X.dtype)))  # noqa: E731
    total = log_prior_latents(X)
    if parameters.log_amplitude is not None:
        total += -0.5 * parameters.log_amplitude**2
    if parameters.log_scale is not None:
        total += -0.5 * parameters.log_scale**2
        shared = N * D / 2 * jnp.log(jnp.mean(X**2) + FLAT)
    else:
        total += spectral.log_normal(W, spectrum.mu[spectrum.z], spectrum.Sigma[spectrum.z]).sum()
        shared = N * half_logdet(X.T @ X / N)
    room = -N * half_logdet(jnp.eye(D, dtype=X.dtype) + spectrum.information * W.T @ W / len(W))
    total += (1 - spectrum.stretch) * shared + spectrum.stretch * room
    if parameters.log_theta:
        theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items()}
        total += model.likelihood.log_prior_theta(theta)
        total += sum(value.sum() for value in parameters.log_theta.values())
    return total


@functools.partial(compiled, quick=True, static_argnames=("model", "tolerance"))
def evaluate(
    parameters: Parameters, mode: Mode | None, spectrum: Spectrum, data: Data, model: Model, tolerance: float
) -> tuple[Float[Array, ""], Parameters, laplace.Evidence | None]:
    """log p(X, W, theta | Y) up to a constant, its gradient, and where beta's modes are.

    Modes are handed on without the amplitude, so that F stays where it was when the amplitude changes.
    """

    def objective(parameters):
        Phi, _, times = basis(parameters, spectrum)
        prior = log_prior(parameters, spectrum, model)
        if mode is None:
            values = log_evidence(Phi, data, model)
            return jnp.sum(values.astype(jnp.result_type(float))) + prior, None
        theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items() if value.ndim}
        value, evidence = laplace.log_evidence(Phi, theta, laplace.rescaled(mode, 1 / times), data, model, tolerance)
        return value + prior, evidence._replace(mode=laplace.rescaled(evidence.mode, times))

    (value, evidence), gradient = jax.value_and_grad(objective, has_aux=True)(parameters)
    return value, gradient, evidence


def stretch(information: float, N: int, J: int) -> float:
    """The part of the room of X that follows the frequencies, from the information of a table where F is flat.

    Less of it the more rows hold F in place, counting those that know little of F (yes/no answers: a quarter) as less
    than one; docs/design.md has the measurements.
    """
    rows = min(information / J, N)
    return 1 / (1 + max(rows / (HELD * J), 1))
