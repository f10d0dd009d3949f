"""The Gibbs sampler: one sweep composes the blocks in the paper's order; ``sample`` runs and records.

z, (mu, Sigma), alpha       the mixture over frequencies, Eqs. 8, 9 and 11
W (with beta), scale        frequencies, in place of Eq. 10
X                           latent positions
theta, beta                 r and h; sigma^2 and beta, or beta by HMC, in place of Eq. 14
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tqdm import tqdm

from . import likelihoods, linalg, starts, validation
from . import map as map_engine
from .linalg import NumericalError
from .model import Data, Model, Prior, State, is_marginal, log_joint, state_shapes
from .posterior import Draws, Recorder
from .updates import W, X, alpha, beta, components, scale, theta, z
from .updates.tuning import Tuning, track
from .updates.tuning import initial as initial_tuning

logger = logging.getLogger(__name__)

N_MAP_ITERATIONS = 60


class Moves(NamedTuple):
    """Which version of the blocks that have two: the default, and the paper's."""

    latents: Literal["sample", "map"] = "sample"
    frequencies: Literal["hmc", "prior"] = "hmc"
    coefficients: Literal["hmc", "polya-gamma"] = "hmc"

    def blocks(self) -> dict[str, Callable]:
        """The steps of a sweep, in order."""
        return {
            "z": z.step,
            "components": components.step,
            "alpha": alpha.step,
            "W": {"hmc": W.step, "prior": W.step_prior}[self.frequencies],
            "scale": scale.step,
            "X": {"sample": X.step, "map": X.step_map}[self.latents],
            "theta": theta.step,
            "beta": {"hmc": beta.step, "polya-gamma": beta.step_polya_gamma}[self.coefficients],
        }


def sweep(
    key: Array, state: State, tuning: Tuning, data: Data, model: Model, moves: Moves = Moves()
) -> tuple[State, dict[str, Any]]:
    """Draw every block once."""
    infos = {}
    blocks = moves.blocks()
    for (name, step), key_block in zip(blocks.items(), jax.random.split(key, len(blocks)), strict=True):
        state, infos[name] = step(key_block, state, data, model, tuning)
    return state, infos


def adapt(tuning: Tuning, t: Array, state: State, infos: dict[str, Any], data: Data, model: Model) -> Tuning:
    """Tune after burn-in sweep number t, with a rate that falls with t (Robbins-Monro)."""
    rate = (1 + t) ** -0.6
    for name, block in (("W", W), ("X", X), ("beta", beta)):
        tuning = block.adapt(tuning, infos[name], rate)
    return track(tuning, state, data, model, rate)


compiled_sweep = jax.jit(sweep, static_argnames=("model", "moves"))
compiled_adapt = jax.jit(adapt, static_argnames="model")
compiled_initial_tuning = jax.jit(initial_tuning, static_argnames="model")
_log_joint = jax.jit(log_joint, static_argnames="model")


class Progress(NamedTuple):
    """What a progress callback is told."""

    sweep: int
    n_sweeps: int
    n_burnin: int
    sweeps_per_second: float
    log_joint: float


def sample(
    Y: np.ndarray,
    likelihood: str | likelihoods.Likelihood = "gaussian",
    *,
    n_latent: int = 2,
    n_features: int = 100,
    n_samples: int = 1000,
    n_burnin: int = 1000,
    thin: int = 1,
    n_chains: int = 1,
    seed: int = 0,
    mask: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    init: Literal["map", "pca"] | np.ndarray = "map",
    prior: Prior = Prior(),
    latents: Literal["sample", "map"] = "sample",
    frequencies: Literal["hmc", "prior"] = "hmc",
    coefficients: Literal["hmc", "polya-gamma"] = "hmc",
    progress: bool | Callable[[Progress], None] = False,
    memory_budget: float = 1e9,
    dtype: Literal["float32", "float64"] = "float64",
) -> Draws:
    """Draw from the posterior of an RFLVM.

    Parameters
    ----------
    Y : array_like (N, J)
        The table. NaN means missing.
    likelihood : str or Likelihood
        "gaussian", "poisson", "bernoulli", "negative_binomial", "multinomial", or an object such
        as ``likelihoods.Binomial(trials=10)``.
    n_latent, n_features : int
        D, and M = 2H, an even number of random features.
    n_samples, n_burnin : int
        Sweeps after and during burn-in, per chain. Step sizes are tuned in burn-in only.
    thin : int
        Keep every ``thin``-th sweep.
    n_chains : int
        Independent chains, advanced together.
    seed : int
        The same seed gives the same draws, bit for bit, on the same machine.
    mask : bool array (N, J), optional
        True where a cell is observed; in addition to NaN.
    offset : array (N,), optional
        Added to every linear predictor of a row, a log exposure for counts.
    init : {"map", "pca"} or array (N, D)
        Where the chains start: at the maximum that ``maximise`` finds (with an RBF kernel, the best
        of several starts of X), each with its own draw of beta; or as the paper does, X at PCA of the
        variance-stabilised table or at given positions, everything else from the prior.
    prior : Prior
        Hyperparameters.
    latents : {"sample", "map"}
        Sample X, or maximise it in every sweep as the paper does.
    frequencies : {"hmc", "prior"}
        How W moves: jointly with beta by HMC, or by the paper's proposals from the prior.
    coefficients : {"hmc", "polya-gamma"}
        How beta moves where it has no closed form: by HMC, or, for the Bernoulli, binomial,
        negative binomial and multinomial families, by the paper's Polya-gamma augmentation.
        (The Gaussian's beta is always drawn from its normal-inverse-gamma conditional.)
    progress : bool or callable
        Show a progress bar, or be called with a ``Progress`` after every sweep.
    memory_budget : float
        Bytes that the kept draws may take. Beta is thinned to fit; see ``Draws.beta_thin``.
    dtype : {"float32", "float64"}
        Precision of the sampler.

    Returns
    -------
    Draws
        Interrupting a run (Ctrl-C) returns the draws made so far.
    """
    family = likelihoods.get(likelihood)
    D, H = validation.check_dimensions(n_latent, n_features)
    run = validation.check_run(n_samples, n_burnin, thin)
    chain_count = validation.check_integer("n_chains", n_chains, 1)
    validation.check_choice("latents", latents, ("sample", "map"))
    validation.check_choice("frequencies", frequencies, ("hmc", "prior"))
    validation.check_choice("coefficients", coefficients, ("hmc", "polya-gamma"))
    validation.check_choice("dtype", dtype, ("float32", "float64"))
    table = validation.check_table(Y, family, mask, offset, D)
    X0 = validation.check_start(init, table.Y.shape[0], D, ("map", "pca"))
    model = Model(family, D, H, prior)
    if latents == "map" and is_marginal(model):
        raise ValueError('latents="map" moves rows one by one: use likelihoods.Gaussian(marginal=False)')
    if coefficients == "polya-gamma" and not isinstance(family, likelihoods.Logistic):
        raise ValueError(f'coefficients="polya-gamma" needs a logistic family, not {family.name}')
    with jax.enable_x64(dtype == "float64"), linalg.one_blas_thread():
        data = validation.to_device(table, dtype)
        recorder = Recorder(state_shapes(data, model), chain_count, run["n_samples"] // run["thin"], memory_budget)
        keys = [jax.random.fold_in(jax.random.key(seed), c) for c in range(chain_count)]
        with tqdm(desc="start", unit="iteration", disable=progress is not True) as line:
            begin = _starter(X0, data, model, seed, lambda value: line.update())
        chains = [Chain(key, begin(jax.random.fold_in(key, 0)), data, model) for key in keys]
        return _run(chains, data, Moves(latents, frequencies, coefficients), _reporter(progress), recorder, **run)


def _starter(
    init: str | np.ndarray, data: Data, model: Model, seed: int, tell: Callable[[float], Any]
) -> Callable[[Array], State]:
    """A function from a chain's key to the state in which it starts."""
    if isinstance(init, str) and init == "map":
        with jax.enable_x64(True):  # as in ``maximise``: sums in double precision, and matrices where need be
            single = linalg.cast(data, jnp.float32)
            search, used, name = map_engine.find(
                single, model, "rbf", "auto", N_MAP_ITERATIONS, seed, tell, amplitude=False
            )
        if search.convergence == "interrupted":
            raise KeyboardInterrupt
        logger.info("the chains start at the MAP, found from the %s start (%s)", name, search.convergence)

        def at_maximum(key):
            with jax.enable_x64(True):
                return linalg.cast(map_engine.draw_state(key, search, used, model), data.Y.dtype)

        return at_maximum
    X = starts.embed("pca", starts.stabilised(data, model), model.D, seed) if isinstance(init, str) else init
    return lambda key: starts.from_prior(key, X, data, model)


class Chain:
    """One chain: its key, state, tuning and the running sum of what its blocks report."""

    def __init__(self, key: Array, state: State, data: Data, model: Model):
        self.key, self.state, self.model = key, state, model
        self.tuning = compiled_initial_tuning(self.state, data, model)
        self.info_sum: dict[str, Any] = {}

    def advance(self, t: int, burnin: bool, data: Data, moves: Moves) -> None:
        """Sweep number t; its randomness depends on the chain's key and t alone."""
        key = jax.random.fold_in(self.key, t + 1)
        self.state, infos = compiled_sweep(key, self.state, self.tuning, data, self.model, moves)
        if burnin:
            time_t = jnp.asarray(t, data.Y.dtype)
            self.tuning = compiled_adapt(self.tuning, time_t, self.state, infos, data, self.model)
        else:
            self.info_sum = jax.tree.map(jnp.add, self.info_sum, infos) if self.info_sum else infos
        self._raise_if_broken(t, infos)

    def log_joint(self, data: Data) -> float:
        """The log joint density at the present state."""
        return float(_log_joint(self.state, data, self.model))

    def _raise_if_broken(self, t: int, infos: dict[str, Any]) -> None:
        for name in ("alpha", "W", "X", "theta", "beta"):
            values = jax.tree.leaves((getattr(self.state, name), getattr(infos[name], "value", 0.0)))
            if not all(np.isfinite(np.asarray(value)).all() for value in values):
                jitter = max(float(infos[block].jitter) for block in ("W", "beta"))
                raise NumericalError(
                    f"block {name} gave numbers that are not finite in sweep {t} (largest Cholesky jitter: "
                    f"{jitter:.1e}); rescale the data or check for extreme values"
                )


def _run(
    chains: list[Chain], data: Data, moves: Moves, report: Reporter, recorder: Recorder,
    *, n_samples: int, n_burnin: int, thin: int,
) -> Draws:  # fmt: skip
    kept = done = 0
    interrupted = False
    with report(n_burnin, n_burnin + n_samples) as tell:
        try:
            for t in range(n_burnin + n_samples):
                for chain in chains:
                    chain.advance(t, t < n_burnin, data, moves)
                done = t + 1
                if done > n_burnin and (done - n_burnin) % thin == 0:
                    for c, chain in enumerate(chains):
                        recorder.record(c, kept, chain.state, chain.log_joint(data))
                    kept += 1
                tell(done, chains[0], data)
        except KeyboardInterrupt:
            if kept == 0:
                raise
            interrupted = True
            logger.warning("interrupted after %d of %d sweeps: %d draws are kept", done, n_burnin + n_samples, kept)
    swept = max(done - n_burnin, 1)
    return Draws(
        model=chains[0].model,
        arrays=recorder.arrays(kept),
        beta_thin=recorder.beta_thin,
        tuning=[chain.tuning for chain in chains],
        states=[chain.state for chain in chains],
        info=[jax.tree.map(lambda total: np.asarray(total) / swept, chain.info_sum) for chain in chains],
        interrupted=interrupted,
    )


Teller = Callable[[int, Chain, Data], None]
Reporter = Callable[[int, int], AbstractContextManager[Teller]]


def _reporter(progress: bool | Callable[[Progress], None]) -> Reporter:
    """How the run tells of its progress: not at all, by a bar, or to the user's function."""

    @contextmanager
    def silent(n_burnin, n_sweeps):
        yield lambda done, chain, data: None

    @contextmanager
    def bar(n_burnin, n_sweeps):
        with tqdm(total=n_sweeps, unit="sweep", desc="burn-in") as line:
            shown = [0.0]

            def tell(done, chain, data):
                line.update(done - line.n)
                now = time.perf_counter()
                if now - shown[0] > 0.25 or done == n_sweeps:
                    shown[0] = now
                    line.set_description("burn-in" if done <= n_burnin else "sampling", refresh=False)
                    line.set_postfix_str(f"log joint {chain.log_joint(data):.1f}")

            yield tell

    @contextmanager
    def callback(n_burnin, n_sweeps):
        start = time.perf_counter()

        def tell(done, chain, data):
            rate = done / (time.perf_counter() - start)
            progress(Progress(done, n_sweeps, n_burnin, rate, chain.log_joint(data)))  # pyright: ignore[reportCallIssue]

        yield tell

    if callable(progress):
        return callback
    return bar if progress else silent
