"""The topic model as a scikit-learn estimator."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import stickbreak as sb
from stickbreak.sklearn import TopicModel

PASSES = sb.Full(max_passes=5, tol=0.0)
# Checks of scikit-learn whose X are fractions, not counts.
FRACTIONAL = {
    "check_sample_weight_equivalence_on_dense_data": "X must be whole numbers",
    "check_sample_weight_equivalence_on_sparse_data": "X must be whole numbers",
}


def bars(n: int = 60) -> np.ndarray:
    """Documents whose words come from one of two halves of the vocabulary."""
    rng = np.random.default_rng(0)
    rates = np.where(np.arange(n)[:, None] % 2 == np.arange(10) // 5, 4.0, 0.05)
    return rng.poisson(rates)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::stickbreak.UnseenWordsWarning")
@parametrize_with_checks(
    [
        TopicModel(),
        TopicModel(n_topics=2),
        TopicModel(3, algorithm=PASSES, init="random", threads=1, concentration=None),
    ],
    expected_failed_checks=lambda estimator: FRACTIONAL,
)
def test_check_estimator(estimator: TopicModel, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_only_fractions_fail_a_check() -> None:
    failed = [
        (each["check_name"], str(each["exception"]))
        for each in check_estimator(TopicModel(n_topics=2), on_fail=None, on_skip=None)
        if each["status"] == "failed"
    ]
    assert [name for name, _ in failed] == list(FRACTIONAL)
    assert all("whole numbers" in said for _, said in failed)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_document_of_weight_two_is_two_documents() -> None:
    counts, labels = bars(), np.arange(60) % 2
    options = {"algorithm": PASSES, "random_state": 0}
    once = TopicModel(2, init=labels, **options).fit(counts, sample_weight=np.full(60, 2.0))
    twice = TopicModel(2, init=np.tile(labels, 2), **options).fit(np.concatenate([counts, counts]))
    np.testing.assert_allclose(once.components_, twice.components_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_is_the_fit_of_the_package() -> None:
    counts = bars()
    found = TopicModel(2, algorithm=PASSES, random_state=3).fit(counts)
    expected = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, PASSES, seed=3)
    np.testing.assert_array_equal(found.components_, expected.topics)
    np.testing.assert_array_equal(found.transform(counts), expected.transform(counts))
    np.testing.assert_array_equal(found.transform(sparse.csr_array(counts)), expected.transform(counts))
    assert found.lower_bound_ == expected.elbo
    assert (found.n_iter_, found.converged_) == (5, False)
    assert found.score(counts) == expected.document_completion(counts, seed=3, min_words=2)
    assert found.fit_.n_topics == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_documents_of_one_word_have_no_score() -> None:
    """They are left out beside longer ones; alone they are an error, and not a score of nan."""
    counts = bars()
    found = TopicModel(2, algorithm=PASSES, random_state=3).fit(counts)
    words = np.eye(counts.shape[1], dtype=int)
    assert found.score(np.concatenate([counts, words])) == found.score(counts)
    with pytest.raises(
        sb.InvalidArgument, match="X must be documents of which at least one has 2 distinct words"
    ) as caught:
        found.score(words)
    assert caught.value.argument == "X"


def test_topics_of_two_halves_are_found() -> None:
    counts = bars()
    topics = TopicModel(2, random_state=0).fit(counts).components_
    halves = topics.reshape(2, 2, 5).sum(axis=2)
    np.testing.assert_allclose(np.sort(halves, axis=0), [[0.0, 0.0], [1.0, 1.0]], atol=0.05)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_after_a_count_vectorizer_in_a_search() -> None:
    texts = ["tree leaf tree", "leaf tree root", "sea wave sea", "wave sea sand"] * 5
    pipeline = make_pipeline(CountVectorizer(), TopicModel(algorithm=PASSES, random_state=0, threads=1))
    search = GridSearchCV(pipeline, {"topicmodel__n_topics": [1, 2]}, cv=2).fit(texts)
    assert search.best_params_ == {"topicmodel__n_topics": 2}
    names = search.best_estimator_[-1].get_feature_names_out()
    assert names.tolist() == ["topicmodel0", "topicmodel1"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_documents_clones_and_pickles() -> None:
    counts = bars()
    estimator = TopicModel(2, algorithm=PASSES, random_state=0)
    first = clone(estimator).fit(counts[:40])
    more = clone(estimator).partial_fit(counts[:40]).partial_fit(counts[40:])
    assert more.fit_.counts.sum() == pytest.approx(counts.sum())
    np.testing.assert_array_equal(more.components_, first.fit_.update(counts[40:]).topics)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(more)).components_, more.components_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_further_documents_have_their_weights() -> None:
    counts = bars()
    weights = np.linspace(0.5, 3.0, len(counts) - 40)
    estimator = TopicModel(2, algorithm=PASSES, random_state=0)
    first = clone(estimator).fit(counts[:40])
    more = clone(estimator).partial_fit(counts[:40]).partial_fit(counts[40:], sample_weight=weights)
    expected = first.fit_.update(counts[40:], sample_weight=weights)
    np.testing.assert_array_equal(more.components_, expected.topics)


def test_bad_input_is_refused_by_name() -> None:
    for options, argument in (
        ({"n_topics": 0}, "n_topics"),
        ({"n_topics": 10**6}, "n_topics"),
        ({"concentration": -1.0}, "concentration"),
        ({"word_concentration": "x"}, "word_concentration"),
        ({"random_state": -1}, "random_state"),
        ({"verbose": 3}, "verbose"),
    ):
        with pytest.raises(sb.StickbreakError) as caught:
            TopicModel(**options).fit(bars())
        assert caught.value.argument == argument
    with pytest.raises(ValueError, match="Negative values"):
        TopicModel(2).fit(-bars())
    fitted = TopicModel(2).fit(bars())
    for call in (TopicModel(2).fit, fitted.partial_fit, fitted.transform, fitted.score):
        with pytest.raises(sb.InvalidArgument, match=r"^X must be whole numbers") as caught:
            call(bars() + 0.5)
        assert caught.value.argument == "X"
