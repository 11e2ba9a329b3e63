"""Moves depend only on the seed and the data: not on threads, storage or interruptions."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import clustered_rows
from growing import MOVES, USUAL, bits, every_set

ROWS = clustered_rows(np.random.default_rng(5), 4000, 4, 6)
MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
# Gains of a ten thousandth of a nat a row are nothing here; then all is tried once more, and the run ends.
ENDS_BY_ITSELF = {"max_passes": 200, "tol": 1e-4}


def fit(moves: Any, rows: Any = ROWS, model: sb.Mixture = MODEL, **options: Any) -> sb.Fit:
    settings = {"batches": 4, "sparsity": 3, "max_passes": 6, "tol": 0.0} | options.pop("settings", {})
    return sb.fit(model, rows, sb.Memoized(**settings, moves=moves), seed=2, progress=False, **options)


@every_set
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.one_in(3)
def test_threads(moves: Any, dtype: type) -> None:
    rows = ROWS.astype(dtype)
    one, two, three = (fit(moves, rows, threads=threads) for threads in (1, 2, 3))
    assert bits(one, rows) == bits(two, rows) == bits(three, rows)
    assert one.n_components > 1


@pytest.mark.parametrize("process", [sb.DirichletProcess(truncation="tail"), sb.PitmanYor(discount=0.3)])
def test_threads_of_other_models(process: Any) -> None:
    counts = np.random.default_rng(3).poisson(np.exp(ROWS.clip(-2, 2)))
    model = sb.Mixture(likelihood=sb.Poisson(), process=process)
    one, three = (fit(MOVES["all"], counts, model, threads=threads) for threads in (1, 3))
    assert bits(one, counts) == bits(three, counts)
    assert one.n_components > 1


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_equal_components_are_deleted_one_by_one(threads: int) -> None:
    """Each of three components of a cluster can go, and so can two of them, but not all three."""
    rng = np.random.default_rng(4)
    cluster = rng.integers(4, size=600)
    rows = rng.normal(scale=20.0, size=(4, 2))[cluster] + rng.normal(size=(600, 2))
    # With the same statistics in each, all deletions gain the same.
    thirds = 3 * cluster + rng.integers(3, size=600)
    found = fit((sb.Delete(),), rows, init=thirds, threads=threads)
    assert found.n_components == 4
    assert len(set(zip(found.predict(rows), cluster, strict=True))) == 4
    assert bits(found, rows) == bits(fit((sb.Delete(),), rows, init=thirds, threads=1), rows)


@every_set
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.one_in(3)
def test_rows_read_in_blocks(moves: Any, weighted: bool) -> None:
    def blocks() -> Iterator[np.ndarray]:
        for begin in range(0, len(ROWS), 700):
            yield ROWS[begin : begin + 700]

    weights = np.random.default_rng(1).choice([0.0, 0.5, 0.75, 1.0], size=len(ROWS)) if weighted else None
    in_order = {"settings": {"shuffle": False}, "sample_weight": weights}
    streamed, whole = fit(moves, blocks, **in_order), fit(moves, **in_order)
    assert bits(streamed, ROWS) == bits(whole, ROWS)
    assert whole.n_components > 1


@every_set
@pytest.mark.one_in(3)
def test_one_batch_is_full(moves: Any) -> None:
    settings: dict[str, Any] = {"sparsity": 3, "max_passes": 6, "tol": 0.0, "moves": moves}
    full, memoized = (
        sb.fit(MODEL, ROWS, algorithm, seed=2, progress=False)
        for algorithm in (sb.Full(**settings), sb.Memoized(batches=1, **settings))
    )
    assert bits(full, ROWS) == bits(memoized, ROWS)


@every_set
@pytest.mark.parametrize("settings", [{}, ENDS_BY_ITSELF], ids=["all passes", "until nothing is left to try"])
@pytest.mark.slow
def test_every_checkpoint_leads_to_the_same_end(
    moves: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Includes checkpoints within a pass, with parts or fresh components on trial, and in the last round."""
    path, written = tmp_path / "fit.checkpoint", []
    write = sb.run.checkpoints.CheckpointFile.write

    def keep(self: Any, run: bytes) -> None:
        write(self, run)
        written.append(path.read_bytes())

    monkeypatch.setattr(sb.run.checkpoints.CheckpointFile, "write", keep)
    rows = ROWS[:800]
    # A state that comes while another is being written is left out, so how many there are depends on time.
    while len(written) < 5:
        path.unlink(missing_ok=True)
        whole = fit(moves, rows, checkpoint=sb.Checkpoint(path, every_seconds=0), settings=settings)
    states = written[:: 1 + len(written) // 8]
    assert not settings or whole.stop_reason is sb.StopReason.CONVERGED
    for state in states:
        path.write_bytes(state)
        resumed = fit(moves, rows, checkpoint=sb.Checkpoint(path, every_seconds=0), settings=settings)
        assert bits(resumed, rows) == bits(whole, rows)
    assert bits(fit(moves, rows, settings=settings), rows) == bits(whole, rows)


@every_set
@pytest.mark.one_in(3)
def test_a_finished_fit_may_go_on_for_longer(moves: Any, tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=0)
    for passes in (1, 2, 4):
        fit(moves, checkpoint=checkpoint, settings={"max_passes": passes})
    assert bits(fit(moves, checkpoint=checkpoint), ROWS) == bits(fit(moves), ROWS)


@every_set
@pytest.mark.one_in(5)
def test_a_fit_that_has_tried_all_once_may_go_on_for_longer(moves: Any, tmp_path: Path) -> None:
    rows = ROWS[:500]
    whole = fit(moves, rows, settings=ENDS_BY_ITSELF)
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint")
    for passes in range(1, len(whole.history)):
        # One pass more than the last time; a copy goes on to the end.
        fit(moves, rows, checkpoint=checkpoint, settings={**ENDS_BY_ITSELF, "max_passes": passes})
        copy = sb.Checkpoint(shutil.copy(checkpoint.path, tmp_path / "copy.checkpoint"))
        resumed = fit(moves, rows, checkpoint=copy, settings=ENDS_BY_ITSELF)
        assert bits(resumed, rows) == bits(whole, rows)


def test_other_moves_are_another_run(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    fit(USUAL, checkpoint=sb.Checkpoint(path), n_components=3)
    before = path.read_bytes()
    for others in [(), USUAL[:2], (sb.Birth(fresh=9), *USUAL[1:])]:
        with pytest.raises(sb.CheckpointError, match="moves"):
            fit(others, checkpoint=sb.Checkpoint(path), n_components=3)
        assert path.read_bytes() == before
