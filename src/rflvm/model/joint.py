"""The generative model (paper, Eq. 5), its log joint density and draws from its prior.

    y_nj ~ L(g(f_nj), theta_j)            f_nj = phi(x_n)'beta_j + z_n'gamma_j + b_j + offset_n
    beta_j ~ N(0, B0)                     x_n ~ N(0, I_D), or processes over time (``dynamics.py``)
    w_h ~ N(mu_{z_h}, Sigma_{z_h})        (mu_k, Sigma_k) ~ NIW(mu_0, lambda_0, Psi_0, nu_0)
    z ~ CRP(alpha)                        alpha ~ Gamma(a, rate b)

The effects gamma_j of the covariates z_n, if there are any, and the intercept b_j are the last rows of ``beta``: phi
goes on with z and ends in a one, and B0 is diagonal with ``beta_scale^2`` for the features, ``covariate_scale^2`` for
the effects and ``bias_scale^2`` for the intercept.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..likelihoods import Likelihood
from ..likelihoods.base import sum_observed
from ..numerics import scalars
from . import dynamics, spectral
from .dynamics import Chronology, Matern
from .features import features, linear_predictor


@dataclasses.dataclass(frozen=True)
class Prior:
    """Hyperparameters.

    For the Gaussian family they are those of the standardised table, in which every column has mean 0 and standard
    deviation 1: a column in other units has the same prior. Other families see cells as they are.

    Parameters
    ----------
    mu0, lambda0, Psi0, nu0
        Normal-inverse-Wishart prior of the spectral components: ``mu0`` and ``Psi0`` are numbers,
        standing for mu0 * 1 and Psi0 * I; ``nu0`` counts degrees of freedom beyond D - 1.
        The default has E[Sigma] = I, a lengthscale of about 1 on the scale of X.
    alpha_shape, alpha_rate
        Gamma prior of the concentration.
    beta_scale, bias_scale
        Prior standard deviations of the coefficients and of the intercepts.
    covariate_scale
        Prior standard deviation of the effects of covariates: of a change by one standard deviation, or of being in a
        category. The default is that of Gelman et al. (2008) for logistic regression.
    """

    mu0: float = 0.0
    lambda0: float = 1.0
    Psi0: float = 1.0
    nu0: float = 3.0
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    beta_scale: float = 1.0
    bias_scale: float = 10.0
    covariate_scale: float = 2.5

    def __post_init__(self):
        for field in dataclasses.fields(self):
            check = scalars.real if field.name == "mu0" else scalars.positive
            check(f"prior.{field.name}", getattr(self, field.name))

    def niw(self, D: int, dtype) -> spectral.NIW:
        """The NIW prior in D dimensions."""
        as_array = lambda value: jnp.asarray(value, dtype)  # noqa: E731
        return spectral.NIW(
            m=jnp.full(D, self.mu0, dtype),
            lam=as_array(self.lambda0),
            Psi=self.Psi0 * jnp.eye(D, dtype=dtype),
            nu=as_array(self.nu0 + D - 1),
        )

    def precision(self, M: int, dtype, n_covariates: int = 0) -> Float[Array, " M"]:
        """The diagonal of B0^{-1} for M columns of Phi: features, covariates and, last, the intercept."""
        features = jnp.full(M, self.beta_scale**-2.0, dtype)
        if n_covariates:
            features = features.at[-1 - n_covariates : -1].set(self.covariate_scale**-2.0)
        return features.at[-1].set(self.bias_scale**-2.0)


@dataclasses.dataclass(frozen=True)
class Model:
    """The likelihood, the sizes and the prior: everything that is fixed while sampling."""

    likelihood: Likelihood
    D: int
    H: int
    prior: Prior = Prior()
    dynamics: Matern | None = None  # the prior of X over time; None: rows are independent

    def precision(self, M: int, dtype) -> Float[Array, " M"]:
        """The diagonal of B0^{-1} for M columns of Phi; those beyond 2H features and the intercept are covariates."""
        return self.prior.precision(M, dtype, M - 2 * self.H - 1)


class Data(NamedTuple):
    """What was observed. Cells outside the mask hold 0 and are never used."""

    Y: Float[Array, "N J"]  # encoded cells
    mask: Bool[Array, "N J"] | None  # True where a cell counts; None when all do
    offset: Float[Array, " N"]  # added to every linear predictor of a row
    trials: Float[Array, "N J"] | None  # of families that have them
    chronology: Chronology | None = None  # when the rows were, for a prior over time
    covariates: Float[Array, "N C"] | None = None  # centred; see ``data/covariates.py``

    @property
    def n_covariates(self) -> int:
        """C."""
        return 0 if self.covariates is None else self.covariates.shape[1]


class State(NamedTuple):
    """The unknowns. Slots of the mixture without frequencies hold draws from the NIW prior."""

    X: Float[Array, "N D"]  # latent positions of the rows
    W: Float[Array, "H D"]  # frequencies of the random features
    z: Int[Array, " H"]  # the component of the mixture that each frequency belongs to
    mu: Float[Array, "H D"]  # means of the components
    Sigma: Float[Array, "H D D"]  # covariances of the components
    alpha: Float[Array, ""]  # concentration of the Dirichlet process
    beta: Float[Array, "M J"]  # coefficients of cosines and sines, effects of covariates; last the intercepts
    theta: dict[str, Array]  # the family's own parameters, one per column (J,) or one for all ()
    lengthscale: Float[Array, " L"] | None = None  # of the processes over time, D of them or one for all


def is_marginal(model: Model) -> bool:
    """Whether X and W move with beta integrated out (the conjugate Gaussian)."""
    return model.likelihood.integrates_coefficients


def predictor(state: State, data: Data) -> Float[Array, "N J"]:
    """F, with covariates and offset."""
    return linear_predictor(features(state.X, state.W, data.covariates), state.beta, data.offset)


def log_likelihood(state: State, data: Data, model: Model) -> Float[Array, ""]:
    """log p(Y | F, theta) over observed cells."""
    cells = model.likelihood.log_prob(data.Y, predictor(state, data), state.theta, data.trials)
    return sum_observed(cells, data.mask)


def log_prior_beta(beta: Float[Array, "M J"], theta: dict[str, Array], model: Model) -> Float[Array, " J"]:
    """log p(beta_j | theta_j) for each column."""
    scale = jnp.atleast_2d(model.likelihood.coefficient_scale(theta))
    precision = model.precision(beta.shape[0], beta.dtype)[:, None] / scale
    return 0.5 * jnp.sum(jnp.log(precision / (2 * math.pi)) - precision * beta**2, axis=0)


def log_prior_spectral(state: State, model: Model) -> Float[Array, ""]:
    """log p(W, mu, Sigma, z, alpha), with the parameters of occupied slots only."""
    prior = model.prior
    niw = prior.niw(model.D, state.W.dtype)
    W = spectral.log_normal(state.W, state.mu[state.z], state.Sigma[state.z])
    components = jnp.where(spectral.counts(state.z) > 0, spectral.niw_log_density(niw, state.mu, state.Sigma), 0)
    a, b = prior.alpha_shape, prior.alpha_rate
    log_alpha = a * math.log(b) - math.lgamma(a) + (a - 1) * jnp.log(state.alpha) - b * state.alpha
    return W.sum() + components.sum() + spectral.log_crp(state.z, state.alpha) + log_alpha


def log_prior_latents(
    X: Float[Array, "N D"],
    lengthscale: Float[Array, " L"] | None = None,
    chronology: Chronology | None = None,
    prior: Matern | None = None,
) -> Float[Array, ""]:
    """log p(X): rows N(0, I) by themselves, or with a prior over time and its lengthscales a process on each axis."""
    if prior is None:
        return -0.5 * jnp.sum(X**2) - X.size / 2 * math.log(2 * math.pi)
    assert lengthscale is not None
    assert chronology is not None
    return dynamics.log_density(X, dynamics.innovations(prior, per_axis(lengthscale, X.shape[1]), chronology))


def per_axis(lengthscale: Float[Array, " L"], D: int) -> Float[Array, " D"]:
    """The lengthscale of each latent dimension."""
    return jnp.broadcast_to(lengthscale, (D,))


def log_joint(state: State, data: Data, model: Model) -> Float[Array, ""]:
    """log p(Y, X, W, mu, Sigma, z, alpha, beta, theta), with a prior over time and its lengthscale."""
    total = (
        log_likelihood(state, data, model)
        + log_prior_beta(state.beta, state.theta, model).sum()
        + model.likelihood.log_prior_theta(state.theta)
        + log_prior_latents(state.X, state.lengthscale, data.chronology, model.dynamics)
        + log_prior_spectral(state, model)
    )
    if model.dynamics is None:
        return total
    assert state.lengthscale is not None
    assert data.chronology is not None
    return total + model.dynamics.log_prior(state.lengthscale, data.chronology)


def sample_prior(
    key: Array, model: Model, N: int, J: int, dtype=jnp.float32, chronology: Chronology | None = None,
    n_covariates: int = 0,
) -> State:  # fmt: skip
    """Draw every unknown from the prior; J counts linear predictors (categories less one for multinomial).

    With a prior over time the rows are at the times of ``chronology``.
    """
    D, H, prior = model.D, model.H, model.prior
    keys = jax.random.split(key, 7)
    niw = prior.niw(D, dtype)
    alpha = jax.random.gamma(keys[0], jnp.asarray(prior.alpha_shape, dtype), dtype=dtype) / prior.alpha_rate
    z = spectral.sample_crp(keys[1], alpha, H)
    slots = spectral.NIW(jnp.broadcast_to(niw.m, (H, D)), *(jnp.broadcast_to(p, (H, *p.shape)) for p in niw[1:]))
    mu, Sigma = spectral.sample_niw(keys[2], slots)
    W = spectral.from_noise(jax.random.normal(keys[3], (H, D), dtype), mu[z], Sigma[z])
    theta = model.likelihood.sample_theta(keys[4], J, dtype)
    M = 2 * H + n_covariates + 1
    variance = jnp.atleast_2d(model.likelihood.coefficient_scale(theta)) / model.precision(M, dtype)[:, None]
    beta = jnp.sqrt(variance) * jax.random.normal(keys[5], (M, J), dtype)
    X, lengthscale = _sample_latents(keys[6], model, N, dtype, chronology)
    return State(X, W, z, mu, Sigma, alpha, beta, theta, lengthscale)


def _sample_latents(
    key: Array, model: Model, N: int, dtype, chronology: Chronology | None
) -> tuple[Float[Array, "N D"], Float[Array, " L"] | None]:
    D = model.D
    if model.dynamics is None:
        return jax.random.normal(key, (N, D), dtype), None
    assert chronology is not None
    key_lengthscale, key_U = jax.random.split(key)
    lengthscale = model.dynamics.sample(key_lengthscale, chronology, D)
    recursion = dynamics.innovations(model.dynamics, per_axis(lengthscale, D), chronology)
    return dynamics.colour(jax.random.normal(key_U, (N, D), dtype), recursion), lengthscale


def state_shapes(data: Data, model: Model) -> State:
    """Shapes and dtypes of the unknowns for a table, without computing anything."""
    N, J = data.Y.shape
    draw = lambda key: sample_prior(key, model, N, J, data.Y.dtype, data.chronology, data.n_covariates)  # noqa: E731
    return jax.eval_shape(draw, jax.random.key(0))


def sample_data(key: Array, state: State, design: Data, model: Model) -> Data:
    """Draw a table given the unknowns, with the mask, offset, covariates and trials of ``design``.

    Cells outside the mask are set to 0.
    """
    F = predictor(state, design)
    Y, trials = model.likelihood.draw_cells(key, F, state.theta, design.mask, design.trials)
    return design._replace(Y=Y, trials=trials)
