"""Rows that follow one another: a Matern process over time on each latent dimension, in Markov form.

Within a session, dimension d of X is a Gaussian process over time with unit variance and the covariance

    k(delta) = exp(-r),  r = delta / l_d                       nu = 1/2, Ornstein-Uhlenbeck ("ou")
    k(delta) = (1 + r) exp(-r),  r = sqrt(3) delta / l_d       nu = 3/2 ("matern32")

so that a row by itself is N(0, I) as it is without time. Sessions are independent, and so are dimensions. With the
scaled velocity v = x' / lambda, lambda = sqrt(3) / l_d, the state s = (x, v) is a Markov process, s_n = A_n s_{n-1} +
q_n with q_n ~ N(0, Q_n) and stationary covariance I:

    A_n = exp(-r) [[1 + r, r], [-r, 1 - r]]      Q_n = I - A_n A_n'      A_n = 0, Q_n = I where a session begins

Irregular times and sessions of any length cost nothing extra, and everything here is O(N). With nu = 1/2 the first
component alone is the process and v is an independent white noise that nobody looks at, so that one code serves both.

The Cholesky factor L of the covariance matrix K of a dimension is never made: u = L^{-1} x are the innovations of a
Kalman filter that sees x without noise (``whiten``), and x = L u is the same recursion read the other way (``colour``).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from ..numerics import linalg, scalars
from ..numerics.errors import InputError, InputTypeError

# The prior of a learned lengthscale: its logarithm is normal around so many median gaps between rows, with this
# standard deviation (95 % between half a gap and 190). Wide, for the unit of time is the user's. A choice without a
# measurement.
TYPICAL_GAPS, LOG_DEVIATION = 10.0, 1.5

N_SERIES = 16  # terms of ``_third_gamma``: the last is below 1e-17 of the sum


@dataclasses.dataclass(frozen=True)
class Matern:
    """A Matern process over time on each latent dimension, with unit variance.

    Parameters
    ----------
    nu : {1.5, 0.5}
        Smoothness: 1.5 for paths with a velocity, 0.5 for rough ones (Ornstein-Uhlenbeck).
    lengthscale : "learn", float or sequence of D floats
        Over how much time positions stay alike, in the unit of ``times`` (rows, if there are none): learned, or given
        for all dimensions or for each.
    per_dimension : bool
        Learn a lengthscale for each dimension, or one for all.
    """

    nu: float = 1.5
    lengthscale: Any = "learn"
    per_dimension: bool = True

    def __post_init__(self):
        if self.nu not in (0.5, 1.5):
            raise InputError("{parameter} must be 0.5 or 1.5, got {value}", parameter="nu", value=repr(self.nu))
        scalars.flag("per_dimension", self.per_dimension)
        object.__setattr__(self, "nu", float(self.nu))
        given = self.lengthscale
        if isinstance(given, str):
            if given != "learn":
                problem = '{parameter} must be "learn", a number or one number for each dimension, got {value}'
                raise InputError(problem, parameter="lengthscale", value=repr(given))
        elif np.ndim(given) == 0:
            object.__setattr__(self, "lengthscale", scalars.positive("lengthscale", given))
        else:
            each = tuple(scalars.positive("lengthscale", value) for value in given)
            object.__setattr__(self, "lengthscale", each)

    @property
    def learned(self) -> bool:
        """Whether the lengthscale is learned."""
        return self.lengthscale == "learn"

    @property
    def exchangeable(self) -> bool:
        """Whether all dimensions have one lengthscale, so that X can be rotated without a change of the prior."""
        each = self.lengthscale
        return not self.per_dimension if self.learned else not isinstance(each, tuple) or len(set(each)) == 1

    def start(self, chronology: Chronology, D: int) -> Float[Array, " L"]:
        """Lengthscales to begin with: D of them, or one for all (L = 1)."""
        each = self.lengthscale
        if self.learned:
            n = D if self.per_dimension else 1
            return TYPICAL_GAPS * chronology.typical * jnp.ones(n, chronology.gap.dtype)
        return jnp.asarray(each if isinstance(each, tuple) else (each,), chronology.gap.dtype)

    def log_prior(self, lengthscale: Float[Array, " L"], chronology: Chronology) -> Float[Array, ""]:
        """log p(lengthscale), 0 for one that is given."""
        if not self.learned:
            return jnp.zeros((), lengthscale.dtype)
        away = jnp.log(lengthscale / (TYPICAL_GAPS * chronology.typical)) / LOG_DEVIATION
        return jnp.sum(-0.5 * away**2 - jnp.log(lengthscale) - math.log(LOG_DEVIATION * math.sqrt(2 * math.pi)))

    def sample(self, key: Array, chronology: Chronology, D: int) -> Float[Array, " L"]:
        """Lengthscales from their prior, or as they are given."""
        middle = self.start(chronology, D)
        if not self.learned:
            return middle
        return middle * jnp.exp(LOG_DEVIATION * jax.random.normal(key, middle.shape, middle.dtype))


Name = Literal["matern32", "ou"]
NAMES: dict[str, Matern] = {"matern32": Matern(1.5), "ou": Matern(0.5)}


def get(dynamics: Any, D: int) -> Matern | None:
    """A prior over time by its name, or as it is."""
    if dynamics is None:
        return None
    if isinstance(dynamics, str) and dynamics in NAMES:
        return NAMES[dynamics]
    if not isinstance(dynamics, Matern):
        problem = "{parameter} must be None, {names} or rflvm.dynamics.Matern(...), got {value}"
        kind = InputError if isinstance(dynamics, str) else InputTypeError
        raise kind(problem, parameter="dynamics", names=", ".join(map(repr, NAMES)), value=repr(dynamics))
    if isinstance(dynamics.lengthscale, tuple) and len(dynamics.lengthscale) != D:
        raise InputError(
            "{parameter} has {n} lengthscales for {D} latent dimensions: give one, or one for each dimension",
            parameter="dynamics",
            n=len(dynamics.lengthscale),
            D=D,
        )
    return dynamics


class Chronology(NamedTuple):
    """When the rows were, as far as the prior sees it.

    Attributes
    ----------
    gap : array (N,)
        Time since the row before, in the user's unit; 0 where a session begins.
    first : array of bool (N,)
        Where a session begins.
    typical : array ()
        The median gap.
    """

    gap: Float[Array, " N"]
    first: Bool[Array, " N"]
    typical: Float[Array, ""]


def take(chronology: Chronology, rows: np.ndarray) -> Chronology:
    """The chronology of some of the rows, in ascending order."""
    gap, first = np.asarray(chronology.gap, float), np.asarray(chronology.first)
    session, time = np.cumsum(first)[rows], np.cumsum(gap)[rows]
    begins = np.r_[True, np.diff(session) > 0]
    between = np.where(begins, 0, np.diff(time, prepend=time[0]))
    return Chronology(jnp.asarray(between, chronology.gap.dtype), jnp.asarray(begins), chronology.typical)


class Transitions(NamedTuple):
    """A_n and Q_n of each row and dimension, entry by entry, for the state (x, v)."""

    xx: Float[Array, "N D"]
    xv: Float[Array, "N D"]
    vx: Float[Array, "N D"]
    vv: Float[Array, "N D"]
    Q_xx: Float[Array, "N D"]
    Q_xv: Float[Array, "N D"]
    Q_vv: Float[Array, "N D"]


def transitions(prior: Matern, lengthscale: Float[Array, " D"], chronology: Chronology) -> Transitions:
    """From each row's predecessor to it; precise for gaps that are small beside the lengthscale, too.

    I - A A' by subtraction would lose all digits there. With t = 2r its entries are P(3, t), the distribution function
    of a gamma variate of shape 3, exp(-t) t^2 / 2 and P(3, t) + 2t exp(-t).
    """
    first = chronology.first[:, None]
    scaled = chronology.gap[:, None] / lengthscale[None]
    zero = jnp.zeros_like(scaled)
    if prior.nu == 0.5:
        decay = jnp.exp(-scaled)
        parts = Transitions(decay, zero, zero, zero, -jnp.expm1(-2 * scaled), zero, zero + 1)
    else:
        r = math.sqrt(3) * scaled
        decay, t = jnp.exp(-r), 2 * r
        Q_xx = _third_gamma(t)
        parts = Transitions(
            decay * (1 + r), decay * r, -decay * r, decay * (1 - r),
            Q_xx, jnp.exp(-t) * t**2 / 2, Q_xx + 2 * t * jnp.exp(-t),
        )  # fmt: skip
    begin = Transitions(zero, zero, zero, zero, zero + 1, zero, zero + 1)
    return jax.tree.map(lambda new, old: jnp.where(first, new, old), begin, parts)


def _third_gamma(t: Array) -> Array:
    """P(3, t) = exp(-t) sum_{k >= 3} t^k / k!, the distribution function of Gamma(3, 1), precise near 0."""
    small = jnp.minimum(t, 1)
    series = jnp.zeros_like(t)
    for k in range(N_SERIES + 2, 2, -1):
        series = series * small + 1 / math.factorial(k)
    return jnp.where(t < 1, jnp.exp(-t) * small**3 * series, 1 - jnp.exp(-t) * (1 + t + t**2 / 2))


class Innovations(NamedTuple):
    """The factor L of each dimension's covariance matrix as a recursion.

    Given the rows before it, x_n has mean A_xx x_{n-1} + A_xv m_{n-1} and standard deviation ``deviation``, m being the
    mean of the velocity, which an innovation u_n moves by ``gain`` u_n.
    """

    step: Transitions
    deviation: Float[Array, "N D"]
    gain: Float[Array, "N D"]


def innovations(prior: Matern, lengthscale: Float[Array, " D"], chronology: Chronology) -> Innovations:
    """The recursion of the variance of the velocity given the rows so far, and what follows from it."""
    step = transitions(prior, lengthscale, chronology)

    def observe(p, inputs):
        step, Q = inputs
        S = step.xv**2 * p + step.Q_xx
        C = step.xv * step.vv * p + step.Q_xv
        root = jnp.sqrt(S)
        return (p * Q.within + Q.determinant) / S, (root, C / root)

    _, (deviation, gain) = lax.scan(observe, jnp.zeros_like(lengthscale), (step, _remainders(step)))
    return Innovations(step, deviation, gain)


def whiten(X: Float[Array, "N D"], recursion: Innovations) -> Float[Array, "N D"]:
    """u = L^{-1} x of each dimension."""

    def observe(carry, inputs):
        x_before, m = carry
        x, (step, deviation, gain) = inputs
        u = (x - step.xx * x_before - step.xv * m) / deviation
        return (x, step.vx * x_before + step.vv * m + gain * u), u

    zero = jnp.zeros_like(X[0])
    return lax.scan(observe, (zero, zero), (X, recursion))[1]


def colour(U: Float[Array, "N D"], recursion: Innovations) -> Float[Array, "N D"]:
    """x = L u of each dimension: a draw from the prior, if u is standard normal."""

    def generate(carry, inputs):
        x_before, m = carry
        u, (step, deviation, gain) = inputs
        x = step.xx * x_before + step.xv * m + deviation * u
        return (x, step.vx * x_before + step.vv * m + gain * u), x

    zero = jnp.zeros_like(U[0])
    return lax.scan(generate, (zero, zero), (U, recursion))[1]


def log_density(X: Float[Array, "N D"], recursion: Innovations) -> Float[Array, ""]:
    """log p(X)."""
    U = whiten(X, recursion)
    return -0.5 * jnp.sum(U**2) - jnp.sum(jnp.log(recursion.deviation)) - X.size / 2 * math.log(2 * math.pi)


def times_precision(X: Float[Array, "N D"], recursion: Innovations) -> Float[Array, "N D"]:
    """K^{-1} x of each dimension."""
    return jax.grad(lambda X: 0.5 * jnp.sum(whiten(X, recursion) ** 2))(X)


def draw_velocities(noise: Float[Array, "N D"], X: Float[Array, "N D"], step: Transitions) -> Float[Array, "N D"]:
    """V given X, from standard normal numbers: a filter that sees x without noise, and draws from the last row back."""

    def observe(carry, inputs):
        x_before, m, p = carry
        x, step, Q = inputs
        S = step.xv**2 * p + step.Q_xx
        C = step.xv * step.vv * p + step.Q_xv
        away = x - step.xx * x_before - step.xv * m
        m = step.vx * x_before + step.vv * m + C / S * away
        p = (p * Q.within + Q.determinant) / S
        return (x, m, p), (m, p)

    def back(v_ahead, inputs):
        m, p, x, x_ahead, step, determinant, e = inputs
        x_away, v_away = x_ahead - step.xx * x, v_ahead - step.vx * x
        # Q^{-1} times the column (xv, vv) of A, the coefficients of v in the next state.
        on_x = (step.Q_vv * step.xv - step.Q_xv * step.vv) / determinant
        on_v = (step.Q_xx * step.vv - step.Q_xv * step.xv) / determinant
        precision = 1 / p + on_x * step.xv + on_v * step.vv
        v = (m / p + on_x * x_away + on_v * v_away) / precision + e / jnp.sqrt(precision)
        return v, v

    Q, zero = _remainders(step), jnp.zeros_like(X[0])
    mean, variance = lax.scan(observe, (zero, zero, zero), (X, step, Q))[1]
    ahead = jax.tree.map(_ahead, step)
    known = (mean, variance, X, _ahead(X), ahead, _ahead(Q.determinant, 1.0), noise)
    return lax.scan(back, zero, known, reverse=True)[1]


def _ahead(part: Float[Array, "N D"], beyond: float = 0.0) -> Float[Array, "N D"]:
    """The next row's entries; beyond the last row a session of its own, which says nothing of this one."""
    return jnp.concatenate([part[1:], jnp.full_like(part[:1], beyond)])


class Conditional(NamedTuple):
    """The Gaussian of a row's states (x, v) given those of the rows before and after, dimension by dimension.

    Attributes
    ----------
    mean, precision : array (N, D)
        Of x, with v integrated out.
    v_mean, v_slope, v_precision : array (N, D)
        Given x too, v has the mean v_mean + v_slope x.
    """

    mean: Float[Array, "N D"]
    precision: Float[Array, "N D"]
    v_mean: Float[Array, "N D"]
    v_slope: Float[Array, "N D"]
    v_precision: Float[Array, "N D"]


def between_neighbours(X: Float[Array, "N D"], V: Float[Array, "N D"], step: Transitions) -> Conditional:
    """p(x_n, v_n | s_{n-1}, s_{n+1}) of all rows at once, from Q_n^{-1} and A_{n+1}' Q_{n+1}^{-1} A_{n+1}."""
    zero = jnp.zeros_like(X[:1])
    x_before, v_before = (jnp.concatenate([zero, part[:-1]]) for part in (X, V))
    determinant = _remainders(step).determinant
    x_from = step.xx * x_before + step.xv * v_before
    v_from = step.vx * x_before + step.vv * v_before
    P_xx, P_xv, P_vv = step.Q_vv / determinant, -step.Q_xv / determinant, step.Q_xx / determinant
    L_xx, L_xv, L_vv = P_xx, P_xv, P_vv
    h_x, h_v = P_xx * x_from + P_xv * v_from, P_xv * x_from + P_vv * v_from

    after = jax.tree.map(_ahead, step)
    P_xx, P_xv, P_vv = (_ahead(part) for part in (P_xx, P_xv, P_vv))
    B_xx, B_xv = P_xx * after.xx + P_xv * after.vx, P_xx * after.xv + P_xv * after.vv  # Q^{-1} A
    B_vx, B_vv = P_xv * after.xx + P_vv * after.vx, P_xv * after.xv + P_vv * after.vv
    L_xx += after.xx * B_xx + after.vx * B_vx
    L_xv += after.xx * B_xv + after.vx * B_vv
    L_vv += after.xv * B_xv + after.vv * B_vv
    h_x += B_xx * _ahead(X) + B_vx * _ahead(V)
    h_v += B_xv * _ahead(X) + B_vv * _ahead(V)

    precision = L_xx - L_xv**2 / L_vv
    mean = (h_x - L_xv * h_v / L_vv) / precision
    return Conditional(mean, precision, h_v / L_vv, -L_xv / L_vv, L_vv)


class Remainders(NamedTuple):
    """Of each step: |Q|, and the variance that v's variance of 1 before it leaves to v once x is seen, times that of x.

    In (S C_vv - C_xv^2) / S, what is left of v after x was seen, the square of the variance p before cancels: it is
    (p within + determinant) / S.
    """

    within: Float[Array, "N D"]
    determinant: Float[Array, "N D"]


def _remainders(step: Transitions) -> Remainders:
    within = step.xv**2 * step.Q_vv + step.vv**2 * step.Q_xx - 2 * step.xv * step.vv * step.Q_xv
    return Remainders(within, step.Q_xx * step.Q_vv - step.Q_xv**2)


def log_determinant(information: Float[Array, "N D"], step: Transitions) -> Float[Array, ""]:
    """sum_d log |I + diag(information_d) K_d|.

    It is the sum of log(1 + information_nd P_nd), P_nd being the variance of x_n that a Kalman filter predicts from
    observations of the rows before it with this information each.
    """

    def observe(P, inputs):
        step, g = inputs
        xx, xv, vv = P
        x_row, v_row = (step.xx, step.xv), (step.vx, step.vv)
        through = lambda a, b: a[0] * b[0] * xx + (a[0] * b[1] + a[1] * b[0]) * xv + a[1] * b[1] * vv  # noqa: E731
        xx, xv, vv = (
            through(x_row, x_row) + step.Q_xx, through(x_row, v_row) + step.Q_xv, through(v_row, v_row) + step.Q_vv,
        )  # fmt: skip
        size = 1 + g * xx
        return (xx / size, xv / size, vv - g * xv**2 / size), jnp.sum(jnp.log(size))

    zero = jnp.zeros_like(step.xx[0])
    return jnp.sum(lax.scan(observe, (zero, zero, zero), (step, information))[1])


class Filtered(NamedTuple):
    """Gaussian posterior of the states given what is known of positions, for smoothing and sampling backwards.

    The state of all dimensions is (x_1, ..., x_D, v_1, ..., v_D), S = 2D.
    """

    predicted_mean: Float[Array, "N S"]  # given the rows before
    predicted: Float[Array, "N S S"]
    mean: Float[Array, "N S"]  # given the rows up to this one
    covariance: Float[Array, "N S S"]
    gain: Float[Array, "N S S"]  # of the next row's state on this one's


def filtered(information: Float[Array, "N D D"], natural: Float[Array, "N D"], step: Transitions) -> Filtered:
    """The Kalman filter where row n has the likelihood exp(natural_n' x_n - x_n' information_n x_n / 2).

    The information may be singular, or zero, where nothing is known of a row.
    """
    D = natural.shape[1]

    def matrices(step: Transitions):
        A = jnp.block([[jnp.diag(step.xx), jnp.diag(step.xv)], [jnp.diag(step.vx), jnp.diag(step.vv)]])
        cross = jnp.diag(step.Q_xv)
        return A, jnp.block([[jnp.diag(step.Q_xx), cross], [cross, jnp.diag(step.Q_vv)]])

    def observe(carry, inputs):
        m, P = carry
        step, information, h = inputs
        A, Q = matrices(step)
        m_ahead, P_ahead = A @ m, A @ P @ A.T + Q
        # The smoother's gain on the row before, P A' P_ahead^{-1}.
        back = jnp.linalg.solve(P_ahead, A @ P).T
        seen = P_ahead[:, :D] @ jnp.linalg.solve(jnp.eye(D, dtype=P.dtype) + information @ P_ahead[:D, :D], information)
        P = P_ahead - seen @ P_ahead[:D]
        P = (P + P.T) / 2
        m = m_ahead + P[:, :D] @ (h - information @ m_ahead[:D])
        return (m, P), (m_ahead, P_ahead, m, P, back)

    zero = jnp.zeros(2 * D, natural.dtype)
    start = (zero, jnp.zeros((2 * D, 2 * D), natural.dtype))
    m_ahead, P_ahead, m, P, back = lax.scan(observe, start, (step, information, natural))[1]
    gain = jnp.concatenate([back[1:], jnp.zeros_like(back[:1])])
    return Filtered(m_ahead, P_ahead, m, P, gain)


def smoothed(known: Filtered) -> tuple[Float[Array, "N D"], Float[Array, "N D D"]]:
    """Posterior means and covariances of the positions, given all rows."""
    D = known.mean.shape[1] // 2

    def back(carry, inputs):
        mean, covariance, m_ahead, P_ahead = carry
        here, G = inputs
        s = here.mean + G @ (mean - m_ahead)
        V = here.covariance + G @ (covariance - P_ahead) @ G.T
        V = (V + V.T) / 2
        return (s, V, here.predicted_mean, here.predicted), (s[:D], V[:D, :D])

    last = jax.tree.map(lambda part: jnp.zeros_like(part[0]), known)
    start = (last.mean, last.covariance, last.mean, last.covariance)
    return lax.scan(back, start, (known, known.gain), reverse=True)[1]


class Factor(NamedTuple):
    """T with T T' = (K^{-1} + information)^{-1}, the posterior covariance of all positions, as a recursion.

    From the last row back, s_n = gain_n s_{n+1} + root_n e_n, and x_n is the first half of s_n.
    """

    gain: Float[Array, "N S S"]
    root: Float[Array, "N S S"]


def factor(known: Filtered) -> Factor:
    """The factor that forward filtering and backward sampling draw with."""
    ahead = jnp.concatenate([known.predicted[1:], jnp.zeros_like(known.predicted[:1])])
    left = known.covariance - known.gain @ ahead @ jnp.swapaxes(known.gain, 1, 2)
    return Factor(known.gain, linalg.cholesky(left)[0])


def multiply(T: Factor, noise: Float[Array, "N S"]) -> Float[Array, "N D"]:
    """T e: deviations of the positions from their posterior means, if e is standard normal."""

    def back(s, inputs):
        gain, root, e = inputs
        s = gain @ s + root @ e
        return s, s[: len(s) // 2]

    return lax.scan(back, jnp.zeros_like(noise[0]), (T.gain, T.root, noise), reverse=True)[1]


def multiply_transposed(T: Factor, X: Float[Array, "N D"]) -> Float[Array, "N S"]:
    """T' x."""

    def forward(a, inputs):
        gain_before, root, x = inputs
        a = jnp.concatenate([x, jnp.zeros_like(x)]) + gain_before.T @ a
        return a, root.T @ a

    before = jnp.concatenate([jnp.zeros_like(T.gain[:1]), T.gain[:-1]])
    return lax.scan(forward, jnp.zeros_like(T.gain[0, 0]), (before, T.root, X))[1]
