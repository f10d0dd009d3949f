"""The Gibbs sampler: ``sample`` starts chains and advances them together, ``continue_sampling`` goes on with them."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tqdm import tqdm

from .. import likelihoods
from ..data import checks, footprint, memory
from ..files import lock, npz
from ..maximum import starts
from ..maximum.maximise import PROGRESS, find_maximum
from ..maximum.states import draw_state, from_prior
from ..model import dynamics as over_time
from ..model.draws import Draws, Recorder, Run, kept_cells, plan_beta_thinning, with_few_beta
from ..model.dynamics import Matern
from ..model.joint import Data, Model, Prior, State, is_marginal, state_shapes
from ..numerics import linalg, memory_maps, scalars
from ..numerics.precision import precision
from . import rounds
from .chain import Chain, Task, begin_chain, chain_key, chain_shapes, compiled_log_joint
from .checkpoints import Checkpoint, settings
from .parallel import carrier, jobs
from .progress import Progress, Reporter, reporter
from .rounds import AUTO, End, Ended, Judgement
from .sweep import Moves

logger = logging.getLogger(__name__)


N_MAP_ITERATIONS = 150


def sample(
    Y: np.ndarray | checks.Table,
    likelihood: str | likelihoods.Likelihood = "gaussian",
    *,
    n_components: int = 2,
    n_features: int = 100,
    n_samples: int | Literal["auto"] = AUTO,
    n_burnin: int | Literal["auto"] = AUTO,
    thin: int | Literal["auto"] = AUTO,
    n_chains: int = 1,
    seed: int = 0,
    max_time: float | None = None,
    n_jobs: int | None = None,
    mask: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    covariates: Any = None,
    init: Literal["map", "pca", "isomap", "tsne", "kernel"] | np.ndarray = "map",
    prior: Prior = Prior(),
    dynamics: str | Matern | None = None,
    times: Any = None,
    sessions: Any = None,
    latents: Literal["sample", "map"] = "sample",
    frequencies: Literal["hmc", "prior", "fixed"] = "hmc",
    coefficients: Literal["hmc", "polya-gamma"] = "hmc",
    checkpoint: str | PathLike | None = None,
    progress: bool | Callable[[Progress], None] = False,
    memory_budget: float = memory.BUDGET,
    dtype: Literal["float32", "float64"] = "float64",
) -> Draws:
    """Draw from the posterior of an RFLVM.

    Parameters
    ----------
    Y : array_like (N, J)
        The table. NaN means missing.
    likelihood : str or Likelihood
        A name such as "gaussian", "poisson" or "ordinal", or an object such as ``likelihoods.Binomial(trials=10)``.
    n_components, n_features : int
        D, and M = 2H, an even number of random features.
    n_samples, n_burnin : int or "auto"
        Sweeps after and during burn-in, per chain. Step sizes are tuned in burn-in only. "auto": 200 of burn-in, then
        rounds of 100 until the run has settled (``Draws.ended``), 2000 in all at most: among chains that show the same
        picture, split R-hat of the aligned positions and of the linear predictors is at most 1.05 for 95 % of the rows,
        and there are 100 effective draws. With one chain that is judged from its two halves. The draws are those of a
        run that was told the number of sweeps.
    thin : int or "auto"
        Keep every ``thin``-th sweep. "auto": every fourth where ``n_samples`` is "auto", all where it is a number, and
        of beta, by far the largest unknown, only what takes 12 MB, or 32 draws.
    n_chains : int
        Independent chains, advanced together.
    seed : int
        The same seed gives the same draws for the same number of sweeps, bit for bit, on the same machine.
    max_time : float, optional
        Seconds from the call after which the run ends with the draws that it has; burn-in is made in any case, and two
        draws. ``Draws.ended`` is then "time", and ``continue_sampling`` or the same checkpoint goes on.
    n_jobs : int, optional
        Processes in which the chains run side by side, -1 for as many as there are cores, by joblib: within
        ``joblib.parallel_config`` any backend of it carries them. The draws are the same. Each process compiles the
        sampler for itself, which takes seconds, and progress comes every two seconds or so.
    mask : bool array (N, J), optional
        True where a cell is observed; in addition to NaN.
    offset : array (N,), optional
        Added to every linear predictor of a row, a log exposure for counts; for the Gaussian in the units of the table.
    covariates : array (N,) or (N, K), data frame or mapping, optional
        Numbers or categories of the rows, with a linear effect on every column: between the coefficients of the
        features and the intercepts in ``beta``, of numbers with standard deviation 1 and of centred indicators.
    init : {"map", "pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where the chains start: the first at the maximum that ``maximise`` finds (with an RBF kernel, the best of
        several starts of X), the others from the other starts that met the table, as far as they had come, each with
        its own lengthscale and draw of beta: first from those with another picture that explains the table about as
        well, then from those that led to the same one. Or as the paper does, X at PCA of the variance-stabilised table,
        at another of the starts of ``maximise`` or at given positions, everything else from the prior.
    prior : Prior
        Hyperparameters; for the Gaussian, of the standardised table.
    dynamics, times, sessions
        A prior over time, as in ``maximise``. Paths, and their lengthscale unless it is given, are drawn like all else.
    latents : {"sample", "map"}
        Sample X, or maximise it in every sweep as the paper does.
    frequencies : {"hmc", "prior", "fixed"}
        How W moves: jointly with beta by HMC, or by the paper's proposals from the prior. When fixed,
        W and its mixture stay where the chain starts: with ``init="map"`` these are frequencies of the
        RBF kernel with the lengthscale of the maximum, otherwise a draw from the prior.
    coefficients : {"hmc", "polya-gamma"}
        How beta moves where it has no closed form: by HMC, or, for the Bernoulli, binomial,
        negative binomial and multinomial families, by the paper's Polya-gamma augmentation.
        (The Gaussian's beta is always drawn from its normal-inverse-gamma conditional.)
    checkpoint : str or PathLike, optional
        A folder to which the run is written as it goes. The same call with the same folder takes the run
        up where it was killed or interrupted, and returns what it would have returned, bit for bit. All
        that decides the draws must be as it was, and a folder that holds another run is refused; only
        ``n_samples`` may be larger, with the thinning of beta as it was. A custom likelihood is
        recognised by its values on the table. One process at a time may use a folder; another is refused.
    progress : bool or callable
        Show a progress bar, or be called with a ``Progress`` after every sweep (with ``n_jobs``, after several).
    memory_budget : float
        Bytes that the kept draws may take. Beta is thinned to fit; see ``Draws.beta_thin``.
    dtype : {"float32", "float64"}
        Precision of the sampler.

    Returns
    -------
    Draws
        Interrupting a run (Ctrl-C) returns the draws made so far; ``continue_sampling`` makes more. Those of a Gaussian
        table are on the standard scale: ``Draws.in_units`` has them in the units of the table.

    Examples
    --------
    Far too short a run, to see what comes out:

    >>> import numpy as np
    >>> import rflvm
    >>> Y = np.random.default_rng(0).poisson(3, (12, 5)).astype(float)
    >>> Y[0, 0] = np.nan
    >>> draws = rflvm.sample(Y, "poisson", n_features=6, n_samples=6, n_burnin=4, init="pca")
    >>> draws["X"].shape  # chain, draw, row, latent dimension
    (1, 6, 12, 2)
    """
    family = likelihoods.get(likelihood)
    D, H = checks.check_dimensions(n_components, n_features)
    stop_at = rounds.deadline(max_time)
    lengths = rounds.lengths(n_samples, n_burnin, thin)
    seed = checks.check_integer("seed", seed, 0, checks.LARGEST_SEED)
    chain_count = checks.check_integer("n_chains", n_chains, 1)
    checks.check_choice("latents", latents, ("sample", "map"))
    checks.check_choice("frequencies", frequencies, ("hmc", "prior", "fixed"))
    checks.check_choice("coefficients", coefficients, ("hmc", "polya-gamma"))
    checks.check_choice("dtype", dtype, ("float32", "float64"))
    scalars.positive("memory_budget", memory_budget)
    if not callable(progress):
        scalars.flag("progress", progress)
    n_jobs = jobs(n_jobs, chain_count)
    process = over_time.get(dynamics, D)
    table, family = checks.table_and_family(Y, family, mask, offset, D, process, times, sessions, covariates)
    size = footprint.size_of(table, family, D, H)
    lengths = rounds.within(lengths, size, chain_count, memory_budget)
    if table is not Y:
        n_kept = lengths.n_samples // lengths.thin
        at_maximum = isinstance(init, str) and init == "map"
        footprint.check(size, footprint.of_chains(size, chain_count, n_kept, memory_budget, at_maximum))
    X0 = checks.check_start(init, table.Y.shape[0], D, ("map", *starts.STARTS))
    model = Model(family, D, H, checks.check_prior(prior), process)
    if latents == "map" and is_marginal(model):
        raise ValueError('latents="map" moves rows one by one: use likelihoods.Gaussian(marginal=False)')
    if latents == "map" and process is not None:
        raise ValueError('latents="map" moves rows one by one, and dynamics= ties them together: use latents="sample"')
    if coefficients == "polya-gamma" and not family.polya_gamma:
        raise ValueError(f'coefficients="polya-gamma" needs a logistic family, not {family.name}')
    memory_maps.free_if_scarce()
    moves = Moves(latents, frequencies, coefficients)
    end = End(lengths.n_burnin + lengths.n_samples, lengths.settles, stop_at)
    with precision(dtype), linalg.one_blas_thread(), lock.held(checkpoint):
        data = checks.to_device(table, dtype)
        run = Run(seed, lengths.n_burnin, lengths.thin, moves, _digest(table))
        saved = None
        if checkpoint is not None:
            saved = Checkpoint(checkpoint, settings(table, model, run, X0, chain_count, dtype))
        n_draws = run._replace(n_sweeps=end.n_sweeps).n_kept
        beta_thin = saved.beta_thin if saved else None
        recorder = Recorder(state_shapes(data, model), chain_count, n_draws, memory_budget, beta_thin)
        resumed = saved and saved.read(recorder, run, end.n_sweeps, [chain_shapes(data, model, moves)] * chain_count)
        if resumed:
            run, chains = resumed
        else:
            with tqdm(desc="start: ", disable=progress is not True, **PROGRESS) as line:
                begin = _starter(X0, data, model, seed, chain_count, lambda value: line.update())
            keys = [jax.random.fold_in(chain_key(run, c), 0) for c in range(chain_count)]
            chains = [begin_chain(begin(c, key), data, model) for c, key in enumerate(keys)]
        draws = _run(run, chains, end, data, model, recorder, reporter(progress), n_jobs, saved)
    return dataclasses.replace(with_few_beta(draws) if lengths.lean else draws, units=table.units)


def continue_sampling(
    Y: np.ndarray | checks.Table,
    draws: Draws,
    n_samples: int | Literal["auto"] = AUTO,
    *,
    mask: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    covariates: Any = None,
    times: Any = None,
    sessions: Any = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[Progress], None] = False,
    memory_budget: float = memory.BUDGET,
) -> Draws:
    """Go on from where a run ended: the old draws and the new, together those of a run that was longer.

    Parameters
    ----------
    Y, mask, offset, covariates, times, sessions
        As they were given to ``sample``.
    draws : Draws
        What ``sample`` or ``continue_sampling`` returned, also after an interrupt.
    n_samples : int or "auto"
        Sweeps to make, per chain, or until the run has settled, as in ``sample``. There is no further burn-in.
    max_time, n_jobs
        As in ``sample``.
    progress : bool or callable
        As in ``sample``; the sweeps are counted from the beginning of the run.
    memory_budget : float
        Bytes that all draws may take, the old and the new. Beta stays thinned as it was, or, with "auto", is thinned
        further if it has to be.

    Returns
    -------
    Draws
        ``draws`` itself is left as it is.
    """
    run, model = draws.run, draws.model
    if run is None:
        raise ValueError("these draws do not come from sample, so there are no chains to go on with")
    settles = isinstance(n_samples, str) and n_samples == AUTO
    more = rounds.MOST_SAMPLES if settles else checks.check_integer("n_samples", n_samples, 1)
    end = End(run.n_sweeps + more, settles, rounds.deadline(max_time))
    table = checks.as_table(Y, model.likelihood, mask, offset, model.D, model.dynamics, times, sessions, covariates)
    if _digest(table) != run.table:
        raise ValueError("Y, mask, offset, covariates, times and sessions must be those that the draws were made from")
    table = table._replace(units=draws.units)  # a model of 0.1 has none
    dtype = str(draws.states[0].X.dtype)
    with precision(dtype), linalg.one_blas_thread():
        data = checks.to_device(table, dtype)
        n_chains, n_draws = len(draws.states), run._replace(n_sweeps=end.n_sweeps).n_kept
        shapes = state_shapes(data, model)
        # A run that ends by itself may need the room: of beta every so many draws are left out, also of the old ones.
        least = plan_beta_thinning(shapes, n_chains, n_draws, memory_budget) if settles else 1
        further = -(-least // draws.beta_thin)
        recorder = Recorder(shapes, n_chains, n_draws, memory_budget, draws.beta_thin * further)
        recorder.fill(0, draws.arrays | {"beta": draws["beta"][:, ::further]})
        chains = [Chain(*parts) for parts in zip(draws.states, draws.tuning, draws.info_sums, strict=True)]
        longer = _run(run, chains, end, data, model, recorder, reporter(progress), jobs(n_jobs, n_chains))
    return dataclasses.replace(with_few_beta(longer) if settles else longer, units=draws.units)


def _digest(table: checks.Table) -> str:
    """A digest of a table, by which a run recognises it; the units follow from the rest."""
    parts = table.Y, table.observed, table.offset, table.trials
    if table.timeline is not None:
        parts += table.timeline.gap, table.timeline.first
    if table.covariates is not None:
        parts += (table.covariates,)
    return "".join("-" if part is None else npz.digest(part) for part in parts)


def _starter(
    init: str | np.ndarray, data: Data, model: Model, seed: int, n_chains: int, on_iteration: Callable[[float], Any]
) -> Callable[[int, Array], State]:
    """A function from a chain's number and key to the state in which it starts."""
    if isinstance(init, str) and init == "map":
        with precision("float64"):  # as in ``maximise``: sums in double precision, and matrices where it is needed
            suffices = checks.single_suffices(data, model.likelihood)
            start = linalg.cast(data, jnp.float32 if suffices else jnp.float64)
            search, used, fared, others = find_maximum(
                start, model, "rbf", "auto", N_MAP_ITERATIONS, seed, on_iteration, learn_amplitude=False,
                n_others=n_chains - 1,
            )  # fmt: skip
        if search.convergence == "interrupted":
            raise KeyboardInterrupt
        logger.info("the chains start at the MAP, found from the %s start (%s)", fared[0].name, search.convergence)
        if others:
            logger.info("chains after the first start from: %s", ", ".join(others))
        searches = [(search, used), *((other, start) for other in others.values())]

        def at_maximum(chain, key):
            with precision("float64"):
                search, used = searches[chain % len(searches)]
                return linalg.cast(draw_state(key, search, used, model), data.Y.dtype)

        return at_maximum
    X = starts.embed(init, starts.stabilised(data, model), model.D, seed) if isinstance(init, str) else init
    return lambda chain, key: from_prior(key, X, data, model)


def _run(
    run: Run, chains: list[Chain], end: End, data: Data, model: Model, recorder: Recorder, reporting: Reporter,
    n_jobs: int, saved: Checkpoint | None = None,
) -> Draws:  # fmt: skip
    """Advance the chains together until the run ends."""
    here = run, chains  # one name: an interrupt never finds chains that are at different sweeps
    cells = kept_cells(_observed(data), chains[0].state.beta.shape[1])
    task = Task(run, data, model, recorder.beta_thin, cells)
    judged = None
    ended: Ended = ""

    def save(now: bool) -> None:
        if saved is not None:
            saved.write(*here, recorder, now)

    def judge(run: Run, before: Judgement | None) -> Judgement | None:
        if not end.to_be_judged(run):
            return before
        kept = recorder.arrays(run.n_kept)
        return rounds.judge(kept["X"], kept["F"])

    save(now=True)
    with reporting(run, end) as report, carrier(task, n_jobs) as (carry, batches):
        try:
            judged = judge(run, None)
            while not (ended := _ended(here[0], end, judged)):
                before, chains = here
                stop = min(end.next_look(before), before.n_sweeps + batches.n)
                advanced = carry(chains, before.n_sweeps, stop)
                for c, (_, kept) in enumerate(advanced):
                    for draw, parts in enumerate(kept, before.n_kept):
                        recorder.record(c, draw, parts)
                after, chains = before._replace(n_sweeps=stop), [chain for chain, _ in advanced]
                here = after, chains
                judged = judge(after, judged)
                save(now=False)
                share = None if judged is None else judged.share
                report(after, chains, lambda s=chains[0].state: float(compiled_log_joint(s, data, model)), share)
            save(now=True)
        except KeyboardInterrupt:
            save(now=True)
            run, _ = here
            if run.n_kept == 0:
                raise
            ended = "interrupted"
            logger.warning("interrupted after %d sweeps: %d draws are kept", run.n_sweeps, run.n_kept)
    run, chains = here
    return Draws(
        model=model,
        arrays=recorder.arrays(run.n_kept),
        beta_thin=recorder.beta_thin,
        tuning=[chain.tuning for chain in chains],
        states=[chain.state for chain in chains],
        info_sums=[chain.info_sum for chain in chains],
        interrupted=ended == "interrupted",
        ended=ended,
        run=run,
    )


def _ended(run: Run, end: End, judged: Judgement | None) -> Ended:
    """Why the run ends here; empty if it does not."""
    if end.to_be_judged(run) and judged is not None and judged.settled:
        return "settled"
    if run.n_sweeps >= end.n_sweeps:
        return "limit" if end.settles else "length"
    return "time" if end.is_time(run) else ""


def _observed(data: Data) -> np.ndarray:
    return np.ones(data.Y.shape, bool) if data.mask is None else np.asarray(data.mask)
