"""Topic models against an independent implementation, and their laws."""

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from tests.oracles import topics as oracle

import stickbreak as sb

# Weights of words and topics are float32 numbers in the local step.
CLOSE = 1e-5


def corpus(seed: int, n: int = 30, v: int = 25, k: int = 3, length: int = 40) -> NDArray[np.float64]:
    """Draw documents from topics that share few words."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(v, 0.1), size=k)
    theta = rng.dirichlet(np.full(k, 0.3), size=n)
    return np.array([rng.multinomial(rng.integers(1, 2 * length), weights @ phi) for weights in theta], dtype=float)


def model(k: int, concentration: float | None = 0.5, word: float | None = 0.1) -> sb.TopicModel:
    return sb.TopicModel(sb.LatentDirichlet(k, concentration), word_concentration=word)


def fit(counts: Any, k: int, algorithm: Any = None, **options: Any) -> sb.TopicFit:
    specification = options.pop("model", None) or model(k)
    found = sb.fit(specification, counts, algorithm or sb.Full(max_passes=5, tol=0), **options)
    assert isinstance(found, sb.TopicFit)
    return found


@pytest.mark.parametrize("objective", ["map", "variational"])
@pytest.mark.parametrize("concentration", [0.3, 6.0])
@pytest.mark.one_in(2)
def test_full_passes_are_those_of_the_oracle(objective: Any, concentration: float) -> None:
    counts, k, word = corpus(1), 3, 0.2
    labels = np.arange(len(counts)) % k
    algorithm = sb.Full(
        objective=objective,
        sparsity=None,
        units=sb.Words(warm_start=False, max_steps=400, step_tol=0.0),
        max_passes=3,
        tol=0,
    )
    found = fit(counts, k, algorithm, model=model(k, concentration, word), init=labels)
    sums = np.array([counts[labels == topic].sum(0) for topic in range(k)])
    bounds = []
    for _ in range(3):
        log_phi = oracle.log_topics(sums, word, objective)
        step = oracle.local_step(counts, log_phi, concentration / k, k, 399)
        sums = step.sums
        bounds.append(oracle.bound(step, concentration / k, word, objective))
    expected = (sums + word) / (sums + word).sum(1, keepdims=True)
    np.testing.assert_allclose(found.topics, expected, atol=CLOSE)
    np.testing.assert_allclose([record.elbo for record in found.history], bounds, rtol=CLOSE)
    assert found.elbo == pytest.approx(found.history[-1].elbo, rel=1e-9)
    np.testing.assert_allclose(found.counts.sum(), counts.sum(), rtol=1e-9)


@pytest.mark.parametrize("objective", ["map", "variational"])
@pytest.mark.parametrize("sparsity", [1, 2, None])
@pytest.mark.filterwarnings("ignore::stickbreak.SparsityWarning")
def test_warm_full_passes_never_lower_the_bound(objective: Any, sparsity: int | None) -> None:
    algorithm = sb.Full(objective=objective, sparsity=sparsity, max_passes=25, tol=0, units=sb.Words(step_tol=0.0))
    found = fit(corpus(2), 4, algorithm)
    # In the first two passes documents start anew.
    bounds = np.array([record.elbo for record in found.history][1:])
    # Each document continues from float32 counts, under topics that may have changed.
    assert (np.diff(bounds) >= -1e-6 * np.abs(bounds[1:])).all()


def test_restarts_are_counted() -> None:
    found = fit(corpus(3, length=80), 5, sb.Full(max_passes=4, tol=0, units=sb.Words(restarts=5)))
    assert sum(record.proposed for record in found.history) >= sum(record.accepted for record in found.history)
    assert any(record.proposed for record in found.history)
    assert all(record.proposed == 0 for record in fit(corpus(3), 5).history)


@pytest.mark.filterwarnings("ignore::stickbreak.SparsityWarning")
def test_restarts_try_one_topic_after_another() -> None:
    """Up to as many topics of each document, the smallest first, but none of a document of one topic."""
    block = np.eye(4, dtype=int)
    pure = np.repeat(block * 40, 5, axis=0)
    mixed = np.tile([3, 5, 8, 14], (7, 1))
    counts = np.repeat(np.concatenate([pure, mixed]), 3, axis=1)
    labels = np.append(np.repeat(np.arange(4), 5), np.arange(7) % 4)
    for restarts, tried in ((1, 1), (2, 2), (3, 3), (9, 4)):
        # With one topic a word a document has no more topics than it is made of.
        algorithm = sb.Full(sparsity=1, max_passes=6, tol=0, units=sb.Words(restarts=restarts))
        found = fit(counts, 4, algorithm, model=model(4, 0.4, 0.01), init=labels)
        assert (found.history[-1].proposed, found.history[-1].accepted) == (7 * tried, 0)


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([2, None]), st.booleans())
def test_order_sparsity_and_weights(seed: int, k: int, sparsity: int | None, stochastic: bool) -> None:
    counts = corpus(seed, n=12, v=9, length=15)
    if not counts.any():
        counts[0, 0] = 1
    kept = None if sparsity is None else min(sparsity, k)
    labels = np.arange(len(counts)) % k
    algorithm: Any = sb.Full(sparsity=kept, max_passes=3, tol=0)
    if stochastic:
        algorithm = sb.Stochastic(5, sparsity=kept, max_passes=2)
    found = fit(counts, k, algorithm, init=labels)
    assert np.isfinite(found.elbo)
    np.testing.assert_allclose(found.topics.sum(1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.transform(counts).sum(1), 1.0, rtol=1e-9)
    # Sparse arrays and other types are the same data.
    again = fit(sparse.csr_matrix(counts.astype(np.int64)), k, algorithm, init=labels)
    assert again.elbo == found.elbo
    if not stochastic:
        order = np.random.default_rng(seed).permutation(counts.shape[1])
        turned = fit(counts[:, order], k, algorithm, init=labels)
        np.testing.assert_allclose(turned.elbo, found.elbo, rtol=1e-4)
        twice = fit(counts, k, algorithm, init=labels, sample_weight=np.full(len(counts), 2.0))
        doubled = fit(np.concatenate([counts, counts]), k, algorithm, init=np.concatenate([labels, labels]))
        np.testing.assert_allclose(twice.elbo, doubled.elbo, rtol=1e-6)


def test_one_batch_is_full() -> None:
    counts = corpus(4)
    full = fit(counts, 3, sb.Full(max_passes=4, tol=0))
    one = fit(counts, 3, sb.Memoized(batches=1, max_passes=4, tol=0))
    assert one.elbo == full.elbo
    np.testing.assert_array_equal(one.topics, full.topics)


@pytest.mark.parametrize("init", ["kmeans++", "random"])
@pytest.mark.parametrize("first_pass", ["plain", "scaled"])
def test_threads_change_no_bit(init: str, first_pass: Any) -> None:
    counts = corpus(5, n=60)
    words = sb.Words(first_pass=first_pass, restarts=2)
    algorithm = sb.Memoized(batches=4, sparsity=2, max_passes=3, tol=0, units=words)
    one, three = (fit(counts, 6, algorithm, init=init, threads=threads) for threads in (1, 3))
    assert one.elbo == three.elbo
    np.testing.assert_array_equal(one.topics, three.topics)
    np.testing.assert_array_equal(one.transform(counts, threads=1), three.transform(counts, threads=3))


def test_the_first_pass_grows_the_sums() -> None:
    counts = corpus(6, n=40)
    plain, scaled = (
        fit(counts, 3, sb.Memoized(batches=4, max_passes=1, tol=0, units=sb.Words(first_pass=which)))
        for which in ("plain", "scaled")
    )
    assert np.isfinite([plain.elbo, scaled.elbo]).all()
    assert not np.array_equal(plain.topics, scaled.topics)
    np.testing.assert_allclose(plain.counts.sum(), counts.sum(), rtol=1e-9)


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    counts = corpus(7, n=40)
    whole = fit(counts, 4, sb.Memoized(batches=3, sparsity=2, max_passes=6, tol=0))
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=0)
    visits = iter(range(2))
    first = fit(
        counts,
        4,
        sb.Memoized(batches=3, sparsity=2, max_passes=6, tol=0),
        checkpoint=checkpoint,
        callbacks=[lambda record: next(visits, None) is None],
    )
    assert len(first.history) < len(whole.history)
    resumed = fit(counts, 4, sb.Memoized(batches=3, sparsity=2, max_passes=6, tol=0), checkpoint=checkpoint)
    assert resumed.elbo == whole.elbo
    np.testing.assert_array_equal(resumed.topics, whole.topics)
    with pytest.raises(sb.CheckpointError):
        fit(
            counts,
            4,
            sb.Memoized(batches=3, sparsity=2, max_passes=6, tol=0, units=sb.Words(restarts=1)),
            checkpoint=checkpoint,
        )


def test_saved_fits_are_the_same(tmp_path: Path) -> None:
    counts = corpus(8)
    for concentration in (0.5, None):
        found = fit(counts, 3, model=model(3, concentration))
        found.save(tmp_path / "topics.safetensors")
        for again in (sb.load(tmp_path / "topics.safetensors"), copy.deepcopy(found)):
            assert isinstance(again, sb.TopicFit)
            assert (again.elbo, again.concentration) == (found.elbo, found.concentration)
            np.testing.assert_array_equal(again.transform(counts), found.transform(counts))
            assert again.update(counts[:5]).elbo == found.update(counts[:5]).elbo
            assert again.model == found.model


def test_new_documents_are_one_more_batch() -> None:
    counts = corpus(9, n=40)
    found = fit(counts[:30], 3, sb.Full(max_passes=10, tol=0))
    later = found.update(counts[30:], max_passes=3, tol=0)
    np.testing.assert_allclose(later.counts.sum(), counts.sum(), rtol=1e-9)
    assert len(later.history) == len(found.history) + 3
    assert later.elbo < found.elbo


@pytest.mark.parametrize("objective", ["map", "variational"])
def test_estimated_concentrations_raise_the_bound(objective: Any) -> None:
    counts = corpus(10, n=80, k=4)
    algorithm = sb.Full(objective=objective, max_passes=20, tol=0, sparsity=None)
    fixed = fit(counts, 4, algorithm)
    free = fit(counts, 4, algorithm, model=model(4, None))
    assert fixed.concentration == pytest.approx(0.5)
    assert free.concentration != pytest.approx(0.5, rel=1e-3)
    assert free.elbo > fixed.elbo
    words = fit(counts, 4, algorithm, model=model(4, None, None))
    assert words.model.word_concentration is not None
    assert words.model.word_concentration != pytest.approx(0.1, rel=1e-3)


def test_the_concentration_of_one_topic_stays() -> None:
    """Its only weight is 1 under every concentration."""
    found = fit(corpus(10), 1, sb.Full(max_passes=5, tol=0), model=model(1, None))
    assert found.concentration == fit(corpus(10), 1, sb.Full(max_passes=5, tol=0)).concentration == 0.5


def test_the_concentration_is_where_the_derivative_vanishes() -> None:
    """Without stored states, new documents converge as those of the fit do."""
    counts, k = corpus(11, n=50), 3
    algorithm = sb.Full(
        max_passes=100, tol=0, sparsity=None, units=sb.Words(step_tol=0.0, max_steps=200, warm_start=False)
    )
    found = fit(counts, k, algorithm, model=model(k, None))
    theta = found.transform(counts) * (counts.sum(1, keepdims=True) + found.concentration)
    from scipy.special import digamma

    a = found.concentration / k
    log_pi = digamma(theta) - digamma(theta.sum(1, keepdims=True))
    slope = len(counts) * k * (digamma(k * a) - digamma(a)) + log_pi.sum()
    assert abs(slope) < 1e-3 * abs(log_pi.sum())


@pytest.mark.parametrize("method", ["map", "vb", "ml"])
def test_completion_is_that_of_the_scorer(method: str) -> None:
    counts = corpus(12, n=50, v=60, length=120)
    found = fit(counts[:35], 3)
    expected = oracle.completion(found.topics, counts[35:], 0.1, method, seed=4)
    score = found.document_completion(counts[35:], seed=4, method=method, concentration=0.1)
    assert score == pytest.approx(expected, abs=1e-9)


@pytest.fixture(scope="module")
def of_three() -> sb.TopicFit:
    return fit(corpus(12), 3)


@settings(max_examples=8)
@given(seed=st.integers(0, 1000), n_short=st.integers(1, 5))
def test_documents_that_are_too_short_do_not_change_the_score_of_others(
    of_three: sb.TopicFit, seed: int, n_short: int
) -> None:
    """Documents without words, of one word once, and of one word many times; anywhere in the corpus."""
    rng = np.random.default_rng(seed)
    counts = corpus(seed, n=8)
    short = np.zeros((n_short, counts.shape[1]))
    short[np.arange(n_short), rng.integers(0, counts.shape[1], n_short)] = rng.integers(0, 5, n_short)
    mixed = rng.permutation(np.concatenate([counts, short]))
    expected = oracle.completion(of_three.topics, mixed, 0.1, "map", seed=4, min_words=2)
    assert of_three.document_completion(mixed, seed=4, min_words=2) == pytest.approx(expected, abs=1e-9)
    last = np.concatenate([counts, short])
    assert of_three.document_completion(last, min_words=2) == of_three.document_completion(counts, min_words=2)


@pytest.mark.parametrize(
    ("documents", "options", "text"),
    [
        (np.eye(25), {}, "10 distinct words, but it is 25 of at most 1 distinct word; a word is held out"),
        (np.eye(25), {"min_words": 2}, "2 distinct words, but it is 25 of at most 1 distinct word"),
        (3 * np.eye(25) + np.eye(25, k=1), {}, "25 of at most 2 distinct words; try min_words=2"),
        (np.zeros((2, 25)), {}, "2 of at most 0 distinct words"),
        (np.zeros((0, 25)), {}, r"10 distinct words, but it is of shape \(0, 25\)$"),
    ],
)
def test_documents_that_are_all_too_short_are_refused(
    of_three: sb.TopicFit, documents: np.ndarray, options: Any, text: str
) -> None:
    for each in (documents, sparse.csr_array(documents)):
        with pytest.raises(sb.InvalidArgument, match=text) as caught:
            of_three.document_completion(each, **options)
        assert caught.value.argument == "test"


@pytest.mark.parametrize(("method", "a"), [("map", 0.1), ("map", 1e-3), ("vb", 0.1), ("ml", 0.1)])
def test_completion_goes_to_the_fixed_point_of_topics_that_are_alike(method: str, a: float) -> None:
    """Turns then take thousands of steps, and a small change of a step says little about what is left."""
    counts = corpus(15, n=40, v=40, length=100)
    found = fit(counts[:35], 7, sb.Full(max_passes=2, tol=0), init="random")
    expected = oracle.completion(found.topics, counts[35:], a, method, seed=4)
    score = found.document_completion(counts[35:], seed=4, method=method, concentration=a)
    assert score == pytest.approx(expected, abs=1e-8)


def test_proportions_are_those_of_the_dense_step() -> None:
    counts = corpus(13)
    found = fit(counts, 3, sb.Full(max_passes=6, tol=0, sparsity=1 + 1))
    log_phi = np.log(found.topics)
    step = oracle.local_step(counts, log_phi, 0.5 / 3, 3, 500)
    expected = step.counts + 0.5 / 3
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(found.transform(counts), expected, atol=2e-3)


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_is_that_of_the_formula(measure: str) -> None:
    counts = corpus(14, n=40)
    found = fit(counts, 3)
    words = np.array(found.top_words(n=6))
    expected = [oracle.coherence(counts, topic, measure) for topic in words]
    np.testing.assert_allclose(found.coherence(counts, measure=measure, n=6), expected, rtol=1e-12)


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_of_words_in_all_documents_and_in_none(measure: str) -> None:
    """Words of all documents go together as closely as words can, and words of no document are left out."""
    found = fit(corpus(14, n=40), 3)
    words = np.array(found.top_words(n=6))
    docs = (np.random.default_rng(3).random((50, 25)) < 0.3).astype(float)
    docs[:, words[:, 5]] = 0.0
    docs[:, words[:, :2]] = 1.0
    expected = [oracle.coherence(docs, topic, measure) for topic in words]
    np.testing.assert_allclose(found.coherence(docs, measure=measure, n=6), expected, rtol=1e-12)
    of_two = 1.0 if measure == "npmi" else np.log(51 / 50)
    np.testing.assert_allclose(found.coherence(docs, measure=measure, n=2), of_two, rtol=1e-12)


def test_top_words_are_the_most_probable() -> None:
    found = fit(corpus(15), 4)
    order = np.argsort(-found.topics, axis=1, kind="stable")[:, :5]
    assert found.top_words(n=5) == order.tolist()
    vocabulary = [f"word{number}" for number in range(25)]
    assert found.top_words(vocabulary, n=2)[0] == [vocabulary[number] for number in order[0, :2]]
    assert found.top_words(n=1000) == np.argsort(-found.topics, axis=1, kind="stable").tolist()


@pytest.mark.parametrize("objective", ["map", "variational"])
def test_weights_are_documents_where_the_concentration_is_estimated(objective: Any) -> None:
    counts, weights, labels = corpus(8, n=20), 1 + np.arange(20) % 3, np.arange(20) % 3
    words = sb.Words(warm_start=False, max_steps=400, step_tol=0.0)
    algorithm = sb.Full(objective=objective, sparsity=None, max_passes=4, tol=0, units=words)
    free = model(3, None)
    weighted = fit(counts, 3, algorithm, model=free, init=labels, sample_weight=weights.astype(float))
    repeated = fit(np.repeat(counts, weights, axis=0), 3, algorithm, model=free, init=np.repeat(labels, weights))
    assert weighted.concentration == pytest.approx(repeated.concentration, rel=1e-9)
    assert weighted.elbo == pytest.approx(repeated.elbo, rel=1e-9)
    np.testing.assert_allclose(weighted.topics, repeated.topics, atol=1e-9)


def test_topics_without_words_begin_as_documents() -> None:
    counts = corpus(8, n=20)
    found = fit(counts, 4, sb.Full(max_passes=0), init=np.arange(20) % 2)
    for topic in found.topics[2:]:
        # Its words have the frequencies of some document, apart from the pseudo-count of each.
        assert max(np.corrcoef(topic, document)[0, 1] for document in counts) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("init", ["random", "kmeans++"])
def test_topics_that_begin_alike_are_told_apart(init: str) -> None:
    """Three documents, each of them many times, make seeds equal; equal topics would stay equal in every pass."""
    rng = np.random.default_rng(2)
    counts = np.repeat(rng.poisson(2.0, size=(3, 12)).astype(float), 10, axis=0)
    found = fit(counts, 6, sb.Full(sparsity=None, max_passes=3, tol=0), init=init, seed=1)
    assert len(np.unique(found.topics, axis=0)) == 6


def test_the_topics_of_separate_words_are_found() -> None:
    rng = np.random.default_rng(0)
    rates = np.repeat(np.eye(3), 4, axis=1) * 5
    counts = np.concatenate([rng.poisson(rate, size=(30, 12)) for rate in rates])
    found = fit(counts, 3, sb.Memoized(batches=3, max_passes=20, tol=0))
    assert {tuple(sorted(topic)) for topic in found.top_words(n=4)} == {(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)}
    labels = found.transform(counts).argmax(1)
    assert all(len(set(labels[first : first + 30])) == 1 for first in (0, 30, 60))


def test_topic_models_are_compared_under_one_objective() -> None:
    pytest.importorskip("pandas")
    counts = corpus(15)
    first, other = fit(counts, 2), fit(counts, 3)
    table = sb.compare([first, other])
    assert table["elbo"].tolist() == sorted([first.elbo, other.elbo], reverse=True)
    variational = fit(counts, 2, sb.Full(objective="variational", max_passes=5, tol=0))
    with pytest.raises(sb.InvalidArgument, match="document_completion") as caught:
        sb.compare([first, variational])
    assert caught.value.argument == "fits"
    with pytest.raises(sb.NotSupported) as refused:
        sb.compare([first, other], held_out=counts)
    assert refused.value.argument == "held_out"


def test_the_text_of_a_process_makes_it_again() -> None:
    for process in (sb.LatentDirichlet(3), sb.LatentDirichlet(3, 0.1), sb.LatentDirichlet(3, None)):
        assert repr(eval(repr(process), {"LatentDirichlet": sb.LatentDirichlet})) == repr(process)
    assert repr(sb.LatentDirichlet(3, None)) != repr(sb.LatentDirichlet(3))


class TestBadInput:
    def test_counts(self) -> None:
        for bad, what in [(-1.0, "-1"), (0.5, "0.5"), (2.0**60, "1152921504606846976"), (np.nan, "NaN")]:
            counts = corpus(16)
            counts[3, 4] = bad
            with pytest.raises(sb.InvalidArgument) as caught:
                fit(counts, 2)
            assert caught.value.argument == "data", what

    def test_no_words(self) -> None:
        with pytest.raises(sb.InvalidArgument, match="without a single word"):
            fit(np.zeros((5, 4)), 2)
        with pytest.raises(sb.InvalidArgument):
            fit(np.zeros((0, 4)), 2)

    def test_empty_documents_and_words_that_never_occur(self) -> None:
        counts = corpus(17)
        counts[[0, 5]] = 0
        counts[:, 3] = 0
        found = fit(counts, 3)
        assert np.isfinite(found.elbo)
        np.testing.assert_allclose(found.transform(np.zeros((1, 25))), [[1 / 3] * 3], rtol=1e-12)
        new = np.zeros((1, 25))
        new[0, 3] = 4
        with pytest.warns(sb.UnseenWordsWarning, match="1 entry"):
            np.testing.assert_allclose(found.transform(new), [[1 / 3] * 3], rtol=1e-12)
        with pytest.raises(sb.InvalidArgument):
            found.transform(new, unseen="error")

    def test_numbers_of_topics(self) -> None:
        counts = np.array([[1.0, 2.0], [0.0, 1.0]])
        assert fit(counts, 1).topics.shape == (1, 2)
        assert fit(counts, 4).n_topics == 4  # more than documents
        with pytest.raises(sb.InvalidArgument, match=r"at most 4, the number of tokens \(words, counted") as caught:
            fit(counts, 5)
        assert caught.value.argument == "n_topics"
        with pytest.raises(sb.InvalidArgument, match="from 1 to 16777216"):
            sb.LatentDirichlet(2**24 + 1)
        with pytest.raises(sb.InvalidArgument, match="at most 2, the number of topics"):
            fit(counts, 2, sb.Full(sparsity=3))
        with pytest.raises(sb.InvalidArgument):
            fit(counts, 2, n_components=3)

    def test_vocabularies(self) -> None:
        found = fit(corpus(18), 2)
        calls: list[Any] = [found.transform, found.document_completion, found.coherence, found.update]
        for call in calls:
            with pytest.raises(sb.InvalidArgument):
                call(np.ones((3, 24)))
        with pytest.raises(sb.InvalidArgument):
            found.top_words(["one"])
        words = [f"word{number}" for number in range(25)]
        for wrong in (set(words), dict.fromkeys(words, 0), [*words[1:], None], range(25), "".join(words), 3):
            with pytest.raises(sb.InvalidType) as caught:
                found.top_words(wrong)  # type: ignore[arg-type]
            assert caught.value.argument == "vocabulary"
        assert found.top_words(np.array(words), n=3) == found.top_words(words, n=3)

    @pytest.mark.parametrize("bad", [-1.0, 0.5, 2.0**60, np.nan, np.inf, -np.inf])
    def test_counts_of_new_documents(self, bad: float) -> None:
        found = fit(corpus(21), 2)
        counts = corpus(22)
        counts[:, 4] = bad
        for call in (found.transform, found.document_completion, found.coherence, found.for_pyldavis, found.update):
            with pytest.raises(sb.InvalidArgument, match="whole numbers") as caught:
                call(counts)
            assert caught.value.argument in ("docs", "test")

    def test_new_documents_without_words(self) -> None:
        found = fit(corpus(21), 2)
        for nothing in (np.zeros((3, 25)), np.zeros((0, 25))):
            for call in (found.update, found.for_pyldavis):
                with pytest.raises(sb.InvalidArgument) as caught:
                    call(nothing)
                assert caught.value.argument == "docs"

    def test_new_documents_of_which_no_weighted_one_has_words(self) -> None:
        counts = corpus(21)
        found = fit(counts, 2)
        weights = np.repeat([0.0, 1.0], [len(counts), 1])
        with pytest.raises(sb.InvalidArgument, match="of positive weight") as caught:
            found.update(np.concatenate([counts, np.zeros((1, 25))]), sample_weight=weights)
        assert caught.value.argument == "docs"

    @pytest.mark.parametrize("objective", [None, "variational"])
    def test_moves(self, objective: Any) -> None:
        with pytest.raises(sb.NotSupported) as caught:
            fit(corpus(19), 3, sb.Full(moves=(sb.Merge(),), objective=objective))
        assert (caught.value.argument, caught.value.allowed) == ("moves", "moves=()")

    def test_words_for_where_to_start(self) -> None:
        with pytest.raises(sb.InvalidArgument) as caught:
            fit(corpus(19), 3, init="x")
        assert "sequential" not in str(caught.value)
        assert "a TopicFit" in str(caught.value)

    @pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, 1e300, 1e-300])
    def test_concentrations_of_completion(self, value: float) -> None:
        with pytest.raises(sb.InvalidArgument, match="a number from 1e-9 to 1e9, but") as caught:
            fit(corpus(21), 2).document_completion(corpus(22), concentration=value)
        assert caught.value.argument == "concentration"

    def test_what_is_not_served(self) -> None:
        counts = corpus(19)
        with pytest.raises(sb.NotSupported):
            sb.Mixture(sb.Multinomial(), process=sb.LatentDirichlet(3))
        with pytest.raises(sb.NotSupported):
            sb.TopicModel(sb.DirichletProcess())
        with pytest.raises(sb.NotSupported):
            fit(counts, 3, sb.Full(objective="ml"))
        with pytest.raises(sb.NotSupported):
            fit(counts, 3, init="sequential")
        with pytest.raises(
            sb.NotSupported, match=r"^Words\(\) with a Mixture is .*; use units=None, 'auto' or"
        ) as caught:
            sb.fit(sb.Mixture(sb.Multinomial()), counts, sb.Full(units=sb.Words()))
        assert (caught.value.argument, caught.value.found) == ("units", "Words() with a Mixture")
        with pytest.raises(sb.NotSupported, match="a tree for a TopicModel"):
            fit(counts, 3, sb.Full(units=sb.KdTree()))
        mixture = sb.fit(sb.Mixture(sb.Multinomial()), counts, sb.Full(max_passes=2, tol=0), n_components=2)
        with pytest.raises(sb.InvalidArgument):
            fit(counts, 2, init=mixture)

    def test_hard_assignment_warns(self) -> None:
        with pytest.warns(sb.SparsityWarning):
            fit(corpus(20), 3, sb.Full(sparsity=1, max_passes=2, tol=0))

    @pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, 1e300])
    def test_concentrations(self, value: float) -> None:
        allowed = "must be a number from 1e-9 to 1e9, or None"
        with pytest.raises(sb.InvalidArgument, match=f"^concentration {allowed}"):
            sb.LatentDirichlet(3, value)
        with pytest.raises(sb.InvalidArgument, match=f"^word_concentration {allowed}"):
            sb.TopicModel(sb.LatentDirichlet(3), word_concentration=value)

    @pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.int64(1), 1])
    def test_concentrations_of_numpy(self, value: Any) -> None:
        assert sb.TopicModel(sb.LatentDirichlet(3, value), word_concentration=value).word_concentration == float(value)


@given(
    st.integers(0, 10_000),
    st.sampled_from([1e-9, 1e-3, 1.0, 1e3, 1e9]),
    st.sampled_from([1e-9, 1e-3, 1.0, 1e9]),
    st.sampled_from(["map", "variational"]),
)
def test_extreme_concentrations(seed: int, concentration: float, word: float, objective: Any) -> None:
    counts = corpus(seed, n=8, v=6, length=10)
    counts[0, 0] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        algorithm = sb.Memoized(
            batches=2, objective=objective, sparsity=2, max_passes=3, tol=0, units=sb.Words(restarts=1)
        )
        found = fit(counts, 3, algorithm, model=model(3, concentration, word))
    assert np.isfinite(found.elbo)
    assert np.isfinite(found.topics).all()
    assert np.isfinite(found.transform(counts)).all()
