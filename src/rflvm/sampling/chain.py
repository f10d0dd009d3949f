"""One chain: its start, one sweep more, several sweeps with what is kept of them, and the shapes that it has."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ..model.draws import Kept, Run, linear_predictors
from ..model.joint import Data, Model, State, log_joint, state_shapes
from ..numerics.compilation import compiled
from ..numerics.linalg import NumericalError
from .blocks.tuning import Tuning
from .sweep import Moves, compiled_adapt, compiled_initial_tuning, compiled_sweep


class Chain(NamedTuple):
    """One chain between two sweeps."""

    state: State
    tuning: Tuning
    info_sum: dict[str, Any]  # of what the blocks reported after burn-in, empty before


class Task(NamedTuple):
    """What the chains of a run have in common: all that it takes to advance one."""

    run: Run  # its seed, burn-in, thinning and moves
    data: Data
    model: Model
    beta_thin: int
    cells: Int[np.ndarray, "N K"]  # columns of F that are kept of each row


class Advanced(NamedTuple):
    """A chain some sweeps later, and the draws that are kept of them."""

    chain: Chain
    kept: list[Kept]


compiled_log_joint = compiled(log_joint, static_argnames="model")


_linear_predictors = compiled(linear_predictors)


def chain_key(run: Run, c: int) -> Array:
    """The key of a chain; with 0 folded in it makes the start, with t + 1 sweep number t."""
    return jax.random.fold_in(jax.random.key(run.seed), c)


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


def advance_by(c: int, chain: Chain, start: int, stop: int, task: Task) -> Advanced:
    """Chain number ``c`` from sweep number ``start`` to before ``stop``."""
    run, data, model = task.run, task.data, task.model
    key, moves, kept = chain_key(run, c), Moves(*run.moves), []  # pyright: ignore[reportArgumentType]
    for t in range(start, stop):
        chain = advance(chain, key, t, t < run.n_burnin, data, model, moves)
        draw = run._replace(n_sweeps=t).n_kept
        if run._replace(n_sweeps=t + 1).n_kept > draw:
            state = chain.state
            height, F = compiled_log_joint(state, data, model), _linear_predictors(state, task.cells, data.covariates)
            kept.append(Kept(state if draw % task.beta_thin == 0 else state._replace(beta=None), height, F))
    return Advanced(chain, kept)


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
