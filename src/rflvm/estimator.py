"""The scikit-learn door: ``RFLVM`` checks what it is given, calls an engine and keeps the results.

No mathematics lives here: ``sampling`` and ``maximum`` fit, ``fitted`` says what a fit means for rows and
positions, ``diagnostics.py`` whether to trust it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import likelihoods
from .data import checks, tables
from .fitted import datatree, diagnostics, prediction, saved
from .fitted.alignment import align
from .maximum.draws import laplace_draws
from .maximum.maximise import maximise
from .model.draws import Draws
from .model.joint import Data, Prior
from .numerics import convergence
from .numerics.errors import InputError, Sentence
from .sampling.run import continue_sampling, sample

logger = logging.getLogger(__name__)

N_LAPLACE_DRAWS = 64
KEY = "X_rflvm"


class RFLVM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random feature latent variable model: a low-dimensional picture of a table's rows, with its uncertainty.

    Every column is a smooth random function of a row's latent position, seen through an observation family; the
    positions, the functions and the smoothness are learned together (Gundersen, Zhang & Engelhardt 2020).

    Parameters
    ----------
    n_components : int
        Latent dimensions D. Two to look at; more when ``score`` on held-out rows keeps rising.
    likelihood : str or Likelihood
        The kind of data: "gaussian" (real numbers), "poisson" (counts), "negative_binomial" (counts that vary more than
        Poisson), "bernoulli" (0 or 1), "multinomial" (rows of counts with a total), an object such as
        ``likelihoods.Binomial(trials=10)`` or ``likelihoods.Custom(log_prob)``, or "auto" to look at the table. The
        name "gaussian" has beta integrated out unless scattered gaps make that slow.
    exposure : {None, "total"}
        "total": rows of counts are compared by what they are made of, not by how much there is of it. The log of each
        row's total is its offset, relative to what its observed columns have on average, and so for new rows. For
        documents of different lengths, or cells of different library sizes.
    n_features : int
        Random features M, an even number. 100 does for smooth functions of two dimensions; raise it for more
        dimensions or very wiggly functions. The time grows with its square.
    inference : {"gibbs", "map"}
        "gibbs" draws from the posterior, with nothing approximated. "map" finds the most probable positions and
        draws from Gaussian approximations around them: for a first look, or when the table is large.
    kernel : {"learned", "rbf"}
        Learn the spectrum of the functions, or assume that they are smooth on one scale. With "map", "learned" fills
        gaps better in wide tables and worse in narrow ones, and the pictures are alike (docs/design.md).
    n_samples, n_burnin : int
        Sweeps of each chain after and during burn-in ("gibbs"). Raise both when the ``ConvergenceWarning`` says so.
    n_chains : int
        Independent chains ("gibbs"). Two or more let R-hat see what one cannot.
    thin : int
        Keep every ``thin``-th sweep ("gibbs").
    max_iter : int
        Iterations of each climb ("map").
    init : {"auto", "pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where X starts. "auto" lets several starts compete and is worth its seconds. "gibbs" takes "auto", "pca" (as in
        the paper) or positions.
    prior : Prior, optional
        Hyperparameters.
    random_state : int, RandomState or None
        The same integer gives the same answer, bit for bit, on the same machine.
    progress : bool
        Show a progress bar.

    Attributes
    ----------
    embedding_ : array (N, D)
        Posterior mean of the rows' positions, draws aligned first ("map": the most probable positions).
    embedding_std_ : array (N, D)
        Posterior standard deviations.
    likelihood_ : Likelihood
        The family that was fitted, and ``likelihood_reason_``, why "auto" chose it.
    draws_ : Draws
        Draws of all unknowns as the engine made them ("map": from its Gaussian approximation).
    posterior_ : xarray.DataTree
        The same, aligned, for ArviZ; made when asked for.
    diagnostics_ : list of Quantity
        R-hat and effective draws ("gibbs"); ``diagnose`` prints them.
    n_iter_ : int
        Sweeps of each chain, or iterations.
    convergence_ : str
        "converged", "not converged" or "interrupted"; for "map" also what stopped it.
    n_features_in_, feature_names_in_
        Columns of the table.

    Examples
    --------
    >>> from rflvm import RFLVM
    >>> from rflvm.datasets import make_s_curve
    >>> Y = make_s_curve(60, 20, emissions="poisson").data
    >>> settings = {"inference": "map", "kernel": "rbf", "n_features": 20, "init": "pca", "max_iter": 200}
    >>> model = RFLVM(likelihood="poisson", random_state=0, **settings)
    >>> model.fit_transform(Y).shape
    (60, 2)
    >>> model.inverse_transform([[0.0, 0.0]]).shape
    (1, 20)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        likelihood: str | likelihoods.Likelihood = "gaussian",
        exposure: Literal["total"] | None = None,
        n_features: int = 100,
        inference: Literal["gibbs", "map"] = "gibbs",
        kernel: Literal["learned", "rbf"] = "learned",
        n_samples: int = 200,
        n_burnin: int = 200,
        n_chains: int = 2,
        thin: int = 1,
        max_iter: int = 40,
        init: str | np.ndarray = "auto",
        prior: Prior | None = None,
        random_state: int | np.random.RandomState | None = None,
        progress: bool = False,
    ):
        self.n_components = n_components
        self.likelihood = likelihood
        self.exposure = exposure
        self.n_features = n_features
        self.inference = inference
        self.kernel = kernel
        self.n_samples = n_samples
        self.n_burnin = n_burnin
        self.n_chains = n_chains
        self.thin = thin
        self.max_iter = max_iter
        self.init = init
        self.prior = prior
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        Y: Any,
        y: Any = None,
        *,
        offset: Any = None,
        init: Any = None,
        checkpoint: str | PathLike | None = None,
        layer: str | None = None,
        key_added: str = KEY,
    ) -> RFLVM:
        """Fit the model to a table.

        Parameters
        ----------
        Y : array, DataFrame, sparse matrix, AnnData or TsdFrame (N, J)
            The table. NaN means missing.
        y : None
            Ignored.
        offset : array (N,), optional
            Added to every linear predictor of a row: a log exposure for counts, such as the log of the time over which
            they were counted. Where the exposure is the row's total, see the parameter ``exposure``.
        init : str or array (N, D), optional
            In place of the parameter of that name.
        checkpoint : path, optional
            A folder to which draws are written while they are made ("gibbs"). The same call goes on where a killed
            one ended, to the same draws, bit for bit.
        layer, key_added : str
            For AnnData: the layer that has the table, and the key of ``obsm`` that gets the positions.

        Returns
        -------
        RFLVM
            Itself. Ctrl-C keeps the draws made so far.
        """
        checks.check_choice("inference", self.inference, ("gibbs", "map"))
        checks.check_choice("kernel", self.kernel, ("learned", "rbf"))
        if checkpoint is not None and self.inference == "map":
            raise ValueError('checkpoint= is for inference="gibbs": the map engine has no draws to keep')
        reading = tables.read(Y, layer)
        self._remember_columns(reading)
        family, self.likelihood_reason_ = self._family(reading.values)
        self._seed = checks.check_seed(self.random_state)
        if self.exposure is not None:
            checks.check_exposure(self.exposure, family)
            checks.check_table(reading.values, family, None, None, self.n_components)
            offset = self._log_totals(offset, reading.values, reading.values)
        settings = {
            "n_components": self.n_components,
            "n_features": self.n_features,
            "seed": self._seed,
            "offset": offset,
            "prior": Prior() if self.prior is None else self.prior,
            "progress": self.progress,
        }
        init = self.init if init is None else init
        if self.inference == "gibbs":
            self._fit_gibbs(reading.values, family, init, checkpoint=checkpoint, **settings)
        else:
            self._fit_map(reading.values, family, init, **settings)
        self.likelihood_ = family
        self._rows, self._values = reading.index, np.array(reading.values)
        self._offset = checks.check_offset(offset, len(reading.values))
        self._finish()
        if reading.kind == "anndata":
            tables.place(Y, self.embedding_, list(self.get_feature_names_out()), key_added)
        return self

    def fit_transform(self, Y: Any, y: Any = None, **fit_params: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fit the model and return ``embedding_``, for a TsdFrame with its times; parameters as in ``fit``."""
        self.fit(Y, **fit_params)
        return tables.place(Y, self.embedding_, list(self.get_feature_names_out()), fit_params.get("key_added", KEY))

    def more_samples(self, n_samples: int) -> RFLVM:
        """Go on for so many sweeps of each chain, as if the run had been longer from the start ("gibbs").

        Returns
        -------
        RFLVM
            Itself, with all draws.
        """
        check_is_fitted(self)
        if self.draws_.run is None:
            raise ValueError('more_samples needs inference="gibbs": this model was fitted with "map"')
        self.draws_ = continue_sampling(
            self._values, self.draws_, n_samples, offset=self._offset, progress=self.progress
        )
        self._finish()
        return self

    def transform(
        self,
        Y: Any,
        *,
        offset: Any = None,
        trials: Any = None,
        return_std: bool = False,
        layer: str | None = None,
        key_added: str = KEY,
    ) -> Any:
        """Posterior mean of the positions of rows, given the fitted functions.

        Every row is placed on its own: its answer is the same alone, in a batch and in another order, bit for bit.

        Parameters
        ----------
        Y : table (n, J)
            Rows with the columns of the fit. NaN means missing; a row without any observed cell is at the prior.
        offset : array (n,), optional
            As in ``fit``.
        trials : array, optional
            Trials of these rows, for a binomial family that was fitted with trials per cell.
        return_std : bool
            Also return posterior standard deviations (n, D).
        layer, key_added
            As in ``fit``, for AnnData.

        Returns
        -------
        X : array (n, D), or TsdFrame for a TsdFrame
        std : array (n, D)
            With ``return_std``.
        """
        check_is_fitted(self)
        with jax.enable_x64(True):
            found = self._moments(self._rows_of(Y, offset, trials, layer))
        X = tables.place(Y, np.asarray(found.mean), list(self.get_feature_names_out()), key_added)
        if not return_std:
            return X
        return X, np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))

    def inverse_transform(self, X: Any, *, offset: Any = None, trials: Any = None) -> np.ndarray:
        """E[Y | X]: the expected row at each position, averaged over the posterior of the functions.

        Multinomial rows are given the mean total of the table. A binomial family that was fitted with trials per cell
        needs ``trials``.

        Parameters
        ----------
        X : array (n, D)
            Positions.
        offset : array (n,), optional
            As in ``fit``.
        trials : array, optional
            As in ``transform``.

        Returns
        -------
        array (n, J)
        """
        check_is_fitted(self)
        X = checks.check_positions(X, self.n_components)
        offset = checks.check_offset(offset, len(X))
        with jax.enable_x64(True):
            parts = jnp.asarray(X), jnp.asarray(offset), self._trials(len(X), trials)
            Y = np.asarray(prediction.decode(*parts, self._members, self.draws_.model))
        return Y if self._totals is None else Y * np.nanmean(self._totals)

    def predict_intervals(
        self, Y: Any, level: float = 0.9, *, offset: Any = None, trials: Any = None, layer: str | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the model expects in every cell of a row, given the row's observed cells, and within which bounds.

        Parameters
        ----------
        Y, offset, trials, layer
            As in ``transform``.
        level : float
            The probability with which a new observation of the cell lies between the bounds.

        Returns
        -------
        mean, lower, upper : array (n, J)
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        return self._predict(Y, [(1 - level) / 2, (1 + level) / 2], offset, trials, layer)

    def impute(self, Y: Any, *, offset: Any = None, trials: Any = None, layer: str | None = None) -> np.ndarray:
        """The table with its missing cells filled by their expectation given the observed cells of their row.

        Parameters
        ----------
        Y, offset, trials, layer
            As in ``transform``. The fitted table itself, or new rows.

        Returns
        -------
        array (n, J)
        """
        check_is_fitted(self)
        values = tables.read(Y, layer).values
        return np.where(np.isnan(values), self._predict(Y, [], offset, trials, layer)[0], values)

    def score_samples(self, Y: Any, *, offset: Any = None, trials: Any = None, layer: str | None = None) -> np.ndarray:
        """Log predictive density of each row, its position integrated out; parameters as in ``transform``."""
        check_is_fitted(self)
        with jax.enable_x64(True):
            return np.asarray(self._moments(self._rows_of(Y, offset, trials, layer)).log_density)

    def score(self, Y: Any, y: Any = None, *, offset: Any = None, trials: Any = None) -> float:
        """Mean of ``score_samples``. Of counts, densities and probabilities of different families are comparable."""
        return float(self.score_samples(Y, offset=offset, trials=trials).mean())

    def sample(
        self, n_samples: int = 1, *, offset: Any = None, trials: Any = None, random_state: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """New rows: positions from their prior, and cells given them.

        Parameters
        ----------
        n_samples : int
            How many.
        offset : array (n_samples,), optional
            As in ``fit``.
        trials : array, optional
            As in ``transform``.
        random_state : int, optional
            Another number gives other rows.

        Returns
        -------
        X : array (n_samples, D)
        Y : array (n_samples, J)
            Multinomial rows have totals of the table.
        """
        check_is_fitted(self)
        n = checks.check_integer("n_samples", n_samples, 1)
        seed = self._seed if random_state is None else checks.check_seed(random_state)
        totals = np.zeros(n)
        if self._totals is not None:
            known = self._totals[~np.isnan(self._totals)]
            totals = np.random.default_rng(seed).choice(known, n)
        offset = checks.check_offset(offset, n)
        with jax.enable_x64(True):
            parts = jnp.asarray(offset), self._trials(n, trials), jnp.asarray(totals)
            X, Y = prediction.generate(jax.random.key(seed), *parts, self._members, self.draws_.model)
        return np.asarray(X), np.asarray(Y)

    @property
    def posterior_(self) -> Any:
        """Draws as an xarray DataTree; see ``posterior_predictive`` for one with replicated cells."""
        check_is_fitted(self)
        with jax.enable_x64(True):
            return datatree.convert(self._aligned(), self._data(), self._rows, self._columns(), None)

    def posterior_predictive(self) -> Any:
        """``posterior_`` with a group of replicated observed cells, for posterior predictive checks."""
        check_is_fitted(self)
        with jax.enable_x64(True):
            key = jax.random.key(self._seed)
            return datatree.convert(self._aligned(), self._data(), self._rows, self._columns(), key)

    def loo(self) -> Any:
        """Expected log density of a left-out cell, by Pareto-smoothed importance sampling (``arviz_stats.loo``)."""
        try:
            from arviz_stats.loo import loo
        except ImportError as error:
            raise ImportError("loo needs arviz-stats: pip install 'rflvm[diagnostics]'") from error
        log_joint = self.draws_["log_joint"]
        return loo(self.posterior_, var_name="Y", reff=min(convergence.ess(log_joint) / log_joint.size, 1))

    def diagnose(self) -> str:
        """Print, and return, a page on whether the fit can be relied on and what to do if not."""
        check_is_fitted(self)
        N, J = self._values.shape
        missing = np.isnan(self._values).mean()
        lines = [
            f"{N} rows x {J} columns, {missing:.1%} of the cells missing",
            f"{self.n_components} latent dimensions, {self.n_features} random features, {self.kernel} kernel",
            f"{self.likelihood_.name} likelihood ({self.likelihood_reason_})",
        ]
        run = self.draws_.run
        if run is None:
            lines.append(f"map: {self.n_iter_} iterations, {self.convergence_}")
        else:
            n_chains, n_draws = self.draws_["log_joint"].shape
            chains = f"{n_chains} chain{'s' * (n_chains > 1)}"
            lines.append(f"gibbs: {chains}, {run.n_burnin} sweeps of burn-in, {run.n_sampled} after it")
            lines += ["", *diagnostics.table(self.diagnostics_, n_chains * n_draws)]
            lines += ["", "acceptance: " + diagnostics.acceptance(self.draws_.info)]
        verdict = diagnostics.verdict(self.convergence_, self.diagnostics_)
        page = Sentence("{lines}\n\n{verdict}", lines="\n".join(lines), verdict=verdict)
        print(page)
        return page

    def save(self, path: str | PathLike) -> None:
        """Write the fitted model to one file, which ``rflvm.load`` reads. No pickle; never half a file."""
        check_is_fitted(self)
        saved.save(self, path)

    def _fit_gibbs(self, values: np.ndarray, family: likelihoods.Likelihood, init: Any, **settings: Any) -> None:
        automatic = isinstance(init, str) and init == "auto"
        start: Any = "map" if automatic else init
        if self.kernel == "rbf" and not automatic:
            raise ValueError('kernel="rbf" with inference="gibbs" takes its lengthscale from init="auto"')
        self.draws_ = sample(
            values,
            family,
            init=start,
            frequencies="hmc" if self.kernel == "learned" else "fixed",
            n_samples=self.n_samples,
            n_burnin=self.n_burnin,
            n_chains=self.n_chains,
            thin=self.thin,
            **settings,
        )

    def _fit_map(self, values: np.ndarray, family: likelihoods.Likelihood, init: Any, **settings: Any) -> None:
        kernel: Any = self.kernel
        fit = maximise(values, family, init=init, kernel=kernel, n_iterations=self.max_iter, **settings)
        table = checks.check_table(values, family, None, settings["offset"], self.n_components)
        with jax.enable_x64(True):
            data = checks.to_device(table, "float64")
        self.draws_ = laplace_draws(fit, data, N_LAPLACE_DRAWS, self._seed)
        self.embedding_ = np.asarray(fit.X, float)
        self.embedding_std_ = np.sqrt(np.diagonal(fit.X_covariance, axis1=1, axis2=2)).astype(float)
        self.n_iter_, self.convergence_, self.diagnostics_ = len(fit.trace), fit.convergence, []

    def _finish(self) -> None:
        """What follows from the draws."""
        aligned = self._aligned()
        if aligned.run is not None:
            X = aligned["X"]
            self.embedding_, self.embedding_std_ = X.mean(axis=(0, 1)), X.std(axis=(0, 1))
            self.n_iter_ = aligned.run.n_sweeps
            self.diagnostics_ = diagnostics.summary(aligned.arrays)
            converged = all(quantity.converged for quantity in self.diagnostics_)
            self.convergence_ = "converged" if converged else "not converged"
            if aligned.interrupted:
                self.convergence_ = "interrupted"
        advice = diagnostics.advice(self.convergence_, self.diagnostics_)
        if advice:
            warnings.warn(advice, ConvergenceWarning, stacklevel=3)
        with jax.enable_x64(True):
            self._members = jax.tree.map(np.asarray, prediction.members_of(aligned, self._seed))

    @property
    def _totals(self) -> np.ndarray | None:
        """Totals of the rows of a multinomial table, NaN where a cell is missing."""
        return self._values.sum(axis=1) if isinstance(self.likelihood_, likelihoods.Multinomial) else None

    def _aligned(self) -> Draws:
        return self.draws_ if self.draws_.run is None else align(self.draws_)

    def _family(self, values: np.ndarray) -> tuple[likelihoods.Likelihood, str]:
        observed = ~np.isnan(values)
        if not (isinstance(self.likelihood, str) and self.likelihood == "auto"):
            family, reason = likelihoods.get(self.likelihood), "as given"
        else:
            family, reason = likelihoods.choose(values, observed)
            logger.info('likelihood="auto" chose %s: %s', family.name, reason)
        if isinstance(self.likelihood, str) and isinstance(family, likelihoods.Gaussian):
            # Gaps of its own give every column its own Gram matrix: the same posterior is cheaper with beta sampled.
            family = likelihoods.Gaussian(marginal=bool((observed == observed[:, :1]).all()))
        return family, reason

    def _remember_columns(self, reading: tables.Reading) -> None:
        self.n_features_in_ = reading.values.shape[1]
        if reading.columns is not None:
            self.feature_names_in_ = np.asarray(reading.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _columns(self) -> np.ndarray | None:
        return getattr(self, "feature_names_in_", None)

    def _rows_of(self, Y: Any, offset: Any, trials: Any, layer: str | None) -> Data:
        """Rows to be placed, checked against the fit."""
        reading = tables.read(Y, layer)
        checks.check_columns(reading, self.n_features_in_, self._columns(), type(self).__name__)
        family = self.likelihood_ if trials is None else likelihoods.Binomial(trials=trials)
        if self.exposure is not None:
            checks.check_rows(reading.values, family, None)
            offset = self._log_totals(offset, reading.values, self._values)
        return checks.to_device(checks.check_rows(reading.values, family, offset), "float64")

    def _log_totals(self, offset: Any, values: np.ndarray, fitted: np.ndarray) -> np.ndarray:
        """Offsets for ``exposure="total"``."""
        if offset is not None:
            raise InputError(
                '{exposure_total:exposure="total"} makes the offset from the totals of the rows: leave out '
                "{offset:offset=}"
            )
        half_a_count = 0.5 / len(fitted)  # new rows may have counts in columns that had none
        return checks.log_totals(values, np.nanmean(fitted, axis=0) + half_a_count)

    def _data(self) -> Data:
        table = checks.check_table(self._values, self.likelihood_, None, self._offset, self.n_components)
        return checks.to_device(table, "float64")

    def _trials(self, n: int, trials: Any) -> jax.Array | None:
        """Trials per cell for n rows, of a binomial family."""
        family = self.likelihood_
        if isinstance(family, likelihoods.Multinomial) or not isinstance(family, likelihoods.Binomial):
            return None
        family = family if trials is None else likelihoods.Binomial(trials=trials)
        shape = n, self.n_features_in_
        return jnp.asarray(family.encode(np.zeros(shape), np.ones(shape, bool))[2])

    def _predict(self, Y: Any, bounds: list[float], offset: Any, trials: Any, layer: str | None) -> Any:
        """Means of all cells given the observed ones of their rows, and quantiles if asked for."""
        values = tables.read(Y, layer).values
        model, members, key = self.draws_.model, self._members, jax.random.key(self._seed)

        def of_block(placed, data, values):
            mean = np.asarray(prediction.expected(placed, data, members, model))
            totals = np.zeros(len(mean))
            if self._totals is not None:
                totals = self.likelihood_.implied_totals(np.asarray(values), mean)
                mean = mean * totals[:, None]
            if not bounds:
                return (mean,)
            drawn = prediction.replicates(key, placed, data, jnp.asarray(np.round(totals)), members, model)
            return mean, *np.quantile(np.asarray(drawn), bounds, axis=0, method="inverted_cdf")

        with jax.enable_x64(True):
            return self._by_block(of_block, self._rows_of(Y, offset, trials, layer), values)

    def _moments(self, data: Data) -> prediction.Moments:
        return self._by_block(lambda placed, _: prediction.moments(placed), data)

    def _by_block(self, function: Callable[..., Any], data: Data, *more: np.ndarray) -> Any:
        """A function of where a block of rows lies, and of the block, applied to all of them."""
        parts, n_done = [], 0
        for block, n, *rest in prediction.blocks(data, *more):
            placed = prediction.place(block, self._members, self.draws_.model)
            impossible = ~np.isfinite(np.asarray(placed.log_weight).max(axis=(0, 1)))[:n]
            if impossible.any():
                row = n_done + int(impossible.argmax())
                raise InputError(
                    "{where:row {row}} is impossible under the fit wherever it is put: look at its cells and offset",
                    row=row,
                )
            parts.append(jax.tree.map(lambda part, n=n: np.asarray(part)[:n], function(placed, block, *rest)))
            n_done += n
        return jax.tree.map(lambda *parts: np.concatenate(parts), *parts)

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def load(path: str | PathLike) -> RFLVM:
    """Read a model that ``RFLVM.save`` wrote. Nothing in the file is ever executed.

    Raises
    ------
    FileError
        When the file is damaged, or of a version that this library does not know.
    """
    return saved.load(path, RFLVM)
