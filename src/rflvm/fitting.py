"""From a table and the parameters of ``RFLVM`` to a fit: which family, does it fit into memory, and which engine.

``asked`` is what ``RFLVM`` was asked for: its parameters, by their names.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from . import likelihoods
from .data import checks, footprint, memory
from .data.blocks.sources import open_table
from .data.covariates import Covariates
from .data.tables import Reading
from .fitted.fit import N_LAPLACE_DRAWS, About, Fitted, from_chains, from_maximum, from_stream
from .maximum.maximise import maximise
from .maximum.starts import STARTS
from .model import dynamics as over_time
from .model.joint import Prior
from .sampling import rounds
from .sampling.run import sample
from .streaming.landmarks import Sample, take_sample
from .streaming.shards import present
from .streaming.stream import stream

logger = logging.getLogger(__name__)


class Context(NamedTuple):
    """What is known of the rows besides their cells, as ``RFLVM.fit`` takes it; the covariates are read."""

    offset: Any
    covariates: Covariates | None
    times: Any
    sessions: Any


def family_of(likelihood: Any, values: np.ndarray, names: Any = None) -> tuple[likelihoods.Likelihood, str]:
    """The family as given, or looked for, and why; one that was named takes the form that is fastest for the table."""
    observed = ~np.isnan(values)
    if likelihoods.is_specification(likelihood) or likelihood == "mixed":
        family, reason = likelihoods.for_columns(likelihood, values, observed, names)
        logger.info("mixed columns: %s", reason)
        return family, reason
    if not isinstance(likelihood, str):
        return likelihoods.get(likelihood).learned_from(values, observed), "as given"
    if likelihood != "auto":
        return likelihoods.get(likelihood).learned_from(values, observed).suited_to(observed), "as given"
    family, reason = likelihoods.choose(values, observed)
    logger.info('likelihood="auto" chose %s: %s', family.name, reason)
    return family.suited_to(observed), reason


def from_memory(asked: SimpleNamespace, reading: Reading, context: Context, init: Any, checkpoint: Any) -> Fitted:
    """A fit by the sampler or the MAP engine to a table that was read."""
    values, covariates = reading.values, context.covariates
    family, reason = family_of(asked.likelihood, values, reading.columns)
    seed = checks.check_seed(asked.random_state)
    if asked.exposure is not None:
        checks.check_exposure(asked.exposure, family)
        checks.refuse_offset(context.offset)
    D, H = checks.check_dimensions(asked.n_components, asked.n_features)
    process = over_time.get(asked.dynamics, D)
    timeline = checks.timeline_for(process, reading, context.times, context.sessions)
    table = checks.check_table(values, family, None, context.offset, D, timeline)
    if covariates is not None:
        table = table._replace(covariates=covariates.values)
    if asked.exposure is not None:
        table = table._replace(offset=checks.log_totals(values, values))
    about = About(
        values=np.array(values),
        offset=table.offset,
        rows=reading.index,
        columns=reading.columns,
        inference=asked.inference,
        kernel=asked.kernel,
        exposure=asked.exposure,
        seed=seed,
        likelihood_reason=reason,
        covariates=table.covariates,
        coding=() if covariates is None else covariates.coding,
        timeline=timeline,
    )
    footprint.refuse_long(len(table.Y), asked.inference)
    _check_memory(asked, footprint.size_of(table, family, D, H), init)
    settings: dict[str, Any] = _settings(asked, seed) | {"dynamics": process}
    if asked.inference == "gibbs":
        return from_chains(_sample(asked, table, family, init, checkpoint=checkpoint, **settings), about)
    n_iterations = checks.check_integer("max_iter", asked.max_iter, 1)
    fit = maximise(table, family, init=init, kernel=asked.kernel, n_iterations=n_iterations, **settings)
    return from_maximum(fit, table, about)


def from_blocks(
    asked: SimpleNamespace, Y: Any, offset: Any, init: Any, layer: str | None, checkpoint: Any, out: Any
) -> Fitted:
    """A fit by the streaming engine; what it remembers of the table are its landmarks."""
    checks.check_choice("init", init, ("auto", *STARTS))
    seed = checks.check_seed(asked.random_state)
    sampled: Sample = take_sample(open_table(Y, layer), seed, present(checkpoint))
    values = sampled.landmark_values() if asked.likelihood == "auto" else sampled.values
    family, reason = family_of(asked.likelihood, values)
    fit = stream(
        sampled,
        family,
        kernel=asked.kernel,
        init=init,
        n_iterations=checks.check_integer("max_iter", asked.max_iter, 1),
        offset=offset,
        exposure=asked.exposure,
        out=out,
        checkpoint=checkpoint,
        **_settings(asked, seed),
    )
    source = sampled.source
    about = About(
        values=fit.values,
        offset=fit.offset,
        rows=fit.rows if source.index is None else np.asarray(source.index)[fit.rows],
        columns=source.columns,
        inference=asked.inference,
        kernel=asked.kernel,
        exposure=asked.exposure,
        seed=seed,
        likelihood_reason=reason,
    )
    return from_stream(fit, about)


def refuse_for_stream(asked: SimpleNamespace, covariates: Any, times: Any, sessions: Any) -> None:
    """Raise where the streaming engine does not yet do what was asked for."""
    refuse_covariates(covariates)
    if not (asked.dynamics is None and times is None and sessions is None):
        raise ValueError(
            'inference="stream" takes rows for independent and has no prior over time: leave out dynamics=, '
            'times= and sessions=, or use "map"'
        )
    if likelihoods.is_specification(asked.likelihood) or asked.likelihood == "mixed":
        raise ValueError('inference="stream" takes one family for all columns: give inference="map" or "gibbs"')


def refuse_covariates(covariates: Any) -> None:
    """Raise for covariates where the streaming engine would have to take them."""
    if covariates is not None:
        raise ValueError('covariates= are for inference="map" and "gibbs": "stream" does not take them yet')


def _settings(asked: SimpleNamespace, seed: int) -> dict[str, Any]:
    """What every engine takes."""
    return {
        "n_components": asked.n_components,
        "n_features": asked.n_features,
        "seed": seed,
        "prior": Prior() if asked.prior is None else asked.prior,
        "progress": asked.progress,
    }


def _sample(asked: SimpleNamespace, table: checks.Table, family: likelihoods.Likelihood, init: Any, **settings: Any):
    automatic = isinstance(init, str) and init == "auto"
    if asked.kernel == "rbf" and not automatic:
        raise ValueError('kernel="rbf" with inference="gibbs" takes its lengthscale from init="auto"')
    start: Any = "map" if automatic else init
    names = ("n_samples", "n_burnin", "n_chains", "thin", "max_time", "n_jobs")
    run: dict[str, Any] = {name: getattr(asked, name) for name in names}
    frequencies = "hmc" if asked.kernel == "learned" else "fixed"
    return sample(table, family, init=start, frequencies=frequencies, **run, **settings)


def _check_memory(asked: SimpleNamespace, size: footprint.Size, init: Any) -> None:
    """Refuse a fit that would not fit into memory. The budgets of draws and factors are those of the engines."""
    if asked.inference == "map":
        needed = footprint.of_maximum(size, memory.BUDGET, N_LAPLACE_DRAWS)
    else:
        n_chains = checks.check_integer("n_chains", asked.n_chains, 1)
        lengths = rounds.lengths(asked.n_samples, asked.n_burnin, asked.thin)
        lengths = rounds.within(lengths, size, n_chains, memory.BUDGET)
        at_maximum = isinstance(init, str) and init == "auto"
        needed = footprint.of_chains(size, n_chains, lengths.n_samples // lengths.thin, memory.BUDGET, at_maximum)
    footprint.check(size, needed)
