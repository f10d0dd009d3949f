"""Hamiltonian Monte Carlo with a diagonal mass matrix, for one target or for J independent ones.

The log density may return a number or one value per column; in the second case each column of the
position (its last axis) has its own energy, step size and accept decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

TARGET_ACCEPTANCE = 0.8


class Info(NamedTuple):
    """Per target, the acceptance probability of the trajectory and the log density where it ended."""

    acceptance: Float[Array, "*J"]
    value: Float[Array, "*J"]


def step(
    key: Array,
    position: Any,
    log_density: Callable[[Any], Float[Array, "*J"]],
    step_size: Float[Array, "*J"],
    n_leapfrog: int,
    mass: Any,
) -> tuple[Any, Info]:
    """One trajectory of ``n_leapfrog`` steps; ``mass`` is a pytree that broadcasts to ``position``.

    The step size is multiplied by a factor drawn from U(0.8, 1.2) so that no direction of the
    target resonates with the length of the trajectory.
    """
    key_momentum, key_jitter, key_accept = jax.random.split(key, 3)
    leaves, tree = jax.tree.flatten(position)
    keys = jax.random.split(key_momentum, len(leaves))
    noise = [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
    momentum = jax.tree.map(lambda e, m: jnp.sqrt(m) * e, jax.tree.unflatten(tree, noise), mass)
    epsilon = step_size * jax.random.uniform(key_jitter, (), leaves[0].dtype, 0.8, 1.2)

    def value_and_grad(q):
        def total(q):
            values = log_density(q)
            return jnp.sum(values), values

        (_, values), gradient = jax.value_and_grad(total, has_aux=True)(q)
        return values, gradient

    def kinetic(p):
        def energy(p, m):
            axes = None if values.ndim == 0 else tuple(range(p.ndim - 1))
            return 0.5 * jnp.sum(p**2 / m, axis=axes)

        return sum(jax.tree.leaves(jax.tree.map(energy, p, mass)))

    def step_for(leaf):
        return lax.broadcast_to_rank(epsilon, leaf.ndim)

    def leapfrog(_, carry):
        q, p, _, gradient = carry
        p = jax.tree.map(lambda p, g: p + 0.5 * step_for(g) * g, p, gradient)
        q = jax.tree.map(lambda q, p, m: q + step_for(p) * p / m, q, p, mass)
        values, gradient = value_and_grad(q)
        p = jax.tree.map(lambda p, g: p + 0.5 * step_for(g) * g, p, gradient)
        return q, p, values, gradient

    values, gradient = value_and_grad(position)
    start = (position, momentum, values, gradient)
    q, p, new_values, _ = lax.fori_loop(0, n_leapfrog, leapfrog, start)
    log_ratio = new_values - values - kinetic(p) + kinetic(momentum)
    log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
    u = jax.random.uniform(key_accept, values.shape, values.dtype)
    accept = jnp.log(u) < log_ratio
    chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), q, position)
    return chosen, Info(jnp.exp(jnp.minimum(log_ratio, 0)), jnp.where(accept, new_values, values))


def adapt(step_size: Float[Array, "*J"], acceptance: Float[Array, "*J"], rate: Float[Array, ""]) -> Float[Array, "*J"]:
    """Robbins-Monro on the log step size towards the target acceptance."""
    return step_size * jnp.exp(rate * (acceptance - TARGET_ACCEPTANCE))
