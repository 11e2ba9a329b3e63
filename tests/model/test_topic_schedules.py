"""How visits of documents enter the topics, step by step against an independent implementation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.oracles import topics as oracle

import stickbreak as sb

Array = NDArray[np.float64]
K, WIDTH, STEPS = 5, 2, 17
PRIOR, WORD = 0.4 / 5, 0.2
# Weights of words and topics are float32 numbers in the local step.
CLOSE = 2e-5


def corpus(seed: int, n: int = 30, v: int = 25) -> Array:
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(v, 0.1), size=K)
    theta = rng.dirichlet(np.full(K, 0.3), size=n)
    # Lengths differ, so that shares of documents are not shares of words.
    return np.array([rng.multinomial(rng.integers(1, 90), weights @ phi) for weights in theta], dtype=float)


def fit(counts: Any, algorithm: Any, init: Any) -> sb.TopicFit:
    model = sb.TopicModel(sb.LatentDirichlet(K, PRIOR * K), word_concentration=WORD)
    found = sb.fit(model, counts, algorithm, init=init)
    assert isinstance(found, sb.TopicFit)
    return found


def options(objective: str, width: int | None, first_pass: Any = "plain") -> dict[str, Any]:
    words = sb.Words(first_pass=first_pass, warm_start=False, max_steps=STEPS, step_tol=0.0)
    return {"objective": objective, "sparsity": width, "units": words}


def start(counts: Array) -> tuple[NDArray[np.int64], Array]:
    labels = np.arange(len(counts)) % K
    return labels, np.array([counts[labels == topic].sum(0) for topic in range(K)])


def visit(counts: Array, sums: Array, objective: str, width: int | None) -> oracle.Step:
    log_phi = oracle.log_topics(sums, WORD, objective)
    return oracle.sparse_step(counts, log_phi, PRIOR, K if width is None else width, STEPS)


def agree(found: sb.TopicFit, sums: Array, counts: Array) -> None:
    np.testing.assert_allclose(found.counts, sums.sum(1), rtol=CLOSE, atol=1e-4)
    np.testing.assert_allclose(found.topics, (sums + WORD) / (sums + WORD).sum(1, keepdims=True), atol=CLOSE)
    np.testing.assert_allclose(found.counts.sum(), counts.sum(), rtol=1e-9)


each_objective = pytest.mark.parametrize("objective", ["map", "variational"])
each_width = pytest.mark.parametrize("width", [1, WIDTH, 3, None])


@each_objective
@each_width
@pytest.mark.filterwarnings("ignore::stickbreak.SparsityWarning")
def test_sparse_visits(objective: str, width: int | None) -> None:
    """Selections, the active set and steps between selections."""
    counts = corpus(21)
    labels, sums = start(counts)
    found = fit(counts, sb.Full(max_passes=2, tol=0, **options(objective, width)), labels)
    for _ in range(2):
        step = visit(counts, sums, objective, width)
        sums = step.sums
    agree(found, sums, counts)
    assert found.elbo == pytest.approx(oracle.bound(step, PRIOR, WORD, objective), rel=CLOSE)


@each_objective
def test_room_for_all_topics_is_dense(objective: str) -> None:
    counts = corpus(25)
    labels, _ = start(counts)
    kept, dense = (fit(counts, sb.Full(max_passes=3, tol=0, **options(objective, w)), labels) for w in (K, None))
    assert kept.elbo == dense.elbo
    np.testing.assert_array_equal(kept.topics, dense.topics)


@each_objective
@pytest.mark.parametrize("first_pass", ["plain", "scaled"])
@pytest.mark.parametrize("width", [WIDTH, None])
def test_memoized_passes(objective: str, first_pass: Any, width: int | None) -> None:
    """The start counts for nothing once a batch has been visited; later visits replace the earlier ones."""
    counts, n_batches = corpus(22), 3
    labels, total = start(counts)
    algorithm = sb.Memoized(
        n_batches, shuffle=False, max_passes=3, tol=0, **options(objective, width, first_pass=first_pass)
    )
    found = fit(counts, algorithm, labels)
    memo: list[oracle.Step | None] = [None] * n_batches
    batches = np.array_split(counts, n_batches)
    for _ in range(3):
        for index, batch in enumerate(batches):
            seen = sum(len(batches[visited]) for visited in range(n_batches) if memo[visited] is not None)
            growth = len(counts) / seen if first_pass == "scaled" and 0 < seen < len(counts) else 1.0
            memo[index] = visit(batch, growth * total, objective, width)
            total = np.sum([remembered.sums for remembered in memo if remembered is not None], axis=0)
    agree(found, total, counts)
    steps = [remembered for remembered in memo if remembered is not None]
    whole = oracle.Step(
        total,
        np.concatenate([remembered.counts for remembered in steps]),
        sum(remembered.entropy for remembered in steps),
    )
    assert found.elbo == pytest.approx(oracle.bound(whole, PRIOR, WORD, objective), rel=CLOSE)


@each_objective
@pytest.mark.parametrize("width", [WIDTH, None])
def test_stochastic_steps(objective: str, width: int | None) -> None:
    """A batch stands for all documents, by their number."""
    counts, size, delay, decay = corpus(23), 10, 1.0, 0.7
    labels, total = start(counts)
    algorithm = sb.Stochastic(size, delay, decay, shuffle=False, max_passes=2, **options(objective, width))
    found = fit(counts, algorithm, labels)
    batches = np.array_split(counts, len(counts) // size)
    for t, batch in enumerate(batches * 2, start=1):
        rate = (t + delay) ** -decay
        step = visit(batch, total, objective, width)
        total = (1 - rate) * total + rate * len(counts) / len(batch) * step.sums
    agree(found, visit(counts, total, objective, width).sums, counts)


def test_warm_documents_need_few_steps() -> None:
    """From the third pass on a document goes on from its counts: then few steps are as good as many."""
    counts = corpus(24)
    labels, _ = start(counts)
    few, many = (
        fit(counts, sb.Full(max_passes=12, tol=0, units=sb.Words(max_steps=steps, step_tol=0.0)), labels).elbo
        for steps in (10, 200)
    )
    cold = fit(counts, sb.Full(max_passes=12, tol=0, units=sb.Words(max_steps=1, warm_start=False)), labels).elbo
    assert cold < few
    assert few == pytest.approx(many, rel=2e-3)


@pytest.mark.long
@pytest.mark.parametrize("name", ["nips7605", "kos", "ap"])
def test_real_corpora(data_directory: Path, name: str) -> None:
    """Warm passes never lower the bound; eight topics a word are as good as all, and topics far better than one."""
    folder = data_directory / name
    if name == "nips7605":
        counts, test = (sparse.csr_array(sparse.load_npz(folder / f"{part}.npz")) for part in ("train", "test"))
    else:
        counts = sb.read_docword(next(folder.glob("docword*.txt.gz")))
        order = np.random.default_rng(0).permutation(counts.shape[0])
        counts, test = counts[np.sort(order[300:])], counts[np.sort(order[:300])]
    scores = {}
    for k, width in ((1, None), (50, 8), (50, None)):
        model = sb.TopicModel(sb.LatentDirichlet(k, 0.1 * k))
        found = sb.fit(model, counts, sb.Memoized(sparsity=width, max_passes=8, tol=0), seed=0)
        assert isinstance(found, sb.TopicFit)
        bounds = np.array([record.elbo for record in found.history][1:])
        assert (np.diff(bounds) >= -1e-6 * np.abs(bounds[1:])).all()
        np.testing.assert_allclose(found.counts.sum(), counts.sum(), rtol=1e-9)
        scores[k, width] = np.mean([found.document_completion(test, seed=seed) for seed in range(5)])
    assert scores[50, 8] > scores[1, None] + 0.2
    assert scores[50, 8] == pytest.approx(scores[50, None], abs=0.05)
