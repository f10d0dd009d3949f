"""What a user has set in JAX does not reach a fit: neither strict promotion nor the default precision."""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rflvm import RFLVM, likelihoods
from rflvm.model import laplace
from rflvm.model.features import features
from rflvm.model.joint import Data, Model
from rflvm.sampling.chain import chain_shapes
from rflvm.sampling.sweep import Moves

N, J = 12, 4
ENGINES: dict[str, dict[str, Any]] = {
    "map": {"inference": "map", "max_iter": 3},
    "gibbs": {"inference": "gibbs", "n_samples": 3, "n_burnin": 2, "n_chains": 1},
}
SMALL: dict[str, Any] = {"init": "pca", "n_features": 6, "random_state": 0}
OFFSET = np.linspace(-0.3, 0.3, N)


@contextlib.contextmanager
def settings(promotion: str, rank: str, x64: bool):
    with jax.numpy_dtype_promotion(promotion), jax.numpy_rank_promotion(rank), jax.enable_x64(x64):
        yield


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_fit_works_with_strict_promotion_and_is_the_same_with_either_default_precision(engine):
    Y = np.random.default_rng(0).poisson(3, (N, J)).astype(float)
    Y[2, 1] = Y[5, 3] = np.nan

    def everything() -> list[np.ndarray]:
        model = RFLVM(likelihood="poisson", **SMALL, **ENGINES[engine]).fit(Y, offset=OFFSET)
        if engine == "gibbs":  # what follows from a fit is the same program for both engines
            return [model.embedding_, model.embedding_std_]
        decoded = model.inverse_transform(model.embedding_, offset=OFFSET)
        return [model.embedding_, model.transform(Y, offset=OFFSET), model.impute(Y, offset=OFFSET), decoded]

    with settings("strict", "raise", x64=False):
        single = everything()
    with settings("strict", "raise", x64=True):
        double = everything()
    for one, other in zip(single, double, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_own_density_may_rely_on_promotion_where_the_user_has_it_on():
    """Promotion is decided when a program is traced, so nothing is compiled here."""
    weights = jnp.arange(1, J + 1)  # integers, one per column
    family = likelihoods.Custom(lambda y, f: -0.5 * weights * (y - f) ** 2)
    data = Data(jnp.ones((N, J)), None, jnp.asarray(OFFSET), None)

    def evidence(state):
        mode = laplace.start(data, model, state.beta)
        return laplace.log_evidence(features(state.X, state.W), {}, mode, data, model, 1e-6)[0]

    model = Model(family, 2, 3)
    with settings("standard", "allow", x64=False):
        chain = chain_shapes(data, model, Moves())
        assert chain.state.beta.shape == (7, J)
        assert jax.eval_shape(jax.grad(evidence, allow_int=True), chain.state).X.shape == (N, 2)
    with settings("standard", "raise", x64=False), pytest.raises(ValueError, match="rank_promotion"):
        chain_shapes(data, model, Moves())
