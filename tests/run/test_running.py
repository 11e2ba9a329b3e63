"""A fit while it runs: history, convergence, stop reasons, callbacks and the progress bar."""

import math
import os
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import stickbreak as sb
from cases import clustered_rows

MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return clustered_rows(np.random.default_rng(0), 600, 2, 4)


def fit(rows: np.ndarray, algorithm: object, **options: object) -> sb.Fit:
    return sb.fit(MODEL, rows, algorithm, **{"n_components": 4, "progress": False} | options)


ALGORITHMS = pytest.mark.parametrize(
    "algorithm",
    [sb.Full(max_passes=7, tol=0.0), sb.Memoized(batches=5, max_passes=7, tol=0.0)],
    ids=["full", "memoized"],
)


@ALGORITHMS
def test_history_has_one_record_a_pass(rows: np.ndarray, algorithm: object) -> None:
    """The bound is exact, and so a number, from the end of the first pass on; time only grows."""
    history = fit(rows, algorithm).history
    assert len(history) == 7
    indices = [record.index for record in history]
    assert indices == list(range(indices[0], indices[0] + 7))
    assert indices[0] in (0, 1)
    assert all(math.isfinite(record.elbo) for record in history)
    seconds = [record.seconds for record in history]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0
    for record in history:
        assert record.n_components == 4
        assert record.proposed == record.accepted == 0
        assert record.evaluated_share == 1.0


@ALGORITHMS
def test_bound_of_the_first_pass_is_exact(rows: np.ndarray, algorithm: object) -> None:
    """A fit of one pass ends with the first bound of a longer one, and the last bound is that of the fit."""
    longer = fit(rows, algorithm)
    once = fit(rows, type(algorithm)(**{**vars(algorithm), "max_passes": 1}))
    assert once.elbo == once.history[0].elbo == longer.history[0].elbo
    assert longer.elbo == longer.history[-1].elbo


@ALGORITHMS
def test_zero_tolerance_never_stops_early(rows: np.ndarray, algorithm: object) -> None:
    long = fit(rows, type(algorithm)(**{**vars(algorithm), "max_passes": 400}))
    assert len(long.history) == 400
    assert long.stop_reason is sb.StopReason.MAX_PASSES
    assert long.error is None


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("batches", [1, 6])
def test_convergence(rows: np.ndarray, tol: float, batches: int) -> None:
    """A fit stops after the first pass that gains less than `tol` nats per row, or next to nothing, and not before."""
    result = fit(rows, sb.Memoized(batches=batches, tol=tol, max_passes=3000))
    assert result.stop_reason is sb.StopReason.CONVERGED
    gains = np.diff([record.objective for record in result.history])
    of_base = np.array([record.base_measure_gain for record in result.history[1:]])
    small = max(tol * len(rows), min(1e-3, 1000.0 * tol))
    assert max(gains[-1], of_base[-1]) < small
    assert (np.maximum(gains, of_base)[:-1] >= small).all()
    assert len(result.history) >= 2


@ALGORITHMS
def test_callbacks_see_the_records(rows: np.ndarray, algorithm: object) -> None:
    seen: list[sb.Record] = []
    result = fit(rows, algorithm, callbacks=[lambda record: seen.append(record)])
    assert seen == result.history


@ALGORITHMS
def test_callback_stops(rows: np.ndarray, algorithm: object) -> None:
    calls: list[int] = []

    def stop(record: sb.Record) -> bool:
        calls.append(record.index)
        return len(calls) == 3

    result = fit(rows, algorithm, callbacks=(stop,))
    assert result.stop_reason is sb.StopReason.CALLBACK
    assert len(result.history) == len(calls) == 3
    whole = fit(rows, type(algorithm)(**{**vars(algorithm), "max_passes": 3}))
    assert result.elbo == whole.elbo
    np.testing.assert_array_equal(result.components["mean"], whole.components["mean"])


def test_callback_that_says_nothing_goes_on(rows: np.ndarray) -> None:
    result = fit(rows, sb.Full(max_passes=4, tol=0.0), callbacks=[lambda _: None, lambda _: False, lambda _: 0])
    assert len(result.history) == 4


def test_all_callbacks_are_called(rows: np.ndarray) -> None:
    seen: list[str] = []
    callbacks = [lambda _: bool(seen.append("first")) or True, lambda _: seen.append("second")]
    fit(rows, sb.Full(max_passes=4, tol=0.0), callbacks=callbacks)
    assert seen == ["first", "second"]


def test_error_in_a_callback_is_raised(rows: np.ndarray) -> None:
    calls: list[int] = []

    def fail(record: sb.Record) -> None:
        calls.append(record.index)
        raise LookupError("from the callback")

    with pytest.raises(LookupError, match="from the callback"):
        fit(rows, sb.Full(max_passes=50, tol=0.0), callbacks=[fail])
    assert len(calls) == 1


def test_callback_may_fit_itself(rows: np.ndarray) -> None:
    """No lock is held while a callback runs."""
    inner: list[float] = []

    def nested(_: sb.Record) -> None:
        inner.append(fit(rows[:50], sb.Full(max_passes=2, tol=0.0)).elbo)

    fit(rows, sb.Full(max_passes=2, tol=0.0), callbacks=[nested])
    assert len(inner) == 2
    assert inner[0] == inner[1]


def test_fits_in_several_threads(rows: np.ndarray) -> None:
    expected = fit(rows, sb.Full(max_passes=5, tol=0.0), threads=1).elbo
    found: list[float] = []
    workers = [
        threading.Thread(target=lambda: found.append(fit(rows, sb.Full(max_passes=5, tol=0.0), threads=2).elbo))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [expected] * 4


def test_nothing_is_printed_unless_asked(rows: np.ndarray, capfd: pytest.CaptureFixture[str]) -> None:
    for progress in [False, None]:  # stderr is no terminal here
        fit(rows, sb.Memoized(batches=3, max_passes=5), progress=progress)
    assert capfd.readouterr() == ("", "")


def test_progress_goes_to_stderr(rows: np.ndarray, capfd: pytest.CaptureFixture[str]) -> None:
    fit(rows, sb.Memoized(batches=3, max_passes=5, tol=0.0), progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "pass" in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (0.45, True)])
@pytest.mark.one_in(2)
def test_progress_on_a_terminal(seconds: float, shown: bool) -> None:
    """By default the bar shows only on a terminal and for long fits; here callbacks make the fit long."""
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
    script = f"""
        import sys, time
        import numpy as np
        import stickbreak as sb
        rows = np.random.default_rng(0).standard_normal((200, 2))
        model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        sb.fit(model, rows, sb.Full(max_passes=8, tol=0.0), n_components=2, callbacks=[lambda _: time.sleep({seconds})])
    """
    main, other = pty.openpty()
    size = struct.pack("HHHH", 24, 80, 0, 0)  # a new one has no columns to draw a bar in
    fcntl.ioctl(other, termios.TIOCSWINSZ, size)
    run = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stderr=other, stdout=subprocess.PIPE)
    os.close(other)
    written = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # the child has closed its side
            break
        if not part:
            break
        written += part
    os.close(main)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, written
    assert out == b""
    assert (b"pass" in written) == shown


def test_a_start_with_more_components_a_row_than_the_fit_keeps_is_not_taken_for_convergence() -> None:
    """The first pass may then lower the bound of the start, which is no reason to stop."""
    X = np.random.default_rng(3).normal(size=(500, 2))
    table = np.random.default_rng(4).dirichlet(np.full(12, 3.0), size=len(X))
    model = sb.Mixture(sb.Gaussian())
    start = sb.fit(model, X, sb.Full(max_passes=0), init=table)
    fit = sb.fit(model, X, sb.Full(sparsity=1, max_passes=20), init=table)
    assert fit.history[0].elbo < start.elbo
    assert len(fit.history) > 1
    assert fit.elbo > fit.history[0].elbo


@pytest.mark.parametrize("reading", [2, 6])
def test_a_source_may_end_the_process(reading: int, rows: np.ndarray, tmp_path: Path) -> None:
    """Before the first pass is complete and later; `sys.exit` is no failure of the source."""
    readings = 0

    def blocks() -> Iterator[np.ndarray]:
        nonlocal readings
        readings += 1
        yield rows
        if readings == reading:
            sys.exit(3)

    algorithm = sb.Memoized(batches=1, shuffle=False, max_passes=30, tol=0)
    checkpoint = sb.Checkpoint(tmp_path / "run.checkpoint")
    with pytest.raises(SystemExit) as caught:
        sb.fit(MODEL, blocks, algorithm, n_components=2, checkpoint=checkpoint, progress=False)
    assert caught.value.code == 3
    assert readings == reading
    # The lock is free again.
    assert sb.fit(MODEL, blocks, algorithm, n_components=2, checkpoint=checkpoint, progress=False).n_components == 2
