"""VAE: a variational autoencoder (Kingma & Welling 2014) of a table, trained by Adam.

    x_n ~ N(0, I),  f_n = decoder(x_n),  q(x_n | y_n) = N(mean, diag(variance)) = encoder(t_n)

Encoder and decoder have two hidden layers of 128 rectified linear units. The encoder sees t = log(1 + y) of a table of
counts, or y of any other, centred by column and divided by one number so that its mean square is 1. A Gaussian decoder
(the default, as the paper counts VAEs among the real-valued methods) has t as its data, with one noise variance for
all cells, learned; a Poisson decoder has the counts, with f the logarithm of their means.

Training stops early, by the bound on a tenth of the rows that are held out: after ``_PATIENCE`` epochs without a better
one. The held-out rows choose the epoch and nothing else, and are embedded like the others.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.exceptions import ConvergenceWarning

from .. import likelihoods
from ..data.checks import check_choice, check_integer
from ..numerics import memory_maps
from ..numerics.compilation import compiled
from ..numerics.precision import precision
from .base import Placing, extra, is_counts

HIDDEN = 128
BATCH = 64
RATE = 1e-3
_PATIENCE = 100
_N_DRAWS = 8  # of X for the bound on the rows held out

Decoder = Literal["gaussian", "poisson"]
Layers = list[dict[str, Array]]


class Weights(NamedTuple):
    """Both networks, and the logarithm of the noise's standard deviation."""

    encoder: Layers
    decoder: Layers
    log_noise: Float[Array, ""]


class Rows(NamedTuple):
    """Inputs of the encoder and data of the decoder."""

    seen: Float[Array, "N J"]
    target: Float[Array, "N J"]


def initial(key: Array, J: int, D: int, intercepts: Float[Array, " J"]) -> Weights:
    """Weights with He's variances; the decoder's output starts near the intercepts."""

    def layers(key, sizes):
        keys = jax.random.split(key, len(sizes) - 1)
        return [
            {"W": jax.random.normal(key, (a, b)) * (2 / a) ** 0.5, "b": jnp.zeros(b)}
            for key, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
        ]

    key_encoder, key_decoder = jax.random.split(key)
    encoder = layers(key_encoder, (J, HIDDEN, HIDDEN, 2 * D))
    decoder = layers(key_decoder, (D, HIDDEN, HIDDEN, J))
    for last in (encoder[-1], decoder[-1]):
        last["W"] = 0.1 * last["W"]
    decoder[-1]["b"] = intercepts
    return Weights(encoder, decoder, jnp.zeros(()))


def apply(layers: Layers, inputs: Float[Array, "N I"]) -> Float[Array, "N O"]:
    """A network's output."""
    for layer in layers[:-1]:
        inputs = jax.nn.relu(inputs @ layer["W"] + layer["b"][None])
    return inputs @ layers[-1]["W"] + layers[-1]["b"][None]


def encode(weights: Weights, seen: Float[Array, "N J"]) -> tuple[Float[Array, "N D"], Float[Array, "N D"]]:
    """Mean and log variance of q(x | y)."""
    mean, log_variance = jnp.split(apply(weights.encoder, seen), 2, axis=1)
    return mean, log_variance


def bound(key: Array, weights: Weights, rows: Rows, decoder: Decoder) -> Float[Array, ""]:
    """The evidence lower bound (ELBO) of log p(y) with one draw of each x, mean over rows, without constants."""
    mean, log_variance = encode(weights, rows.seen)
    X = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape, mean.dtype)
    F = apply(weights.decoder, X)
    if decoder == "gaussian":
        cells = -0.5 * ((rows.target - F) * jnp.exp(-weights.log_noise)) ** 2 - weights.log_noise
    else:
        cells = rows.target * F - jnp.exp(F)
    divergence = 0.5 * (jnp.exp(log_variance) + mean**2 - 1 - log_variance)
    return (cells.sum(axis=1) - divergence.sum(axis=1)).mean()


@functools.partial(compiled, static_argnames=("decoder", "optimiser"))
def epoch(key: Array, weights: Weights, moments: Any, rows: Rows, held_out: Rows, decoder: Decoder, optimiser: Any):
    """One pass over the rows in batches; also the bound on those held out, with the same noise in every epoch."""
    N = len(rows.seen)
    size = min(BATCH, N)
    key_order, key_noise = jax.random.split(key)
    order = jax.random.permutation(key_order, N)[: N // size * size].reshape(-1, size)

    def step(carry, inputs):
        weights, moments = carry
        key, batch = inputs
        slope = jax.grad(lambda weights: -bound(key, weights, jax.tree.map(lambda part: part[batch], rows), decoder))
        with jax.numpy_dtype_promotion("standard"):  # optax raises numbers to the power of its count of steps
            updates, moments = optimiser.update(slope(weights), moments)
        return (jax.tree.map(jnp.add, weights, updates), moments), None

    keys = jax.random.split(key_noise, len(order))
    (weights, moments), _ = jax.lax.scan(step, (weights, moments), (keys, order))
    fixed = jax.random.split(jax.random.key(0), _N_DRAWS)
    value = jax.lax.map(lambda key: bound(key, weights, held_out, decoder), fixed).mean()
    return weights, moments, value


class VAE(Placing):
    """Variational autoencoder.

    Parameters
    ----------
    n_components : int
        Latent dimensions D.
    likelihood : {"gaussian", "poisson"}
        The decoder: real numbers, which are log(1 + y) of a table of counts, or the counts themselves.
    max_iter : int
        Epochs, at most.
    random_state : int, RandomState or None
        Of the weights, the batches, the noise and the rows held out.

    Attributes
    ----------
    embedding_ : array (N, D)
        Means of q(x_n | y_n).
    bound_ : array
        Evidence lower bound (ELBO) of log p(y) per held-out row, without constants, after each epoch; the weights are
        those of the highest.
    n_iter_ : int
        Epochs.
    convergence_ : {"converged", "iteration limit"}
        Why it ended.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        likelihood: str = "gaussian",
        max_iter: int = 2000,
        random_state: Any = None,
    ):
        super().__init__(n_components, random_state=random_state)
        self.likelihood = likelihood
        self.max_iter = max_iter

    def _family(self) -> likelihoods.Likelihood:
        check_choice("likelihood", self.likelihood, ("gaussian", "poisson"))
        return likelihoods.get(self.likelihood)

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        N, J = Y.shape
        if N < 3:
            raise ValueError(f"Y has {N} rows; a VAE needs at least 3, one of them to be held out")
        max_iter = check_integer("max_iter", self.max_iter, 1)
        self._counts = is_counts(Y)
        table = np.log1p(Y) if self._counts else Y
        self._centre = table.mean(0)
        self._scale = float(np.sqrt(np.mean((table - self._centre) ** 2))) or 1.0
        seen = self._seen(Y)
        poisson = self.likelihood == "poisson"
        target = np.asarray(Y, np.float32) if poisson else seen
        intercepts = np.log((Y.sum(0) + 0.5) / (N + 0.5)) if poisson else np.zeros(J)
        order = np.random.default_rng(seed).permutation(N)
        memory_maps.free_if_scarce()
        with precision("float32"):
            self._weights = self._train(seen, target, order, max(1, N // 10), intercepts, seed, max_iter)
        if self.convergence_ == "iteration limit":
            warnings.warn(
                f"the VAE was still improving after {max_iter} epochs: raise max_iter", ConvergenceWarning, stacklevel=3
            )
        return self._place(Y)

    def _train(
        self,
        seen: np.ndarray,
        target: np.ndarray,
        order: np.ndarray,
        n_out: int,
        intercepts: np.ndarray,
        seed: int,
        max_iter: int,
    ) -> Weights:
        optimiser, decoder = extra("optax", "optax").adam(RATE), cast(Decoder, self.likelihood)
        out, kept = (
            Rows(jnp.asarray(seen[rows]), jnp.asarray(target[rows])) for rows in (order[:n_out], order[n_out:])
        )
        key, key_weights = jax.random.split(jax.random.key(seed))
        weights = initial(key_weights, seen.shape[1], self.n_components, jnp.asarray(intercepts, jnp.float32))
        moments, best, values = optimiser.init(weights), weights, []
        self.convergence_ = "iteration limit"
        for n in range(max_iter):
            weights, moments, value = epoch(jax.random.fold_in(key, n), weights, moments, kept, out, decoder, optimiser)
            values.append(float(value))
            if values[-1] >= np.nanmax(values):
                best = weights
            if n - int(np.nanargmax(values)) >= _PATIENCE:
                self.convergence_ = "converged"
                break
        self.bound_, self.n_iter_ = np.array(values), len(values)
        return jax.tree.map(np.asarray, best)

    def _seen(self, Y: np.ndarray) -> np.ndarray:
        table = np.log1p(Y) if self._counts else Y
        return np.asarray((table - self._centre) / self._scale, np.float32)

    def _place(self, Y: np.ndarray) -> np.ndarray:
        with precision("float32"):
            mean, _ = encode(jax.tree.map(jnp.asarray, self._weights), jnp.asarray(self._seen(Y)))
            return np.array(mean, float)
