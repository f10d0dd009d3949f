"""The Dirichlet-process mixture of Gaussians over frequencies (paper, Eqs. 5, 8, 9 and 11).

    w_h ~ N(mu_{z_h}, Sigma_{z_h})     (mu_k, Sigma_k) ~ NIW(mu_0, lambda_0, Psi_0, nu_0)
    z ~ CRP(alpha)                     alpha ~ Gamma(a, rate b)

There are H frequencies, so H stands where the paper writes M. The mixture lives in H slots, the
most that H frequencies can occupy: when one frequency is taken out, the others fill at most H - 1
slots, so a free one is always there and the sampler is that of the untruncated process.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int

from ..numerics import linalg


class NIW(NamedTuple):
    """Normal-inverse-Wishart parameters: Sigma ~ IW(Psi, nu), mu | Sigma ~ N(m, Sigma / lam)."""

    m: Float[Array, "*B D"]
    lam: Float[Array, "*B"]
    Psi: Float[Array, "*B D D"]
    nu: Float[Array, "*B"]


def counts(z: Int[Array, " H"]) -> Int[Array, " H"]:
    """Number of frequencies in each of the H slots."""
    return jnp.zeros(z.shape[0], z.dtype).at[z].add(1)


def niw_posterior(prior: NIW, W: Float[Array, "H D"], z: Int[Array, " H"]) -> NIW:
    """Eq. 9, corrected: the shrinkage term uses the cluster mean, once per cluster.

    An empty slot has the prior.
    """
    member = (z[:, None] == jnp.arange(z.shape[0], dtype=z.dtype)[None]).astype(W.dtype)
    n = member.sum(0)
    mean = member.T @ W / jnp.maximum(n, 1)[:, None]
    centred = W - mean[z]
    scatter = jnp.einsum("hk,hd,he->kde", member, centred, centred)
    away = mean - prior.m[None]
    lam = prior.lam + n
    shrink = (prior.lam * n / lam)[:, None, None] * away[:, :, None] * away[:, None, :]
    m = (prior.lam * prior.m[None] + n[:, None] * mean) / lam[:, None]
    return NIW(m, lam, prior.Psi[None] + scatter + shrink, prior.nu + n)


def sample_niw(key: Array, niw: NIW) -> tuple[Float[Array, "K D"], Float[Array, "K D D"]]:
    """One (mu, Sigma) per batch element, by Bartlett's decomposition."""
    K, D = niw.m.shape
    dtype = niw.m.dtype
    key_chi2, key_off, key_mu = jax.random.split(key, 3)
    degrees = jnp.broadcast_to(niw.nu, (K,))[:, None] - jnp.arange(D, dtype=dtype)[None]
    chi = jnp.sqrt(2 * jax.random.gamma(key_chi2, degrees / 2, dtype=dtype))
    below = jnp.tril(jax.random.normal(key_off, (K, D, D), dtype), -1)
    A = linalg.small_rows(below + chi[:, None] * jnp.eye(D, dtype=dtype)[None])
    # Sigma = L (A A')^{-1} L' with Psi = L L', so L A^{-T} is a square root of Sigma; its rows are A^{-1} l_i.
    L = linalg.small_cholesky(jnp.broadcast_to(niw.Psi, (K, D, D)))
    zero = jnp.zeros(K, dtype)
    rows = [jnp.stack([*row, *[zero] * (D - len(row))], axis=-1) for row in L]
    root = jnp.stack([linalg.small_solve_lower(A, row) for row in rows], axis=1)
    noise = jax.random.normal(key_mu, (K, D), dtype) / jnp.sqrt(niw.lam)[..., None]
    return niw.m + jnp.einsum("kde,ke->kd", root, noise), jnp.einsum("kde,kfe->kdf", root, root)


def niw_log_density(prior: NIW, mu: Float[Array, "K D"], Sigma: Float[Array, "K D D"]) -> Float[Array, " K"]:
    """log NIW(mu_k, Sigma_k) for each k."""
    D = mu.shape[-1]
    L = linalg.small_cholesky(Sigma)
    logdet = 2 * linalg.small_logdet(L)
    prior_root = linalg.small_cholesky(prior.Psi)
    columns = jnp.stack([jnp.stack([row[d] if d < len(row) else 0 * row[0] for row in prior_root]) for d in range(D)])
    trace = sum(jnp.sum(linalg.small_solve_lower(L, column) ** 2, axis=-1) for column in columns)
    log_iw = (
        prior.nu * linalg.small_logdet(prior_root)
        - prior.nu * D / 2 * math.log(2)
        - multivariate_gammaln(prior.nu / 2, D)
        - (prior.nu + D + 1) / 2 * logdet
        - trace / 2
    )
    away = linalg.small_solve_lower(L, mu - prior.m[None])
    log_normal = -0.5 * (prior.lam * jnp.sum(away**2, -1) + logdet + D * (math.log(2 * math.pi) - jnp.log(prior.lam)))
    return log_iw + log_normal


def multivariate_gammaln(a: Float[Array, ""], D: int) -> Float[Array, ""]:
    """log of the multivariate gamma function Gamma_D(a)."""
    return D * (D - 1) / 4 * math.log(math.pi) + jnp.sum(gammaln(a - jnp.arange(D, dtype=a.dtype) / 2))


def log_normal(W: Float[Array, "*B D"], mu: Float[Array, "*B2 D"], Sigma: Float[Array, "*B2 D D"]) -> Array:
    """log N(w | mu, Sigma), broadcast over leading dimensions."""
    L = linalg.small_cholesky(Sigma)
    white = linalg.small_solve_lower(L, W - mu)
    return -0.5 * jnp.sum(white**2, axis=-1) - linalg.small_logdet(L) - W.shape[-1] / 2 * math.log(2 * math.pi)


def from_noise(
    noise: Float[Array, "H D"], mu: Float[Array, "H D"], Sigma: Float[Array, "H D D"]
) -> Float[Array, "H D"]:
    """Frequencies with law N(mu_h, Sigma_h) from standard normal noise."""
    L = linalg.small_cholesky(Sigma)
    return mu + jnp.stack([sum(entry * noise[:, j] for j, entry in enumerate(row)) for row in L], axis=-1)


def log_new_cluster(prior: NIW, W: Float[Array, "H D"]) -> Float[Array, " H"]:
    """log of the integral in Eq. 8: N(w | mu, Sigma) averaged over the NIW, a multivariate t."""
    D = W.shape[1]
    dof = prior.nu - D + 1
    L = linalg.small_cholesky(prior.Psi * (prior.lam + 1) / (prior.lam * dof))
    white = linalg.small_solve_lower(L, W - prior.m[None])
    return (
        gammaln((dof + D) / 2)
        - gammaln(dof / 2)
        - D / 2 * jnp.log(dof * math.pi)
        - linalg.small_logdet(L)
        - (dof + D) / 2 * jnp.log1p(jnp.sum(white**2, axis=-1) / dof)
    )


def log_crp(z: Int[Array, " H"], alpha: Float[Array, ""]) -> Float[Array, ""]:
    """log p(z | alpha) under the Chinese restaurant process."""
    n = counts(z)
    H = z.shape[0]
    occupied = n > 0
    tables = jnp.where(occupied, jnp.log(alpha) + gammaln(jnp.maximum(n, 1).astype(alpha.dtype)), 0).sum()
    return tables + gammaln(alpha) - gammaln(alpha + H)


def sample_crp(key: Array, alpha: Float[Array, ""], H: int) -> Int[Array, " H"]:
    """Draw z from the Chinese restaurant process, tables numbered in order of appearance."""
    slots = jnp.arange(H, dtype=jnp.int32)

    def seat(carry, key):
        n, tables = carry
        weights = jnp.where(slots < tables, n, jnp.where(slots == tables, alpha, 0))
        k = jax.random.categorical(key, jnp.log(weights))
        k = k.astype(jnp.int32)
        return (n.at[k].add(1), jnp.maximum(tables, k + 1)), k

    start = (jnp.zeros(H, alpha.dtype), jnp.zeros((), jnp.int32))
    _, z = lax.scan(seat, start, jax.random.split(key, H))
    return z


def sample_assignments(
    key: Array,
    z: Int[Array, " H"],
    W: Float[Array, "H D"],
    mu: Float[Array, "H D"],
    Sigma: Float[Array, "H D D"],
    alpha: Float[Array, ""],
    prior: NIW,
) -> tuple[Int[Array, " H"], Float[Array, "H D"], Float[Array, "H D D"]]:
    """One pass of Eq. 8 over z_1..z_H: Neal (2000), with the new-cluster weight integrated exactly.

    That is Algorithm 8 in the limit of many auxiliary components (none is drawn), which for a
    conjugate base measure is Neal's Algorithm 2. A frequency that opens a cluster takes its
    parameters from the NIW posterior given itself alone; these do not depend on the other
    frequencies, so all H candidates are drawn before the pass and every density it can need is
    known in advance: the pass itself only looks numbers up.
    """
    H = z.shape[0]
    key_candidates, key_choice = jax.random.split(key)
    slots = jnp.arange(H, dtype=z.dtype)
    alone = niw_posterior(prior, W, slots)
    new_mu, new_Sigma = sample_niw(key_candidates, alone)
    all_mu, all_Sigma = jnp.concatenate([mu, new_mu]), jnp.concatenate([Sigma, new_Sigma])
    log_density = log_normal(W[:, None], all_mu[None], all_Sigma[None])
    log_open = jnp.log(alpha) + log_new_cluster(prior, W)
    gumbel = jax.random.gumbel(key_choice, (H, H), W.dtype)

    def reassign(carry, inputs):
        z, n, source = carry  # source[k]: where the parameters of slot k are found in all_mu
        h, density, opening, noise = inputs
        n = n.at[z[h]].add(-1)
        free = jnp.argmin(n).astype(z.dtype)
        log_weight = jnp.where(n > 0, jnp.log(n.astype(W.dtype)) + density[source], -jnp.inf)
        log_weight = log_weight.at[free].set(opening)
        k = jnp.argmax(log_weight + noise).astype(z.dtype)
        source = source.at[k].set(jnp.where(k == free, H + h, source[k]))
        return (z.at[h].set(k), n.at[k].add(1), source), None

    start = (z, counts(z), slots)
    (z, _, source), _ = lax.scan(reassign, start, (slots, log_density, log_open, gumbel))
    return z, all_mu[source], all_Sigma[source]


def sample_concentration(
    key: Array, alpha: Float[Array, ""], z: Int[Array, " H"], shape: Float[Array, ""], rate: Float[Array, ""]
) -> Float[Array, ""]:
    """Eq. 11 (Escobar & West 1995): eta ~ Beta(alpha + 1, H), then ONE of two gammas."""
    H = z.shape[0]
    K = jnp.sum(counts(z) > 0).astype(alpha.dtype)
    key_eta, key_pick, key_alpha = jax.random.split(key, 3)
    # -log of a Beta(a, H) variate is a sum of H exponentials with rates a, a + 1, ..., a + H - 1.
    rates = alpha + 1 + jnp.arange(H, dtype=alpha.dtype)
    log_eta = -jnp.sum(jax.random.exponential(key_eta, (H,), alpha.dtype) / rates)
    odds = (shape + K - 1) / (H * (rate - log_eta))
    larger = jax.random.uniform(key_pick, dtype=alpha.dtype) < odds / (1 + odds)
    return jax.random.gamma(key_alpha, shape + K - 1 + larger.astype(alpha.dtype), dtype=alpha.dtype) / (rate - log_eta)
