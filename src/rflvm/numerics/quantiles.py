"""Medians of many short lists at once: of weighted values by bisection, of a few unweighted ones by exchanges.

Both are sequences of elementwise operations over all lists, which XLA vectorises; its sort is ten times slower on a
processor.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

_MAGNITUDE = 0x7FFFFFFF  # all bits of a single-precision number but its sign


def weighted_median(values: Float[Array, "Q *S"], weights: Float[Array, "Q *T"]) -> Float[Array, "*S"]:
    """The smallest of the values along the first axis such that it and those below it have half of the weight.

    Bisection over the numbers of single precision, which are taken as whole numbers in the same order, so that 32 steps
    are enough whatever the range of the values, infinity included. Values that single precision cannot tell apart are
    taken for equal, and the smallest of them is returned. Weights are not negative and broadcast against the values.
    """
    rounded, weights = values.astype(jnp.float32), weights.astype(jnp.float32)
    half = jnp.sum(weights, axis=0) / 2
    shape = values.shape[1:]
    below, above = (_ordered(jnp.full(shape, end, jnp.float32)) for end in (-jnp.inf, jnp.inf))

    def step(_, ends):
        below, above = ends  # the weight up to ``below`` is less than a half, that up to ``above`` is not
        middle = (below & above) + ((below ^ above) >> 1)  # rounded down, without overflow
        enough = jnp.sum(jnp.where(rounded <= _number(middle)[None], weights, 0), axis=0) >= half
        return jnp.where(enough, below, middle), jnp.where(enough, middle, above)

    median = _number(lax.fori_loop(0, 32, step, (below - 1, above))[1])
    # Numbers too small to be normal are compared as zero.
    same = rounded == median[None]
    return jnp.min(jnp.where(same, values, jnp.inf), axis=0)


def _ordered(number: Float[Array, "*S"]) -> Int[Array, "*S"]:
    """Whole numbers in the order of the numbers: the bits, those of negative ones turned around."""
    bits = lax.bitcast_convert_type(number, jnp.int32)
    return bits ^ ((bits >> 31) & _MAGNITUDE)


def _number(ordered: Int[Array, "*S"]) -> Float[Array, "*S"]:
    """The inverse of ``_ordered``."""
    return lax.bitcast_convert_type(ordered ^ ((ordered >> 31) & _MAGNITUDE), jnp.float32)


def median(values: Float[Array, "S *T"]) -> Float[Array, "*T"]:
    """The median along a short first axis, of an even number the mean of the two in the middle.

    Neighbours are exchanged until all are in order (odd-even transposition sort): S^2 / 2 pairs of minimum and maximum.
    """
    ordered = list(values)
    S = len(ordered)
    for turn in range(S):
        for i in range(turn % 2, S - 1, 2):
            pair = ordered[i], ordered[i + 1]
            ordered[i], ordered[i + 1] = jnp.minimum(*pair), jnp.maximum(*pair)
    return (ordered[(S - 1) // 2] + ordered[S // 2]) / 2
