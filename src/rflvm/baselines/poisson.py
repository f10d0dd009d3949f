"""Poisson cells with the log link, and Gaussian approximations of their likelihood around a mode."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class Columns(NamedTuple):
    """Cells of a table or of one column, 0 where missing, and an indicator of the observed ones, 1 or 0."""

    Y: Float[Array, "*C"]
    observed: Float[Array, "*C"]


class Sites(NamedTuple):
    """The Gaussians exp(b f - W f^2 / 2) in place of the likelihood; 0 where a cell is missing."""

    b: Float[Array, "*C"]
    W: Float[Array, "*C"]


def sites_at(F: Float[Array, "*C"], table: Columns) -> Sites:
    """The Gaussians that agree with the likelihood to second order at F."""
    W = table.observed * jnp.exp(F)
    return Sites(W * F + table.Y - W, W)


def first_sites(table: Columns) -> Sites:
    """Gaussians to begin with: an observation log(y + 1/2) of f with variance 1 / (y + 1/2)."""
    W = table.observed * (table.Y + 0.5)
    return Sites(W * jnp.log(table.Y + 0.5), W)
