"""Geweke's joint test of the whole sampler, run as many short independent chains.

Each chain starts at a draw of (unknowns, table) from the prior and alternates one Gibbs sweep given
the table with a new table given the unknowns. If every block leaves its conditional invariant, the
pair still has the prior law after any number of rounds, so the final draws of the chains, which are
independent of each other, must look like fresh draws from the prior. Small errors of a block add up
over the rounds. Compared by two-sample Kolmogorov-Smirnov tests on many functions of the pair, with
a Bonferroni correction: a correct sampler is rejected with probability ``FALSE_ALARM``.

``block_p_values`` is the same for one block alone, the table held. What a replicate was and what the block made of it
are compared with each other, which shows smaller errors than two independent samples, and one block compiles sooner
than a sweep.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from scipy import stats

from rflvm import likelihoods
from rflvm.model import spectral
from rflvm.model.dynamics import Chronology, Matern
from rflvm.model.joint import Data, Model, Prior, log_likelihood, predictor, sample_data, sample_prior
from rflvm.numerics import polyagamma
from rflvm.sampling.blocks.tuning import PathTuning, Tuning
from rflvm.sampling.sweep import Moves, sweep

FALSE_ALARM = 1e-3
N, J, D, H = 6, 3, 2, 3
N_COLUMNS = {"multinomial": J - 1}
PRIOR = Prior(nu0=5.0, Psi0=3.0, alpha_shape=2.0, alpha_rate=1.0, beta_scale=1.0, bias_scale=0.7,
              covariate_scale=0.8)  # fmt: skip

FAMILIES = {
    "gaussian-marginal": likelihoods.Gaussian(marginal=True, a0=3.0, b0=2.0),
    "gaussian": likelihoods.Gaussian(marginal=False, a0=3.0, b0=2.0),
    "poisson": likelihoods.Poisson(),
    "bernoulli": likelihoods.Bernoulli(),
    "binomial": likelihoods.Binomial(trials=np.array([2, 5, 9])),
    "negative-binomial": likelihoods.NegativeBinomial(a0=2.0, b0=4.0, g0=2.0),
    "multinomial": likelihoods.Multinomial(),
    "mixed": likelihoods.Mixed(
        (likelihoods.Gaussian(a0=3.0, b0=2.0), likelihoods.Poisson(), likelihoods.NegativeBinomial(a0=2, b0=4, g0=2)),
        ((2,), (0,), (1,)),
    ),
    "student-t": likelihoods.StudentT(a0=3.0, b0=2.0),
    "ordinal": likelihoods.Ordinal(low=1, high=4),
    "zero-inflated-poisson": likelihoods.ZeroInflatedPoisson(a_zero=2.0, b_zero=3.0),
    "zero-inflated-negative-binomial": likelihoods.ZeroInflatedNegativeBinomial(a0=2.0, b0=4.0, g0=2.0),
}


# Families whose rows have covariates too.
WITH_COVARIATES = ("gaussian-marginal", "poisson", "bernoulli")


def model_for(likelihood: likelihoods.Likelihood, process: Matern | None = None) -> Model:
    return Model(likelihood, D, H, PRIOR, process)


def design_for(likelihood: likelihoods.Likelihood, process: Matern | None = None) -> Data:
    """Masks and offsets on: four cells are missing, every row has its own offset.

    With a prior over time there are two sessions with gaps, and a row in the middle of the first has no cell at all.
    """
    observed = np.ones((N, J), bool)
    observed[[0, 2, 4, 5], [1, 0, 2, 1]] = False
    chronology = None
    if process is not None:
        observed[1] = False
        gap, first = np.array([0.0, 0.4, 2.0, 1.0, 0.0, 0.7]), np.isin(np.arange(N), [0, 4])
        chronology = Chronology(jnp.asarray(gap), jnp.asarray(first), jnp.asarray(0.2))
    Y = np.tile([3.0, 4.0, 2.0], (N, 1)) if likelihood.name == "multinomial" else np.zeros((N, J))
    cells, counted, trials = likelihood.encode(Y, observed)
    offset = np.linspace(-0.6, 0.6, N)
    return Data(
        jnp.asarray(cells, float), jnp.asarray(counted), jnp.asarray(offset),
        None if trials is None else jnp.asarray(trials, float), chronology, covariates_for(likelihood),
    )  # fmt: skip


def covariates_for(likelihood: likelihoods.Likelihood):
    """One number and one indicator for each row."""
    if not any(type(likelihood) is type(FAMILIES[name]) and likelihood == FAMILIES[name] for name in WITH_COVARIATES):
        return None
    return jnp.asarray(np.stack([np.linspace(1.5, -1.5, N) ** 3 / 2, np.arange(N) % 2 - 0.5], axis=1))


def tuning_for(design: Data) -> Tuning:
    """Any fixed values are valid; these accept often enough to move and seldom enough to test the decision."""
    columns = design.Y.shape[1]
    return Tuning(
        X_step=jnp.asarray(0.7),
        W_step=jnp.asarray(0.25),
        beta_step=jnp.full(columns, 0.5),
        curvature=jnp.linspace(0.5, 1.5, columns),
        fitted=jnp.asarray(np.random.default_rng(0).normal(size=design.Y.shape)) * 0.5,
        path=None if design.chronology is None else path_tuning(),
    )


def path_tuning() -> PathTuning:
    roots = np.random.default_rng(1).normal(size=(N, D, D))
    information = jnp.asarray(roots @ np.swapaxes(roots, 1, 2))
    return PathTuning(jnp.asarray(0.6), information, jnp.array([0.8, 0.8]))


def prior_sampler(model: Model, design: Data):
    """A compiled function that makes independent draws of (unknowns, table) from keys."""

    def one(key):
        key_state, key_data = jax.random.split(key)
        state = sample_prior(
            key_state, model, N, design.Y.shape[1], jnp.float64, design.chronology, design.n_covariates
        )
        return state, sample_data(key_data, state, design, model)

    return jax.jit(jax.vmap(one))


def chain_draws(key, state, data: Data, model: Model, design: Data, rounds: int, moves: Moves):
    """The last (unknowns, table) of chains of alternating sweeps and tables, one per starting pair."""
    n = state.alpha.shape[0]
    tuning = tuning_for(design)
    nothing: Any = None
    over_tables: Any = Data(nothing, None, nothing, None)._replace(Y=0, trials=None if design.trials is None else 0)
    axes = (0, over_tables)

    def one_round(state, data, key):
        key_sweep, key_data = jax.random.split(key)
        state, _ = sweep(key_sweep, state, tuning, data, model, moves)
        return state, sample_data(key_data, state, design, model)

    @jax.jit
    def run(pair, key):
        def body(pair, key):
            keys = jax.random.split(key, n)
            return jax.vmap(one_round, in_axes=(*axes, 0), out_axes=axes)(pair[0], pair[1], keys), None

        return lax.scan(body, pair, jax.random.split(key, rounds))[0]

    return run((state, design._replace(Y=data.Y, trials=data.trials)), key)


def functions(model: Model, design: Data):
    """A compiled function from pairs to a dict of functions of them, one value per chain."""

    def one(state, Y, trials):
        data = design._replace(Y=Y, trials=trials)
        occupied = spectral.counts(state.z) > 0
        F = predictor(state, data)
        counted = jnp.asarray(data.mask)
        out = {
            "x": state.X[0, 0],
            "x masked row": state.X[2, 1],
            "|x|^2": jnp.sum(state.X**2),
            "w": state.W[0, 0],
            "|w|^2": jnp.sum(state.W**2),
            "w last": state.W[-1, 1],
            "clusters": occupied.sum().astype(float),
            "pairs together": jnp.sum(state.z[:, None] == state.z[None]).astype(float),
            "alpha": state.alpha,
            "mu of w": state.mu[state.z[0], 0],
            "log |Sigma| of w": jnp.linalg.slogdet(state.Sigma[state.z[0]])[1],
            "w - mu": jnp.sum((state.W - state.mu[state.z]) ** 2),
            "beta": state.beta[0, 0],
            "beta last": state.beta[2 * H - 1, -1],
            "intercept": state.beta[-1, 0],
            "|beta|^2": jnp.sum(state.beta[: 2 * H] ** 2),
            "f": F[0, 0],
            "|f|^2": jnp.sum(F**2),
            "f masked": jnp.sum(jnp.where(counted, 0, F)),
            "f along the offset": jnp.sum(data.offset[:, None] * F),
            "y along the offset": jnp.sum(data.offset[:, None] * data.Y),
            "fy": jnp.sum(jnp.where(counted, F * data.Y, 0)),
            "xxy": jnp.sum(jnp.where(counted, data.Y, 0) * jnp.sum(state.X**2, 1)[:, None]),
            "y": data.Y[1].sum(),
            "|y|^2": jnp.sum(jnp.where(counted, data.Y, 0) ** 2),
            "|x||w|": jnp.sum((state.X @ state.W.T) ** 2),
            "log likelihood": log_likelihood(state, data, model),
        }
        if state.lengthscale is not None:
            steps = jnp.diff(state.X, axis=0)
            out |= {
                "lengthscale": state.lengthscale[0],
                "log lengthscales": jnp.log(state.lengthscale).sum(),
                "|step|^2 of sessions": jnp.sum(steps[jnp.array([0, 1, 2, 4])] ** 2),
                "|first step|^2": jnp.sum(steps[0] ** 2),
                "bend": jnp.sum((steps[2] - steps[1]) ** 2),
                "between sessions": jnp.sum(state.X[3] * state.X[4]),
                "within sessions": jnp.sum(state.X[4] * state.X[5]),
            }
        if data.covariates is not None:
            out["effect"] = state.beta[2 * H, 0]
            out["|effects|^2"] = jnp.sum(state.beta[2 * H : -1] ** 2)
            out["f along the covariate"] = jnp.sum(data.covariates[:, :1] * F)
            out["y along the covariate"] = jnp.sum(data.covariates[:, :1] * jnp.where(counted, data.Y, 0))
        for name, value in state.theta.items():
            out[name] = value.ravel()[0]
            out["sum log " + name] = jnp.log(value).sum()
        return out

    axes = (0, 0, None if design.trials is None else 0)
    return jax.jit(jax.vmap(one, in_axes=axes))


def flattened(draw):
    """A Polya-gamma sampler that under vmap makes one call for all chains, with the first chain's key.

    Its rejection queue is made for one long array; thousands of short ones under vmap would each
    pay for a queue of their own.
    """
    flat = custom_vmap(draw)

    @flat.def_vmap
    def _(axis_size, in_batched, key, *arrays):
        key = key[0] if in_batched[0] else key
        spread = [a if batched else jnp.broadcast_to(a, (axis_size, *a.shape))
                  for a, batched in zip(arrays, in_batched[1:], strict=True)]  # fmt: skip
        return draw(key, *spread), True

    return flat


@contextlib.contextmanager
def _many_chains():
    """Double precision, and Polya-gamma variates of all chains at once."""
    one, general = flattened(polyagamma.sample_one), flattened(polyagamma.sample)
    with (
        jax.enable_x64(True),
        mock.patch.object(polyagamma, "sample_one", one),
        mock.patch.object(polyagamma, "sample", general),
    ):
        yield


def p_values(likelihood, *, n=1500, rounds=10, seed=0, moves=Moves(), process=None) -> dict[str, float]:
    """Bonferroni-corrected p-value of each function."""
    with _many_chains():
        model, design = model_for(likelihood, process), design_for(likelihood, process)
        draw, evaluate = prior_sampler(model, design), functions(model, design)
        key_start, key_run, key_prior = jax.random.split(jax.random.key(seed), 3)
        state, data = draw(jax.random.split(key_start, n))
        state, data = chain_draws(key_run, state, data, model, design, rounds, moves)
        chain = jax.device_get(evaluate(state, data.Y, data.trials))
        state, data = draw(jax.random.split(key_prior, n))
        prior = jax.device_get(evaluate(state, data.Y, data.trials))
    corrected = {}
    for name, values in chain.items():
        assert np.isfinite(values).all(), f"{name} is not finite in some chain"
        test: Any = stats.ks_2samp(values, prior[name], method="asymp")
        corrected[name] = min(1.0, len(chain) * test.pvalue)
    return corrected


@functools.cache
def _starts(likelihood: likelihoods.Likelihood, process: Matern | None, n: int, seed: int):
    """Draws of (unknowns, table) from the prior, and the functions of them."""
    model, design = model_for(likelihood, process), design_for(likelihood, process)
    state, data = prior_sampler(model, design)(jax.random.split(jax.random.key(seed), n))
    evaluate = functions(model, design)
    return state, data, evaluate, jax.device_get(evaluate(state, data.Y, data.trials))


def block_p_values(step, likelihood, *, n=1000, repeats=5, seed=0, process=None) -> dict[str, float]:
    """Bonferroni-corrected p-value of each function that the block changes, for its place and for its spread.

    Each replicate starts at a draw from the prior and takes the block's step a few times. A value is replaced by its
    rank u in (0, 1) among the values at the start; the mean changes of u and of |u - 1/2| are zero if the block leaves
    its conditional invariant, and are compared with their standard errors.
    """
    with _many_chains():
        model, design = model_for(likelihood, process), design_for(likelihood, process)
        tuning = tuning_for(design)
        state, data, evaluate, before = _starts(likelihood, process, n, seed)

        def replicate(key, state, Y, trials):
            table = design._replace(Y=Y, trials=trials)
            again = lambda state, key: (step(key, state, table, model, tuning)[0], None)  # noqa: E731
            return lax.scan(again, state, jax.random.split(key, repeats))[0]

        axes = (0, 0, 0, None if design.trials is None else 0)
        keys = jax.random.split(jax.random.key(seed + 1), n)
        state = jax.jit(jax.vmap(replicate, in_axes=axes))(keys, state, data.Y, data.trials)
        after = jax.device_get(evaluate(state, data.Y, data.trials))
    scores = {}
    for name, values in after.items():
        assert np.isfinite(values).all(), f"{name} is not finite in some replicate"
        start, end = _ranks(before[name], before[name]), _ranks(values, before[name])
        for what, change in (("", end - start), ("spread of ", np.abs(end - 0.5) - np.abs(start - 0.5))):
            if change.any():
                scores[what + name] = change.mean() / (change.std() / np.sqrt(n))
    return {name: min(1.0, len(scores) * 2 * float(stats.norm.sf(abs(z)))) for name, z in scores.items()}


def _ranks(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The empirical distribution function of ``among``, half of each jump counted."""
    among = np.sort(among)
    return (np.searchsorted(among, values, "left") + np.searchsorted(among, values, "right")) / (2 * len(among))
