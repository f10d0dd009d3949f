"""Members: the draws of the functions that predictions are summarised over, and the range that the table knows.

Where a column has no observed cell nearby, its function is what the prior says of it: anything within some units of the
amplitude, which behind a log link is anything at all. Of a cell to be predicted the table knows more than that, namely
which values the column takes. So under each member f_j is held to the range that it has at the rows in which column j
is observed, positions being those of these rows under the member. The range of n values is that of all of them up to
the share 2 / (n + 1) on average if they are uniform, so it is taken to extend by 1 / (n - 1) of itself on either side.

The range is one of f without offset and effects of covariates: of a rate per unit of exposure, of a probability
whatever the number of trials, for every family. Where f stays within it nothing changes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy import stats

from ..model.draws import Draws
from ..model.features import effects, features, without_effects

N_MEMBERS = 16
N_ANCHORS = 256
N_MODES = 2
N_POINTS = 8  # importance points of each component of the proposal of a row's position
FREEDOM = 5.0  # degrees of freedom of the proposal
RANGE_CELLS = 2**20  # at once, under one member


class Functions(NamedTuple):
    """Draws of the functions with the ranges to which predictions hold them, or one of them without the first axis."""

    W: Float[Array, "S H D"]
    beta: Float[Array, "S M J"]
    theta: dict[str, Array]  # (S, J) or (S,)
    lowest: Float[Array, "S J"]  # of f, without offset
    highest: Float[Array, "S J"]


class Members(NamedTuple):
    """Draws from the posterior, and the positions of some rows of the table, the anchors, under each."""

    W: Float[Array, "S H D"]
    beta: Float[Array, "S M J"]
    theta: dict[str, Array]  # (S, J) or (S,)
    lowest: Float[Array, "S J"]  # as in ``Functions``
    highest: Float[Array, "S J"]
    anchors: Float[Array, "S A D"]
    F: Float[Array, "A J"]  # of the anchors, without offset and covariates, mean over members
    points: Float[Array, "S P D"]  # of a standard Student t
    lengthscale: Float[Array, "S L"] | None = None  # of a prior over time

    @property
    def functions(self) -> Functions:
        """What predicts cells at given positions."""
        return Functions(self.W, self.beta, self.theta, self.lowest, self.highest)

    def free(self) -> Members:
        """The same, with functions that are not held to any range."""
        return self._replace(lowest=np.full_like(self.lowest, -np.inf), highest=np.full_like(self.highest, np.inf))


def held(X: Float[Array, "N D"], member: Functions, Z: Float[Array, "N C"] | None = None) -> Float[Array, "N J"]:
    """F at positions under one member, without offset, held to the range of each column; plus effects of covariates."""
    gamma = effects(member.beta, len(member.W))
    average = jnp.zeros((len(X), len(gamma)), X.dtype)
    F = jnp.clip(features(X, member.W, average) @ member.beta, member.lowest[None], member.highest[None])
    return F if Z is None else F + Z @ gamma


def members_of(draws: Draws, mask: Bool[np.ndarray, "N J"], seed: int, positions: np.ndarray | None = None) -> Members:
    """Members from those of the aligned draws that have a beta.

    ``mask`` says which encoded cells are observed; ``positions`` (N, D) are those given which beta was drawn, if they
    are not the draws of X.
    """
    kept = slice(None, None, draws.beta_thin)
    flat = lambda part: part.reshape(-1, *part.shape[2:])  # noqa: E731
    X, W, beta = flat(draws["X"][:, kept]), flat(draws["W"][:, kept]), flat(draws["beta"])
    theta = {name: flat(draws[name][:, kept]) for name in draws.theta}
    members = choose_members(X, W, beta, theta, mask, seed, positions)
    if "lengthscale" not in draws.arrays:
        return members
    lengthscale = flat(draws["lengthscale"][:, kept])[_chosen(len(X))]
    return members._replace(lengthscale=jnp.asarray(lengthscale, float))


def _chosen(S: int) -> Int[np.ndarray, " M"]:
    """At most ``N_MEMBERS`` of S draws, evenly spaced."""
    return np.unique(np.linspace(0, S - 1, N_MEMBERS).round().astype(int))


def choose_members(
    X: Float[np.ndarray, "S N D"],
    W: np.ndarray,
    beta: np.ndarray,
    theta: dict[str, np.ndarray],
    mask: Bool[np.ndarray, "N J"],
    seed: int,
    positions: Float[np.ndarray, "N D"] | None = None,
) -> Members:
    """At most ``N_MEMBERS`` of the aligned draws, evenly spaced, and ``N_ANCHORS`` of the rows."""
    chosen = _chosen(len(X))
    rows = np.sort(np.random.default_rng(seed).permutation(X.shape[1])[:N_ANCHORS])
    anchors, W, beta = X[chosen][:, rows], W[chosen], beta[chosen]
    smooth = without_effects(beta, W.shape[1])
    F = np.mean([_features(*pair) @ b for *pair, b in zip(anchors, W, smooth, strict=True)], axis=0)
    where = X[chosen] if positions is None else np.broadcast_to(positions, (len(chosen), *positions.shape))
    lowest, highest = known_ranges(where, W, smooth, mask)
    as_array = lambda part: jnp.asarray(part, float)  # noqa: E731
    return Members(
        W=as_array(W),
        beta=as_array(beta),
        theta={name: as_array(value[chosen]) for name, value in theta.items()},
        lowest=as_array(lowest),
        highest=as_array(highest),
        anchors=as_array(anchors),
        F=as_array(F),
        points=as_array(student_points(len(chosen), X.shape[2], seed)),
    )


def _features(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    return np.asarray(features(jnp.asarray(X, float), jnp.asarray(W, float)))


def known_ranges(
    X: Float[np.ndarray, "S N D"], W: np.ndarray, beta: np.ndarray, mask: Bool[np.ndarray, "N J"]
) -> tuple[Float[np.ndarray, "S J"], Float[np.ndarray, "S J"]]:
    """Lower and upper end of the range to which each member's functions are held; infinite for a single cell."""
    n = mask.sum(axis=0)
    size = max(1, RANGE_CELLS // mask.shape[1])
    ends = []
    for x, w, b in zip(X, W, beta, strict=True):
        parts = []
        for start in range(0, len(mask), size):
            F, observed = _features(x[start : start + size], w) @ b, mask[start : start + size]
            parts.append((np.where(observed, F, np.inf).min(axis=0), np.where(observed, F, -np.inf).max(axis=0)))
        ends.append((np.min([low for low, _ in parts], axis=0), np.max([high for _, high in parts], axis=0)))
    lowest, highest = (np.stack(part) for part in zip(*ends, strict=True))
    with np.errstate(invalid="ignore"):  # no cell of a stick may be observed
        beyond = (highest - lowest) / np.maximum(n - 1, 1)
    return np.where(n > 1, lowest - beyond, -np.inf), np.where(n > 1, highest + beyond, np.inf)


def student_points(S: int, D: int, seed: int) -> np.ndarray:
    """Points (S, (N_MODES + 1) N_POINTS, D) of a scrambled Sobol sequence, mapped to a Student t."""
    per_member = (N_MODES + 1) * N_POINTS
    n = S * per_member
    sequence = stats.qmc.Sobol(D + 1, rng=np.random.default_rng(seed))
    uniform = sequence.random_base2(math.ceil(math.log2(n)))[:n]
    normal = stats.norm.ppf(uniform[:, :D])
    points = normal / np.sqrt(stats.chi2.ppf(uniform[:, D:], FREEDOM) / FREEDOM)
    return points.reshape(S, per_member, D)
