"""Gaussian columns with beta and sigma^2 integrated out (paper, Eq. 12 and appendix B)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..numerics import linalg
from .joint import (
    Data,
    Model,
)


class Regression(NamedTuple):
    """Sufficient statistics of the conjugate Gaussian columns (paper, appendix B)."""

    L: Float[Array, "*J M M"]  # Cholesky factor of S_N, one for all columns when no cell is missing
    half: Float[Array, "M J"]  # L^{-1} Phi'y, so that beta_N' S_N beta_N = |half_j|^2
    n: Float[Array, " J"]  # observed cells
    yy: Float[Array, " J"]  # y'y
    jitter: Float[Array, ""]


def regression(Phi: Float[Array, "N M"], data: Data, model: Model) -> Regression:
    """S_N = Phi'Phi + S_0 over the observed rows of each column, and what the evidence needs."""
    y = data.Y - data.offset[:, None]
    S0 = jnp.diag(model.precision(Phi.shape[1], Phi.dtype))
    if data.mask is None:
        L, jitter = linalg.cholesky(Phi.T @ Phi + S0)
        half = linalg.solve_lower(L, Phi.T @ y)
        n = jnp.full(y.shape[1], y.shape[0], y.dtype)
    else:
        y = jnp.where(data.mask, y, 0)
        L, jitter = linalg.cholesky(linalg.weighted_grams(Phi, data.mask.astype(y.dtype)) + S0[None])
        half = linalg.solve_lower(L, (Phi.T @ y).T[..., None])[..., 0].T
        n = jnp.sum(data.mask, axis=0).astype(y.dtype)
    return Regression(L, half, n, jnp.sum(y**2, axis=0), jitter)


def coefficients(L: Float[Array, "*J M M"], half: Float[Array, "M J"]) -> Float[Array, "M J"]:
    """L_j^{-T} half_j for each column, with one L for all or one each."""
    if L.ndim == 2:
        return linalg.solve_lower_transposed(L, half)
    return linalg.solve_lower_transposed(L, half.T[..., None])[..., 0].T


def log_evidence(Phi: Float[Array, "N M"], data: Data, model: Model) -> Float[Array, " J"]:
    """log p(y_j | Phi) of the Gaussian model, beta_j and sigma_j^2 integrated out (Eq. 12).

    Its derivative in Phi is written out, -M Phi S_N^{-1} + (a_N / b_N)(y - M Phi beta_N) beta_N' with
    M = diag(mask), which is cheaper than differentiating the Cholesky factors.
    """
    likelihood = model.likelihood

    def forward(Phi):
        fit = regression(Phi, data, model)
        explained = jnp.sum(fit.half**2, axis=0)
        logdet_N = 2 * jnp.sum(jnp.log(jnp.diagonal(fit.L, axis1=-2, axis2=-1)), axis=-1)
        logdet_0 = jnp.sum(jnp.log(model.precision(Phi.shape[1], Phi.dtype)))
        values = likelihood.log_evidence(fit.n, logdet_0 - logdet_N, fit.yy, explained)
        aN, bN = likelihood.noise_posterior(fit.n, fit.yy, explained)
        return values, (Phi, fit.L, fit.half, aN / bN)

    def backward(saved, cotangent):
        Phi, L, half, weight = saved
        beta = coefficients(L, half)
        residual = data.Y - data.offset[:, None] - Phi @ beta
        residual = residual if data.mask is None else jnp.where(data.mask, residual, 0)
        inverse = linalg.inverse_from_cholesky(L)
        if data.mask is None:
            shrink = cotangent.sum() * (Phi @ inverse)
        else:
            columns = inverse.reshape(inverse.shape[0], -1)
            row = lambda phi, m: phi @ ((m.astype(L.dtype) * cotangent) @ columns).reshape(L.shape[1:])  # noqa: E731
            shrink = lax.map(lambda r: row(*r), (Phi, data.mask), batch_size=256)
        return ((residual * (weight * cotangent)[None]) @ beta.T - shrink,)

    evidence = jax.custom_vjp(lambda Phi: forward(Phi)[0])
    evidence.defvjp(forward, backward)
    return evidence(Phi)
