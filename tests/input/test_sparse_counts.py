"""Sparse counts of many words: batch summaries store nonzeros only, which changes no result."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import stickbreak as sb
from stickbreak.model.likelihoods import Likelihood
from stickbreak.run.algorithms import Algorithm
from stickbreak.run.moves import Move

K = 4
WORDS = 1200
LIKELIHOODS = [sb.Multinomial(), sb.Poisson(), sb.Bernoulli()]


def table(n: int, seed: int = 0) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Return rows of six words, five of them among the twenty words of the row's group."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(K, size=n)
    columns = 20 * labels[:, np.newaxis] + rng.integers(20, size=(n, 6))
    columns[:, 0] = rng.integers(WORDS, size=n)
    rows = np.repeat(np.arange(n), 6)
    return sparse.csr_array((np.ones(6 * n), (rows, columns.ravel())), shape=(n, WORDS)), labels


def counts_for(likelihood: Likelihood, n: int) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    rows, labels = table(n)
    if isinstance(likelihood, sb.Bernoulli):
        rows.data = np.minimum(rows.data, 1.0)
    return rows, labels


def fit(likelihood: Likelihood, rows: object, algorithm: Algorithm, **options: object) -> sb.Fit:
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess())
    return sb.fit(model, rows, algorithm, progress=False, **options)  # type: ignore[arg-type]


def assert_same_bits(a: sb.Fit, b: sb.Fit) -> None:
    assert (a.elbo, a.objective) == (b.elbo, b.objective)
    np.testing.assert_array_equal(a.counts, b.counts)
    for name, values in a.components.items():
        np.testing.assert_array_equal(values, b.components[name])


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("moves", [(), (sb.Birth(), sb.Merge(), sb.Delete())], ids=["no moves", "moves"])
@pytest.mark.one_in(3)
def test_sparse_rows_come_to_what_dense_rows_come_to(likelihood: Likelihood, moves: tuple[Move, ...]) -> None:
    rows, labels = counts_for(likelihood, 400)
    start = labels + K * (np.arange(400) % 2)
    algorithm = sb.Memoized(batches=4, max_passes=12, tol=0, moves=moves)
    found, expected = (fit(likelihood, table_form, algorithm, init=start) for table_form in (rows, rows.toarray()))

    assert found.n_components == expected.n_components
    assert found.elbo == pytest.approx(expected.elbo, rel=1e-9)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-6, atol=1e-6)
    bounds = np.array([record.objective for record in found.history])
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:2], ids=lambda value: type(value).__name__)
def test_threads_change_no_bit(likelihood: Likelihood) -> None:
    rows, labels = counts_for(likelihood, 500)
    algorithm = sb.Memoized(batches=5, max_passes=6, tol=0, moves=(sb.Birth(), sb.Merge(), sb.Delete()))
    one, two = (fit(likelihood, rows, algorithm, init=labels, threads=threads) for threads in (1, 2))
    assert_same_bits(one, two)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("passes", [1, 4])
@pytest.mark.one_in(3)
def test_a_run_goes_on_from_a_checkpoint_to_the_same_bits(likelihood: Likelihood, passes: int, tmp_path: Path) -> None:
    rows, labels = counts_for(likelihood, 500)
    moves = (sb.Birth(), sb.Merge(), sb.Delete())

    def run(passes: int, checkpoint: sb.Checkpoint | None = None) -> sb.Fit:
        algorithm = sb.Memoized(batches=5, max_passes=passes, tol=0, moves=moves)
        return fit(likelihood, rows, algorithm, init=labels % 3, checkpoint=checkpoint)

    checkpoint = sb.Checkpoint(tmp_path / "run", every_seconds=0)
    run(passes, checkpoint)
    assert_same_bits(run(8, checkpoint), run(8))


@pytest.mark.parametrize(("n", "words", "batches"), [(10_000, WORDS, 2), (10_000, 40_000, 1), (4_000, WORDS, 1)])
def test_automatic_batches_have_as_many_values_as_columns(n: int, words: int, batches: int) -> None:
    rng = np.random.default_rng(0)
    values = (np.ones(6 * n), (np.repeat(np.arange(n), 6), rng.integers(words, size=6 * n)))
    rows, labels = sparse.csr_array(values, shape=(n, words)), rng.integers(K, size=n)
    found, expected = (
        fit(sb.Multinomial(), rows, sb.Memoized(batches=setting, max_passes=2, tol=0), init=labels)
        for setting in ("auto", batches)
    )
    assert_same_bits(found, expected)
