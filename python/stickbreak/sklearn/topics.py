"""`TopicModel`: a topic model with the interface of a scikit-learn estimator."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from stickbreak import checks
from stickbreak.errors import InvalidArgument
from stickbreak.io import arrays
from stickbreak.model import topic_model
from stickbreak.model.processes import LatentDirichlet
from stickbreak.result.history import StopReason
from stickbreak.result.topic_fit import TopicFit
from stickbreak.run import fitting
from stickbreak.run.algorithms import Full, Memoized, Stochastic
from stickbreak.run.converging import ran_out
from stickbreak.sklearn.refusing import Refusing
from stickbreak.sklearn.seeds import seed_of
from stickbreak.sklearn.validating import validated


class TopicModel(Refusing, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Latent Dirichlet allocation: `stickbreak.fit` of a `stickbreak.TopicModel` as a scikit-learn estimator.

    It replaces `sklearn.decomposition.LatentDirichletAllocation`, for example after a `CountVectorizer`. K is the
    number of topics, V the number of words, n the number of documents.

    Parameters
    ----------
    n_topics : int
        K. Default: 20.
    concentration : float or None
        The total mass of the prior of a document's weights, concentration / K for each topic; None estimates it.
    word_concentration : float or None
        The pseudo-count of every word in every topic; None estimates it.
    algorithm : algorithm, optional
        Algorithm, with its number of passes and its accuracy. Default: ``Memoized()``.
    init : {"kmeans++", "random"}, array_like or TopicFit
        Initialisation; see `stickbreak.fit`.
    n_init : int
        Number of starts; the fit with the highest bound is kept.
    random_state : int, numpy.random.RandomState or None
        Decides every random choice. An int is the `seed` of `stickbreak.fit`; None draws one from NumPy's global
        generator, as in all of scikit-learn.
    threads : int, optional
        Number of threads, which never changes the result. Default: one per core. Use 1 if scikit-learn itself runs
        several processes (`n_jobs` of a grid search).
    verbose : bool
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    fit_ : TopicFit
        The fitted topic model, from which the other attributes are computed.
    components_ : ndarray of shape (K, V)
        Expected probabilities of the words in each topic, rows with sum one.
    lower_bound_ : float
        The objective of the training data with all constants, in nats of the whole corpus.
    n_iter_ : int
        Number of passes over the documents.
    converged_ : bool
        Whether the fit ended because the objective rose by less than the tolerance.
    n_features_in_ : int
        V.
    feature_names_in_ : ndarray of str, shape (V,)
        The words, if `X` is a table with column names.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        `fit` used all the passes that `algorithm` allows.

    See Also
    --------
    stickbreak.fit : The same without scikit-learn.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from stickbreak.sklearn import TopicModel
    >>> documents = ["tree leaf tree", "leaf tree root", "sea wave sea", "wave sea sand"]
    >>> topics = make_pipeline(CountVectorizer(), TopicModel(n_topics=2, random_state=0))
    >>> topics.fit_transform(documents).shape
    (4, 2)
    """

    def __init__(
        self,
        n_topics: int = 20,
        *,
        concentration: float | None = 0.5,
        word_concentration: float | None = 0.1,
        algorithm: Full | Memoized | Stochastic | None = None,
        init: Any = "kmeans++",
        n_init: int = 1,
        random_state: Any = None,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_topics = n_topics
        self.concentration = concentration
        self.word_concentration = word_concentration
        self.algorithm = algorithm
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the topics to documents, discarding any earlier fit.

        Parameters
        ----------
        X : array_like or sparse array of shape (n, V)
            Counts of words: whole numbers of at least 0.
        y : None
            Ignored.
        sample_weight : array_like of shape (n,), optional
            Weights of the documents, at least 0, not all zero.

        Returns
        -------
        TopicModel
            This estimator.

        Raises
        ------
        InvalidType, InvalidArgument, NotSupported, ValueError, TypeError
            A parameter of the estimator, `X` or `sample_weight` is not as described.
        """
        algorithm = Memoized() if self.algorithm is None else self.algorithm
        with self._unchanged_if_refused():
            rows = self._validated(X, first=True)
            process = LatentDirichlet(self.n_topics, concentration=self.concentration)
            with checks.calling("X", "data", "docs", "test"), _sizes_named(rows):
                found = fitting.run_fit(
                    topic_model.TopicModel(process, word_concentration=self.word_concentration),
                    rows,
                    algorithm,
                    init=self.init,
                    n_init=self.n_init,
                    seed=seed_of(self.random_state),
                    threads=self.threads,
                    sample_weight=sample_weight,
                    progress=checks.flag("verbose", self.verbose),
                )
            advice = ran_out(found, algorithm)
            if advice is not None:
                warnings.warn(str(advice), ConvergenceWarning, stacklevel=2)
        return self._keep(found)

    def partial_fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add documents: the first call is `fit`, later calls are `TopicFit.update` with `X` as a new batch.

        Parameters
        ----------
        X : array_like or sparse array of shape (n, V)
            Counts of words of the new documents.
        y : None
            Ignored.
        sample_weight : array_like of shape (n,), optional
            Weights of the documents.

        Returns
        -------
        TopicModel
            This estimator.

        Raises
        ------
        InvalidType, InvalidArgument, NotSupported, ValueError, TypeError
            As in `fit`.
        """
        if not hasattr(self, "fit_"):
            return self.fit(X, sample_weight=sample_weight)
        rows = self._validated(X)
        with checks.calling("X", "data", "docs", "test"):
            return self._keep(self.fit_.update(rows, sample_weight=sample_weight, threads=self.threads))

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the expected proportions of the topics in documents; `set_output` makes it a table.

        Parameters
        ----------
        X : array_like or sparse array of shape (n, V)
            Counts of words.

        Returns
        -------
        ndarray or table of shape (n, K)
            Rows with sum one; the columns are called "topicmodel0", "topicmodel1" and so on.
        """
        fitted, rows = self._fitted(), self._validated(X)
        with checks.calling("X", "data", "docs", "test"):
            return fitted.transform(rows, threads=self.threads)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log probability of held-out words of documents, in nats per word; higher is better.

        Parameters
        ----------
        X : array_like or sparse array of shape (n, V)
            Counts of words; documents with fewer than two distinct words are left out.
        y : None
            Ignored.

        Returns
        -------
        float
            The value of `TopicFit.document_completion` for `min_words=2`, with a split that depends on `random_state`.

        Raises
        ------
        InvalidType, InvalidArgument, ValueError, TypeError
            `X` is not as described, or no document has two distinct words.
        """
        fitted, rows = self._fitted(), self._validated(X)
        seed = seed_of(self.random_state)
        with checks.calling("X", "data", "docs", "test"):
            return fitted.document_completion(rows, seed=seed, min_words=2, threads=self.threads)

    @property
    def components_(self) -> NDArray[np.float64]:
        """Expected probabilities of the words in each topic, shape (K, V), rows with sum one."""
        return self._fitted().topics

    @property
    def lower_bound_(self) -> float:
        """The objective of the training data with all constants, in nats of the whole corpus."""
        return self._fitted().elbo

    @property
    def n_iter_(self) -> int:
        """Number of passes over the documents."""
        return len(self._fitted().history)

    @property
    def converged_(self) -> bool:
        """Whether the objective rose by less than the tolerance at the end; always False under `Stochastic`."""
        return self._fitted().stop_reason is StopReason.CONVERGED

    @property
    def _n_features_out(self) -> int:
        return self._fitted().n_topics

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Counts are integers.
        tags.input_tags.categorical = True
        return tags

    def _validated(self, X: ArrayLike, *, first: bool = False) -> Any:
        """Return counts for the core after scikit-learn's validation; the first call sets the words."""
        return validated(
            self,
            arrays.with_whole_parts(X, "X"),
            "leave such documents out, or write 0 for words that do not occur",
            reset=first,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_non_negative=True,
        )

    def _fitted(self) -> TopicFit:
        check_is_fitted(self)
        fitted: TopicFit = self.fit_
        return fitted

    def _keep(self, fitted: TopicFit) -> Self:
        self.fit_ = fitted
        if fitted.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        return self


@contextmanager
def _sizes_named(rows: Any) -> Iterator[None]:
    """Add the sizes of the data to an error about more topics than words."""
    try:
        yield
    except InvalidArgument as error:
        if error.argument != "n_topics":
            raise
        n_documents, n_words = rows.shape
        found = f"{error.found} for n_samples={n_documents}, n_features={n_words}"
        raise checks.invalid_argument("n_topics", found, error.allowed or "") from error
