"""Output of topic models for other programs."""

import importlib.util

import numpy as np
import pytest

import stickbreak as sb

COUNTS = np.array([[4, 1, 0, 0], [3, 2, 1, 0], [0, 0, 0, 0], [0, 0, 5, 0]])
WORDS = ["tree", "leaf", "sea", "never"]


@pytest.fixture
def fit() -> sb.TopicFit:
    return sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), COUNTS, sb.Full(max_passes=5, tol=0))


def test_the_view_of_pyldavis(fit: sb.TopicFit) -> None:
    view = fit.for_pyldavis(COUNTS, WORDS)
    assert view["vocab"] == WORDS[:3]
    np.testing.assert_array_equal(view["doc_lengths"], [5, 6, 5])
    np.testing.assert_array_equal(view["term_frequency"], [7, 3, 6])
    np.testing.assert_array_equal(view["doc_topic_dists"], fit.transform(COUNTS)[[0, 1, 3]])
    expected = fit.topics[:, :3] / fit.topics[:, :3].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(view["topic_term_dists"], expected, rtol=1e-15)
    assert fit.for_pyldavis(COUNTS)["vocab"] == ["0", "1", "2"]


@pytest.mark.skipif(importlib.util.find_spec("pyLDAvis") is None, reason="the package pyLDAvis is not installed")
@pytest.mark.filterwarnings("ignore")
def test_pyldavis_takes_it() -> None:
    import pyLDAvis

    rates = np.where(np.arange(60)[:, None] % 3 == np.arange(30) // 10, 4.0, 0.05)
    counts = np.random.default_rng(0).poisson(rates)
    fit = sb.fit(sb.TopicModel(sb.LatentDirichlet(3)), counts, sb.Full(max_passes=5, tol=0))
    prepared = pyLDAvis.prepare(**fit.for_pyldavis(counts), n_jobs=1, R=5)
    assert len(prepared.topic_coordinates) == 3


def test_words_are_those_of_a_table(fit: sb.TopicFit) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(COUNTS, columns=WORDS)
    named = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), table, sb.Full(max_passes=5, tol=0))
    assert named.top_words(n=2) == fit.top_words(WORDS, n=2)
    np.testing.assert_array_equal(named.transform(table[WORDS[::-1]]), fit.transform(COUNTS))


def test_bad_input_is_refused_by_name(fit: sb.TopicFit) -> None:
    for arguments, argument in (((COUNTS * 0,), "docs"), ((COUNTS, WORDS[:2]), "vocabulary"), ((-COUNTS,), "docs")):
        with pytest.raises(sb.InvalidArgument) as caught:
            fit.for_pyldavis(*arguments)
        assert caught.value.argument == argument
