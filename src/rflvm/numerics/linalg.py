"""Linear algebra shared by the engines: J weighted Gram matrices at once, and a Cholesky factor
that never fails in silence.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

# Sizes of blocks, chosen by the time of ``benchmarks/sweep.py`` and ``benchmarks/map.py``; none changes a result.
_FEATURE_BLOCK = 16  # features whose products are made at once: fewer waste less above the diagonal
_ROW_BLOCK = 2048  # rows whose feature products are in memory at once
_ROWS_AT_ONCE = 128  # rows for which a product with all inverses is made at once, small enough to stay in cache
_JITTERS = 4  # attempts to factor a matrix, each with 100 times the jitter


def weighted_grams(Phi: Float[Array, "N M"], weights: Float[Array, "N J"]) -> Float[Array, "J M M"]:
    """Lower triangles of Phi' diag(weights_j) Phi for all columns j.

    One product of weights' (J x N) with the feature products phi_a phi_b, made in blocks of
    features so that only b <= the block's end is computed, and in blocks of rows so that the
    products never take more than about ``_ROW_BLOCK * M^2`` numbers. Entries above the diagonal
    are not meaningful.
    """
    N, M = Phi.shape
    ends = [*range(_FEATURE_BLOCK, M, _FEATURE_BLOCK), M]

    def block(Phi, weights):
        rows = []
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            products = (Phi[:, start:end, None] * Phi[:, None, :end]).reshape(Phi.shape[0], -1)
            gram = (weights.T @ products).reshape(-1, end - start, end)
            rows.append(jnp.pad(gram, ((0, 0), (0, 0), (0, M - end))))
        return jnp.concatenate(rows, axis=1)

    whole = N // _ROW_BLOCK
    if whole == 0:
        return block(Phi, weights)
    cut = whole * _ROW_BLOCK
    total, _ = lax.scan(
        lambda total, rows: (total + block(*rows), None),
        jnp.zeros((weights.shape[1], M, M), Phi.dtype),
        (Phi[:cut].reshape(whole, _ROW_BLOCK, M), weights[:cut].reshape(whole, _ROW_BLOCK, -1)),
    )
    return total + block(Phi[cut:], weights[cut:]) if cut < N else total


def trace_slopes(
    Phi: Float[Array, "N M"], weights: Float[Array, "N J"], inverse: Float[Array, "J M M"]
) -> tuple[Float[Array, "N M"], Float[Array, "N J"]]:
    """Derivatives of sum_j tr(inverse_j Phi' diag(weights_j) Phi) in Phi and in the weights.

    ``inverse`` is symmetric. The second is the leverage phi_n' inverse_j phi_n. Both need inverse_j phi_n, which is
    one product for ``_ROWS_AT_ONCE`` rows, small enough to stay in cache.
    """
    J, M, _ = inverse.shape
    flat = inverse.reshape(J * M, M)

    def row(inputs):
        phi, weight = inputs
        products = (flat @ phi).reshape(J, M)
        return 2 * weight @ products, products @ phi

    return lax.map(row, (Phi, weights), batch_size=_ROWS_AT_ONCE)


def multiply_columns(A: Float[Array, "J M M"], B: Float[Array, "M J"]) -> Float[Array, "M J"]:
    """A_j b_j for each column."""
    return jnp.einsum("jab,bj->aj", A, B)


def inverse_from_cholesky(L: Float[Array, "*B M M"]) -> Float[Array, "*B M M"]:
    """(L L')^{-1}."""
    inverse = solve_lower(L, jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape))
    return jnp.swapaxes(inverse, -1, -2) @ inverse


def cholesky(A: Float[Array, "*B M M"]) -> tuple[Float[Array, "*B M M"], Float[Array, ""]]:
    """Lower Cholesky factors (only the lower triangles of A are read) and the jitter they needed.

    The jitter, relative to the mean diagonal of A, is zero unless some factorisation failed; it
    then grows by a factor of 100 from 100 machine epsilons, for the failed matrices alone. When
    the last one fails too the factor is NaN, which the engine reports with the block's name.
    """

    def factor(jitter):
        size = jnp.mean(jnp.diagonal(A, axis1=-2, axis2=-1), axis=-1)[..., None, None]
        eye = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
        return lax.linalg.cholesky(A + jitter * size * eye, symmetrize_input=False)

    def retry(L):
        def attempt(i, carry):
            L, jitter = carry
            failed = jnp.isnan(L).any(axis=(-2, -1), keepdims=True)
            new = 100.0 * jnp.finfo(A.dtype).eps * 100.0**i
            return jnp.where(failed, factor(new), L), jnp.where(failed.any(), new, jitter)

        return lax.fori_loop(0, _JITTERS, attempt, (L, jnp.zeros((), A.dtype)))

    L = lax.linalg.cholesky(A, symmetrize_input=False)
    return lax.cond(jnp.isnan(L).any(), retry, lambda L: (L, jnp.zeros((), A.dtype)), L)


class NumericalError(RuntimeError):
    """An engine met numbers that are not finite; the message names the block."""


Rows = list[list[Array]]  # a lower triangular matrix as its rows, each entry an array over a batch


def small_rows(A: Float[Array, "*B D D"]) -> Rows:
    """The lower triangle of A as rows."""
    return [[A[..., i, j] for j in range(i + 1)] for i in range(A.shape[-1])]


def small_cholesky(A: Float[Array, "*B D D"]) -> Rows:
    """Cholesky factors of many tiny matrices.

    Unrolled in D, so that all of them together are a few vector operations; LAPACK would be
    called once for each.
    """
    L: Rows = []
    for i in range(A.shape[-1]):
        row: list[Array] = []
        for j in range(i):
            row.append((A[..., i, j] - sum(row[k] * L[j][k] for k in range(j))) / L[j][j])
        row.append(jnp.sqrt(A[..., i, i] - sum(entry**2 for entry in row)))
        L.append(row)
    return L


def small_logdet(L: Rows) -> Array:
    """log |L|."""
    return sum((jnp.log(row[-1]) for row in L[1:]), jnp.log(L[0][0]))


def small_solve_lower(L: Rows, rhs: Float[Array, "... D"]) -> Float[Array, "... D"]:
    """L^{-1} rhs."""
    x: list[Array] = []
    for i, row in enumerate(L):
        x.append((rhs[..., i] - sum(row[k] * x[k] for k in range(i))) / row[i])
    return jnp.stack(x, axis=-1)


def small_solve_lower_transposed(L: Rows, rhs: Float[Array, "... D"]) -> Float[Array, "... D"]:
    """L^{-T} rhs."""
    x: dict[int, Array] = {}
    for i in reversed(range(len(L))):
        x[i] = (rhs[..., i] - sum(L[k][i] * x[k] for k in range(i + 1, len(L)))) / L[i][i]
    return jnp.stack([x[i] for i in range(len(L))], axis=-1)


def solve_lower(L: Float[Array, "*B M M"], rhs: Float[Array, "*B M R"]) -> Float[Array, "*B M R"]:
    """L^{-1} rhs for lower triangular L."""
    return lax.linalg.triangular_solve(L, rhs, left_side=True, lower=True)


def solve_lower_transposed(L: Float[Array, "*B M M"], rhs: Float[Array, "*B M R"]) -> Float[Array, "*B M R"]:
    """L^{-T} rhs for lower triangular L."""
    return lax.linalg.triangular_solve(L, rhs, left_side=True, lower=True, transpose_a=True)


def normal_from_precision(
    key: Array, precision: Float[Array, "J M M"], rhs: Float[Array, "M J"]
) -> tuple[Float[Array, "M J"], Float[Array, ""]]:
    """Draw columns beta_j ~ N(P_j^{-1} rhs_j, P_j^{-1}) from the lower triangles of P_j; also the jitter."""
    L, jitter = cholesky(precision)
    half = solve_lower(L, rhs.T[..., None])
    draw = solve_lower_transposed(L, half + jax.random.normal(key, half.shape, half.dtype))
    return draw[..., 0].T, jitter


class _OneBlasThread:
    """Sets the limit when the first thread enters, and restores the old number of BLAS threads when the last leaves.

    The limit holds for the whole process: a thread by itself would take another's limit for the old number.
    """

    def __init__(self) -> None:
        self.renew_lock()
        self.count = 0
        self.limits: Any = None

    def renew_lock(self) -> None:
        """After a fork: the thread that held it may not be there to release it."""
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            if self.count == 0:
                self.limits = threadpool_limits(1, user_api="blas")
                _let_other_threads_set_limits()
            self.count += 1

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0:
                self.limits.restore_original_limits()
                _let_other_threads_set_limits()


def _let_other_threads_set_limits() -> None:
    """From threadpoolctl 3.8 on, a thread that has set limits is the only one that can, until it leaves a ``with``."""
    with threadpool_limits():
        pass


_one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_one_blas_thread.renew_lock)


def one_blas_thread() -> AbstractContextManager:
    """Keep LAPACK to one thread for a while: its own threads and XLA's would fight for the cores."""
    return _one_blas_thread


def cast(tree: Any, dtype: Any) -> Any:
    """Real numbers in another precision, everything else as it is."""
    return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)
