"""Ctrl-C at a random moment of every public callable: it is raised, or the result says that it came."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

import pandas as pd

import stickbreak as sb
from fuzzing import Failure, generator
from fuzzing.callables import good_call, who_refuses

_KIND = 8


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    began = time.perf_counter()
    try:
        good_call(generator(seed, _KIND, number))[2]()
    except Exception as error:
        if (who := who_refuses(error)) is not None:
            return f"refused{who}"
        raise
    seconds = time.perf_counter() - began
    rng = generator(seed, _KIND, number)
    name, _, call = good_call(rng)
    came: list[bool] = []
    lost: list[bool] = []

    def press(*_: object) -> None:
        came.append(True)
        raise KeyboardInterrupt

    def lose(unraisable: Any) -> None:
        """Note an interrupt within a callback of a weak reference, from which Python raises nothing."""
        lost.append(unraisable.exc_type is KeyboardInterrupt)

    before = signal.signal(signal.SIGINT, press)
    sys.unraisablehook = lose
    timer = threading.Timer(rng.uniform(0.0, seconds), os.kill, (os.getpid(), signal.SIGINT))
    is_complete = False
    try:
        timer.start()
        result = call()
        is_complete = True
        if came and not any(lost) and not _tells(result):
            raise Failure(f"{name} has lost an interrupt")
        timer.join()
    except KeyboardInterrupt:
        return "late" if is_complete else "interrupted"
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = sys.__unraisablehook__
    if any(lost):
        return "lost by Python"
    return "interrupted" if came else "late"


def _tells(result: Any) -> bool:
    """Return whether a result says that it was interrupted: a trace has fewer draws than were asked for."""
    if isinstance(result, pd.DataFrame):
        return "interrupted" in result["stop_reason"].to_list()
    fit = getattr(result, "fit_", result)
    return isinstance(result, sb.Trace) or getattr(fit, "stop_reason", None) is sb.StopReason.INTERRUPTED
