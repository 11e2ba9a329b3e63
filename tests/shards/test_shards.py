"""Batches that are visited in several shards."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import visible_bits


def rows(n: int = 900) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(rng.normal(scale=8.0, size=(3, 4))[np.arange(n) % 3])


def fitted(data: Any, shard_rows: int, **options: Any) -> sb.Fit:
    moves = (sb.Birth(), sb.Merge(), sb.Delete())
    algorithm = sb.Memoized(batches=4, shard_rows=shard_rows, moves=moves, **options)
    return sb.fit(sb.Mixture(likelihood=sb.Gaussian()), data, algorithm, seed=1)


@pytest.mark.parametrize("shard_rows", [1, 50, 224])
def test_shards_are_added_up(shard_rows: int) -> None:
    """Sums differ by rounding alone, and so do the fits."""
    X = rows()
    algorithm = {"batches": 4, "max_passes": 6, "tol": 0.0, "margin": None}
    model = sb.Mixture(likelihood=sb.Gaussian())
    whole = sb.fit(model, X, sb.Memoized(**algorithm), n_components=5)
    cut = sb.fit(model, X, sb.Memoized(**algorithm, shard_rows=shard_rows), n_components=5)
    assert visible_bits(cut, X) != visible_bits(whole, X)
    assert cut.elbo == pytest.approx(whole.elbo, rel=1e-9)
    np.testing.assert_allclose(cut.counts, whole.counts, rtol=1e-6)


def test_a_batch_of_at_most_that_many_rows_is_one_shard() -> None:
    X = rows()
    assert visible_bits(fitted(X, 225), X) == visible_bits(fitted(X, 2**17), X)


def test_moves_find_the_clusters_in_shards() -> None:
    assert fitted(rows(), 40).n_components == 3


@pytest.mark.parametrize("threads", [2, 3])
def test_no_bit_depends_on_threads(threads: int) -> None:
    X = rows()
    moves = (sb.Birth(), sb.Merge(), sb.Delete())
    algorithm = sb.Memoized(batches=4, shard_rows=40, moves=moves)
    model = sb.Mixture(likelihood=sb.Gaussian())
    one, several = (sb.fit(model, X, algorithm, seed=1, threads=number) for number in (1, threads))
    assert visible_bits(one, X) == visible_bits(several, X)


def test_a_stream_has_the_same_shards() -> None:
    X = rows()
    streamed = fitted(lambda: iter(np.array_split(X, 7)), 40, shuffle=False)
    assert visible_bits(streamed, X) == visible_bits(fitted(X, 40, shuffle=False), X)


def test_a_checkpoint_of_other_shards_is_refused(tmp_path: Path) -> None:
    X, place = rows(), tmp_path / "checkpoint"
    model, kept = sb.Mixture(likelihood=sb.Gaussian()), sb.Checkpoint(place, every_seconds=0)
    sb.fit(model, X, sb.Memoized(batches=4, shard_rows=40, max_passes=2, tol=0.0), checkpoint=kept)
    with pytest.raises(sb.CheckpointError, match="shards"):
        sb.fit(model, X, sb.Memoized(batches=4, shard_rows=50, max_passes=4, tol=0.0), checkpoint=kept)
    further = sb.Memoized(batches=4, shard_rows=40, max_passes=4, tol=0.0)
    continued = sb.fit(model, X, further, checkpoint=kept)
    assert visible_bits(continued, X) == visible_bits(sb.fit(model, X, further), X)
