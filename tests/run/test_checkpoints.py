"""A fit stopped in any way continues from its checkpoint to the same bits as an uninterrupted one."""

import dataclasses
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import clustered_rows, visible_bits
from stickbreak.io import files

MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
ROWS = clustered_rows(np.random.default_rng(3), 400, 3, 4)
ALGORITHMS = {
    "full": sb.Full(max_passes=6, tol=0.0),
    "memoized": sb.Memoized(batches=4, sparsity=2, max_passes=6, tol=0.0),
}
STARTS: dict[str, Any] = {
    "kmeans++": "kmeans++",
    "random": "random",
    "labels": np.arange(len(ROWS)) % 5,
    "responsibilities": np.full((len(ROWS), 5), 0.2),
}


def fit(checkpoint: sb.Checkpoint | None = None, **changes: Any) -> sb.Fit:
    settings: dict[str, Any] = {"n_components": 5, "seed": 3, "progress": False}
    data, algorithm = changes.pop("data", ROWS), changes.pop("algorithm", ALGORITHMS["memoized"])
    model = changes.pop("model", MODEL)
    return sb.fit(model, data, algorithm, checkpoint=checkpoint, **(settings | changes))


def same(one: sb.Fit, other: sb.Fit) -> bool:
    """Return whether everything but the seconds has the same bits."""
    passes = [[(r.index, r.elbo, r.n_components) for r in fit.history] for fit in (one, other)]
    return visible_bits(one, ROWS) == visible_bits(other, ROWS) and repr(passes[0]) == repr(passes[1])


class Crash(BaseException):
    """Ends a fit from a callback, so that only its checkpoint remains."""


def crash_after(n_passes: int) -> Any:
    def crash(record: sb.Record) -> None:
        if record.index + 1 == n_passes:
            raise Crash

    return crash


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
@pytest.mark.parametrize("init", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("passes", [1, 3])
def test_a_crashed_fit_goes_on(algorithm: sb.Full, init: Any, passes: int, tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=0)
    with pytest.raises(Crash):
        fit(checkpoint, algorithm=algorithm, init=init, callbacks=[crash_after(passes)])
    seen: list[int] = []
    resumed = fit(checkpoint, algorithm=algorithm, init=init, callbacks=[lambda record: seen.append(record.index)])
    assert seen == list(range(passes, 6))
    assert same(resumed, fit(algorithm=algorithm, init=init))
    assert resumed.stop_reason is sb.StopReason.MAX_PASSES


def test_every_state_between_two_batches_leads_to_the_same_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All checkpoints of a fit are kept; from each of them the fit ends alike, in the middle of a pass or not."""
    written: list[bytes] = []
    write = sb.run.checkpoints.CheckpointFile.write

    def keep(self: Any, run: bytes) -> None:
        write(self, run)
        written.append(path.read_bytes())

    monkeypatch.setattr(sb.run.checkpoints.CheckpointFile, "write", keep)
    path = tmp_path / "fit.checkpoint"
    # A state that comes while another is being written is left out, so how many there are depends on time.
    while len(written) < 3:
        path.unlink(missing_ok=True)
        whole = fit(sb.Checkpoint(path, every_seconds=0))
    states = list(written)
    for state in states:
        path.write_bytes(state)
        assert same(fit(sb.Checkpoint(path, every_seconds=0)), whole)


def test_float32_weights_and_restarts_go_on_too(tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=0)
    changes: dict[str, Any] = {
        "data": ROWS.astype(np.float32),
        "sample_weight": np.random.default_rng(1).uniform(0.5, 2.0, len(ROWS)),
        "n_init": 3,
    }
    passes = 0

    def crash(_: sb.Record) -> None:
        nonlocal passes
        passes += 1
        if passes == 9:  # in the middle of the second of three runs
            raise Crash

    with pytest.raises(Crash):
        fit(checkpoint, callbacks=[crash], **changes)
    passes = 10**6
    resumed = fit(checkpoint, callbacks=[crash], **changes)
    assert passes == 10**6 + 9
    assert same(resumed, fit(**changes))


GROWING: dict[str, Any] = {
    "algorithm": sb.Memoized(batches=4, moves=(sb.Birth(), sb.Merge(), sb.Delete()), max_passes=6, tol=0.0),
    "n_components": None,
    "n_init": 3,
}


def test_wide_starts_go_on_too(tmp_path: Path) -> None:
    """Two starts from one component, and then a wide one, from as many components as it would have had."""
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=0)
    counts: list[int] = []

    def crash(record: sb.Record) -> None:
        counts.append(record.n_components)
        if len(counts) == 15:
            raise Crash

    with pytest.raises(Crash):
        fit(checkpoint, callbacks=[crash], **GROWING)
    header, arrays = files.read(checkpoint.path, files.CHECKPOINT)
    assert header["index"] == 2
    assert same(fit(checkpoint, **GROWING), fit(**GROWING))
    for n_wide in (0, 1, 10**6, 1.5, "many", None):
        files.write(checkpoint.path, header | {"n_wide": n_wide}, arrays, files.CHECKPOINT)
        with pytest.raises(sb.CheckpointError):
            fit(checkpoint, **GROWING)
    files.write(checkpoint.path, {k: v for k, v in header.items() if k != "n_wide"}, arrays, files.CHECKPOINT)
    with pytest.raises(sb.CheckpointError, match="damaged"):
        fit(checkpoint, **GROWING)


def test_a_finished_fit_is_read_back_and_may_go_on_for_longer(tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint")
    short = sb.Memoized(batches=4, sparsity=2, max_passes=2, tol=0.0)
    first = fit(checkpoint, algorithm=short)
    again = fit(checkpoint, algorithm=short, callbacks=[crash_after(1)])
    assert same(again, first)
    assert again.stop_reason is sb.StopReason.MAX_PASSES
    assert same(fit(checkpoint, threads=1), fit())


def test_a_converged_fit_stays_converged(tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint")
    algorithm = sb.Memoized(batches=4, sparsity=2, max_passes=1000, tol=1e-4)
    first = fit(checkpoint, algorithm=algorithm)
    assert first.stop_reason is sb.StopReason.CONVERGED
    again = fit(checkpoint, algorithm=algorithm)
    assert again.stop_reason is sb.StopReason.CONVERGED
    assert same(again, first)


def test_a_callback_that_stops_leaves_a_checkpoint(tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=10**9)
    stopped = fit(checkpoint, callbacks=[lambda record: record.index == 1])
    assert stopped.stop_reason is sb.StopReason.CALLBACK
    assert same(fit(checkpoint), fit())


OTHERS: dict[str, dict[str, Any]] = {
    "data": {"data": ROWS + 1e-9},
    "order": {"data": ROWS[::-1]},
    "sign": {"data": ROWS * np.array([-1.0, -1.0, 1.0])},
    "type": {"data": ROWS.astype(np.float32)},
    "weights": {"sample_weight": np.linspace(1.0, 1.1, len(ROWS))},
    "likelihood": {"model": sb.Mixture(likelihood=sb.Gaussian(dof=9), process=sb.DirichletProcess())},
    "process": {"model": sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(concentration=2))},
    "components": {"n_components": 4},
    "batches": {"algorithm": sb.Memoized(batches=5, sparsity=2, max_passes=6, tol=0.0)},
    "shuffle": {"algorithm": sb.Memoized(batches=4, sparsity=2, shuffle=False, max_passes=6, tol=0.0)},
    "sparsity": {"algorithm": sb.Memoized(batches=4, sparsity=3, max_passes=6, tol=0.0)},
    "init": {"init": "random"},
    "labels": {"init": np.zeros(len(ROWS), dtype=int)},
    "seed": {"seed": 4},
    "n_init": {"n_init": 2},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_another_fit_is_refused_and_nothing_overwritten(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    fit(sb.Checkpoint(path))
    before = path.read_bytes()
    with pytest.raises(sb.CheckpointError, match="give another path"):
        fit(sb.Checkpoint(path), **changes)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_differs_is_named(tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint")
    fit(checkpoint)
    with pytest.raises(sb.CheckpointError, match="n_components = 5, but now n_components = 4"):
        fit(checkpoint, n_components=4)
    with pytest.raises(sb.CheckpointError, match="seed = 3"):
        fit(checkpoint, seed=5)


def test_files_that_are_no_checkpoint_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    fit(sb.Checkpoint(path))
    good = path.read_bytes()
    model = tmp_path / "model.safetensors"
    fit().save(model)
    random_state = random.Random(5)
    damaged = [b"", b"hello", good[:-1], good[: len(good) // 2], good + b"x", model.read_bytes()]
    for _ in range(200):
        flipped = bytearray(good)
        flipped[random_state.randrange(len(good))] ^= 1 << random_state.randrange(8)
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        try:
            result = fit(sb.Checkpoint(path))
        except sb.CheckpointError:
            assert path.read_bytes() == content
        else:  # a flip in what a reader leaves alone
            assert same(result, fit())


def test_a_checkpoint_of_the_version_before_is_refused_with_its_version(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    fit(sb.Checkpoint(path))
    parts = files.read(path, files.CHECKPOINT)
    files.write(path, *parts, dataclasses.replace(files.CHECKPOINT, version=11))
    before = path.read_bytes()
    with pytest.raises(sb.CheckpointError, match=r"an older stickbreak \(format 11; this one reads from 12 on\)"):
        fit(sb.Checkpoint(path))
    assert path.read_bytes() == before


def test_a_locked_checkpoint(lock: Callable[[str], None]) -> None:
    fit(sb.Checkpoint("fit.checkpoint"))
    lock("fit.checkpoint")
    with pytest.raises(sb.CheckpointError, match=r"^fit\.checkpoint: cannot be read: Permission denied$"):
        files.read("fit.checkpoint", files.CHECKPOINT)


@pytest.mark.parametrize("path", ["missing/fit.checkpoint", ".", "a\0b"])
def test_a_path_that_cannot_be_written_is_said_first(path: str, tmp_path: Path) -> None:
    with pytest.raises(sb.CheckpointError):
        fit(sb.Checkpoint(str(tmp_path) + "/" + path), data=ROWS * np.nan)


def test_bad_arguments() -> None:
    for arguments in ({"path": 3}, {"path": "x", "every_seconds": "often"}):
        with pytest.raises(sb.InvalidType) as caught:
            sb.Checkpoint(**arguments)
        assert caught.value.argument == list(arguments)[-1]
    for every in (-1, float("nan"), float("inf")):
        with pytest.raises(sb.InvalidArgument) as wrong:
            sb.Checkpoint("x", every_seconds=every)
        assert wrong.value.argument == "every_seconds"
    with pytest.raises(sb.InvalidType) as refused:
        fit("fit.checkpoint")  # type: ignore[arg-type]
    assert refused.value.argument == "checkpoint"


def test_a_checkpoint_that_fails_later_does_not_end_the_fit(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "fit.checkpoint"

    def remove(record: sb.Record) -> None:
        if record.index == 1:
            shutil.rmtree(folder)

    with pytest.warns(RuntimeWarning, match="goes on without a checkpoint") as warnings:
        result = fit(sb.Checkpoint(path, every_seconds=10**9), callbacks=[remove])
    assert len(warnings) == 1
    assert same(result, fit())


PROGRAM_OF_A_WRITER = """
import sys, time
import numpy as np
import stickbreak as sb

rows = np.random.default_rng(0).normal(size=(200, 2))
def wait(record):
    print("running", flush=True)
    sys.stdin.readline()
sb.fit(
    sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(max_passes=2, tol=0.0), n_components=2, progress=False,
    checkpoint=sb.Checkpoint(sys.argv[1], every_seconds=0), callbacks=[wait],
)
"""


def test_another_process_may_not_write_to_the_same_path(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    command = [sys.executable, "-c", PROGRAM_OF_A_WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "running\n"
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(sb.CheckpointError, match="another run writes to this checkpoint"):
            fit(sb.Checkpoint(path))
        assert sorted(os.listdir(tmp_path)) == before
        # A killed process holds no lock.
        writer.kill()
        writer.wait()
    path.unlink()
    whole = fit(sb.Checkpoint(path))
    assert same(whole, fit())
    assert os.listdir(tmp_path) == [path.name]


def test_a_second_fit_of_this_process_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    path, refused = tmp_path / "fit.checkpoint", []

    def start_another(record: sb.Record) -> None:
        with pytest.raises(sb.CheckpointError) as caught:
            fit(sb.Checkpoint(path))
        refused.append(str(caught.value))

    whole = fit(sb.Checkpoint(path), callbacks=[start_another])
    assert len(refused) == len(whole.history)
    assert same(whole, fit())
    # And not after it has ended, or failed before it began.
    with pytest.raises(sb.InvalidArgument):
        fit(sb.Checkpoint(path), n_components=10**6)
    assert same(whole, fit(sb.Checkpoint(path)))
