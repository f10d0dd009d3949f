"""Polya-gamma draws omega ~ PG(b, c) for any real b >= 0 and c (Polson, Scott & Windle 2013).

PG(b, c) has E[exp(-t omega)] = (cosh(c/2) / cosh(sqrt((c^2/2 + t)/2)))^b and equals sum_k w_k Gamma(b, 1)
with w_k = 2 / ((2k - 1)^2 pi^2 + c^2), k = 1, 2, ... For b <= 3 the draw is exact: the sum of ceil(b) draws
of equal b <= 1, each by rejection as in Devroye (2009), extended here from b = 1 to 0 < b <= 1 (its acceptance
probability is computed to 2e-7). For b > 3 it is a constant plus three gammas, which has the first seven
cumulants of PG(b, c).
"""

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key, Real, UInt32
from numpy.polynomial import chebyshev

from .compilation import compiled

# Draws are exact up to this b, above it they are three gammas and a constant. The largest distance between
# the distribution functions of the latter and of PG(b, c), over all c, by benchmarks/polyagamma.py:
#     b            2        3        4        8        16       100      1000
#     sup error    1.1e-05  3.1e-06  1.2e-06  1.3e-07  1.8e-08  1.1e-08  1.0e-08
# Ten million draws show a distance of about 4e-4.
EXACT_UP_TO = 3


# Beyond this tilt v_i c^2 and p_i of `_gamma_parameters` are constant to 1e-6: the sum over k is an integral.
_NODES_CONSTANT_FROM = 32.0


_Proposal = Callable[
    [Key[Array, ""], Float[Array, " m"], Float[Array, " m"]], tuple[Float[Array, " m"], Bool[Array, " m"]]
]


@compiled
def sample(key: Key[Array, ""], b: Real[ArrayLike, "..."], c: Real[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Draw omega ~ PG(b, c), one for each element of b and c broadcast together.

    b = 0 gives exactly 0. Where b is negative, or b or c is not finite, the result is NaN.
    """
    b, c = _as_floats(b, c)
    shape, n = b.shape, b.size
    b, c = b.ravel(), jnp.abs(c).ravel()
    omega = jnp.where((b == 0) & jnp.isfinite(c), jnp.zeros_like(b), jnp.nan)
    if n == 0:
        return omega.reshape(shape)
    valid = (b > 0) & jnp.isfinite(b) & jnp.isfinite(c)
    exact, gammas = valid & (b <= EXACT_UP_TO), valid & (b > EXACT_UP_TO)
    # One array holds both queues, the second from its end backwards.
    rank = jnp.cumsum(jnp.stack([exact, gammas]), axis=1, dtype=jnp.int32)
    place = jnp.where(exact, rank[0] - 1, jnp.where(gammas, n - rank[1], n))
    queue = jnp.zeros(n, jnp.int32).at[place].set(jnp.arange(n, dtype=jnp.int32), mode="drop")
    key_exact, key_gammas = jax.random.split(key)
    omega = _draw_queued(key_exact, _propose_exact, b, c, omega, queue, rank[0, -1])
    omega = _draw_queued(key_gammas, _propose_gammas, b, c, omega, queue[::-1], rank[1, -1])
    return omega.reshape(shape)


@compiled
def sample_one(key: Key[Array, ""], c: Real[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Draw omega ~ PG(1, c), exactly, one for each element of c. Where c is not finite the result is NaN."""
    (c,) = _as_floats(c)
    if c.size == 0:
        return c
    finite = jnp.isfinite(c)
    tilt = jnp.where(finite, jnp.abs(c), 0.0).ravel()
    queue = jnp.arange(c.size, dtype=jnp.int32)
    omega = _draw_queued(key, _propose_exact, jnp.ones_like(tilt), tilt, jnp.zeros_like(tilt), queue, jnp.int32(c.size))
    return jnp.where(finite, omega.reshape(c.shape), jnp.nan)


def mean(b: Real[ArrayLike, "..."], c: Real[ArrayLike, "..."]) -> Float[Array, "..."]:
    """E[omega] = b tanh(c/2) / (2c)."""
    b, c = _as_floats(b, c)
    is_zero = c == 0
    c = jnp.where(is_zero, 1.0, c)
    return b * jnp.where(is_zero, 0.25, jnp.tanh(c / 2) / (2 * c))


def variance(b: Real[ArrayLike, "..."], c: Real[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Var[omega] = b (sinh c - c) / (4 c^3 cosh(c/2)^2)."""
    b, c = _as_floats(b, jnp.abs(c))
    is_small = c < 1
    # (sinh c - c) / c^3 by its power series, for the difference cancels.
    c_small = jnp.where(is_small, c, 0.0)
    small = _polynomial([1 / math.factorial(2 * k + 3) for k in range(9)], c_small * c_small)
    # Divided by c three times, for c^3 overflows early in float32.
    c_large = jnp.where(is_small, 1.0, c)
    e = jnp.exp(-c_large)
    large = ((1 - e * e) / 2 - c_large * e) * (2 / (1 + e)) ** 2 / c_large / c_large / c_large
    return b / 4 * jnp.where(is_small, small / jnp.cosh(c_small / 2) ** 2, large)


def log_laplace(t: Real[ArrayLike, "..."], b: Real[ArrayLike, "..."], c: Real[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Logarithm of E[exp(-t omega)], b (log cosh(c/2) - log cosh(sqrt((c^2/2 + t)/2))), for t >= 0."""
    t, b, a = _as_floats(t, b, jnp.abs(c) / 2)
    w = jnp.sqrt(a * a + t / 2)
    delta = t / 2 / jnp.where(t > 0, w + a, 1.0)  # w - a without cancellation
    large = delta + jnp.log1p(jnp.exp(-2 * a) * jnp.expm1(-2 * delta) / (1 + jnp.exp(-2 * a)))
    # cosh w - cosh a = 2 sinh((w + a)/2) sinh((w - a)/2) keeps its digits where both are near 1.
    is_small = w < 1
    a, w, delta = (jnp.where(is_small, x, 0.0) for x in (a, w, delta))
    small = jnp.log1p(2 * jnp.sinh((w + a) / 2) * jnp.sinh(delta / 2) / jnp.cosh(a))
    return -b * jnp.where(is_small, small, large)


def _as_floats(*arrays: Real[ArrayLike, "..."]) -> list[Float[Array, "..."]]:
    """The arrays in one precision and one shape."""
    dtype = jnp.result_type(*arrays, float)
    return jnp.broadcast_arrays(*(jnp.asarray(x, dtype) for x in arrays))


def _draw_queued(
    key: Key[Array, ""],
    propose: _Proposal,
    b: Float[Array, " n"],
    c: Float[Array, " n"],
    omega: Float[Array, " n"],
    queue: Int[Array, " n"],
    count: Int[Array, ""],
) -> Float[Array, " n"]:
    """Set omega at queue[:count] to sums of `_draws_needed(b)` accepted proposals.

    A few thousand slots work through the queue. A slot whose proposal was rejected tries again in the next
    round and the others move on, so a rejection costs one proposal, not one round of the whole batch, and the
    arrays of a round stay in the processor's cache.
    """
    n = b.size
    slots = min(n, max(1024, min(n // 12, 32768)))

    def is_unfinished(state):
        return jnp.any(state[2] < count)

    def run_round(state):
        index, following, place, drawn, total, omega = state
        element = queue[jnp.minimum(place, n - 1)]
        b_slot = b[element]
        draw, accepted = propose(jax.random.fold_in(key, index), b_slot, c[element])
        accepted &= place < count
        total = jnp.where(accepted, total + draw, total)
        drawn = jnp.where(accepted, drawn + 1, drawn)
        done = accepted & (drawn >= _draws_needed(b_slot))
        omega = omega.at[jnp.where(done, element, n)].set(total, mode="drop")
        moved = jnp.cumsum(done, dtype=jnp.int32)
        place = jnp.where(done, following + moved - 1, place)
        return (
            index + 1,
            following + moved[-1],
            place,
            jnp.where(done, 0, drawn),
            jnp.where(done, 0, total),
            omega,
        )

    zeros = jnp.zeros(slots, b.dtype)
    start = (jnp.int32(0), jnp.int32(slots), jnp.arange(slots, dtype=jnp.int32), zeros, zeros, omega)
    return jax.lax.while_loop(is_unfinished, run_round, start)[-1]


def _draws_needed(b: Float[Array, "..."]) -> Float[Array, "..."]:
    """Proposals that make one draw: ceil(b) exact ones of PG(b / ceil(b), c), or the gammas once."""
    return jnp.where(b <= EXACT_UP_TO, jnp.ceil(b), 1.0)


def _propose_exact(
    key: Key[Array, ""], b: Float[Array, " m"], c: Float[Array, " m"]
) -> tuple[Float[Array, " m"], Bool[Array, " m"]]:
    """Propose PG(h, c), h = b / ceil(b) <= 1, by rejection; at least 95 % are accepted, and 99.5 % at h = 1.

    With z = c/2, x = 4 omega has a density proportional to f(x) exp(-z^2 x/2), where
        f(x) = 2^h sum_n (-1)^n Gamma(n+h) / (n! Gamma(h)) (2n+h) / sqrt(2 pi x^3) exp(-(2n+h)^2 / (2x))
             = h x^(h-1) S(h, 1/x) exp(-pi^2 x / 8).
    The envelope is the first term of the sum on x < 1 and an exponential on x > 1. On x < 1 it is the law of
    the time at which a Brownian motion with drift z first reaches h, given that this is before time 1.
    """
    dtype = b.dtype
    tiny, below_one = float(jnp.finfo(dtype).tiny), 1 - float(jnp.finfo(dtype).epsneg)
    words = jax.random.bits(key, (4, *b.shape), jnp.uint32)
    h, z = b / _draws_needed(b), c / 2

    # Masses of the pieces of the envelope, over exp(-h z): the motion is above h at time 1, it has been above
    # h but has returned, x > 1. The second is below 1e-18 at z = 10, so exp(2 h z) need not overflow.
    z_low = jnp.minimum(z, 10.0)
    power, reflection = jnp.exp2(h), jnp.exp(2 * h * z_low)
    height = _right_height(h)
    rate = math.pi**2 / 8 + z * z / 2
    above = power * _normal_tail(h - z)
    returned = power * reflection * _normal_tail(h + z_low)
    right = h * height * jnp.exp(h * z - rate) / rate
    u = _uniform(words[0], dtype) * (above + returned + right)
    # Not <, for in float32 u can be rounded to the sum, and must not then fall into a piece of mass zero.
    is_above, is_left = u <= above, u <= above + returned

    # Left: first the distance from h at time 1, a truncated normal, by inversion, with what is left of u.
    # Given that, x / (1 - x) is inverse Gaussian with mean h / distance and shape h^2 and is one of the two
    # roots of a quadratic equation (Michael, Schucany & Haas 1976).
    tail = jnp.where(is_above, u, (u - above) / reflection) / power
    distance = jnp.where(is_above, z, -z_low) - h - ndtri(jnp.clip(tail, tiny, below_one))
    distance = jnp.maximum(distance, 0.0)
    q = _normal(words[1], dtype) ** 2 / (2 * h)
    w = distance + q + jnp.sqrt(q * (2 * distance + q))
    is_first = _uniform(words[2], dtype) * (w + distance) <= w
    inverse_x = 1 + jnp.where(is_first, w, distance / jnp.where(is_first, 1.0, w) * distance) / h
    # The sum over its first term, to n = 4: the next one is below 1e-19.
    e, e_h = jnp.exp(-2 * inverse_x), jnp.exp(-2 * h * inverse_x)
    accept_left = h + 6 - e_h * e**7 * (h + 3) / 4 * (h + 8)
    accept_left = h + 4 - e_h * e**5 * (h + 2) / 3 * accept_left
    accept_left = h + 2 - e_h * e**3 * (h + 1) / 2 * accept_left
    accept_left = 1 - e_h * e * accept_left

    # Right: an exponential, again with what is left of u.
    x_right = 1 - jnp.log(jnp.clip((u - above - returned) / right, tiny, 1.0)) / rate
    accept_right = _right_factor(h, 1 / x_right) * jnp.exp((h - 1) * jnp.log(x_right)) / height

    x = jnp.where(is_left, 1 / inverse_x, x_right)
    # Negated, so that a NaN is returned and does not loop for ever.
    is_rejected = _uniform(words[3], dtype) >= jnp.where(is_left, accept_left, accept_right)
    return x / 4, ~is_rejected


def _propose_gammas(
    key: Key[Array, ""], b: Float[Array, " m"], c: Float[Array, " m"]
) -> tuple[Float[Array, " m"], Bool[Array, " m"]]:
    """Propose E[omega] (1 + sum_i p_i (g_i / a_i - 1)), g_i ~ Gamma(a_i, 1), for b > 3.

    The gammas are those of Marsaglia & Tsang (2000): all three are accepted in more than 97 % of cases.
    """
    words = jax.random.bits(key, (2, 3, *b.shape), jnp.uint32)
    center, p, a = _gamma_parameters(b, c)
    d = a - 1 / 3
    e = _normal(words[0], b.dtype) / (3 * jnp.sqrt(d))
    inside = jnp.maximum(e, -0.999)
    # x^2/2 + d (1 - v + log v) with x = 3 sqrt(d) e and v = (1 + e)^3, where the large terms have cancelled.
    log_ratio = d * (3 * jnp.log1p(inside) - inside * (3 - inside * (1.5 - inside)))
    is_rejected = (e < -0.999) | (jnp.log(_uniform(words[1], b.dtype)) > log_ratio)
    relative = jnp.sum(p * (d / a * (1 + e) ** 3 - 1), axis=0)
    return center * (1 + relative), ~jnp.any(is_rejected, axis=0)


def _gamma_parameters(
    b: Float[Array, " m"], c: Float[Array, " m"]
) -> tuple[Float[Array, " m"], Float[Array, "3 m"], Float[Array, "3 m"]]:
    """E[omega], and shares p_i of it and shapes a_i of the three gammas, for c >= 0.

    The cumulants of PG(b, c) are b (n-1)! sum_k w_k^n. In these the measure sum_k w_k delta(w_k) is replaced
    by its Gauss-Radau rule with nodes 0 and v_i and masses proportional to p_i, which has the same moments up
    to the sixth. The node 0 gives a constant, the others v_i Gamma(a_i) with a_i = p_i E[omega] / v_i.
    """
    c_fit = jnp.minimum(c, _NODES_CONSTANT_FROM)
    beyond = jnp.maximum(c / _NODES_CONSTANT_FROM, 1.0)
    position = _node_position(c_fit)
    v, p = (_polynomial(x.astype(b.dtype)[:, :, None], position[None]) for x in _node_coefficients())
    center = mean(b, c)
    a = p / v * (center * beyond * beyond * ((math.pi**2 + c_fit * c_fit) / 2))[None]
    return center, p, a


def _uniform(words: UInt32[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Uniforms in (0, 1), never 0 or 1; 32 random bits are finer than any sample could detect."""
    return (words.astype(dtype) + 0.5) * (2.0**-32 * (1 - 2.0**-24))


def _normal(words: UInt32[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    signed = jax.lax.bitcast_convert_type(words, jnp.int32)
    return math.sqrt(2) * jax.lax.erf_inv((signed.astype(dtype) + 0.5) * (2.0**-31 * (1 - 2.0**-24)))


def _normal_tail(x: Float[Array, "..."]) -> Float[Array, "..."]:
    return 0.5 * jax.lax.erfc(math.sqrt(0.5) * x)


def _polynomial(coefficients: Sequence | np.ndarray, x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Sum of coefficients[j] x^j; the coefficients are numbers or arrays that broadcast with x."""
    total = jnp.zeros_like(x) + coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _right_factor(h: Float[Array, "..."], v: Float[Array, "..."]) -> Float[Array, "..."]:
    """S(h, v) of `_propose_exact` for 0 < h <= 1 and 0 <= v <= 1, to 2e-7."""
    return _polynomial([_polynomial(row, 2 * v - 1) for row in _right_coefficients()], 2 * h - 1)


def _right_height(h: Float[Array, "..."]) -> Float[Array, "..."]:
    """A bound of v^(1-h) S(h, v): its value at v = 1 and a little more, for at h = 1 v = 0 is the largest."""
    return 1.0002 * _polynomial([sum(row) for row in _right_coefficients()], 2 * h - 1)


@functools.cache
def _right_coefficients(degree_h: int = 7, degree_v: int = 10) -> list[list[float]]:
    """Coefficients of S(h, v) in powers of 2h - 1 and 2v - 1.

    The values of S come from f, and f from its Laplace transform, cosh(sqrt(2s))^-h. With s = p - pi^2/8 the
    rightmost singularity is at p = 0. The inversion integral over p x is along a parabola around the negative
    axis (Weideman & Trefethen 2007), exact to 1e-12 relative to f.
    """
    h = (chebyshev.chebpts1(2 * degree_h + 2) + 1) / 2
    v = (chebyshev.chebpts1(2 * degree_v + 2) + 1) / 2
    half = 16
    step = 3 / half
    direction = 1 + 1j * step * (np.arange(-half, half) + 0.5)
    px = math.pi * half / 12 * direction**2
    w = np.sqrt(2 * px * v[:, None] - math.pi**2 / 4)
    log_cosh = w + np.log1p(np.exp(-2 * w)) - math.log(2)
    integral = np.real(np.exp(px - h[:, None, None] * log_cosh) @ direction) * step * half / 12
    values = integral * v ** h[:, None] / h[:, None]  # f(x) exp(pi^2 x / 8) = v * integral
    in_v = chebyshev.chebfit(2 * v - 1, values.T, degree_v)
    in_both = chebyshev.chebfit(2 * h - 1, in_v.T, degree_h)
    return _to_powers(_to_powers(in_both).T).T.tolist()


def _node_position(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """Map 0 <= c <= _NODES_CONSTANT_FROM to [1, -1], such that the nodes are close to polynomials there."""
    lowest = 300 / (300 + _NODES_CONSTANT_FROM**2)
    return (600 / (300 + c * c) - (1 + lowest)) / (1 - lowest)


@functools.cache
def _node_coefficients(degree: int = 18) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of v_i / w_1 and of p_i, each (degree + 1, 3), in powers of `_node_position`, to 1e-6."""
    position = chebyshev.chebpts1(2 * degree + 2)
    lowest = 300 / (300 + _NODES_CONSTANT_FROM**2)
    c = np.sqrt(600 / (position * (1 - lowest) + 1 + lowest) - 300)
    v, p = zip(*(_gauss_radau(x) for x in c), strict=True)
    return _to_powers(chebyshev.chebfit(position, v, degree)), _to_powers(chebyshev.chebfit(position, p, degree))


def _gauss_radau(c: float, atoms: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, over w_1, and masses, over sum_k w_k, of the Gauss-Radau rule of sum_k w_k delta(w_k) at 0.

    Its other nodes are the Gauss nodes of sum_k w_k^2 delta(w_k), by the recurrence of its orthogonal
    polynomials and their Jacobi matrix; what is left out beyond 4000 terms is below 1e-11 of the sums.
    """
    w = (math.pi**2 + c * c) / ((2 * np.arange(1, 4001) - 1) ** 2 * math.pi**2 + c * c)
    diagonal, norms = np.zeros(atoms), np.ones(atoms + 1)
    before, current = np.zeros_like(w), np.ones_like(w)
    for i in range(atoms):
        norms[i] = np.sum((w * current) ** 2)
        diagonal[i] = np.sum(w**3 * current**2) / norms[i]
        before, current = current, (w - diagonal[i]) * current - norms[i] / norms[i - 1] * before
    off_diagonal = np.diag(np.sqrt(norms[1:atoms] / norms[: atoms - 1]), 1)
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + off_diagonal + off_diagonal.T)
    total = math.tanh(c / 2) / (2 * c) * (math.pi**2 + c * c) / 2
    return nodes, norms[0] * vectors[0] ** 2 / nodes / total


def _to_powers(coefficients: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients, in the first axis, to those of powers; they decay, so no digits are lost."""
    return np.array([chebyshev.cheb2poly(column) for column in coefficients.T]).T
