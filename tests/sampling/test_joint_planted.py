"""Geweke's test can fail: bugs planted in one block at a time are caught."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import pytest

from joint import FALSE_ALARM, FAMILIES, p_values
from rflvm import likelihoods
from rflvm.likelihoods import base
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
        n = spectral.counts(z)[:, None, None]
        return niw._replace(Psi=prior.Psi + jnp.maximum(n, 1) * (niw.Psi - prior.Psi))

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


EASY = [(wrong_sign_in_kappa, 3000), (two_h_in_alpha, 750)]  # with as many chains as it takes to be sure
SUBTLE = [
    x_rescaled_without_w,
    frequencies_without_their_prior,
    masked_cells_seen_by_x,
    paper_scatter_in_psi,
    offset_forgotten_in_beta,
    masked_cells_seen_by_r,
    sigma2_with_another_prior,
]


@pytest.mark.parametrize(
    ("bug", "n"),
    EASY + [pytest.param(bug, 6000, marks=pytest.mark.long) for bug in SUBTLE],
    ids=lambda bug: getattr(bug, "__name__", ""),
)
def test_planted_bug_is_caught(bug, n, monkeypatch):
    moves = Moves(coefficients="polya-gamma") if bug is wrong_sign_in_kappa else Moves()
    p = p_values(bug(monkeypatch), n=n, moves=moves)
    assert min(p.values()) < FALSE_ALARM / 100, dict(sorted(p.items(), key=lambda item: item[1])[:5])
