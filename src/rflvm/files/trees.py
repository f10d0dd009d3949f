"""Trees of arrays by the names of their leaves, and back."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def arrays_of(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree as arrays, by name."""
    return {name: np.asarray(leaf) for name, leaf in by_name(tree).items()}


def restore(like: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A tree of the structure of ``like`` from what ``arrays_of`` made of it."""
    return jax.tree.unflatten(jax.tree.structure(like), [jnp.asarray(arrays[name]) for name in by_name(like)])


def by_name(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their path, for example "chains.0.state.X"."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
