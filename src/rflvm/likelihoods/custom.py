"""A family from a user's own ``log_prob(y, f)``; its beta is drawn by HMC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from ..numerics.errors import InputError
from .base import Likelihood


class Custom(Likelihood):
    """Any cell-wise log density that JAX can differentiate in f.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(y, f)`` on arrays of one shape, in JAX operations, finite for every observed y.
    mean, variance, sample : callable, optional
        ``mean(f)``, ``variance(f)`` and ``sample(key, f)``, when predictions are wanted.

    Examples
    --------
    Heavy-tailed noise, a Student t with 4 degrees of freedom:

    >>> import jax.numpy as jnp
    >>> from rflvm.likelihoods import Custom
    >>> student = Custom(lambda y, f: -2.5 * jnp.log1p((y - f) ** 2 / 4), mean=lambda f: f)
    >>> student.mean(jnp.full((1, 1), 2.0), {}).tolist()
    [[2.0]]
    """

    name: ClassVar[str] = "custom"

    def __init__(
        self,
        log_prob: Callable,
        *,
        mean: Callable | None = None,
        variance: Callable | None = None,
        sample: Callable | None = None,
    ):
        self._functions = {"log_prob": log_prob, "mean": mean, "variance": variance, "sample": sample}
        for name, function in self._functions.items():
            if function is not None and not callable(function):
                raise TypeError(f"Custom needs {name} to be callable, got {type(function).__name__}")

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and self._functions == other._functions

    def __hash__(self) -> int:
        return hash((type(self), tuple(self._functions.values())))

    def _function(self, name: str) -> Callable:
        function = self._functions[name]
        if function is None:
            raise ValueError(f"this custom likelihood was given no {name}: pass Custom(log_prob, {name}=...)")
        return function

    def check(self, Y, observed):
        values = np.asarray(self._function("log_prob")(jnp.where(observed, Y, 0), jnp.zeros(Y.shape)))
        if values.shape != Y.shape:
            raise ValueError(f"log_prob(y, f) must return one value per cell, {Y.shape}, got {values.shape}")
        bad = observed & ~np.isfinite(values)
        if bad.any():
            n, j = (int(i[0]) for i in np.nonzero(bad))
            raise InputError(
                "log_prob(y, f=0) is not finite at {where:Y[{row}, {column}]} = {value:g}",
                row=n,
                column=j,
                value=float(Y[n, j]),
            )

    def log_factor(self, y, f, theta, trials):
        return self._function("log_prob")(y, f)

    def log_base(self, y, theta, trials):
        return jnp.zeros_like(y)

    def mean(self, f, theta, trials=None):
        return self._function("mean")(f)

    def variance(self, f, theta, trials=None):
        return self._function("variance")(f)

    def sample(self, key, f, theta, trials=None):
        return self._function("sample")(key, f)

    def parameters(self):
        raise ValueError("Custom is made of functions, which a file cannot hold: this model cannot be saved")

    def identity(self, Y, observed):
        """Functions have no identity: their values on the table stand for it.

        In few digits, since another processor may give other last ones.
        """
        values = [self.log_factor(jnp.asarray(Y), jnp.full(Y.shape, f), {}, None) for f in (-1.0, 0.0, 1.0)]
        with np.errstate(over="ignore"):
            return np.where(observed, np.asarray(values), 0).astype(np.float32)
