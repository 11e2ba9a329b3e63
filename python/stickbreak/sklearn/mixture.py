"""`BayesianMixture`: a mixture with the interface of a scikit-learn estimator."""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import Tags

from stickbreak import checks
from stickbreak.io import arrays, frames, partial
from stickbreak.io.arrays import DenseRows
from stickbreak.io.levels import TAKE_LEVELS, Coded, CodedRows, check_codes, coded, sizes_of
from stickbreak.io.names import Table, named
from stickbreak.model.background import Background
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture
from stickbreak.model.processes import DirichletProcess, Process
from stickbreak.result.fit import Fit
from stickbreak.result.history import StopReason
from stickbreak.run import fitting
from stickbreak.run.algorithms import Algorithm, Full, Memoized, Stochastic
from stickbreak.run.moves import usual_moves
from stickbreak.run.units import KdTree
from stickbreak.sklearn import nested
from stickbreak.sklearn.attributes import Attributes
from stickbreak.sklearn.seeds import seed_of
from stickbreak.sklearn.validating import like, validated
from stickbreak.sklearn.warning import warn_of


class BayesianMixture(Attributes, ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):
    """A mixture fitted by variational inference: `stickbreak.fit` as a scikit-learn estimator.

    See `stickbreak.fit` for the method and its references; results are the same. K is the number of components, D the
    number of columns, n the number of rows. Densities and bounds are in nats.

    Parameters
    ----------
    likelihood : likelihood or str, optional
        The distribution of a component, or its name: "gaussian", "diagonal_gaussian", "poisson" and so on. "auto"
        chooses one for each column, as `stickbreak.columns_for` does. Default: ``Gaussian()``.
    process : process, optional
        The prior on the weights. Default: ``DirichletProcess()``. A process with its own number of components, such as
        `FiniteDirichlet`, requires ``n_components=None``.
    algorithm : algorithm, optional
        How to maximise the bound. Default: that of `stickbreak.fit`, which finds the number of components. If
        `n_components` is a number, the default is ``Memoized()``, which keeps it fixed.
    n_components : int, optional
        K. As in the mixtures of scikit-learn, a given number stays fixed, so that a search can choose it; only an
        `algorithm` with moves starts from it and changes it. None, the default, finds the number from the data. The fit
        then starts from the number of the process, else that of `init`, else one component.
    init : {"kmeans++", "random"}, array_like or Fit
        Initialisation; see `stickbreak.fit`.
    n_init : int
        Number of starts; the fit with the highest bound is kept. If the number of components is not fixed, every second
        start has many components, which helps when clusters overlap; see `stickbreak.fit`.
    random_state : int, numpy.random.RandomState or None
        Decides every random choice. An int is the `seed` of `stickbreak.fit`; None draws one from NumPy's global
        generator, as in all of scikit-learn.
    threads : int, optional
        Number of threads, which never changes the result. Default: one per core. Use 1 if scikit-learn itself runs
        several processes (`n_jobs` of a grid search).
    units : KdTree, "auto", optional
        The units that receive responsibilities, as in `stickbreak.Full`; overrides the setting of `algorithm`.
    missing : {"error", "marginalize"}
        What to do with missing values (NaN), as in `stickbreak.fit`.
    verbose : bool
        Whether to show a progress bar on stderr.
    background : Background, optional
        A density for rows that belong to no component; their label is -1. Default: none.

    Attributes
    ----------
    fit_ : Fit
        The fitted mixture, from which the other attributes are computed.
    labels_ : ndarray of int64, shape (n,)
        The most probable component of each row of the last `fit` or `partial_fit`. No other attribute grows with the
        number of rows.
    n_features_in_ : int
        D.
    feature_names_in_ : ndarray of str, shape (D,)
        The names of the columns, if `X` is a table with column names.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        `fit` used all the passes that `algorithm` allows.

    See Also
    --------
    stickbreak.fit : The same without scikit-learn.

    Notes
    -----
    A fit that is interrupted by Ctrl-C raises KeyboardInterrupt, so that a search over parameters ends too, and `fit_`
    has the last complete state. A row of weight 2 counts as two equal rows. But initialisation and batches depend on
    the number of rows, so a fit to repeated rows may differ from a fit to weighted rows.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak.sklearn import BayesianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-5, 1, size=(100, 2)), rng.normal(5, 1, size=(100, 2))])
    >>> mixture = BayesianMixture(random_state=0).fit(X)
    >>> labels = mixture.predict(X)
    >>> len(set(labels[:100])), len(set(labels[100:])), bool(labels[0] != labels[100])
    (1, 1, True)
    >>> mixture.means_.shape, mixture.converged_
    ((2, 2), True)
    """

    def __init__(
        self,
        *,
        likelihood: Likelihood | str | None = None,
        process: Process | None = None,
        algorithm: Full | Memoized | Stochastic | None = None,
        n_components: int | None = None,
        init: str | ArrayLike | Fit = "kmeans++",
        n_init: int = 1,
        random_state: Any = None,
        threads: int | None = None,
        missing: str = "error",
        verbose: bool = False,
        units: KdTree | Literal["auto"] | None = None,
        background: Background | None = None,
    ) -> None:
        self.likelihood = likelihood
        self.process = process
        self.algorithm = algorithm
        self.n_components = n_components
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.threads = threads
        self.missing = missing
        self.verbose = verbose
        self.units = units
        self.background = background

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        partial_labels: ArrayLike | None = None,
    ) -> Self:
        """Fit the mixture to data, discarding any earlier fit.

        Parameters
        ----------
        X : array_like or table of shape (n, D)
            The rows, at least two. Numbers that are not float32 or float64 are converted to float64.
        y : None
            Ignored, as by all clustering of scikit-learn: a pipeline or a search may pass labels that are for scoring.
        sample_weight : array_like of shape (n,), optional
            Weights of the rows, at least 0, not all zero.
        partial_labels : array_like of shape (n,), optional
            The class of each row, an integer from 0, and -1 where it is unknown: the `labels` of `stickbreak.fit`.
            ``fit_.classes`` has the class of each component.

        Returns
        -------
        BayesianMixture
            This estimator.

        Raises
        ------
        InvalidType, InvalidArgument, NotSupported, ValueError, TypeError
            A parameter of the estimator, `X` or `sample_weight` is not as described.
        """
        with self._unchanged_if_refused():
            # Some tables can be read only once.
            X = frames.understood(X, "X")
            model = self._model(X)
            coded = self._coded(X, model.likelihood)
            validated = self._validated(X if coded is None else like(X, coded), model, first=True)
            labels = partial.labels(partial_labels, "partial_labels", validated.shape[0])
            rows = self._named(validated, coded)
            with checks.calling("X", "data"):
                found = fitting.run_fit(
                    model,
                    rows,
                    self._algorithm(),
                    n_components=self.n_components,
                    init=self.init,
                    n_init=self.n_init,
                    seed=seed_of(self.random_state),
                    threads=self.threads,
                    sample_weight=sample_weight,
                    labels=labels,
                    missing=self.missing,
                    progress=checks.flag("verbose", self.verbose),
                )
            warn_of(found, self._algorithm())
        return self._keep(found, rows)

    def partial_fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add data: the first call is `fit`, later calls are `Fit.update` with `X` as a new batch.

        The first call determines the number of components, because updates make no moves. Its rows should be a sample
        of all data to come. To refit to all rows, start from the current fit:
        ``BayesianMixture(init=mixture.fit_).fit(everything)``.

        Parameters
        ----------
        X : array_like or table of shape (n, D)
            The new rows.
        y : None
            Ignored.
        sample_weight : array_like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        BayesianMixture
            This estimator.

        Raises
        ------
        InvalidType, InvalidArgument, NotSupported, ValueError, TypeError
            As in `fit`.
        """
        if not hasattr(self, "fit_"):
            return self.fit(X, sample_weight=sample_weight)
        rows = self._read(X)
        with checks.calling("X", "X_new"):
            later = self.fit_.update(rows, sample_weight=sample_weight, threads=self.threads)
        return self._keep(later, rows)

    def fit_predict(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        partial_labels: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Fit the mixture and return the most probable component of each row.

        Parameters
        ----------
        X, y, sample_weight, partial_labels
            As in `fit`.

        Returns
        -------
        ndarray of int64, shape (n,)
            Positions from 0 to K - 1; -1 for the background.
        """
        return self.fit(X, sample_weight=sample_weight, partial_labels=partial_labels).labels_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : array_like or table of shape (n, D)
            The rows.

        Returns
        -------
        ndarray of int64, shape (n,)
            Positions from 0 to K - 1; -1 for the background.
        """
        return self._fitted().predict(self._read(X), threads=self.threads)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the responsibilities of the components for each row.

        Parameters
        ----------
        X : array_like or table of shape (n, D)
            The rows.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Rows with sum one.
        """
        return self._fitted().predict_proba(self._read(X), threads=self.threads)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the responsibilities as features for a next step; `set_output` makes a table.

        Parameters
        ----------
        X : array_like or table of shape (n, D)
            The rows.

        Returns
        -------
        ndarray or table of shape (n, K)
            Rows with sum one; the columns are called "bayesianmixture0", "bayesianmixture1" and so on.
        """
        return self.predict_proba(X)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log posterior predictive density of each row.

        Parameters
        ----------
        X : array_like or table of shape (n, D)
            The rows.

        Returns
        -------
        ndarray of float64, shape (n,)
            Log densities in nats.
        """
        return self._fitted().log_predictive(self._read(X), threads=self.threads)

    def score(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log posterior predictive density per row.

        Parameters
        ----------
        X : array_like or table of shape (n, D)
            The rows.
        y : None
            Ignored.
        sample_weight : array_like of shape (n,), optional
            Weights of the rows in the average, at least 0, not all zero. Rows without any value have weight zero.

        Returns
        -------
        float
            Nats per row; higher is better. Rows off `Fit.support` are left out, and a `SupportWarning` states their
            number.
        """
        rows = self._read(X)
        log_densities = self._fitted().log_predictive(rows, threads=self.threads)
        weights = arrays.sample_weights(sample_weight, len(log_densities))
        if self._allows_nan():
            plain = rows.rows if isinstance(rows, CodedRows) else rows
            weights = arrays.without_empty_rows(weights, arrays.rows_without_values(plain), "X", "score")
        log_densities, weights = arrays.with_density(log_densities, weights, "X")
        if weights is None:
            return float(log_densities.mean())
        return float((log_densities * weights).sum() / weights.sum())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw rows from the posterior predictive distribution, with the seed given by `random_state`.

        Parameters
        ----------
        n_samples : int
            The number of rows, at least 1.

        Returns
        -------
        X : ndarray of float64, shape (n_samples, D)
            Independent rows.
        y : ndarray of int64, shape (n_samples,)
            The labels that `predict` returns for them. The component from which a row was drawn is not always the most
            probable one, and a row from the left-over weight of a `DirichletProcess` has none.
        """
        fitted = self._fitted()
        n_samples = checks.integer("n_samples", n_samples, minimum=1)
        rows = fitted.sample(n_samples, seed=seed_of(self.random_state), threads=self.threads)
        drawn = CodedRows(rows, fitted.column_names, fitted._levels, sizes_of(fitted._levels))
        return rows, fitted.predict(drawn, threads=self.threads)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; `deep` adds those of the likelihood, the process and the algorithm.

        Parameters
        ----------
        deep : bool
            Whether to add nested parameters, such as "process__concentration".

        Returns
        -------
        dict of str to object
            Values by name.
        """
        shallow: dict[str, Any] = super().get_params(deep=False)
        return shallow | nested.parameters(shallow) if deep else shallow

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of likelihood, process and algorithm have names such as "process__concentration".

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        BayesianMixture
            This estimator.

        Raises
        ------
        ValueError
            A parameter does not exist, or its value is not allowed.
        """
        shallow = {name: value for name, value in params.items() if "__" not in name}
        nested_values = {name: value for name, value in params.items() if "__" in name}
        known = super().get_params(deep=False) | shallow
        parts = nested.changed(known, nested_values)
        super().set_params(**{**shallow, **parts})
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_nan()
        tags.input_tags.sparse = self._accepts_sparse()
        return tags

    def _allows_nan(self) -> bool:
        missing: object = self.missing
        return isinstance(missing, str) and missing == "marginalize"

    def _accepts_sparse(self) -> bool:
        return bool(getattr(self._kind(), "_accepts_sparse", False))

    def _kind(self) -> object:
        """Return the likelihood, or the class with the given name."""
        word: object = self.likelihood
        return nested.WORDS.get(word) if isinstance(word, str) else word

    def _algorithm(self) -> Full | Memoized | Stochastic | None:
        """Return the algorithm; the default keeps a given number of components."""
        algorithm = Memoized() if self.algorithm is None and self.n_components is not None else self.algorithm
        if self.units is None:
            return algorithm
        if algorithm is None:
            return Memoized(moves=usual_moves(self._model()), units=self.units)
        checks.instance("algorithm", algorithm, Algorithm, "an algorithm, such as Full() or Memoized()")
        return replace(algorithm, units=self.units)

    def _model(self, data: object = None) -> Mixture:
        return Mixture(
            likelihood=nested.likelihood(self.likelihood, data, may_miss=self._allows_nan()),
            process=DirichletProcess() if self.process is None else self.process,
            background=self.background,
        )

    def _coded(self, X: Any, likelihood: Likelihood) -> Coded | None:
        """Return a table with codes in place of levels; None for data without levels."""
        if likelihood._domain not in TAKE_LEVELS or not frames.is_table(X):
            return None
        known = self.init._levels if isinstance(self.init, Fit) else ()
        found = coded(X, "X", likelihood, levels=known, learn=True)
        return found if isinstance(found.data, np.ndarray) else None

    def _read(self, X: Any) -> DenseRows | CodedRows:
        """Return rows of a fitted estimator, with codes in place of levels."""
        fitted = self._fitted()
        X = frames.understood(X, "X")
        if frames.is_table(X) and named(X, "X").names == fitted.column_names:
            found = fitted._coded(X, "X")
            rows = self._validated(like(X, found), fitted.model)
            return CodedRows(rows, fitted.column_names, found.levels, found.sizes) if found.levels else rows
        if not frames.is_table(X):
            check_codes("X", fitted._levels, fitted.column_names)
        return self._validated(X, fitted.model)

    def _validated(self, X: ArrayLike, model: Mixture, *, first: bool = False) -> DenseRows:
        """Return rows for the core after scikit-learn's validation; the first call sets the columns."""
        if self._accepts_sparse():
            X = arrays.with_whole_parts(X, "X")
        rows: DenseRows = validated(
            self,
            X,
            model._hint_on_missing,
            reset=first,
            accept_sparse="csr" if self._accepts_sparse() else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if self._allows_nan() else True,
            ensure_min_samples=2 if first else 1,
        )
        return rows

    def _named(self, rows: DenseRows, coded: Coded | None) -> Any:
        """Return rows with their column names, which scikit-learn's validation has removed, and levels, if any."""
        names = tuple(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None
        if coded is not None:
            return CodedRows(rows, names, coded.levels, coded.sizes)
        return rows if names is None else Table(rows, names)

    def _keep(self, fitted: Fit, rows: Any) -> Self:
        self.fit_ = fitted
        # Those of an earlier fit would not belong to this one if it, or the prediction, is interrupted.
        self.__dict__.pop("labels_", None)
        if fitted.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        self.labels_ = fitted.predict(rows, threads=self.threads)
        return self
