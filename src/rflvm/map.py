"""The MAP engine: maximise log p(X, W, theta | Y) with beta integrated out.

Integrated exactly for the Gaussian (Eq. 12), by Laplace's method otherwise (``laplace.py``). A joint
maximum that includes beta overfits; this one does not. Two kernels:

rbf        W = c E with E fixed (``quadrature.py``): an RBF kernel whose inverse lengthscale c is learned
learned    W free under the mixture prior; its z, (mu, Sigma) and alpha are updated between rounds

The maximiser is L-BFGS. X starts where ``starts.py`` says, and several starts can compete.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from scipy import optimize
from tqdm import tqdm

from . import laplace, likelihoods, linalg, quadrature, room, spectral, starts, validation
from .compiling import compiled_soon
from .features import features, features_and_slopes
from .laplace import Mode
from .likelihoods.base import sum_observed
from .linalg import NumericalError, cast
from .model import (
    Data,
    Model,
    Prior,
    State,
    coefficients,
    log_evidence,
    log_prior_beta,
    log_prior_latents,
    regression,
    state_shapes,
)
from .posterior import Draws

logger = logging.getLogger(__name__)

N_ROUNDS = 3
N_MIXTURE_PASSES = 5
SCREENING = (16, 20), (5, 40)  # of so many starts, so many iterations
N_FINALISTS, N_FINAL, N_COLUMNS = 2, 8, 256
SAME, NEAR = 5.0, 50.0  # nats between starts that end in the same maximum, and between those worth a second round
SMOOTH = 0.5
HELD = 5.0  # informative rows per column up to which the data hold half of F
FLAT = 1e-6  # the least mean square of X along any axis: a start of few rows may have none
TOLERANCE = {"float32": 1e-7, "float64": 1e-9}
PATIENCE, RISE = 5, 5e-6  # a climb ends when so many iterations raise it by less than this share of its height
FLAT_SLOPE = 1e-4
N_REFINE_WARMUP, N_REFINE, REFINE_ACCEPTANCE = 100, 5, 0.4  # Metropolis steps before and between draws of beta
UNFINISHED = 0.1  # Newton decrement: log density that a column could still gain
MISSES = 8  # evaluations in a row without the modes after which single precision is given up
PROGRESS: Any = {"unit": "iteration", "bar_format": "{desc}{n_fmt} iterations [{elapsed}, {rate_fmt}{postfix}]"}

Kernel = Literal["rbf", "learned"]
Convergence = Literal["converged", "iteration limit", "line search failed", "modes not found", "interrupted"]
TOO_COARSE = ("line search failed", "modes not found")  # what single precision can be the reason of


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


@functools.partial(compiled_soon, static_argnames=("model", "tolerance"))
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


@dataclasses.dataclass
class Search:
    """A maximisation in progress: where it is, and what it has seen."""

    parameters: Parameters
    mode: Mode | None  # of the coefficients with the amplitude in them
    spectrum: Spectrum
    trace: list[float]
    value: float = -np.inf
    convergence: Convergence = "iteration limit"


def climb(
    search: Search, data: Data, model: Model, n_iterations: int, tell: Callable[[float], None] = lambda value: None,
    misses_allowed: float = np.inf,
) -> Search:  # fmt: skip
    """L-BFGS from where a search is; the highest point is kept, also when interrupted.

    "line search failed" means that the climb was still gaining when no higher point was found any more: the objective
    is not as precise as its slope promises. "modes not found" is said when much is left to gain in beta, or when it was
    not found to the tolerance in ``misses_allowed`` evaluations in a row, which ends the climb.

    X moves by U + ``SMOOTH`` Phi A, with Phi its features at the start: that all rows bend together is as easy
    as that each moves by itself, or the shape of the whole would be found last.
    """
    flat, unravel = _flatten(search.parameters)
    size, N, D = len(flat), *search.parameters.X.shape
    Phi = SMOOTH * np.asarray(_features(search.parameters, search.spectrum), float)
    tolerance = TOLERANCE[str(data.Y.dtype)]
    highest, value, mode, decrement, misses = flat, -np.inf, search.mode, 0.0, 0
    heights: list[float] = []
    convergence: Convergence = "line search failed"

    def expand(point):
        flat = point[:size].copy()
        flat[: N * D] += (Phi @ point[size:].reshape(-1, D)).ravel()
        return flat

    def negative(point):
        nonlocal highest, value, mode, decrement, misses
        flat = expand(point)
        number, gradient, evidence = evaluate(unravel(flat), mode, search.spectrum, data, model, tolerance)
        number, slope = float(number), _flatten(gradient)[0]
        if not (np.isfinite(number) and np.isfinite(slope).all()):
            return abs(value) * 10 + 1e10 if np.isfinite(value) else 1e300, np.zeros_like(point)
        if not heights:
            heights.append(number)
        misses = 0 if evidence is None or evidence.arrived else misses + 1
        if number > value:
            highest, value = flat, number
            if evidence is not None:
                mode, decrement = evidence.mode, float(evidence.decrement)
        return -number, -np.append(slope, Phi.T @ slope[: N * D].reshape(N, D))

    def level():
        return value - heights[-1 - PATIENCE :][0] < RISE * abs(value)

    def after(point):
        heights.append(value)
        tell(value)
        if misses >= misses_allowed or (len(heights) > PATIENCE + 1 and level()):
            raise StopIteration

    A = np.zeros(Phi.shape[1] * D)
    start = np.append(flat, A)
    options = {"maxiter": n_iterations, "maxcor": 20, "ftol": 0, "gtol": FLAT_SLOPE, "maxls": 20}
    try:
        minimize: Any = optimize.minimize
        result = minimize(negative, start, jac=True, method="L-BFGS-B", callback=after, options=options)
    except KeyboardInterrupt:
        if not heights:
            raise  # there is no point to keep yet
        result = None
    if not heights:
        raise NumericalError("the objective is not finite at the start; rescale the data or check for extreme values")
    if result is None:
        convergence = "interrupted"
    elif decrement > UNFINISHED or misses >= misses_allowed:
        convergence = "modes not found"
    elif level() or np.abs(result.jac).max() <= FLAT_SLOPE:
        convergence = "converged"
    elif result.nit == n_iterations:
        convergence = "iteration limit"
    return Search(unravel(highest), mode, search.spectrum, search.trace + heights[1:], value, convergence)


@jax.jit
def _features(parameters: Parameters, spectrum: Spectrum) -> Float[Array, "N M"]:
    return features(parameters.X, frequencies(parameters, spectrum))


def _flatten(parameters: Parameters) -> tuple[np.ndarray, Callable[[np.ndarray], Parameters]]:
    """The parameters as one float64 vector, and the way back."""
    leaves, tree = jax.tree.flatten(parameters)
    shapes, dtypes = [leaf.shape for leaf in leaves], [leaf.dtype for leaf in leaves]
    cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def unravel(flat):
        parts = np.split(flat, cuts)
        return jax.tree.unflatten(
            tree, [jnp.asarray(p.reshape(s), d) for p, s, d in zip(parts, shapes, dtypes, strict=True)]
        )

    return np.concatenate([np.asarray(leaf, float).ravel() for leaf in leaves]), unravel


def begin(seed: int, X: np.ndarray, data: Data, model: Model, amplitude: bool) -> Search:
    """A search with an RBF kernel from a start of X, with an amplitude to be learned or without."""
    dtype = data.Y.dtype
    shapes = state_shapes(data, model)
    zeros = lambda shape: np.zeros(shape.shape, shape.dtype)  # noqa: E731
    gaussian = isinstance(model.likelihood, likelihoods.Gaussian)
    log_theta = {} if gaussian else {name: jnp.asarray(zeros(shape)) for name, shape in shapes.theta.items()}
    zero = jnp.asarray(0.0, dtype)
    parameters = Parameters(jnp.asarray(X, dtype), zero if amplitude else None, zero, None, log_theta)
    if gaussian:
        mode, information = None, data.Y.size if data.mask is None else data.mask.sum()
    else:
        beta = zeros(shapes.beta)
        beta[-1] = starts.intercepts(data, model)
        mode = jax.jit(laplace.start, static_argnames="model")(data, model, jnp.asarray(beta))
        information = laplace.information(jnp.asarray(beta[-1]), data, model)
    as_array = jnp.asarray
    spectrum = Spectrum(
        standard=as_array(quadrature.frequencies(model.H, model.D, seed), dtype),
        z=as_array(zeros(shapes.z)),
        mu=as_array(zeros(shapes.mu)),
        Sigma=as_array(zeros(shapes.Sigma) + np.eye(model.D, dtype=dtype)),
        alpha=as_array(model.prior.alpha_shape / model.prior.alpha_rate, dtype),
        information=as_array(float(information) / len(X), dtype),
        stretch=as_array(stretch(float(information), *data.Y.shape), dtype),
    )
    return Search(parameters, mode, spectrum, [])


def stretch(information: float, N: int, J: int) -> float:
    """The part of the room of X that follows the frequencies, from the information of a table where F is flat.

    Less of it the more rows hold F in place, counting those that know little of F (yes/no answers: a quarter) as less
    than one; docs/design.md has the measurements.
    """
    rows = min(information / J, N)
    return 1 / (1 + max(rows / (HELD * J), 1))


def free_frequencies(key: Array, search: Search, model: Model) -> Search:
    """Let W go: from the present frequencies, with the mixture updated to them."""
    W = frequencies(search.parameters, search.spectrum)
    spectrum = _update_mixture(key, W, search.spectrum, model)
    parameters = search.parameters._replace(log_scale=None, W=W)
    return dataclasses.replace(search, parameters=parameters, spectrum=spectrum)


@functools.partial(jax.jit, static_argnames="model")
def _update_mixture(key: Array, W: Array, spectrum: Spectrum, model: Model) -> Spectrum:
    """A few passes over z, (mu, Sigma) and alpha, then mu at its mean and Sigma at E[Sigma^{-1}]^{-1}."""
    prior = model.prior
    niw = prior.niw(model.D, W.dtype)
    shape, rate = (jnp.asarray(value, W.dtype) for value in (prior.alpha_shape, prior.alpha_rate))

    def one_pass(carry, key):
        z, alpha = carry
        key_components, key_z, key_alpha = jax.random.split(key, 3)
        mu, Sigma = spectral.sample_niw(key_components, spectral.niw_posterior(niw, W, z))
        z, _, _ = spectral.sample_assignments(key_z, z, W, mu, Sigma, alpha, niw)
        return (z, spectral.sample_concentration(key_alpha, alpha, z, shape, rate)), None

    keys = jax.random.split(key, N_MIXTURE_PASSES)
    (z, alpha), _ = jax.lax.scan(one_pass, (spectrum.z, spectrum.alpha), keys)
    posterior = spectral.niw_posterior(niw, W, z)
    Sigma = posterior.Psi / posterior.nu[:, None, None]
    return spectrum._replace(z=z, mu=posterior.m, Sigma=Sigma, alpha=alpha)


def find(
    data: Data, model: Model, kernel: Kernel, init: str | np.ndarray, n_iterations: int, seed: int,
    tell: Callable[[float], None] = lambda value: None, *, amplitude: bool = True,
) -> tuple[Search, Data, str]:  # fmt: skip
    """The whole maximisation: choose a start, climb, free W and climb again.

    Also the data in the precision in which the search ended, and the start's name.
    """
    search, name = choose_start(data, model, init, seed, tell, amplitude)
    search, data = _climb_precisely(search, data, model, n_iterations, tell)
    if kernel == "learned":
        for key in jax.random.split(jax.random.key(seed), N_ROUNDS):
            if search.convergence == "interrupted":
                break
            search = free_frequencies(key, search, model)
            search, data = _climb_precisely(search, data, model, n_iterations, tell)
    return search, data, name


def _climb_precisely(
    search: Search, data: Data, model: Model, n_iterations: int, tell: Callable[[float], None]
) -> tuple[Search, Data]:
    """Climb, and go on in double precision where single precision was too coarse.

    Large counts and a large amplitude make P_j so ill-conditioned that its determinant is noise, and Newton's steps are
    lost in it: each evaluation then goes to the limit of its rounds, which double precision does not need.
    """
    before = len(search.trace)
    single = data.Y.dtype == jnp.float32
    search = climb(search, data, model, n_iterations, tell, MISSES if single else np.inf)
    left = n_iterations - (len(search.trace) - before)
    if search.convergence in TOO_COARSE and single and left > 0:
        logger.info("%s in single precision: going on in double", search.convergence)
        data = cast(data, jnp.float64)
        parameters, mode, spectrum = cast((search.parameters, search.mode, search.spectrum), jnp.float64)
        search = climb(Search(parameters, mode, spectrum, search.trace), data, model, left, tell)
    return search, data


def choose_start(
    data: Data, model: Model, init: str | np.ndarray, seed: int,
    tell: Callable[[float], None] = lambda value: None, amplitude: bool = True,
) -> tuple[Search, str]:  # fmt: skip
    """A search from the start of X that was asked for, or from the best of several.

    Of many rows a sample competes, and the others are placed next to it. The first rounds are held on the
    standardised table as if it were Gaussian, which costs little, the last on the table itself, or a sample of its
    columns. An interrupt is raised: there is nothing to keep yet.
    """
    if isinstance(init, np.ndarray):
        return begin(seed, init, data, model, amplitude), "given"
    table = starts.stabilised(data, model)
    if init != "auto":
        return begin(seed, starts.embed(init, table, model.D, seed), data, model, amplitude), init
    rows = starts.landmarks(len(table), seed)
    sample = _sample(data, rows, seed)
    stand_in = Data(jnp.asarray(starts.standardised(table[rows]), data.Y.dtype), None, 0 * sample.offset, None)
    gaussian = Model(likelihoods.Gaussian(), model.D, model.H)

    def compete(search: Search, data: Data, model: Model, n_iterations: int) -> Search:
        search = climb(search, data, model, n_iterations, tell)
        if search.convergence == "interrupted":
            raise KeyboardInterrupt
        return search

    def from_stand_in(found: Search) -> Search:
        search = begin(seed, np.asarray(found.parameters.X), sample, model, amplitude)
        parameters = search.parameters._replace(log_scale=found.parameters.log_scale)
        return dataclasses.replace(search, parameters=parameters)

    made = starts.candidates(table[rows], model.D, seed)
    first = {name: begin(seed, X, stand_in, gaussian, True) for name, X in made.items()}
    for n_best, n_iterations in SCREENING:
        best = sorted(first, key=lambda name: first[name].value, reverse=True)[:n_best]
        first |= {name: compete(first[name], stand_in, gaussian, n_iterations) for name in best}
    finalists = _different(first)
    second = {name: compete(from_stand_in(first[name]), sample, model, N_FINAL) for name in finalists}
    if "tsne" in made:
        second["tsne itself"] = compete(begin(seed, made["tsne"], sample, model, amplitude), sample, model, N_FINAL)
    best = max(second, key=lambda name: second[name].value)
    for text, found in (("as if Gaussian", first), ("then", second)):
        logger.info("log posterior %s: %s", text, ", ".join(f"{n} {search.value:.1f}" for n, search in found.items()))
    logger.info("start of X: %s", best)
    search = second[best]
    if sample.Y.shape == data.Y.shape:
        return search, best
    full = begin(seed, starts.extend(np.asarray(search.parameters.X), rows, table, seed), data, model, amplitude)
    _, log_amplitude, log_scale, _, _ = search.parameters
    parameters = full.parameters._replace(log_amplitude=log_amplitude, log_scale=log_scale)
    return dataclasses.replace(full, parameters=parameters), best


def _sample(data: Data, rows: np.ndarray, seed: int) -> Data:
    """Some rows, and at most ``N_COLUMNS`` columns."""
    columns = np.sort(np.random.default_rng(seed).permutation(data.Y.shape[1])[:N_COLUMNS])
    some = lambda part: part[rows] if part.ndim == 1 else part[np.ix_(rows, columns)]  # noqa: E731
    return jax.tree.map(lambda part: jnp.asarray(some(np.asarray(part))), data)


def _different(searches: dict[str, Search]) -> list[str]:
    """The highest few that are near the highest and not in the same maximum as one above them."""
    ranked = sorted(searches, key=lambda name: searches[name].value, reverse=True)
    kept = ranked[:1]
    for name in ranked[1:]:
        value = searches[name].value
        if searches[kept[-1]].value - value > SAME and searches[kept[0]].value - value < NEAR:
            kept.append(name)
    return kept[:N_FINALISTS]


@dataclasses.dataclass
class Fit:
    """What the MAP engine found, enough to predict, to embed new rows and to say how sure it is.

    Attributes
    ----------
    X, X_covariance : array (N, D), (N, D, D)
        Latent positions, and the covariance of each given the others: the inverse of its prior
        precision plus the information of its cells, each with the variance that beta leaves added.
    W, z, mu, Sigma, alpha
        Frequencies and their mixture.
    amplitude : float
        What the prior standard deviation of the coefficients was multiplied by.
    beta, beta_factor, beta_scale : array (M, J), (J or 1, M, M), (J,)
        Posterior of the coefficients: mean, and covariance ``beta_scale_j (L_j L_j')^{-1}``. One factor
        serves all columns of a Gaussian table without gaps. ``beta_factor`` is None when it would
        not fit the memory budget.
    theta : dict
        The family's own parameters.
    trace : array
        The objective after each iteration.
    convergence : str
        "converged", "iteration limit", "line search failed", "modes not found" (of beta, by Newton's method,
        in some column) or "interrupted".
    init : str
        The start of X that was used.
    """

    model: Model
    X: np.ndarray
    X_covariance: np.ndarray
    W: np.ndarray
    z: np.ndarray
    mu: np.ndarray
    Sigma: np.ndarray
    alpha: float
    amplitude: float
    beta: np.ndarray
    beta_factor: np.ndarray | None
    beta_scale: np.ndarray
    theta: dict[str, np.ndarray]
    trace: np.ndarray
    convergence: Convergence
    init: str


def maximise(
    Y: np.ndarray,
    likelihood: str | likelihoods.Likelihood = "gaussian",
    *,
    n_components: int = 2,
    n_features: int = 100,
    kernel: Kernel = "rbf",
    init: str | np.ndarray = "auto",
    n_iterations: int = 40,
    seed: int = 0,
    mask: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    prior: Prior = Prior(),
    progress: bool = False,
    memory_budget: float = 1e9,
    dtype: Literal["float32", "float64"] = "float32",
) -> Fit:
    """Find the most probable X, W and theta of an RFLVM, beta integrated out.

    Parameters
    ----------
    Y : array_like (N, J)
        The table. NaN means missing.
    likelihood : str or Likelihood
        As in ``sample``.
    n_components, n_features : int
        D, and M = 2H, an even number of random features.
    kernel : {"rbf", "learned"}
        An RBF kernel with a learned scale, or frequencies free under their mixture prior.
    init : {"auto", "pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where X starts. "auto" lets all of them compete, first as if the table were Gaussian, then the best and
        t-SNE on the table itself, keeps the one with the highest posterior density and logs it.
    n_iterations : int
        At most so many L-BFGS iterations in each round.
    seed : int
        The same seed gives the same fit, bit for bit, on the same machine.
    mask, offset, prior
        As in ``sample``.
    progress : bool
        Show a progress bar.
    memory_budget : float
        Bytes that the factor of beta's covariance may take in the result.
    dtype : {"float32", "float64"}
        Precision of the matrices at the start; where single precision turns out to be too coarse, as with large
        counts, the search goes on in double. Sums over the table are in double precision either way.

    Returns
    -------
    Fit
        Interrupting (Ctrl-C) returns the best point found so far, once a start has been chosen.

    Examples
    --------
    >>> import rflvm
    >>> from rflvm.datasets import make_s_curve
    >>> Y = make_s_curve(60, 20, emissions="poisson").data
    >>> fit = rflvm.maximise(Y, "poisson", n_features=20, init="pca", n_iterations=200)
    >>> fit.X.shape, fit.convergence
    ((60, 2), 'converged')
    """
    family = likelihoods.get(likelihood)
    D, H = validation.check_dimensions(n_components, n_features)
    validation.check_integer("n_iterations", n_iterations, 1)
    validation.check_choice("kernel", kernel, ("learned", "rbf"))
    validation.check_choice("dtype", dtype, ("float32", "float64"))
    table = validation.check_table(Y, family, mask, offset, D)
    X0 = validation.check_start(init, table.Y.shape[0], D, ("auto", *starts.STARTS))
    model = Model(family, D, H, prior)
    room.make()
    with jax.enable_x64(True), linalg.one_blas_thread():
        data = validation.to_device(table, dtype)
        with tqdm(disable=not progress, **PROGRESS) as line:

            def tell(value):
                line.update()
                line.set_postfix_str(f"log posterior {value:.1f}")

            search, data, name = find(data, model, kernel, X0, n_iterations, seed, tell)
        return finish(search, name, data, model, memory_budget)


def finish(search: Search, init: str, data: Data, model: Model, memory_budget: float) -> Fit:
    """Everything that a fit carries, at the end of a search."""
    parameters = search.parameters
    theta, found, times, covariance = posterior(parameters, search.mode, search.spectrum, data, model)
    keep = found.factor.size * found.factor.dtype.itemsize <= memory_budget
    if not keep:
        logger.info("the factor of beta's covariance would take %.0f MB and is left out", found.factor.nbytes / 1e6)
    as_array = np.asarray
    return Fit(
        model=model,
        X=as_array(parameters.X),
        X_covariance=as_array(covariance),
        W=as_array(frequencies(parameters, search.spectrum)),
        z=as_array(search.spectrum.z),
        mu=as_array(search.spectrum.mu),
        Sigma=as_array(search.spectrum.Sigma),
        alpha=float(search.spectrum.alpha),
        amplitude=float(times[0]),
        beta=as_array(found.beta),
        beta_factor=as_array(found.factor) if keep else None,
        beta_scale=as_array(found.scale),
        theta={name: as_array(value) for name, value in theta.items()},
        trace=np.array(search.trace),
        convergence=search.convergence,
        init=init,
    )


@functools.partial(compiled_soon, static_argnames="model")
def posterior(
    parameters: Parameters, mode: Mode | None, spectrum: Spectrum, data: Data, model: Model
) -> tuple[dict[str, Array], laplace.Details, Float[Array, " M"], Float[Array, "N D D"]]:
    """theta, the posterior of beta given it, what the amplitude multiplied, and the covariance of each row of X."""
    Phi, slopes, times = basis(parameters, spectrum)
    if mode is None:
        found = _gaussian_details(Phi, data, model)
        theta = {"sigma2": found.scale}
    else:
        theta = {name: jnp.exp(value) for name, value in parameters.log_theta.items()}
        per_column = {name: value for name, value in theta.items() if value.ndim}
        found = laplace.details(Phi, per_column, laplace.rescaled(mode, 1 / times), data, model)
    covariance = _row_covariances(slopes, found)
    scaled = found._replace(beta=times[:, None] * found.beta, factor=found.factor / times[:, None])
    return theta, scaled, times, covariance


def _gaussian_details(Phi: Float[Array, "N M"], data: Data, model: Model) -> laplace.Details:
    """The normal-inverse-gamma posterior, with sigma_j^2 at E[sigma_j^{-2}]^{-1}."""
    likelihood = model.likelihood
    assert isinstance(likelihood, likelihoods.Gaussian)
    fit = regression(Phi, data, model)
    sigma2 = (likelihood.b0 + (fit.yy - jnp.sum(fit.half**2, axis=0)) / 2) / (likelihood.a0 + fit.n / 2)
    L = fit.L if fit.L.ndim == 3 else fit.L[None]
    half = jax.vmap(lambda L: linalg.solve_lower(L, Phi.T))(L)
    observed = jnp.ones_like(data.Y) if data.mask is None else data.mask.astype(Phi.dtype)
    return laplace.Details(
        beta=coefficients(fit.L, fit.half),
        factor=L,
        scale=sigma2,
        curvature=observed / sigma2,
        leverage=jnp.broadcast_to(jnp.sum(half**2, axis=1).T, observed.shape) * sigma2,
    )


def _row_covariances(slopes: Float[Array, "D N M"], found: laplace.Details) -> Float[Array, "N D D"]:
    """(I + sum_j (1/D_nj + s_nj)^{-1} (df_nj/dx)(df_nj/dx)')^{-1} of each row."""
    dF = slopes @ found.beta
    information = found.curvature / (1 + found.curvature * found.leverage)
    metric = jnp.einsum("dnj,nj,enj->nde", dF, information, dF) + jnp.eye(dF.shape[0], dtype=dF.dtype)
    return jnp.linalg.inv(metric)


def laplace_draws(fit: Fit, data: Data, n_draws: int, seed: int) -> Draws:
    """Draws around a fit: X from its Gaussian approximation, beta given the X of the fit; the rest as found.

    Where the factor of beta's covariance was too large to keep, beta stays at its mean.
    """
    rng = np.random.default_rng(seed)
    N, D = fit.X.shape
    L = np.linalg.cholesky(np.asarray(fit.X_covariance, float))
    X = fit.X + np.einsum("nde,sne->snd", L, rng.standard_normal((n_draws, N, D)))
    mean = np.asarray(fit.beta, float)
    beta = np.repeat(mean[None], n_draws, axis=0)
    if fit.beta_factor is not None:
        root = np.swapaxes(np.linalg.inv(np.asarray(fit.beta_factor, float)), 1, 2)
        root = np.broadcast_to(root, (mean.shape[1], *root.shape[1:])) * np.sqrt(fit.beta_scale)[:, None, None]
        if isinstance(fit.model.likelihood, likelihoods.Gaussian):
            beta += np.einsum("jab,sbj->saj", root, rng.standard_normal(beta.shape), optimize=True)
        else:
            beta = _draw_beta(fit, root, data, n_draws, seed)
    found = {"W": fit.W, "z": fit.z, "mu": fit.mu, "Sigma": fit.Sigma, "alpha": fit.alpha, "log_joint": fit.trace[-1]}
    arrays = {name: np.repeat(np.asarray(value)[None], n_draws, axis=0) for name, value in (found | fit.theta).items()}
    arrays |= {"X": X, "beta": beta}
    return Draws(fit.model, {name: one_chain[None] for name, one_chain in arrays.items()}, beta_thin=1)


def _draw_beta(fit: Fit, root: np.ndarray, data: Data, n_draws: int, seed: int) -> np.ndarray:
    with jax.enable_x64(True):
        double = lambda part: jnp.asarray(part, float)  # noqa: E731
        Phi = features(double(fit.X), double(fit.W))
        times = jnp.ones(Phi.shape[1]).at[:-1].set(fit.amplitude)
        theta = {name: double(value) for name, value in fit.theta.items()}
        key = jax.random.key(seed)
        return np.asarray(refine_beta(key, double(fit.beta), double(root), Phi, times, theta, data, fit.model, n_draws))


@functools.partial(jax.jit, static_argnames=("model", "n_draws"))
def refine_beta(
    key: Array,
    mean: Float[Array, "M J"],
    root: Float[Array, "J M M"],
    Phi: Float[Array, "N M"],
    times: Float[Array, " M"],
    theta: dict[str, Array],
    data: Data,
    model: Model,
    n_draws: int,
) -> Float[Array, "S M J"]:
    """Draws of beta given X: Metropolis steps that would leave the Gaussian N(mean, root root') as it is.

    With beta_j = mean_j + root_j v_j the step v -> sqrt(1 - s^2) v + s e leaves N(0, I) as it is, so only what
    the Gaussian misses, log p(y_j, beta_j) + |v_j|^2 / 2, decides. Where it misses little, s is one and the draws are
    independent. In columns of hardly anything but zeros it is as wide as the prior, and exp(f) of its draws explodes.
    """
    M, J = mean.shape

    def coefficients_at(v):
        return mean + jnp.einsum("jab,bj->aj", root, v)

    def missed(v):
        beta = coefficients_at(v)
        F = Phi @ beta + data.offset[:, None]
        cells = model.likelihood.log_factor(data.Y, F, theta, data.trials)
        prior = log_prior_beta(beta / times[:, None], theta, model)
        return sum_observed(cells, data.mask, axis=0) + prior + 0.5 * jnp.sum(v**2, axis=0)

    def step(carry, inputs):
        v, here, log_s = carry
        key, rate = inputs
        key_noise, key_accept = jax.random.split(key)
        s = jnp.minimum(jnp.exp(log_s), 1)
        new = jnp.sqrt(1 - s**2) * v + s * jax.random.normal(key_noise, v.shape, v.dtype)
        there = missed(new)
        ratio = jnp.where(jnp.isnan(there), -jnp.inf, there - here)
        accept = jnp.log(jax.random.uniform(key_accept, (J,), v.dtype)) < ratio
        log_s = jnp.minimum(log_s + rate * (jnp.exp(jnp.minimum(ratio, 0)) - REFINE_ACCEPTANCE), 0)
        return (jnp.where(accept, new, v), jnp.where(accept, there, here), log_s), None

    def draw(carry, key):
        keys = jax.random.split(key, N_REFINE)
        carry, _ = lax.scan(step, carry, (keys, jnp.zeros(N_REFINE, mean.dtype)))
        return carry, coefficients_at(carry[0])

    key_warm, key_draws = jax.random.split(key)
    start = (jnp.zeros((M, J), mean.dtype), missed(jnp.zeros((M, J), mean.dtype)), jnp.zeros(J, mean.dtype))
    rates = 1 / jnp.sqrt(1 + jnp.arange(N_REFINE_WARMUP, dtype=mean.dtype))
    warm, _ = lax.scan(step, start, (jax.random.split(key_warm, N_REFINE_WARMUP), rates))
    return lax.scan(draw, warm, jax.random.split(key_draws, n_draws))[1]


def draw_state(key: Array, search: Search, data: Data, model: Model) -> State:
    """A state of the sampler at the maximum: beta drawn, the mixture updated to W.

    In columns where the Gaussian approximation is too wide to be drawn from (see ``refine_beta``), beta is at the mode.
    """
    key_mixture, key_beta = jax.random.split(key)
    parameters = search.parameters
    W = frequencies(parameters, search.spectrum)
    mixture = _update_mixture(key_mixture, W, search.spectrum, model)
    theta, found, times, _ = posterior(parameters, search.mode, search.spectrum, data, model)
    Phi = features(parameters.X, W)

    def log_density(beta):
        cells = model.likelihood.log_factor(data.Y, Phi @ beta + data.offset[:, None], theta, data.trials)
        return sum_observed(cells, data.mask, axis=0) + log_prior_beta(beta / times[:, None], theta, model)

    noise = jax.random.normal(key_beta, found.beta.shape, found.beta.dtype) * jnp.sqrt(found.scale)
    factor = found.factor[0] if len(found.factor) == 1 else found.factor
    drawn = found.beta + coefficients(factor, noise)
    # A draw from a Gaussian of M dimensions has a log density M/2 below that of the mode, give or take sqrt(M/2).
    beta = jnp.where(log_density(drawn) > log_density(found.beta) - len(times), drawn, found.beta)
    return State(parameters.X, W, mixture.z, mixture.mu, mixture.Sigma, mixture.alpha, beta, theta)
