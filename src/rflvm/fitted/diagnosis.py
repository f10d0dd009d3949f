"""The page that ``diagnose`` prints: what was fitted, how, and whether it can be relied on."""

from __future__ import annotations

import numpy as np

from ..numerics.errors import Sentence
from ..streaming.result import Epoch
from . import arrangements, diagnostics
from .fit import Fitted


def page(fitted: Fitted) -> Sentence:
    """Lines for a person to read; the last says what to do, if anything."""
    about = fitted.about
    N, J = len(fitted.everywhere.embedding), about.values.shape[1]
    sampled = "" if fitted.streamed is None else f" (of {len(about.values)} rows, a random sample)"
    lines = [
        f"{N} rows x {J} columns, {np.isnan(about.values).mean():.1%} of the cells missing{sampled}",
        f"{fitted.n_components} latent dimensions, {fitted.n_features} random features, {about.kernel} kernel",
        f"{fitted.likelihood.name} likelihood ({about.likelihood_reason})",
    ]
    run = fitted.draws.run
    if fitted.streamed is not None:
        lines += ["", *epoch_table(fitted.streamed.epochs), f"stream: {fitted.n_iter} epochs, {fitted.convergence}"]
    elif run is None:
        height = f", log posterior {fitted.log_posterior:.1f}" if np.isfinite(fitted.log_posterior) else ""
        lines.append(f"map: {fitted.n_iter} iterations, {fitted.convergence}{height}")
        compared = arrangements.table(fitted.starts)
        lines += ["", *compared] if compared else []
    else:
        n_chains, n_draws = fitted.draws["log_joint"].shape
        chains = f"{n_chains} chain{'s' * (n_chains > 1)}"
        ended = ENDED.get(fitted.draws.ended, "")
        lines.append(f"gibbs: {chains}, {run.n_burnin} sweeps of burn-in, {run.n_sampled} after it{ended}")
        n_pictured, quantities = len(fitted.chains), list(fitted.diagnostics)
        if n_pictured < n_chains:
            lines += ["", *arrangements.weighed(fitted.arrangements)]
        lines += ["", *diagnostics.table(quantities, n_pictured * n_draws)]
        lines += ["", *diagnostics.rows_told(quantities, n_pictured)]
        lines += ["", "acceptance: " + diagnostics.acceptance(fitted.draws.info)]
    return Sentence("{lines}\n\n{verdict}", lines="\n".join(lines), verdict=verdict(fitted))


def epoch_table(epochs: tuple[Epoch, ...]) -> list[str]:
    """Lines for a person to read."""
    lines = [f"{'epoch over':12}{'held out, per cell':>20}{'objective, per row':>20}{'rows per second':>17}"]
    for epoch in epochs:
        rows = "a sample" if epoch.rows == "sample" else "all rows"
        lines.append(f"{rows:12}{epoch.held_out:20.5f}{epoch.objective:20.4f}{epoch.rows_per_second:17,.0f}")
    return lines


ENDED = {  # why a run ended, where that is not how long it was told to be
    "settled": ", when positions and predictions had settled",
    "limit": ", the most that a run makes by itself",
    "time": ", when the time was over",
}


def verdict(fitted: Fitted) -> Sentence:
    """What to do about a fit, what it leaves open, or that nothing speaks against it."""
    if fitted.advice and fitted.caution:
        return Sentence("What to do: {advice}. Also: {caution}.", advice=fitted.advice, caution=fitted.caution)
    if fitted.advice:
        return Sentence("What to do: {advice}.", advice=fitted.advice)
    if fitted.caution:
        return Sentence("Read with care: {caution}.", caution=fitted.caution)
    compared = arrangements.compared(fitted.starts)
    if compared:
        return Sentence(
            "Nothing speaks against relying on this fit: the climb converged, and {compared}.", compared=compared
        )
    if fitted.streamed is not None:
        return Sentence(
            "Nothing speaks against relying on this fit: rows that were held out are not predicted better any more. "
            "Uncertainty is that of normal approximations around modes."
        )
    return Sentence("Nothing speaks against relying on this fit.")
