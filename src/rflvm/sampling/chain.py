"""One chain: its start, one sweep more, and the shapes that it has."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..model.joint import Data, Model, State, state_shapes
from ..numerics.linalg import NumericalError
from .blocks.tuning import Tuning
from .sweep import Moves, compiled_adapt, compiled_initial_tuning, compiled_sweep


class Chain(NamedTuple):
    """One chain between two sweeps."""

    state: State
    tuning: Tuning
    info_sum: dict[str, Any]  # of what the blocks reported after burn-in, empty before


def begin_chain(state: State, data: Data, model: Model) -> Chain:
    """A chain before its first sweep."""
    return Chain(state, compiled_initial_tuning(state, data, model), {})


def advance(chain: Chain, key: Array, t: int, burnin: bool, data: Data, model: Model, moves: Moves) -> Chain:
    """Sweep number t; its randomness depends on the chain's key and t alone."""
    state, infos = compiled_sweep(jax.random.fold_in(key, t + 1), chain.state, chain.tuning, data, model, moves)
    _raise_if_broken(t, state, infos)
    if burnin:
        tuning = compiled_adapt(chain.tuning, jnp.asarray(t, data.Y.dtype), state, infos, data, model)
        return Chain(state, tuning, {})
    return Chain(state, chain.tuning, jax.tree.map(jnp.add, chain.info_sum, infos) if chain.info_sum else infos)


def _raise_if_broken(t: int, state: State, infos: dict[str, Any]) -> None:
    for name in ("alpha", "W", "X", "lengthscale", "theta", "beta"):
        values = jax.tree.leaves((getattr(state, name), getattr(infos.get(name), "value", 0.0)))
        if not all(np.isfinite(np.asarray(value)).all() for value in values):
            jitter = max(float(infos[block].jitter) for block in ("W", "beta") if block in infos)
            raise NumericalError(
                f"block {name} gave numbers that are not finite in sweep {t} (largest Cholesky jitter: "
                f"{jitter:.1e}); rescale the data or check for extreme values"
            )


def chain_shapes(data: Data, model: Model, moves: Moves) -> Chain:
    """Shapes and dtypes of a chain, without computing anything."""
    state = state_shapes(data, model)
    tuning = compiled_initial_tuning.eval_shape(state, data, model)
    _, infos = compiled_sweep.eval_shape(jax.random.key(0), state, tuning, data, model, moves)
    return Chain(state, tuning, infos)
