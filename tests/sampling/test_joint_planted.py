"""Geweke's test can fail: bugs planted in one block at a time are caught.

Each block alone, right and with its bug, on every commit; whole sweeps with all bugs but one in `make test-long`.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import pytest

from joint import FALSE_ALARM, FAMILIES, block_p_values, p_values
from rflvm import likelihoods
from rflvm.likelihoods import base
from rflvm.likelihoods.mixed import GaussianBeside
from rflvm.model import spectral
from rflvm.sampling.blocks import W, X, beta, scale, theta
from rflvm.sampling.sweep import Moves


class WrongKappa(likelihoods.Bernoulli):
    """kappa = 1/2 - y: the wrong sign, in the Polya-gamma update alone."""

    def exponents(self, y, theta, trials):
        return 1 - y, jnp.ones_like(y)

    def log_factor(self, y, f, theta, trials):
        return y * f - base.softplus(f)


def wrong_sign_in_kappa(monkeypatch):
    return WrongKappa()


def two_h_in_alpha(monkeypatch):
    draw = spectral.sample_concentration
    doubled = lambda key, alpha, z, *rest: draw(key, alpha, jnp.concatenate([z, z]), *rest)  # noqa: E731
    monkeypatch.setattr(spectral, "sample_concentration", doubled)
    return FAMILIES["gaussian"]


def x_rescaled_without_w(monkeypatch):
    stretched = scale.stretched
    monkeypatch.setattr(scale, "stretched", lambda state, *a: stretched(state, *a)._replace(W=state.W))
    return FAMILIES["poisson"]


def paper_scatter_in_psi(monkeypatch):
    """Eq. 9 as printed: the shrinkage term is summed over the members of a cluster."""
    right = spectral.niw_posterior

    def printed(prior, frequencies, z):
        niw = right(prior, frequencies, z)
        n = jnp.maximum(spectral.counts(z), 1).astype(frequencies.dtype)[:, None, None]
        return niw._replace(Psi=prior.Psi[None] + n * (niw.Psi - prior.Psi[None]))

    monkeypatch.setattr(spectral, "niw_posterior", printed)
    return FAMILIES["gaussian"]


def frequencies_without_their_prior(monkeypatch):
    monkeypatch.setattr(W, "log_prior", lambda W, state: jnp.zeros(()))
    return FAMILIES["poisson"]


def masked_cells_seen_by_x(monkeypatch):
    expand = X.expand
    monkeypatch.setattr(X, "expand", lambda x, s, data, m: expand(x, s, data._replace(mask=None), m))
    return FAMILIES["binomial"]


def offset_forgotten_in_beta(monkeypatch):
    step = beta.step
    forget = lambda k, s, d, m, t: step(k, s, d._replace(offset=0 * d.offset), m, t)  # noqa: E731
    monkeypatch.setattr(beta, "step", forget)
    return FAMILIES["binomial"]


def covariates_forgotten_by_x(monkeypatch):
    expand = X.expand
    forget = lambda x, s, data, m: expand(x, s, data._replace(covariates=0 * data.covariates), m)  # noqa: E731
    monkeypatch.setattr(X, "expand", forget)
    return FAMILIES["poisson"]


def masked_cells_seen_by_r(monkeypatch):
    step = theta.step
    monkeypatch.setattr(theta, "step", lambda k, s, d, m, t: step(k, s, d._replace(mask=None), m, t))
    return FAMILIES["negative-binomial"]


def sigma2_with_another_prior(monkeypatch):
    """The draw of (sigma^2, beta) uses a0 = 6 where the model has 3."""
    step = beta.step

    def broken(key, state, data, model, tuning):
        wrong = likelihoods.Gaussian(marginal=False, a0=6.0, b0=2.0)
        return step(key, state, data, dataclasses.replace(model, likelihood=wrong), tuning)

    monkeypatch.setattr(beta, "step", broken)
    return FAMILIES["gaussian"]


def noise_beside_other_families_with_another_prior(monkeypatch):
    """The draw of sigma^2 uses a0 = 6 where the model has 3."""
    draw = GaussianBeside.update_theta
    wrong = lambda self, *given: draw(dataclasses.replace(self, a0=6.0), *given)  # noqa: E731
    monkeypatch.setattr(GaussianBeside, "update_theta", wrong)
    return FAMILIES["mixed"]


def masked_cells_seen_by_nu(monkeypatch):
    step = theta.step
    monkeypatch.setattr(theta, "step", lambda k, s, d, m, t: step(k, s, d._replace(mask=None), m, t))
    return FAMILIES["student-t"]


def gaps_without_the_jacobian_of_their_logarithm(monkeypatch):
    prior = likelihoods.Ordinal._log_prior_gaps
    monkeypatch.setattr(
        likelihoods.Ordinal, "_log_prior_gaps", lambda self, gaps: prior(self, gaps) - jnp.log(gaps).sum(axis=0)
    )
    return FAMILIES["ordinal"]


def every_zero_taken_for_one_of_the_inflation(monkeypatch):
    draw = likelihoods.ZeroInflatedPoisson.update_theta

    def broken(self, key, theta, y, f, mask):
        return draw(self, key, theta, y, jnp.where(y == 0, 9.0, f), mask)

    monkeypatch.setattr(likelihoods.ZeroInflatedPoisson, "update_theta", broken)
    return FAMILIES["zero-inflated-poisson"]


def zeros_of_the_inflation_seen_by_r(monkeypatch):
    draw = likelihoods.NegativeBinomial.update_theta
    everything = lambda self, key, theta, y, f, mask: draw(self, key, theta, y, f, mask | (y == 0))  # noqa: E731
    monkeypatch.setattr(likelihoods.NegativeBinomial, "update_theta", everything)
    return FAMILIES["zero-inflated-negative-binomial"]


PLANTED = {  # the bug: the family and the block that show it
    wrong_sign_in_kappa: ("bernoulli", "beta"),
    two_h_in_alpha: ("gaussian", "alpha"),
    x_rescaled_without_w: ("poisson", "scale"),
    frequencies_without_their_prior: ("poisson", "W"),
    masked_cells_seen_by_x: ("binomial", "X"),
    paper_scatter_in_psi: ("gaussian", "components"),
    offset_forgotten_in_beta: ("binomial", "beta"),
    covariates_forgotten_by_x: ("poisson", "X"),
    masked_cells_seen_by_r: ("negative-binomial", "theta"),
    sigma2_with_another_prior: ("gaussian", "beta"),
    noise_beside_other_families_with_another_prior: ("mixed", "theta"),
    masked_cells_seen_by_nu: ("student-t", "theta"),
    gaps_without_the_jacobian_of_their_logarithm: ("ordinal", "theta"),
    every_zero_taken_for_one_of_the_inflation: ("zero-inflated-poisson", "theta"),
    zeros_of_the_inflation_seen_by_r: ("zero-inflated-negative-binomial", "theta"),
}
N_CHAINS = {wrong_sign_in_kappa: 3000, two_h_in_alpha: 750}  # else 6000: as many as it takes a whole sweep to be sure


def moves_for(bug) -> Moves:
    return Moves(coefficients="polya-gamma") if bug is wrong_sign_in_kappa else Moves()


def worst(p: dict[str, float]) -> dict[str, float]:
    return dict(sorted(p.items(), key=lambda item: item[1])[:5])


def test_every_block_is_among_those_that_are_run_alone():
    assert set(Moves().blocks()) == {block for _, block in PLANTED.values()} | {"z"}


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.__name__)
def test_block_alone_leaves_the_joint_law_invariant_until_a_bug_is_planted(bug, monkeypatch):
    """False-alarm rate 1e-3 for each block; each bug is rejected at 1e-5 (the least clear of them has 1e-16)."""
    family, block = PLANTED[bug]
    p = block_p_values(moves_for(bug).blocks()[block], FAMILIES[family])
    assert min(p.values()) > FALSE_ALARM, worst(p)
    likelihood = bug(monkeypatch)
    p = block_p_values(moves_for(bug).blocks()[block], likelihood)
    assert min(p.values()) < FALSE_ALARM / 100, worst(p)


def test_assignments_alone_leave_the_joint_law_invariant():
    """False-alarm rate 1e-3."""
    p = block_p_values(Moves().blocks()["z"], FAMILIES["gaussian"])
    assert min(p.values()) > FALSE_ALARM, worst(p)


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, marks=() if bug is two_h_in_alpha else pytest.mark.long) for bug in PLANTED],
    ids=lambda bug: bug.__name__,
)
def test_bug_planted_in_a_sweep_is_caught(bug, monkeypatch):
    """The least expensive on every commit, for a test of whole sweeps that cannot fail would show nothing."""
    p = p_values(bug(monkeypatch), n=N_CHAINS.get(bug, 6000), moves=moves_for(bug))
    assert min(p.values()) < FALSE_ALARM / 100, worst(p)
