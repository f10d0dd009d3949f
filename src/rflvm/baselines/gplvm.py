"""GPLVM: the Gaussian GPLVM with inducing points (Titsias & Lawrence 2010) by GPy (paper, section 3.1).

    y_nj = m_j + f_j(x_n) + e_nj,  f_j ~ GP(0, RBF with a lengthscale per dimension),  x_n ~ N(0, I)

with m_j the column means, and X and the values at the inducing points integrated out variationally.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..data.checks import check_integer
from .base import Baseline, extra, start_of_X

_NOISE = 0.01  # share of noise in the variance at the start: with more, X would not begin to move
_X_VARIANCE = 0.05  # variational variance of X at the start
_ENDS = {"Converged": "converged", "Maximum": "iteration limit"}


class GPLVM(Baseline):
    """Bayesian GPLVM for real numbers, GPy's ``BayesianGPLVMMiniBatch`` on the whole table.

    The inducing points start at rows. NaN means missing, and makes it several times slower: each column has matrices
    of its own then. There is no ``transform``.

    Parameters
    ----------
    n_components : int
        Latent dimensions D.
    init : {"pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where X starts: by default the principal components, each with variance one.
    n_inducing : int
        Inducing points, the M of the paper's comparison; at most N are used.
    max_iter : int
        Evaluations of L-BFGS.
    random_state : int, RandomState or None
        Of the choice of rows at which the inducing points start.

    Attributes
    ----------
    embedding_ : array (N, D)
        Means of X.
    F_ : array (N, J)
        Expected cells given X, also of missing ones.
    bound_ : float
        The evidence lower bound (ELBO) of log p(Y).
    n_iter_ : int
        Evaluations.
    convergence_ : {"converged", "iteration limit", "line search failed"}
        Why it ended.
    """

    _takes_gaps = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        init: Any = "pca",
        n_inducing: int = 25,
        max_iter: int = 500,
        random_state: Any = None,
    ):
        super().__init__(n_components, random_state=random_state)
        self.init = init
        self.n_inducing = n_inducing
        self.max_iter = max_iter

    def _embed(self, Y: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
        D = self.n_components
        n_inducing = min(check_integer("n_inducing", self.n_inducing, 1), len(Y))
        max_iter = check_integer("max_iter", self.max_iter, 1)
        models: Any = extra("GPy.models.bayesian_gplvm_minibatch", "GPy")
        GPy: Any = extra("GPy", "GPy")
        mean = np.where(observed, Y, 0).sum(0) / observed.sum(0)
        table = np.where(observed, Y - mean, np.nan)
        X = start_of_X(self.init, Y, observed, D, seed)
        rows = np.random.default_rng(seed).permutation(len(Y))[:n_inducing]
        model = models.BayesianGPLVMMiniBatch(
            table,
            D,
            X=X,
            X_variance=np.full(X.shape, _X_VARIANCE),
            Z=X[rows].copy(),
            num_inducing=n_inducing,
            kernel=GPy.kern.RBF(D, ARD=True),
            likelihood=GPy.likelihoods.Gaussian(variance=_NOISE * max(float(np.nanvar(table)), 1e-6)),
            missing_data=not observed.all(),
        )
        with np.errstate(over="ignore"):  # in a branch that is not used, where a parameter is large
            model.optimize(max_iters=max_iter)
        self.F_ = mean + model.predict(model.X.mean)[0]
        self.bound_ = float(np.squeeze(model.log_likelihood()))
        run = model.optimization_runs[-1]
        self.n_iter_ = int(run.funct_eval)
        self.convergence_ = next((name for word, name in _ENDS.items() if word in run.status), "line search failed")
        if self.convergence_ != "converged":
            warnings.warn(
                f"GPLVM ended after {self.n_iter_} evaluations ({self.convergence_}): raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        return np.array(model.X.mean)
