"""The result of a fit of a topic model."""

import warnings
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import SparsityWarning, UnseenWordsWarning
from stickbreak.io import arrays, optional
from stickbreak.model.topic_model import TopicModel
from stickbreak.result import held_out
from stickbreak.result.fitted import Fitted

# Range of the pseudo-counts of a topic for document completion.
_PSEUDO_COUNTS = {"range": (1e-9, 1e9), "allowed": "a number from 1e-9 to 1e9"}


class TopicFit(Fitted):
    """A fitted topic model, as `fit` and `load` return it. It is immutable and does not hold the documents.

    K is the number of topics, V the number of words of the vocabulary. Methods that read documents take an array or a
    table of counts of shape (n, V), dense or sparse. They raise InvalidType or InvalidArgument if a count is negative
    or not a whole number, or if the number of columns differs. Logarithms are natural. `threads` is the number of
    threads, by default one for every core. It never changes the result.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(np.repeat([[5, 5, 0, 0], [0, 0, 5, 5]], 20, axis=0))
    >>> model = sb.TopicModel(sb.LatentDirichlet(2))
    >>> fit = sb.fit(model, counts, sb.Full(max_passes=20, tol=0))
    >>> fit.n_topics, fit.topics.shape, fit.transform(counts).shape
    (2, (2, 4), (40, 2))
    """

    # Documents lose their counts of topics, so a start from a fit first falls behind it.
    _goes_on: ClassVar[bool] = False

    def _advice_on(self, sparsity: int | str | None) -> SparsityWarning | None:
        if sparsity != 1 or self.n_topics == 1:
            return None
        text = "each word has one topic, and topics may get worse by the pass"
        return SparsityWarning(text, suggestions=("sparsity=4 or more",))

    @property
    def model(self) -> TopicModel:  # type: ignore[override]
        """The model with `word_concentration`, given or estimated.

        `concentration` is the corresponding parameter of the process.
        """
        model: TopicModel = self._model
        return model

    @property
    def n_topics(self) -> int:
        """K, the number of topics."""
        return self._state.n_components

    @cached_property
    def topics(self) -> NDArray[np.float64]:
        """Expected probabilities of the words in each topic, shape (K, V), rows with sum one, read-only."""
        return _read_only(_core.topics(self._state))

    @cached_property
    def _prior(self) -> NDArray[np.float64]:
        return _read_only(_core.document_prior(self._state))

    @property
    def concentration(self) -> float:
        """The total mass of the prior of a document's weights, given or estimated."""
        return float(sum(self._prior.tolist()))

    def top_words(self, vocabulary: Sequence[str] | None = None, n: int = 10) -> list[list[Any]]:
        """Return the most probable words of each topic, best first.

        Parameters
        ----------
        vocabulary : sequence of str, optional
            The words of the V columns. Default: the names of the columns if the documents were a table, otherwise their
            positions.
        n : int
            Number of words per topic, at most V.

        Returns
        -------
        list of list
            One list per topic.

        Raises
        ------
        InvalidType, InvalidArgument
            `vocabulary` is not an ordered collection of V strings (a set or a dict is not ordered), or `n` is not a
            positive integer.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> counts = np.array([[4, 1, 0], [3, 2, 0], [0, 0, 5]])
        >>> fit = sb.fit(sb.TopicModel(sb.LatentDirichlet(1)), counts, sb.Full(max_passes=2, tol=0))
        >>> fit.top_words(["tree", "leaf", "sea"], n=2)
        [['tree', 'sea']]
        """
        n = checks.integer("n", n, minimum=1)
        words = self._words(vocabulary)
        numbers: list[list[int]] = _core.top_words(self._state, n).tolist()
        return [[words[number] for number in numbers_of_topic] for numbers_of_topic in numbers]

    def _words(self, vocabulary: Sequence[str] | None) -> Sequence[Any]:
        """Return the words of the columns."""
        if vocabulary is None:
            return self.column_names or range(self._state.dimension)
        allowed = f"a sequence of {self._state.dimension} words"
        if isinstance(vocabulary, str | Mapping | Set) or not hasattr(vocabulary, "__len__"):
            hint = "sort its words by their numbers first" if isinstance(vocabulary, Mapping) else ""
            raise checks.invalid_type("vocabulary", checks.describe(vocabulary), allowed, hint)
        words: list[object] = checks.items("vocabulary", vocabulary, allowed)
        others = [word for word in words if not isinstance(word, str)]
        if others:
            raise checks.invalid_type("vocabulary", f"a sequence with {checks.describe(others[0])}", allowed)
        if len(words) != self._state.dimension:
            raise checks.invalid_argument("vocabulary", f"of {len(words)} words", allowed)
        return [str(word) for word in words]

    def transform(self, docs: ArrayLike, *, unseen: str = "ignore", threads: int | None = None) -> NDArray[np.float64]:
        """Return the expected proportions of the topics in documents, from the dense local step.

        Every document starts from the prior and may have all topics. Words that occur in no document of the fit are
        left out, with a warning.

        Parameters
        ----------
        docs : array_like of shape (n, V)
            Counts of words.
        unseen : {"ignore", "error"}
            How to treat words that occur in no document of the fit.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Rows with sum one. A document without words has the proportions of the prior.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or there are unseen words and `unseen` is "error".

        Warns
        -----
        UnseenWordsWarning
            Words were left out.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> counts = np.array([[4, 1, 0], [3, 2, 0], [0, 0, 5]])
        >>> fit = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Full(max_passes=5, tol=0))
        >>> fit.transform(counts).sum(axis=1)
        array([1., 1., 1.])
        """
        checks.word("unseen", unseen, ("ignore", "error"))
        rows = self._known(self._documents(docs, "docs"), "docs", unseen)
        return _core.proportions(self._state, rows, checks.threads(threads))

    def document_completion(
        self,
        test: ArrayLike,
        *,
        seed: int = 0,
        method: str = "map",
        concentration: float = 0.1,
        min_words: int = 10,
        threads: int | None = None,
    ) -> float:
        r"""Return the held-out log probability of words of new documents, in nats per word.

        A random fifth of the distinct words of every document is held out. The other words give its proportions
        :math:`\theta`, with the topics unchanged. The score is the mean of :math:`\log \sum_k \theta_k \phi_{kv}` over
        all held-out words (mathematics 11.7).

        Parameters
        ----------
        test : array_like of shape (n, V)
            Counts of words.
        seed : int
            Decides which words are held out. The split of a document depends on the seed and its position only.
        method : {"map", "vb", "ml"}
            How to compute proportions: as the fixed point of :math:`\theta_k \propto N_k + a`, by mean-field
            variational inference, or by maximum likelihood. Iterations end once no proportion grows by more than 1e-11
            of itself in a turn, or after 10,000 turns.
        concentration : float
            a, the pseudo-count of each topic, from 1e-9 to 1e9; not used by "ml".
        min_words : int
            Documents with fewer distinct words are left out. At least 2.
        threads : int, optional
            The number of threads.

        Returns
        -------
        float
            Nats per held-out word.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or every document has fewer than `min_words` distinct words.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> counts = np.random.default_rng(0).poisson(1.0, size=(30, 40))
        >>> model = sb.TopicModel(sb.LatentDirichlet(3))
        >>> fit = sb.fit(model, counts[:20], sb.Full(max_passes=5, tol=0))
        >>> -5 < fit.document_completion(counts[20:]) < -3
        True
        """
        documents = self._counts(test, "test")
        checks.word("method", method, ("map", "vb", "ml"))
        value = checks.within("concentration", concentration, _PSEUDO_COUNTS)
        min_words = checks.integer("min_words", min_words, minimum=2)
        given, held = held_out.split(documents, checks.seed(seed), min_words)
        log_probabilities = _core.complete(self._state, (given, held), method, value, checks.threads(threads))
        return float(log_probabilities.sum() / held.values.sum())

    def coherence(
        self, docs: ArrayLike, *, measure: str = "npmi", n: int = 10, threads: int | None = None
    ) -> NDArray[np.float64]:
        """Return the coherence of each topic: how often its most probable words occur in the same documents.

        Parameters
        ----------
        docs : array_like of shape (m, V)
            Counts of words. Only the presence of a word in a document matters.
        measure : {"npmi", "umass"}
            The mean over pairs of words of their normalised pointwise mutual information, from -1 to 1, or of the log
            conditional probability of the less probable word given the other one, with 1 added to the number of
            documents with both words (mathematics 11.7).
        n : int
            Number of words of each topic, at least 2.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (K,)
            Words that occur in no document are left out; nan if fewer than two remain.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> counts = np.array([[4, 1, 0], [3, 2, 0], [0, 0, 5]])
        >>> fit = sb.fit(sb.TopicModel(sb.LatentDirichlet(1)), counts, sb.Full(max_passes=2, tol=0))
        >>> fit.coherence(counts, n=2)
        array([-1.])
        """
        checks.word("measure", measure, ("npmi", "umass"))
        words = _core.top_words(self._state, checks.integer("n", n, minimum=2))
        return _core.coherence(self._counts(docs, "docs"), words, measure, checks.threads(threads))

    def for_pyldavis(
        self, docs: ArrayLike, vocabulary: Sequence[str] | None = None, *, threads: int | None = None
    ) -> dict[str, Any]:
        """Return the arguments of `pyLDAvis.prepare`: ``pyLDAvis.prepare(**fit.for_pyldavis(docs, vocabulary))``.

        Parameters
        ----------
        docs : array_like of shape (n, V)
            Counts of words of the documents to show. Empty documents, and words that occur in none of them, are left
            out.
        vocabulary : sequence of str, optional
            The words of the V columns. Default: the names of the columns if the documents of the fit were a table,
            otherwise their positions.
        threads : int, optional
            The number of threads.

        Returns
        -------
        dict
            `topic_term_dists` (K, W), `doc_topic_dists` (m, K), `doc_lengths` (m,), `vocab` (W words) and
            `term_frequency` (W,).

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or no document has a word.
        NotSupported
            The package scipy is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> counts = np.array([[4, 1, 0], [3, 2, 0], [0, 0, 0]])
        >>> fit = sb.fit(sb.TopicModel(sb.LatentDirichlet(1)), counts, sb.Full(max_passes=2, tol=0))
        >>> fit.for_pyldavis(counts, ["tree", "leaf", "sea"])["vocab"]
        ['tree', 'leaf']
        """
        rows = self._with_words(self._counts(docs, "docs"))
        words = self._words(vocabulary)
        table = optional.scipy_sparse("for_pyldavis").csr_array((rows.values, rows.columns, rows.starts), rows.shape)
        lengths, frequencies = table.sum(axis=1), table.sum(axis=0)
        long, known = np.flatnonzero(lengths > 0), np.flatnonzero(frequencies > 0)
        topics = self.topics[:, known]
        return {
            "topic_term_dists": topics / topics.sum(axis=1, keepdims=True),
            "doc_topic_dists": self.transform(table, threads=threads)[long],
            "doc_lengths": lengths[long],
            "vocab": [str(words[number]) for number in known.tolist()],
            "term_frequency": frequencies[known],
        }

    def update(
        self,
        docs: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        max_passes: int = 1,
        tol: float = 1e-6,
        threads: int | None = None,
    ) -> "TopicFit":
        """Return this fit with more documents, as one more batch of a memoized fit.

        Parameters
        ----------
        docs : array_like of shape (m, V)
            Counts of words of the new documents, at least one of positive weight with a word.
        sample_weight : array_like of shape (m,), optional
            Weights of the new documents, at least 0, not all zero.
        max_passes : int
            Maximum number of visits of the new documents, at least 1.
        tol : float
            Stop after a visit that gains less than this many nats per new word. 0 never stops early.
        threads : int, optional
            The number of threads.

        Returns
        -------
        TopicFit
            The new fit. Its `history` has one more record per visit. This fit does not change.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        NotSupported
            The `elbo` of this fit is nan: some of its documents have not been visited yet.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> counts = np.array([[4, 1, 0], [3, 2, 0], [0, 0, 5]])
        >>> fit = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Full(max_passes=5, tol=0))
        >>> round(float(fit.update(counts).counts.sum()))
        30
        """
        rows = self._with_words(self._counts(docs, "docs"))
        weights = arrays.sample_weights(sample_weight, rows.shape[0])
        self._with_words(rows, weights)
        max_passes = checks.integer("max_passes", max_passes, minimum=1)
        tol = checks.non_negative("tol", tol)
        state = self._state.update(rows, weights, max_passes, tol, checks.threads(threads))
        return TopicFit(state, column_names=self.column_names)

    def _documents(self, value: object, argument: str) -> arrays.SparseRows:
        return arrays.sparse_counts(self._rows(value, argument), argument)

    def _counts(self, value: object, argument: str) -> arrays.SparseRows:
        """Return documents whose counts have been checked."""
        rows = self._documents(value, argument)
        _core.check_documents(self._state, rows, argument)
        return rows

    def _with_words(self, rows: arrays.SparseRows, weights: NDArray[np.float64] | None = None) -> arrays.SparseRows:
        """Return the documents if at least one of positive weight has a word; otherwise raise an error."""
        starts = rows.starts.tolist()
        weighted = [True] * rows.shape[0] if weights is None else (weights > 0.0).tolist()
        documents = zip(weighted, starts, starts[1:], strict=False)
        if not any(has_weight and rows.values[start:end].any() for has_weight, start, end in documents):
            found = f"documents without any word{'' if weights is None else ' of positive weight'}"
            raise checks.invalid_argument("docs", found, "at least one document with a word")
        return rows

    def _known(self, rows: arrays.SparseRows, argument: str, unseen: str) -> arrays.SparseRows:
        """Return documents without the words that the fit has not seen."""
        is_unseen = (_core.word_counts(self._state) <= 0.0)[rows.columns] & (rows.values > 0)
        n_unseen = int(np.count_nonzero(is_unseen))
        if n_unseen == 0:
            return rows
        text = f"{n_unseen} {'entry' if n_unseen == 1 else 'entries'} for words that no document of the fit has"
        if unseen == "error":
            raise checks.invalid_argument(argument, text, "words of the fit, or unseen='ignore'")
        warnings.warn(
            f"{argument} has {text}; {'it is' if n_unseen == 1 else 'they are'} left out",
            UnseenWordsWarning,
            stacklevel=3,
        )
        values = np.where(is_unseen, 0.0, rows.values)
        return arrays.SparseRows(rows.starts, rows.columns, values, rows.n_columns)

    def __repr__(self) -> str:
        return f"TopicFit(n_topics={self.n_topics}, elbo={self.elbo:.6g}, stop_reason={self.stop_reason.name})"


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array
