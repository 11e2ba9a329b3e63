"""Ctrl-C during a fit, and the interpreter's lock. Each case runs in a process of its own, which gets a real signal.

Nothing here measures time; the limits are there only so that a hanging process fails the test.
"""

import json
import math
import os
import signal
import subprocess
import sys
import textwrap

import pytest

HANG = 120

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")

COMMON = """
import json, os, signal, sys, threading, time
import numpy as np
import stickbreak as sb

model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
# What runs in the background may have come to ignore SIGINT, and what it starts inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)

def say(text):
    print(text, flush=True)

def report(fit, **more):
    history = [record.elbo for record in fit.history]
    say(json.dumps({"reason": fit.stop_reason.name, "elbo": fit.elbo, "history": history,
                    "counts": float(fit.counts.sum()), "falling": bool((np.diff(fit.counts) <= 0).all()),
                    "finite": bool(np.isfinite(fit.components["mean"]).all()), **more}))
"""


def start(script: str) -> subprocess.Popen[str]:
    source = COMMON + textwrap.dedent(script)
    return subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def finish(run: subprocess.Popen[str]) -> str:
    try:
        out, err = run.communicate(timeout=HANG)
    except subprocess.TimeoutExpired:
        run.kill()
        out, err = run.communicate()
        pytest.fail(f"the fit did not stop; stderr: {err}")
    assert run.returncode == 0, err
    return out


@pytest.mark.parametrize("algorithm", ["sb.Full", "sb.Memoized"])
def test_interrupt_returns_the_last_complete_state(algorithm: str) -> None:
    """Ctrl-C during endless passes gives a fit, not an exception.

    A pass over one batch counts when it is complete. With several batches every visit makes a state of all rows, so the
    state may be newer than the last record, and its bound above.
    """
    run = start(f"""
        rows = np.random.default_rng(0).standard_normal((20_000, 4))
        once = threading.Event()

        def announce(record):
            if not once.is_set():
                once.set()
                say("running")

        fit = sb.fit(model, rows, {algorithm}(max_passes=10**9, tol=0.0), n_components=20, progress=False,
                     callbacks=[announce])
        report(fit, evaluated=fit.evaluate(rows))
    """)
    assert run.stdout is not None
    assert run.stdout.readline() == "running\n"
    run.send_signal(signal.SIGINT)
    result = json.loads(finish(run).splitlines()[-1])
    assert result["reason"] == "INTERRUPTED"
    assert len(result["history"]) >= 1
    # The cost of the margin, and rounding.
    slack = 20_000 * 20 * math.exp(-20.0) + 1e-9 * abs(result["elbo"])
    if algorithm == "sb.Full":
        assert result["elbo"] == result["history"][-1]
    else:
        assert result["elbo"] >= result["history"][-1] - slack
    # The bound is that of the components which are returned.
    assert result["evaluated"] >= result["elbo"] - slack
    assert result["counts"] == pytest.approx(20_000)
    assert result["falling"]
    assert result["finite"]


@pytest.mark.slow
def test_interrupt_does_not_wait_for_the_end_of_a_pass() -> None:
    """One pass takes seconds here; the state returned is that of the pass before."""
    run = start("""
        rows = np.random.default_rng(0).standard_normal((100_000, 24))
        passes = []

        def announce(record):
            passes.append(record.seconds)
            say("pass")

        labels = np.arange(len(rows)) % 250
        fit = sb.fit(model, rows, sb.Full(sparsity=None, max_passes=10**9, tol=0.0), init=labels, progress=False,
                     callbacks=[announce])
        report(fit)
    """)
    assert run.stdout is not None
    assert run.stdout.readline() == "pass\n"
    run.send_signal(signal.SIGINT)
    lines = finish(run).splitlines()
    result = json.loads(lines[-1])
    assert result["reason"] == "INTERRUPTED"
    assert len(result["history"]) == 1


def test_interrupt_before_there_is_a_state() -> None:
    """While the seeds are still being chosen there is nothing to return, so KeyboardInterrupt is raised."""
    run = start("""
        rows = np.random.default_rng(0).standard_normal((300_000, 24))
        threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            fit = sb.fit(model, rows, sb.Full(max_passes=10**9, tol=0.0), n_components=4000, progress=False)
        except KeyboardInterrupt:
            say("KeyboardInterrupt")
        else:
            report(fit)
    """)
    assert finish(run).splitlines()[-1] == "KeyboardInterrupt"


def test_interrupt_ends_all_starts_side_by_side() -> None:
    """The bar shows when one start has completed a pass; the other starts end with their current states."""
    run = start("""
        rows = np.random.default_rng(0).standard_normal((4000, 3))

        class Terminal:
            pressed = False

            def write(self, text):
                if "elbo" in text and not self.pressed:
                    self.pressed = True
                    os.kill(os.getpid(), signal.SIGINT)

            def flush(self):
                pass

        screen, sys.stderr = sys.stderr, Terminal()
        fit = sb.fit(model, rows, sb.Full(max_passes=10**9, tol=0.0), n_components=5, n_init=3, threads=2,
                     progress=True)
        sys.stderr = screen
        report(fit)
    """)
    result = json.loads(finish(run).splitlines()[-1])
    assert result["reason"] == "INTERRUPTED"
    assert result["counts"] == pytest.approx(4000)


def test_interrupt_in_a_callback_is_an_interrupt() -> None:
    run = start("""
        rows = np.random.default_rng(0).standard_normal((2000, 2))

        def press(record):
            if len(seen) < 3:
                seen.append(record)
            else:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)

        seen = []
        fit = sb.fit(model, rows, sb.Full(max_passes=10**9, tol=0.0), n_components=3, progress=False, callbacks=[press])
        report(fit)
    """)
    result = json.loads(finish(run).splitlines()[-1])
    assert result["reason"] == "INTERRUPTED"
    assert len(result["history"]) == 4


def test_handler_of_the_user_is_used() -> None:
    """A program with its own handler for SIGINT keeps it: the fit goes on unless the handler raises."""
    run = start("""
        pressed = []
        signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
        rows = np.random.default_rng(0).standard_normal((2000, 2))

        def press(record):
            if record.index == 2:
                os.kill(os.getpid(), signal.SIGINT)

        fit = sb.fit(model, rows, sb.Full(max_passes=5, tol=0.0), n_components=3, progress=False, callbacks=[press])
        assert pressed, "the handler was not called"
        report(fit)
    """)
    assert json.loads(finish(run).splitlines()[-1])["reason"] == "MAX_PASSES"


def test_lock_of_the_interpreter_is_released() -> None:
    """The thread that presses Ctrl-C can only do so if the fit lets it run; without that the fit never ends."""
    run = start("""
        rows = np.random.default_rng(0).standard_normal((20_000, 4))
        # An interrupt before the first complete pass has no fit to return.
        began, ticks = threading.Event(), []

        def work():
            began.wait()
            for _ in range(200):
                ticks.append(time.perf_counter())
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        worker = threading.Thread(target=work)
        worker.start()
        fit = sb.fit(model, rows, sb.Full(max_passes=10**9, tol=0.0), n_components=20, progress=False,
                     callbacks=[lambda _: began.set()])
        worker.join()
        assert len(ticks) == 200
        report(fit)
    """)
    assert json.loads(finish(run).splitlines()[-1])["reason"] == "INTERRUPTED"


def test_fit_outside_the_main_thread_stops_by_callback() -> None:
    """Signals belong to the main thread; a fit elsewhere neither breaks nor swallows them."""
    run = start("""
        rows = np.random.default_rng(0).standard_normal((5000, 3))
        stop, fits = threading.Event(), []

        def work():
            fits.append(sb.fit(model, rows, sb.Full(max_passes=10**9, tol=0.0), n_components=5, progress=False,
                               callbacks=[lambda _: stop.is_set()]))

        worker = threading.Thread(target=work)
        try:
            worker.start()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
        worker.join()
        report(fits[0])
    """)
    assert json.loads(finish(run).splitlines()[-1])["reason"] == "CALLBACK"


def test_interrupt_after_the_last_pass_keeps_the_fit() -> None:
    """Ctrl-C while the remarks on a fit are made, which may read all rows."""
    run = start("""
        from stickbreak.run import fitting

        def interrupted(*_):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

        fitting._with_remarks = interrupted
        rows = np.random.default_rng(0).standard_normal((500, 3))
        report(sb.fit(model, rows, sb.Full(max_passes=3, tol=0.0), n_components=2, progress=False))
    """)
    assert json.loads(finish(run).splitlines()[-1])["reason"] == "INTERRUPTED"


@pytest.mark.slow
def test_interrupt_at_any_time_keeps_every_fit_that_has_begun() -> None:
    """Once a pass was recorded there is a fit to return, also if the interrupt comes just as the fit ends."""
    run = start("""
        rows = np.random.default_rng(0).standard_normal((500, 3))
        rng = np.random.default_rng(1)
        interrupted = lost = 0
        # What a first fit imports may lose an interrupt.
        sb.fit(model, rows, n_components=2, progress=False)
        for _ in range(300):
            records, fit = [], None
            timer = threading.Timer(rng.uniform(0, 0.03), lambda: os.kill(os.getpid(), signal.SIGINT))
            try:
                timer.start()
                fit = sb.fit(model, rows, sb.Full(max_passes=8, tol=0.0), n_components=2, progress=False,
                             callbacks=[records.append])
                if fit.stop_reason is sb.StopReason.INTERRUPTED:
                    interrupted += 1
                else:
                    time.sleep(0.1)
                    lost += 1
            except KeyboardInterrupt:
                lost += len(records) > 0 and fit is None
            timer.join()
        say(json.dumps([interrupted, lost]))
    """)
    interrupted, lost = json.loads(finish(run).splitlines()[-1])
    assert interrupted > 0
    # Python may still raise in the few instructions that return the fit.
    assert lost < 5


@pytest.mark.parametrize(
    "call", ["trace.density(X)", "trace.log_likelihood()", "trace.sample_parameters(trace.n_clusters[0, 0])"]
)
def test_interrupts_win_in_methods(call: str) -> None:
    """A result that is complete before the next look at signals does not hide the interrupt."""
    run = start(f"""
        X = np.random.default_rng(0).normal(size=(100, 3))
        trace = sb.sample(sb.Mixture(sb.Gaussian()), X, draws=20, warmup=5, chains=2, threads=1, progress=False)
        {call}
        lost = 0
        for number in range(8):
            timer = threading.Timer(0.01 + 0.013 * number, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                # The interrupt ends this loop, or nothing does before the timer has long fired.
                while timer.is_alive():
                    {call}
                {call}
                time.sleep(0.3)
                lost += 1
            except KeyboardInterrupt:
                pass
            timer.join()
        say(lost)
    """)
    assert finish(run).splitlines()[-1] == "0"
