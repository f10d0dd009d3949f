"""What is maximised: log p(X, W, theta | Y) with beta integrated out, up to a constant, and its gradient.

To the log density belongs an effective volume correction (``log_volume``): the height of a maximum is not its mass.
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model import dynamics, laplace, spectral
from ..model.conjugate import log_evidence
from ..model.dynamics import Chronology, Innovations
from ..model.features import features_and_slopes
from ..model.joint import Data, Model, log_prior_latents, per_axis
from ..model.laplace import Mode
from ..numerics import linalg
from ..numerics.compilation import compiled

# Rows per column up to which the two limits of the volume correction count half each. Measured by
# benchmarks/choices.py: with this number a true lengthscale of 1 comes back as 0.80 to 1.14 for tables of
# 250 x 100 to 2000 x 50 and 500 x 400 (docs/design.md).
ROWS_PER_COLUMN = 5.0

# Added to mean squares whose logarithm is taken: a start of a single row, or of constant columns, has none. Small
# beside 1, where the prior has them; a choice without a measurement.
MIN_MEAN_SQUARE = 1e-6

Kernel = Literal["rbf", "learned"]


class Parameters(NamedTuple):
    """What is maximised over. The kernel has either ``log_scale`` (RBF) or ``W`` (learned); the other is None.

    Attributes
    ----------
    X : array (N, D)
        Latent positions.
    log_amplitude : array () or None
        Logarithm of the factor on the prior standard deviation of the coefficients of cosines and sines; None where the
        prior of beta is taken as given.
    log_scale : array () or None
        Logarithm of c, the inverse lengthscale of an RBF kernel, whose frequencies are c E with E fixed.
    W : array (H, D) or None
        Free frequencies.
    log_theta : dict of array () or (J,)
        Logarithms of the family's own parameters, by name; empty for the conjugate Gaussian, where they are
        integrated out.
    """

    X: Float[Array, "N D"]
    log_amplitude: Float[Array, ""] | None
    log_scale: Float[Array, ""] | None
    W: Float[Array, "H D"] | None
    log_theta: dict[str, Array]


class Path(NamedTuple):
    """What is held constant of a prior over time within a climb (``lengthscales.py`` renews it between climbs).

    Attributes
    ----------
    lengthscale : array (L,)
        Of the processes.
    information : array (N,)
        Information about F in the cells of each row, where F is the intercepts.
    relative : array (N, D)
        Information of each row about its position, times the variance of X: it does not change when X and W are scaled.
    """

    lengthscale: Float[Array, " L"]
    information: Float[Array, " N"]
    relative: Float[Array, "N D"]


class Spectrum(NamedTuple):
    """What is held constant within a climb: the prior of the frequencies, and the numbers of the volume correction.

    Attributes
    ----------
    standard : array (H, D)
        E, the fixed frequencies of an RBF kernel with lengthscale 1.
    z : array (H,)
        Component of each frequency in the mixture prior of free frequencies.
    mu : array (H, D)
        Means of the components.
    Sigma : array (H, D, D)
        Covariances of the components.
    alpha : array ()
        Concentration of the mixture.
    information : array ()
        Information about F in the cells of a row, on average over rows, where F is the intercepts.
    volume_weight : array ()
        Weight of the posterior's volume in the volume correction, see ``log_volume``.
    path : Path or None
        Of a prior over time.
    """

    standard: Float[Array, "H D"]
    z: Array
    mu: Float[Array, "H D"]
    Sigma: Float[Array, "H D D"]
    alpha: Float[Array, ""]
    information: Float[Array, ""]
    volume_weight: Float[Array, ""]
    path: Path | None = None


class Anchor(NamedTuple):
    """An approximation of the objective for steps away from a point, the anchor, where its gradient is exact.

    The determinants are those of a curvature that columns share; a term that is linear in the parameters makes up for
    the difference of the gradients at the anchor.

    Attributes
    ----------
    shared : SharedCurvature
        From the curvatures of the cells at the anchor.
    correction : Parameters
        Gradient of the objective less that of the approximation, at the anchor.
    """

    shared: laplace.SharedCurvature
    correction: Parameters


def frequencies(parameters: Parameters, spectrum: Spectrum) -> Float[Array, "H D"]:
    """W of either kernel."""
    if parameters.W is not None:
        return parameters.W
    assert parameters.log_scale is not None
    return jnp.exp(parameters.log_scale) * spectrum.standard


def scaled_features(
    parameters: Parameters, spectrum: Spectrum, covariates: Float[Array, "N C"] | None = None
) -> tuple[Float[Array, "N M"], Float[Array, "D N M"], Float[Array, " M"]]:
    """Phi and its slopes with the amplitude multiplied into their columns, and this column scale.

    Coefficients of standard deviation a for Phi are coefficients of standard deviation 1 for a Phi.
    """
    W = frequencies(parameters, spectrum)
    Phi, slopes = features_and_slopes(parameters.X, W, covariates)
    column_scale = jnp.ones(Phi.shape[1], Phi.dtype)
    if parameters.log_amplitude is not None:
        column_scale = column_scale.at[: 2 * len(W)].set(jnp.exp(parameters.log_amplitude))
    return Phi * column_scale[None], slopes * column_scale[None, None], column_scale


def log_prior(
    parameters: Parameters, spectrum: Spectrum, model: Model, chronology: Chronology | None = None
) -> Float[Array, ""]:
    """log p(X, W, log theta) and the volume correction, up to a constant.

    The logarithms of the amplitude and of an RBF kernel's inverse lengthscale are N(0, 1). With a prior over time the
    density of its log lengthscales belongs to it.
    """
    steps = recursion(spectrum, model, chronology)
    if steps is None:
        total = log_prior_latents(parameters.X)
    else:
        assert model.dynamics is not None
        assert spectrum.path is not None
        assert chronology is not None
        lengthscale = spectrum.path.lengthscale
        total = dynamics.log_density(parameters.X.astype(steps.deviation.dtype), steps).astype(parameters.X.dtype)
        total += model.dynamics.log_prior(lengthscale, chronology) + jnp.sum(jnp.log(lengthscale))
    if parameters.log_amplitude is not None:
        total += -0.5 * parameters.log_amplitude**2
    if parameters.log_scale is not None:
        total += -0.5 * parameters.log_scale**2
    if parameters.W is not None:
        total += spectral.log_normal(parameters.W, spectrum.mu[spectrum.z], spectrum.Sigma[spectrum.z]).sum()
    total += log_volume(parameters, spectrum) if steps is None else log_volume_of_paths(parameters, spectrum, steps)
    if parameters.log_theta:
        theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items()}
        total += model.likelihood.log_prior_theta(theta)
        # The density of log theta is that of theta times the Jacobian, theta.
        total += sum(value.sum() for value in parameters.log_theta.values())
    return total


def log_volume(parameters: Parameters, spectrum: Spectrum) -> Float[Array, ""]:
    """The effective volume correction: the log volume of the posterior around a maximum, as far as it varies.

    It lies between two limits, and is their mean with weights 1 - v and v, v being ``spectrum.volume_weight``.

    Where the data determine F, the likelihood is constant along the orbit X -> XA, W -> WA^{-T}, and a bare maximum
    would shrink X along it to gain prior density. The orbit has volume |A|^N, A being any matrix when W is free and a
    multiple of I when it is not. With it X'X/N is at I, or its mean diagonal at 1, where the posterior has it.

    Where F is free to become steeper in proportion to W, x_n has posterior precision I + i W'W/H, i being the
    information of a row where F has slope one. Higher frequencies tell rows apart more sharply, so the posterior of X
    has volume |I + i W'W/H|^{-N/2}, and a bare maximum would shorten the lengthscale.
    """
    X, W = parameters.X, frequencies(parameters, spectrum)
    N, D = X.shape
    if parameters.W is None:
        log_orbit = N * D / 2 * jnp.log(jnp.mean(X**2) + MIN_MEAN_SQUARE)
    else:
        log_orbit = N * _half_logdet(X.T @ X / N)
    precision = jnp.eye(D, dtype=X.dtype) + spectrum.information * W.T @ W / len(W)
    log_posterior = -N * _half_logdet(precision)
    return (1 - spectrum.volume_weight) * log_orbit + spectrum.volume_weight * log_posterior


def recursion(spectrum: Spectrum, model: Model, chronology: Chronology | None) -> Innovations | None:
    """The prior over time, if there is one, in double precision: neighbouring rows differ by little."""
    if model.dynamics is None:
        return None
    assert spectrum.path is not None
    assert chronology is not None
    double = jnp.result_type(float)
    lengthscale = per_axis(spectrum.path.lengthscale.astype(double), model.D)
    return dynamics.innovations(model.dynamics, lengthscale, linalg.cast(chronology, double))


def log_volume_of_paths(parameters: Parameters, spectrum: Spectrum, steps: Innovations) -> Float[Array, ""]:
    """``log_volume`` where dimension d of X has the prior covariance K_d over rows.

    The posterior of X has the volume prod_d |K_d^{-1} + G_d|^{-1/2}, G_d being the diagonal matrix of the information
    of the rows about their positions. Where the data determine F, X -> XA scales G_d by the inverse variance of X, and
    where F is free to become steeper G_d is i_n (W'W/H)_dd. With K_d = I both are those of ``log_volume``, up to a
    constant. What X'X and W'W have off their diagonals is counted as it is there.
    """
    assert spectrum.path is not None
    path, double = spectrum.path, steps.deviation.dtype
    X, W = parameters.X.astype(double), frequencies(parameters, spectrum).astype(double)
    N, D = X.shape
    away = X - X.mean(axis=0)[None]  # a constant is no scale: long lengthscales would be free to have a large one
    S, eye = away.T @ away / N, jnp.eye(D, dtype=double)
    if parameters.W is None:
        S = jnp.mean(jnp.diagonal(S)) * eye
    relative = path.relative.astype(double) / (jnp.diagonal(S) + MIN_MEAN_SQUARE)[None]
    log_orbit = -0.5 * dynamics.log_determinant(relative, steps.step) + N * _half_log_correlation(S)
    slopes = W.T @ W / len(W)
    unit = path.information.astype(double)[:, None] * jnp.diagonal(slopes)[None]
    precision = eye + spectrum.information.astype(double) * slopes
    log_posterior = -0.5 * dynamics.log_determinant(unit, steps.step) - N * _half_log_correlation(precision)
    weight = spectrum.volume_weight.astype(double)
    total = (1 - weight) * log_orbit + weight * log_posterior + jnp.sum(jnp.log(steps.deviation))
    return total.astype(parameters.X.dtype)


def _half_log_correlation(S: Float[Array, "D D"]) -> Float[Array, ""]:
    """1/2 log |R|, R being the correlations of a covariance matrix."""
    return _half_logdet(S) - 0.5 * jnp.sum(jnp.log(jnp.diagonal(S) + MIN_MEAN_SQUARE))


def _half_logdet(S: Float[Array, "D D"]) -> Float[Array, ""]:
    """1/2 log |S| of a matrix that may be singular."""
    return linalg.small_logdet(linalg.small_cholesky(S + MIN_MEAN_SQUARE * jnp.eye(len(S), dtype=S.dtype)))


def volume_weight(information: float, N: int, J: int) -> float:
    """Weight of the posterior's volume in ``log_volume``, at most one half.

    It falls with the number of rows per column, which determine F, from ``ROWS_PER_COLUMN`` on. Rows are counted by
    the information in the whole table where F is the intercepts: a row of cells that know little of F (a yes/no
    answer: a quarter of a Gaussian cell) counts as less than one. docs/design/maximum.md has the measurements.
    """
    rows = min(information / J, N)
    return 1 / (1 + max(rows / (ROWS_PER_COLUMN * J), 1))


@functools.partial(compiled, quick=True, static_argnames=("model", "tolerance"))
def evaluate(
    parameters: Parameters, mode: Mode | None, spectrum: Spectrum, data: Data, model: Model, tolerance: float,
    anchor: Anchor | None = None,
) -> tuple[Float[Array, ""], Parameters, laplace.Evidence | None]:  # fmt: skip
    """The objective, its gradient, and the modes of beta with what their search has seen (None: no search is needed).

    Modes are handed on as coefficients of Phi without the amplitude, so that F stays where it was when that changes.
    With an anchor it is the approximation that belongs to it.
    """

    def objective(parameters):
        Phi, _, column_scale = scaled_features(parameters, spectrum, data.covariates)
        double = jnp.result_type(float)  # sums over the table, also where the matrices are in single precision
        prior = log_prior(parameters, spectrum, model, data.chronology).astype(double)
        if mode is None:
            values = log_evidence(Phi, data, model)
            return jnp.sum(values.astype(double)) + prior, None
        theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items() if value.ndim}
        warm_start = laplace.rescaled(mode, 1 / column_scale)
        shared = None if anchor is None else anchor.shared
        value, evidence = laplace.log_evidence(Phi, theta, warm_start, data, model, tolerance, shared)
        if anchor is not None:
            linear = jax.tree.map(
                lambda slope, part: jnp.sum((slope * part).astype(double)), anchor.correction, parameters
            )
            value += sum(jax.tree.leaves(linear))
        return value + prior, evidence._replace(mode=laplace.rescaled(evidence.mode, column_scale))

    (value, evidence), gradient = jax.value_and_grad(objective, has_aux=True)(parameters)
    return value, gradient, evidence
