"""The functions after an epoch: where they must be, and that positions and frequencies turn together."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy import optimize

from rflvm import likelihoods
from rflvm.model.joint import Model, Prior
from rflvm.streaming import update as updates
from rflvm.streaming.epochs import Totals
from rflvm.streaming.functions import Functions
from rflvm.streaming.programs import Curvature, Sums

N, J, D, H = 400, 3, 2, 4
M = 2 * H + 1
rng = np.random.default_rng(0)
X = rng.standard_normal((N, D))


def functions(theta: dict[str, Any]) -> Functions:
    """Some functions."""
    eye = np.tile(np.eye(D), (H, 1, 1))
    W, beta = rng.standard_normal((H, D)), rng.standard_normal((M, J))
    return Functions(W, np.zeros(H, int), np.zeros((H, D)), eye, np.ones(()), np.asarray(1.3), beta, theta)


def gaussian_totals(f: Functions, Y: np.ndarray) -> Totals:
    """The sums of Gaussian rows whose positions are known."""
    Phi, sigma2 = f.features(X), f.theta["sigma2"]
    error = Y - Phi @ f.beta
    gram = np.einsum("na,nb->ab", Phi, Phi)[None] / sigma2[:, None, None]
    square = (error**2).sum(axis=0) / (2 * sigma2)
    sums = Sums(Phi.T @ (error / sigma2), X.T @ X, np.zeros(()), np.asarray(float(N)))  # pyright: ignore[reportArgumentType]
    own = (square - N / 2)[None], -square[None, None]
    return Totals(sums, Curvature(gram, *own, np.asarray(float(N))))  # pyright: ignore[reportArgumentType]


def test_one_step_is_the_whole_way_for_gaussian_rows(monkeypatch):
    monkeypatch.setattr(updates, "LARGEST_MOVE", 1e9)
    model = Model(likelihoods.Gaussian(), D, H, Prior(beta_scale=0.7))
    f = functions({"sigma2": np.array([0.5, 1.0, 2.0])})
    Y = f.features(X) @ rng.standard_normal((M, J)) + rng.standard_normal((N, J))
    found = updates.update(f, gaussian_totals(f, Y), X[:20], model)
    Phi = f.features(X)
    for j in range(J):
        s = f.theta["sigma2"][j]
        precision = np.diag(np.r_[np.full(M - 1, 1 / (0.7 * 1.3) ** 2), 0.01]) / s
        P = Phi.T @ Phi / s + precision
        np.testing.assert_allclose(found.functions.beta[:, j], np.linalg.solve(P, Phi.T @ Y[:, j] / s), atol=1e-4)
        np.testing.assert_allclose(found.factor[j] @ found.factor[j].T, P, rtol=1e-3, atol=1e-2)


def test_moves_of_f_are_limited():
    model = Model(likelihoods.Gaussian(), D, H)
    f = functions({"sigma2": np.ones(J)})
    Y = f.features(X) @ (f.beta + 10) + 0.1 * rng.standard_normal((N, J))
    anchors = X[:50]
    found = updates.update(f, gaussian_totals(f, Y), anchors, model).functions
    turned = found._replace(W=f.W)
    moves = np.abs(turned.features(anchors) @ (found.beta - f.beta)).max(axis=0)
    np.testing.assert_allclose(moves, updates.LARGEST_MOVE, rtol=1e-6)


def test_theta_climbs_to_the_highest_posterior(monkeypatch):
    monkeypatch.setattr(updates, "LARGEST_MOVE", 3.0)
    model = Model(likelihoods.Gaussian(), D, H)
    f = functions({"sigma2": np.array([0.5, 1.0, 2.0])})
    Y = f.features(X) @ f.beta + rng.standard_normal((N, J)) * np.array([0.5, 1.0, 2.0])
    for _ in range(30):
        theta = updates._new_theta(f, gaussian_totals(f, Y), 1.0, model)
        f = f._replace(theta=theta)
    square = ((Y - f.features(X) @ f.beta) ** 2).sum(axis=0)
    standard = f.beta / np.r_[np.full(M - 1, 1.3), 1][:, None]
    prior = (standard**2 * np.r_[np.ones(M - 1), 0.01][:, None]).sum(axis=0)
    # -(N + M) / 2 log s - (square + prior) / 2s, the prior of s (a0 = b0 = 1), and the Jacobian of log s
    expected = ((square + prior) / 2 + 1) / ((N + M) / 2 + 1)
    np.testing.assert_allclose(f.theta["sigma2"], expected, rtol=1e-4)


def test_the_amplitude_is_the_best_one():
    model = Model(likelihoods.Poisson(), D, H, Prior(beta_scale=0.5))
    f = functions({})
    spread = rng.uniform(0, 0.2, (M, J))
    S = ((f.beta[:-1] ** 2 + spread[:-1]) / 0.25).sum()
    height = lambda u: (M - 1) * J * u + S * np.exp(-2 * u) / 2 + u**2 / 2  # noqa: E731
    best: Any = optimize.minimize_scalar(height)
    np.testing.assert_allclose(updates._new_amplitude(f, spread, model), np.exp(best.x), rtol=1e-6)


def test_turning_leaves_the_functions_and_makes_the_divergence_least():
    f = functions({})
    square = np.array([[2.0, 0.6], [0.6, 1.0]])
    A = updates.turn_of(square)
    turned = f.turned(A)
    np.testing.assert_allclose(turned.features(X @ A) @ turned.beta, f.features(X) @ f.beta, rtol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(turned.Sigma), A @ np.linalg.inv(f.Sigma) @ A, rtol=1e-9)

    def divergence(B):
        return 0.5 * np.trace(B @ square @ B.T) - np.linalg.slogdet(B)[1]

    others = [np.eye(2) * s @ A for s in (0.97, 1.03)] + [(np.eye(2) + 0.03 * np.outer(v, v)) @ A for v in np.eye(2)]
    assert all(divergence(A) < divergence(B) for B in others)
    np.testing.assert_allclose(A @ square @ A, np.eye(2), atol=1e-12)


def test_a_gram_matrix_that_rounding_has_spoilt_has_a_factor():
    Phi = rng.standard_normal((20, 3)) @ rng.standard_normal((3, M))
    gram = (Phi.T @ Phi).astype(np.float32).astype(float)
    L = updates._factor(gram, np.full(M, 1e-12))
    assert np.isfinite(L).all()


def test_subsampled_curvatures_are_scaled_up():
    model = Model(likelihoods.Gaussian(), D, H)
    f = functions({"sigma2": np.ones(J)})
    Y = f.features(X) @ (f.beta + 0.01)
    whole = gaussian_totals(f, Y)
    tenth = whole._replace(curvature=jax.tree.map(lambda part: part / 10, whole.curvature))
    one, other = (updates.update(f, totals, X[:9], model).functions for totals in (whole, tenth))
    np.testing.assert_allclose(one.beta, other.beta, rtol=1e-6)
    np.testing.assert_allclose(one.theta["sigma2"], other.theta["sigma2"], rtol=1e-6)
