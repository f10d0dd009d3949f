"""The scikit-learn door: ``RFLVM`` checks what it is given, has it fitted and keeps the results.

No mathematics lives here: ``fitting.py`` calls the engines, ``fitted`` says what a fit means for rows and positions and
whether to trust it.
"""

from __future__ import annotations

import dataclasses
import warnings
from os import PathLike
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import fitting, likelihoods
from .data import checks, tables
from .data.covariates import learn
from .files.npz import FileError
from .fitted import arrangements, datatree, diagnosis, modes, rows, saved
from .fitted.effects import Effects, of_covariates
from .fitted.fit import Fitted, from_chains
from .model.dynamics import Matern
from .model.joint import Prior
from .numerics.errors import Sentence
from .sampling import rounds
from .sampling.run import continue_sampling

KEY = "X_rflvm"


class RFLVM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random feature latent variable model: a low-dimensional picture of a table's rows, with its uncertainty.

    Every column is a smooth random function of a row's latent position, seen through an observation family; the
    positions, the functions and the smoothness are learned together (Gundersen, Zhang & Engelhardt 2020).

    Parameters
    ----------
    n_components : int
        Latent dimensions D. Two to look at; more when ``score`` on held-out rows keeps rising.
    likelihood : str, Likelihood, mapping or list of pairs
        The kind of data: "gaussian" (real numbers), "student_t" (real numbers with outliers), "poisson" (counts),
        "negative_binomial" (counts that vary more than Poisson), "zero_inflated_poisson" and
        "zero_inflated_negative_binomial" (counts with more zeros than these have), "bernoulli" (0 or 1), "ordinal"
        (ratings and other ordered answers), "multinomial" (rows of counts with a total), an object such as
        ``likelihoods.Binomial(trials=10)`` or ``likelihoods.Custom(log_prob)``, or "auto" to look at the table. For
        columns of several kinds a mapping of families to columns, ``{"poisson": ["visits"], "bernoulli": ["smokes"],
        "auto": [...]}``, or a list of pairs (family, columns); columns are names, numbers, slices or flags, and "mixed"
        looks at each of them. The name "gaussian" has beta integrated out unless scattered gaps make that slow.
    exposure : {None, "total"}
        "total": rows of counts are compared by their composition, not by their size. The offset of a row, also of a new
        one, is the log of its total relative to the sum of its observed columns' means. For documents of different
        lengths, or cells of different library sizes.
    n_features : int
        Random features M, an even number. 100 does for smooth functions of two dimensions; raise it for more
        dimensions or very wiggly functions. The time grows with its square.
    inference : {"gibbs", "map", "stream"}
        "gibbs" draws from the posterior, with nothing approximated. "map" finds the most probable positions and
        draws from Gaussian approximations around them: for a first look, or when the table is large. "stream" does so
        for tables of more than some 20,000 rows, also those that do not fit into memory (docs/large.md).
    dynamics : {None, "matern32", "ou"} or Matern
        A prior over time: rows of a session follow one another, and each latent dimension is a Gaussian process over
        time, "matern32" of paths with a velocity, "ou" of rough ones, ``rflvm.dynamics.Matern`` with settings. The
        lengthscale is learned unless it is given. See ``times`` and ``sessions`` of ``fit``.
    kernel : {"learned", "rbf"}
        Learn the spectral density of the kernel, or take an RBF kernel, of which the lengthscale is learned. With
        "map", "learned" fills gaps better in wide tables and worse in narrow ones, and the pictures are alike
        (docs/design/maximum.md).
    n_samples, n_burnin : int or "auto"
        Sweeps of each chain after and during burn-in ("gibbs"). "auto": 200 of burn-in, then until positions and
        predictions have settled, 2000 at most (see ``rflvm.sample``).
    n_chains : int
        Independent chains ("gibbs"). Two or more let R-hat see what one cannot. They start from different ones of the
        starts that compete.
    thin : int or "auto"
        Keep every ``thin``-th sweep ("gibbs"). "auto" leaves out what would add little (see ``rflvm.sample``); 1 keeps
        all.
    max_time : float, optional
        Seconds after which sampling ends with the draws that there are ("gibbs"); burn-in is made in any case.
    n_jobs : int, optional
        Processes in which the chains run side by side ("gibbs"), -1 for as many as there are cores; by joblib, whose
        ``parallel_config`` chooses another backend, such as a cluster. The draws are the same.
    max_iter : int
        The largest number of iterations of the fit ("map"; "stream": to 2000 rows, which come first): from the start
        that wins to the end.
    init : {"auto", "pca", "isomap", "tsne", "kernel"} or array (N, D)
        Where X starts. "auto" lets several starts compete and is worth its seconds. "gibbs" takes "auto", "pca" (as in
        the paper) or positions.
    prior : Prior, optional
        Hyperparameters; for the Gaussian, of the standardised table.
    random_state : int, RandomState or None
        The same integer gives the same answer, bit for bit, on the same machine.
    progress : bool
        Show a progress bar.

    Attributes
    ----------
    embedding_ : array (N, D)
        Posterior mean of the rows' positions, draws aligned first ("map": the most probable positions).
    embedding_std_ : array (N, D)
        Posterior standard deviations ("map": around that position; where ``ambiguous_rows`` marks a second one, the
        spread over both is ``transform(Y, return_std=True)``).
    lengthscale_ : array (D,) or None
        With a prior over time, over how much time positions stay alike in each dimension, in the unit of the times:
        posterior median.
    likelihood_ : Likelihood
        The family that was fitted, and ``likelihood_reason_``, why "auto" chose it.
    fitted_ : Fitted
        All that the fit left behind, read only: what figures, reports and files are made from.
    draws_ : Draws
        Draws of all unknowns as the engine made them ("map": from its Gaussian approximation); of a Gaussian table on
        the standard scale, ``draws_.in_units()`` in its units.
    effects_ : Effects
        Effects of the covariates on each column, with intervals; of a fit with covariates.
    posterior_ : xarray.DataTree
        The same, aligned and in the units of the table, for ArviZ; made when asked for.
    diagnostics_ : list of Quantity
        R-hat and effective draws ("gibbs") of positions, predictions and the kernel, also of each row (``row_rhat``,
        ``row_ess``), and the rows on which chains do not agree (``disagreeing``); ``diagnose`` sums them up.
    arrangements_ : list of dict
        The pictures that the chains show ("gibbs"): chains, weight in the stacked predictive density, mean log density
        of a left-out cell, and the share of cells for which that is unreliable (Pareto k above 0.7). Positions and
        predictions are of the first.
    log_posterior_ : float
        The height of the maximum ("map"; NaN for "gibbs"): log p(X, W, theta | Y) with the functions integrated out, up
        to a constant, and a correction for volume. Higher is better, among fits of one table with one family.
    starts_ : list of dict
        How the starts that met the table fared ("map"): name, iterations, log posterior after each round, and whether
        the picture is the winner's up to how it is turned. The first is the one that was used.
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
        likelihood: Any = "gaussian",
        exposure: Literal["total"] | None = None,
        n_features: int = 100,
        inference: Literal["gibbs", "map", "stream"] = "gibbs",
        dynamics: str | Matern | None = None,
        kernel: Literal["learned", "rbf"] = "learned",
        n_samples: int | Literal["auto"] = rounds.AUTO,
        n_burnin: int | Literal["auto"] = rounds.AUTO,
        n_chains: int = 2,
        thin: int | Literal["auto"] = rounds.AUTO,
        max_time: float | None = None,
        n_jobs: int | None = None,
        max_iter: int = 500,
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
        self.dynamics = dynamics
        self.kernel = kernel
        self.n_samples = n_samples
        self.n_burnin = n_burnin
        self.n_chains = n_chains
        self.thin = thin
        self.max_time = max_time
        self.n_jobs = n_jobs
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
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        init: Any = None,
        checkpoint: str | PathLike | None = None,
        layer: str | None = None,
        key_added: str = KEY,
        out: str | PathLike | None = None,
    ) -> RFLVM:
        """Fit the model to a table.

        Parameters
        ----------
        Y : array, DataFrame, sparse matrix, AnnData or TsdFrame (N, J)
            The table. NaN means missing. For "stream" anything that gives rows, or the path of a file: ``rflvm.stream``
            lists them.
        y : None
            Ignored.
        offset : array (N,), optional
            Added to every linear predictor of a row: a log exposure for counts, such as the log of the time over which
            they were counted; of a Gaussian table in the units of its cells. Where the exposure is the row's total,
            see the parameter ``exposure``.
        covariates : array (N,) or (N, K), DataFrame or mapping of names to columns, optional
            Numbers, text or categories of the rows, such as batch, animal or age: each has a linear effect on every
            column, and the positions show what is left. Numbers act linearly, so make text of numbers that are labels.
            For an AnnData also the names of columns of ``obs``. None may be missing.
        times : array (N,), optional
            With ``dynamics``: times of the rows, increasing within a session, numbers or dates (in seconds then). One
            unit from row to row unless given; a TsdFrame has its own, and its epochs are sessions. A row without any
            observed cell stands for a gap that is to be filled.
        sessions : array, optional
            With ``dynamics``: a label for each row, the rows of a session together, or the numbers of the rows at which
            sessions begin. Sessions are independent of each other.
        init : str or array (N, D), optional
            In place of the parameter of that name.
        checkpoint : path, optional
            A folder to which draws are written while they are made ("gibbs"), or the state after every epoch
            ("stream"). The same call goes on where a killed one ended, to the same result, bit for bit.
        layer, key_added : str
            For AnnData: the layer that has the table, and the key of ``obsm`` that gets the positions.
        out : path, optional
            A file (.npy) to which the positions are written as they are made ("stream").

        Returns
        -------
        RFLVM
            Itself. Ctrl-C keeps the draws made so far.
        """
        asked = self._asked()
        checks.check_choice("inference", asked.inference, ("gibbs", "map", "stream"))
        checks.check_choice("kernel", asked.kernel, ("learned", "rbf"))
        init = asked.init if init is None else init
        if asked.inference == "stream":
            fitting.refuse_for_stream(asked, covariates, times, sessions)
            self._adopt(fitting.from_blocks(asked, Y, offset, init, layer, checkpoint, out))
        else:
            if out is not None:
                raise ValueError('out= is for inference="stream": other engines have the positions in memory')
            if checkpoint is not None and asked.inference == "map":
                raise ValueError('checkpoint= is for inference="gibbs": the map engine has no draws to keep')
            reading = tables.read(Y, layer)
            context = fitting.Context(offset, learn(covariates, len(reading.values), Y), times, sessions)
            self._adopt(fitting.from_memory(asked, reading, context, init, checkpoint))
        self._warn()
        if tables.kind_of(Y) == "anndata":
            tables.place(Y, self.embedding_, list(self.get_feature_names_out()), key_added)
        return self

    def fit_transform(self, Y: Any, y: Any = None, **fit_params: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fit the model and return ``embedding_``, for a TsdFrame with its times; parameters as in ``fit``."""
        self.fit(Y, **fit_params)
        return tables.place(Y, self.embedding_, list(self.get_feature_names_out()), fit_params.get("key_added", KEY))

    def more_samples(self, n_samples: int | Literal["auto"] = rounds.AUTO) -> RFLVM:
        """Go on for so many sweeps of each chain, as if the run had been longer from the start ("gibbs").

        Without a number it goes on until positions and predictions have settled, for 2000 sweeps at most.

        Returns
        -------
        RFLVM
            Itself, with all draws.
        """
        fitted = self._fit()
        if fitted.draws.run is None:
            raise ValueError(
                f'more_samples needs inference="gibbs": this model was fitted with "{fitted.about.inference}"'
            )
        about = fitted.about
        draws = continue_sampling(
            fitted.table(), fitted.draws, n_samples, max_time=self.max_time, n_jobs=self.n_jobs, progress=self.progress
        )
        self._adopt(from_chains(draws, about))
        self._warn()
        return self

    def transform(
        self,
        Y: Any,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        return_std: bool = False,
        fast: bool = False,
        layer: str | None = None,
        key_added: str = KEY,
    ) -> Any:
        """Posterior mean of the positions of rows, given the fitted functions.

        Every row is placed on its own: its answer is the same alone, in a batch and in another order, bit for bit. With
        ``dynamics`` a session takes the place of a row: its rows are placed together, as one path, and its answer is
        the same alone and beside other sessions.

        Parameters
        ----------
        Y : table (n, J)
            Rows with the columns of the fit. NaN means missing; a row without any observed cell is at the prior.
        offset : array (n,), optional
            As in ``fit``.
        trials : array, optional
            Trials of these rows, for a binomial family that was fitted with trials per cell.
        covariates : optional
            Of these rows, as in ``fit``: needed if the model was fitted with them. A category that the fit has not
            seen is refused.
        times, sessions : array, optional
            As in ``fit``, for these rows; one median gap of the fitted table from row to row unless given.
        return_std : bool
            Also return posterior standard deviations (n, D).
        fast : bool
            The mode of each row in place of its posterior mean, hundreds of times as fast ("stream"): of a row with
            several modes, the one that was found. The table may be a file.
        layer, key_added
            As in ``fit``, for AnnData.

        Returns
        -------
        X : array (n, D), or TsdFrame for a TsdFrame
        std : array (n, D)
            With ``return_std``.
        """
        fitted = self._fit()
        if fast:
            fitting.refuse_covariates(covariates)
            given = {"offset": offset, "trials": trials, "layer": layer, "asked_by": type(self).__name__}
            X, std = rows.fast_positions(fitted, Y, **given)
        else:
            moments = rows.moments(fitted, self._read(Y, offset, trials, covariates, layer, times, sessions))
            X, std = np.asarray(moments.mean), np.sqrt(np.diagonal(moments.covariance, axis1=1, axis2=2))
        X = tables.place(Y, X, list(self.get_feature_names_out()), key_added)
        return (X, std) if return_std else X

    def inverse_transform(
        self,
        X: Any,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        summary: Literal["median", "mean"] = "median",
    ) -> np.ndarray:
        """The expected row at each position: E[Y | X, functions], summarised over the posterior of the functions.

        Multinomial rows are given the mean total of the table, and the medians of their shares are divided by their
        sum. A binomial family that was fitted with trials per cell needs ``trials``.

        Parameters
        ----------
        X : array (n, D)
            Positions.
        offset : array (n,), optional
            As in ``fit``.
        trials : array, optional
            As in ``transform``.
        covariates : optional
            As in ``fit``; of average rows, if they are left out.
        summary : {"median", "mean"}
            The posterior median of each cell's expectation, or the posterior mean, E[Y | X], which with a log link a
            few draws can dominate where the table does not determine the functions.

        Returns
        -------
        array (n, J)
        """
        return rows.expected(self._fit(), X, offset=offset, trials=trials, covariates=covariates, summary=summary)

    def predict_intervals(
        self,
        Y: Any,
        level: float = 0.9,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        layer: str | None = None,
        summary: Literal["median", "mean"] = "median",
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the model expects in every cell of a row, given the row's observed cells, and within which bounds.

        Parameters
        ----------
        Y, offset, trials, covariates, times, sessions, layer
            As in ``transform``.
        level : float
            The probability with which a new observation of the cell lies between the bounds.
        summary : {"median", "mean"}
            As in ``impute``.

        Returns
        -------
        expected, lower, upper : array (n, J)
        """
        quantiles = rows.tails(level)
        fitted, given = self._fit(), self._read(Y, offset, trials, covariates, layer, times, sessions)
        expected, lower, upper = rows.predict(fitted, given, quantiles, summary)
        return expected, lower, upper

    def uncertain_cells(
        self,
        Y: Any,
        level: float = 0.9,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        layer: str | None = None,
    ) -> np.ndarray:
        """Which cells the observed ones of their row say little about.

        Those whose interval would be wider than the range of the fitted table's observed cells of the column, if
        predictions were not held to what the table knows of it: what ``impute`` puts there is hardly more than a guess.

        Parameters
        ----------
        Y, level, offset, trials, covariates, times, sessions, layer
            As in ``predict_intervals``.

        Returns
        -------
        array of bool (n, J)
        """
        fitted = self._fit()
        return rows.uncertain(fitted, self._read(Y, offset, trials, covariates, layer, times, sessions), level)

    def ambiguous_rows(
        self,
        Y: Any,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        layer: str | None = None,
    ) -> np.ndarray:
        """Which rows have two places in the picture, far apart, that explain their observed cells.

        For these ``embedding_`` of a fit by "map" is at one of the two, ``embedding_std_`` is the spread around that
        one, and ``transform`` gives the mean over both, with the spread over both. Other rows of the fitted table have
        about the same position in the two.

        Parameters
        ----------
        Y, offset, trials, covariates, times, sessions, layer
            As in ``transform``. The fitted table itself, or new rows.

        Returns
        -------
        array of bool (n,)

        Examples
        --------
        >>> from rflvm import RFLVM
        >>> from rflvm.datasets import make_s_curve
        >>> Y = make_s_curve(60, 20, emissions="poisson").data
        >>> settings = {"inference": "map", "kernel": "rbf", "n_features": 20, "init": "pca", "max_iter": 200}
        >>> model = RFLVM(likelihood="poisson", random_state=0, **settings).fit(Y)
        >>> model.ambiguous_rows(Y).shape
        (60,)
        """
        return modes.two_modes(self._fit(), self._read(Y, offset, trials, covariates, layer, times, sessions).data)

    def impute(
        self,
        Y: Any,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        layer: str | None = None,
        summary: Literal["median", "mean"] = "median",
    ) -> np.ndarray:
        """The table with its missing cells filled by what is expected given the observed cells of their row.

        A cell's expectation E[y | f] depends on the row's position and on the functions. It is summarised over the
        posterior of both; ``uncertain_cells`` marks cells that this posterior says little about. Where a column has no
        observed cell nearby, its function is held to the range that it has where there are some.

        Parameters
        ----------
        Y, offset, trials, covariates, times, sessions, layer
            As in ``transform``. The fitted table itself, or new rows.
        summary : {"median", "mean"}
            The posterior median of E[y | f] (of the shares of a multinomial row, divided by their sum), or the
            posterior mean, which is E[y | the row]: for sums over cells and for probabilities.

        Returns
        -------
        array (n, J)
        """
        fitted, given = self._fit(), self._read(Y, offset, trials, covariates, layer, times, sessions)
        return np.where(np.isnan(given.values), rows.predict(fitted, given, [], summary)[0], given.values)

    def score_samples(
        self,
        Y: Any,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        layer: str | None = None,
    ) -> np.ndarray:
        """Log predictive density of each row, its position integrated out; parameters as in ``transform``.

        Of real numbers it is a density in their units: with cells ten times as large it is log 10 lower for each. With
        ``dynamics`` it is that of a row given the rows of its session before it; they add up to that of the session,
        whose path is integrated out by a Gaussian approximation.
        """
        return np.asarray(
            rows.moments(self._fit(), self._read(Y, offset, trials, covariates, layer, times, sessions)).log_density
        )

    def score(
        self,
        Y: Any,
        y: Any = None,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
    ) -> float:
        """Mean of ``score_samples``. Of counts, densities and probabilities of different families are comparable."""
        return float(
            self.score_samples(
                Y, offset=offset, trials=trials, covariates=covariates, times=times, sessions=sessions
            ).mean()
        )

    def forecast(
        self,
        n: int,
        level: float = 0.9,
        *,
        session: Any = None,
        times: Any = None,
        offset: Any = None,
        summary: Literal["median", "mean"] = "median",
    ) -> rows.Forecast:
        """The rows that follow a session of the fitted table, with intervals; needs ``dynamics``.

        Parameters
        ----------
        n : int
            How many rows.
        level : float
            The probability with which a new observation of a cell lies between its bounds.
        session : label, optional
            Which session goes on; the last one unless given.
        times : array (n,), optional
            Times of the new rows; one median gap of the fitted table from row to row unless given.
        offset : array (n,), optional
            As in ``fit``, for the new rows.
        summary : {"median", "mean"}
            As in ``impute``.

        Returns
        -------
        Forecast
            With ``times``, positions ``X`` and ``X_std``, and ``expected``, ``lower`` and ``upper`` of the cells.

        Examples
        --------
        >>> import numpy as np
        >>> from rflvm import RFLVM
        >>> t = np.arange(60)
        >>> Y = np.sin(t[:, None] / 8 + np.arange(6)) + 0.1 * np.random.default_rng(0).normal(size=(60, 6))
        >>> settings = {"inference": "map", "kernel": "rbf", "n_features": 20, "init": "pca", "max_iter": 60}
        >>> model = RFLVM(1, dynamics="matern32", random_state=0, **settings).fit(Y, times=t)
        >>> ahead = model.forecast(5)
        >>> ahead.times, ahead.expected.shape
        (array([60., 61., 62., 63., 64.]), (5, 6))
        """
        n = checks.check_integer("n", n, 1)
        return rows.forecast(self._fit(), n, level, session=session, times=times, offset=offset, summary=summary)

    def sample(
        self,
        n_samples: int = 1,
        *,
        offset: Any = None,
        trials: Any = None,
        covariates: Any = None,
        times: Any = None,
        sessions: Any = None,
        random_state: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """New rows: positions from their prior, and cells given them; with ``dynamics`` whole paths.

        Parameters
        ----------
        n_samples : int
            How many.
        offset : array (n_samples,), optional
            As in ``fit``.
        trials : array, optional
            As in ``transform``.
        covariates : optional
            Of n_samples rows, as in ``fit``; of average rows, if they are left out.
        times, sessions : array, optional
            As in ``fit``; one session at the median gap of the fitted table unless given.
        random_state : int, optional
            Another number gives other rows.

        Returns
        -------
        X : array (n_samples, D)
        Y : array (n_samples, J)
            Multinomial rows have totals of the table.
        """
        fitted = self._fit()
        n = checks.check_integer("n_samples", n_samples, 1)
        seed = fitted.about.seed if random_state is None else checks.check_seed(random_state)
        return rows.generate(
            fitted, n, seed, offset=offset, trials=trials, covariates=covariates, times=times, sessions=sessions
        )

    @property
    def effects_(self) -> Effects:
        """Effects of the covariates on each column: mean, standard deviation and 90 % interval (``rflvm.Effects``)."""
        return of_covariates(self._fit())

    @property
    def posterior_(self) -> Any:
        """Draws as an xarray DataTree; see ``posterior_predictive`` for one with replicated cells."""
        return datatree.convert(self._fit())

    def posterior_predictive(self) -> Any:
        """``posterior_`` with a group of replicated observed cells, for posterior predictive checks."""
        return datatree.convert(self._fit(), replicated=True)

    def loo(self) -> Any:
        """Expected log density of a left-out cell, by Pareto-smoothed importance sampling (``arviz_stats.loo``)."""
        return datatree.loo(self._fit())

    def diagnose(self) -> str:
        """Print, and return, a page on whether the fit can be relied on and what to do if not."""
        page = diagnosis.page(self._fit())
        print(page)
        return page

    def save(self, path: str | PathLike) -> None:
        """Write the fitted model to one file, which ``rflvm.load`` reads. No pickle; never half a file."""
        fitted = self._fit()
        params = self.get_params(deep=False)
        if isinstance(params["random_state"], np.random.RandomState):
            params["random_state"] = fitted.about.seed
        saved.save(fitted, params, path)

    def _adopt(self, fitted: Fitted) -> None:
        """Take over a fit, all of it at once, so that a fit that is refused leaves the one before as it was."""
        self.fitted_ = fitted
        self.draws_ = fitted.draws
        self.embedding_, self.embedding_std_ = fitted.everywhere.embedding, fitted.everywhere.embedding_std
        self.lengthscale_ = fitted.lengthscale
        self.likelihood_, self.likelihood_reason_ = fitted.likelihood, fitted.about.likelihood_reason
        self.n_iter_, self.convergence_ = fitted.n_iter, fitted.convergence
        self.diagnostics_ = list(fitted.diagnostics)
        self.log_posterior_ = fitted.log_posterior
        self.starts_ = [dataclasses.asdict(start) for start in fitted.starts]
        self.arrangements_ = [dataclasses.asdict(arrangement) for arrangement in fitted.arrangements]
        self.n_features_in_ = fitted.about.values.shape[1]
        if fitted.about.columns is not None:
            self.feature_names_in_ = np.asarray(fitted.about.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _warn(self) -> None:
        """Say so when the fit should not be relied on, or when its chains show more than one picture."""
        told = arrangements.told(self.fitted_.arrangements)
        if self.fitted_.advice:
            both = Sentence("{advice}. {told}", advice=self.fitted_.advice, told=told) if told else self.fitted_.advice
            warnings.warn(both, ConvergenceWarning, stacklevel=3)
        elif told:
            warnings.warn(told, UserWarning, stacklevel=3)

    def _fit(self) -> Fitted:
        check_is_fitted(self)
        return self.fitted_

    def _asked(self) -> SimpleNamespace:
        """The parameters as they are now: what an engine is doing does not change with ``set_params``."""
        return SimpleNamespace(**self.get_params(deep=False))

    def _read(
        self,
        Y: Any,
        offset: Any,
        trials: Any,
        covariates: Any,
        layer: str | None,
        times: Any = None,
        sessions: Any = None,
    ) -> rows.Rows:
        """Rows to be placed, checked against the fit."""
        given: Any = {"offset": offset, "trials": trials, "covariates": covariates, "layer": layer}
        given |= {"times": times, "sessions": sessions}
        return rows.read(self._fit(), Y, asked_by=type(self).__name__, **given)

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def load(path: str | PathLike, *, likelihood: type[likelihoods.Likelihood] | None = None) -> RFLVM:
    """Read a model that ``RFLVM.save`` wrote. Nothing in the file is ever executed.

    Parameters
    ----------
    path : path
        The file.
    likelihood : subclass of Likelihood, optional
        The family, for a model that was fitted with one that is not of this library: a file has its name and
        parameters only.

    Raises
    ------
    FileError
        When the file is damaged, or of a version that this library does not know.
    """
    fitted, params = saved.load(path, likelihood)
    try:
        model = RFLVM(**params)
    except TypeError as error:
        raise FileError(f"{path} does not hold a model that this version can read: {error}") from error
    model._adopt(fitted)
    return model
