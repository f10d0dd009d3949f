"""The page that ``diagnose`` prints: what was fitted, how, and whether it can be relied on."""

from __future__ import annotations

import numpy as np

from ..numerics.errors import Sentence
from . import diagnostics
from .fit import Fitted


def page(fitted: Fitted) -> Sentence:
    """Lines for a person to read; the last says what to do, if anything."""
    about = fitted.about
    N, J = about.values.shape
    lines = [
        f"{N} rows x {J} columns, {np.isnan(about.values).mean():.1%} of the cells missing",
        f"{fitted.n_components} latent dimensions, {fitted.n_features} random features, {about.kernel} kernel",
        f"{fitted.likelihood.name} likelihood ({about.likelihood_reason})",
    ]
    run = fitted.draws.run
    if run is None:
        lines.append(f"map: {fitted.n_iter} iterations, {fitted.convergence}")
    else:
        n_chains, n_draws = fitted.draws["log_joint"].shape
        chains = f"{n_chains} chain{'s' * (n_chains > 1)}"
        lines.append(f"gibbs: {chains}, {run.n_burnin} sweeps of burn-in, {run.n_sampled} after it")
        lines += ["", *diagnostics.table(list(fitted.diagnostics), n_chains * n_draws)]
        lines += ["", "acceptance: " + diagnostics.acceptance(fitted.draws.info)]
    verdict = diagnostics.verdict(fitted.convergence, list(fitted.diagnostics))
    return Sentence("{lines}\n\n{verdict}", lines="\n".join(lines), verdict=verdict)
