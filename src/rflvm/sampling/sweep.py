"""One sweep: the blocks in the paper's order, and their tuning in burn-in.

z, (mu, Sigma), alpha       the mixture over frequencies, Eqs. 8, 9 and 11
W (with beta), scale        frequencies, in place of Eq. 10
X, lengthscale              latent positions; with a prior over time paths, and their lengthscale
theta, beta                 r and h; sigma^2 and beta, or beta by HMC, in place of Eq. 14
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
from jaxtyping import Array

from ..model.dynamics import Matern
from ..model.joint import Data, Model, State
from ..numerics.compilation import compiled
from .blocks import W, X, alpha, beta, components, lengthscale, path, scale, theta, z
from .blocks.tuning import Tuning, track
from .blocks.tuning import initial as initial_tuning


class Moves(NamedTuple):
    """Which update of the blocks that have several: the default, the paper's, or none at all."""

    latents: Literal["sample", "map"] = "sample"
    frequencies: Literal["hmc", "prior", "fixed"] = "hmc"
    coefficients: Literal["hmc", "polya-gamma"] = "hmc"

    def blocks(self, dynamics: Matern | None = None) -> dict[str, Callable]:
        """The steps of a sweep, in order; with fixed frequencies only those that do not change W and its mixture."""
        latents = {"X": {"sample": X.step, "map": X.step_map}[self.latents] if dynamics is None else path.step}
        if dynamics is not None and dynamics.learned:
            latents |= {"lengthscale": lengthscale.step}
        spectral = {
            "z": z.step,
            "components": components.step,
            "alpha": alpha.step,
            "W": W.step_prior if self.frequencies == "prior" else W.step,
            "scale": scale.step,
        }
        return (
            ({} if self.frequencies == "fixed" else spectral)
            | latents
            | {
                "theta": theta.step,
                "beta": {"hmc": beta.step, "polya-gamma": beta.step_polya_gamma}[self.coefficients],
            }
        )


def sweep(
    key: Array, state: State, tuning: Tuning, data: Data, model: Model, moves: Moves = Moves()
) -> tuple[State, dict[str, Any]]:
    """Draw every block once."""
    infos = {}
    blocks = moves.blocks(model.dynamics)
    for (name, step), key_block in zip(blocks.items(), jax.random.split(key, len(blocks)), strict=True):
        state, infos[name] = step(key_block, state, data, model, tuning)
    return state, infos


def adapt(tuning: Tuning, t: Array, state: State, infos: dict[str, Any], data: Data, model: Model) -> Tuning:
    """Tune after burn-in sweep number t, with a rate that falls with t (Robbins-Monro)."""
    rate = (1 + t) ** -0.6
    latents = X if model.dynamics is None else path
    for name, block in (("W", W), ("X", latents), ("lengthscale", lengthscale), ("beta", beta)):
        if name in infos:
            tuning = block.adapt(tuning, infos[name], rate)
    return track(tuning, state, data, model, rate)


compiled_sweep = compiled(sweep, static_argnames=("model", "moves"))


compiled_adapt = compiled(adapt, static_argnames="model")


compiled_initial_tuning = compiled(initial_tuning, static_argnames="model")
