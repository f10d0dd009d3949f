"""W, with beta following or integrated out.

The exact-start trick: (state, data) drawn from the joint law of the model stay so distributed when a
step leaves the posterior invariant, so any function of both has a mean change of zero.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm import likelihoods
from rflvm.model.conjugate import log_evidence
from rflvm.model.features import features
from rflvm.model.joint import Data, Model, Prior, State, log_likelihood, predictor
from rflvm.sampling.blocks import W as block  # noqa: N811
from rflvm.sampling.blocks.tuning import Tuning

N, J, REPLICATES, STEPS = 4, 2, 2_500, 3
PRIOR = Prior(beta_scale=0.8, bias_scale=0.9)
MASK = np.array([[True, False], [True, True], [False, True], [True, True]])
OFFSET = np.array([0.1, -0.5, 0.0, 0.3])
FAMILIES = {
    "poisson": likelihoods.Poisson(),
    "gaussian": likelihoods.Gaussian(marginal=False, a0=3.0, b0=2.0),
    "marginal": likelihoods.Gaussian(a0=3.0, b0=2.0),
}


def joint_draws(name, D, H, rng):
    """(W, beta, sigma^2, Y) from their joint law, one per replicate, X, z, mu and Sigma being given."""
    X, z = np.linspace(-1.5, 1.8, N * D).reshape(N, D), np.arange(H) % 2 * (H - 1)
    mu = np.linspace(-0.4, 0.7, H * D).reshape(H, D)
    root = np.array([np.tril(np.full((D, D), 0.3)) + 0.5 * (k + 1) * np.eye(D) for k in range(H)])
    normal = lambda *shape: rng.normal(size=(REPLICATES, *shape))  # noqa: E731
    W = mu[z] + np.einsum("hde,rhe->rhd", root[z], normal(H, D))
    sigma2 = 2.0 / rng.gamma(3.0, size=(REPLICATES, J))
    noise = np.ones((REPLICATES, J)) if name == "poisson" else np.sqrt(sigma2)
    scale = np.array([0.8] * (2 * H) + [0.9])[:, None]
    beta = scale * noise[:, None] * normal(2 * H + 1, J)
    angle = np.einsum("nd,rhd->rnh", X, W)
    Phi = np.concatenate([np.cos(angle), np.sin(angle), np.full((REPLICATES, N, 1), np.sqrt(H))], axis=2) / np.sqrt(H)
    F = Phi @ beta + OFFSET[:, None]
    Y = rng.poisson(np.exp(F)) if name == "poisson" else F + noise[:, None] * rng.normal(size=F.shape)
    fixed = State(
        jnp.asarray(X), jnp.zeros((H, D)), jnp.asarray(z), jnp.asarray(mu), jnp.asarray(root @ root.swapaxes(1, 2)),
        jnp.ones(()), jnp.zeros((2 * H + 1, J)), {},
    )  # fmt: skip
    return fixed, *(jnp.asarray(values, float) for values in (W, beta, sigma2, np.where(MASK, Y, 0)))


def z_scores(name, step, W_step, D, H, seed):
    """Mean changes of bounded functions of state and data after a few steps, in standard errors."""
    model = Model(FAMILIES[name], D, H, PRIOR)
    fixed, *draws = joint_draws(name, D, H, np.random.default_rng(seed))
    fitted = jnp.asarray(np.linspace(-1, 1, N * J).reshape(N, J))  # arbitrary but fixed, as after burn-in
    tuning = Tuning(jnp.ones(()), jnp.asarray(W_step), jnp.ones(J), jnp.asarray([0.7, 1.1]), fitted)

    def statistics(state, data):
        if name == "marginal":  # beta is not touched, and is not a draw given the new W
            fit = log_evidence(features(state.X, state.W), data, model).sum()
            return jnp.stack([*jnp.tanh(state.W).ravel(), jnp.tanh(fit / 5), jnp.tanh((state.W**2).sum())])
        F = predictor(state, data)
        fit = log_likelihood(state, data, model)
        return jnp.stack([
            *jnp.tanh(state.W).ravel(), *jnp.tanh(state.beta).ravel(), jnp.tanh((state.W**2).sum()),
            jnp.tanh((state.beta**2).sum() / 4), jnp.tanh(fit / 5 + 1), jnp.tanh(F[0, 0]),
            jnp.tanh(F[1, 1] * data.Y[1, 1]), jnp.tanh(state.W[0, 0] * state.beta[0, 0]),
            jnp.tanh(state.W[0, 0] * state.beta[H, 0]),
        ])  # fmt: skip

    def replicate(key, W, beta, sigma2, Y):
        theta = {"sigma2": sigma2} if isinstance(model.likelihood, likelihoods.Gaussian) else {}
        state = fixed._replace(W=W, beta=beta, theta=theta)
        data = Data(Y, jnp.asarray(MASK), jnp.asarray(OFFSET), None)
        new, info = jax.lax.scan(
            lambda state, key: step(key, state, data, model, tuning), state, jax.random.split(key, STEPS)
        )
        return statistics(new, data) - statistics(state, data), info.acceptance, jnp.any(new.W != state.W)

    keys = jax.random.split(jax.random.key(seed), REPLICATES)
    changes, acceptance, moved = jax.jit(jax.vmap(replicate))(keys, *draws)
    changes = np.asarray(changes)
    scores = changes.mean(0) / (changes.std(0) / np.sqrt(REPLICATES) + 1e-300)
    return scores, float(acceptance.mean()), float(moved.mean())


@pytest.mark.parametrize(("name", "D", "H"), [("poisson", 1, 1), ("gaussian", 2, 2), ("marginal", 1, 2)])
def test_hmc_leaves_the_posterior_of_W_and_beta_invariant(x64, name, D, H):
    """At most 21 z-scores: one exceeds 4.5 with probability 1.4e-4."""
    scores, acceptance, moved = z_scores(name, block.step, 0.35, D, H, seed=0)
    assert 0.4 < acceptance < 0.99
    assert moved > 0.7
    assert np.abs(scores).max() < 4.5


@pytest.mark.parametrize(("name", "D", "H"), [("poisson", 1, 2), ("marginal", 1, 2)])
def test_prior_proposals_leave_the_posterior_of_W_invariant(x64, name, D, H):
    """At most 19 z-scores: one exceeds 4.5 with probability 1.3e-4."""
    scores, acceptance, moved = z_scores(name, block.step_prior, 0.3, D, H, seed=1)
    assert 0.1 < acceptance < 0.95
    assert moved > 0.5
    assert np.abs(scores).max() < 4.5


def test_adaptation_follows_the_acceptance(x64):
    tuning = Tuning(jnp.ones(()), jnp.ones(()), jnp.ones(J), jnp.ones(J), jnp.zeros((N, J)))
    step = lambda acceptance: float(  # noqa: E731
        block.adapt(tuning, block.Info(jnp.asarray(acceptance), jnp.zeros(()), jnp.zeros(())), jnp.ones(())).W_step
    )
    assert step(0.3) < 1 < step(1.0)
