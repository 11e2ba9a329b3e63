"""Ctrl-C on the command line, also while Python imports.

An import may lose a `KeyboardInterrupt`, or make another error of it. So the program ends at once while it starts, and
later remembers that Ctrl-C was pressed.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_pressed = False


def _leave(number: int, frame: FrameType | None) -> None:
    """End the process: nothing has begun."""
    print("stickbreak: error: interrupted", file=sys.stderr, flush=True)  # noqa: T201
    # The exit code of `stickbreak.cli`, which may not be imported yet.
    os._exit(130)


def _remember(number: int, frame: FrameType | None) -> None:
    global _pressed
    _pressed = True
    raise KeyboardInterrupt


def check() -> None:
    """Raise the `KeyboardInterrupt` that an import has lost."""
    if _pressed:
        raise KeyboardInterrupt


@contextmanager
def remembered() -> Iterator[None]:
    """Remember whether Ctrl-C is pressed, unless the program has a handler of its own."""
    global _pressed
    _pressed = False
    handler = signal.getsignal(signal.SIGINT)
    if handler not in (signal.default_int_handler, _leave) or not _is_main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_command() -> bool:
    """Return whether this process is `stickbreak`, or `python -m` with it or one of its modules."""
    name = sys.argv[0] if sys.argv else ""
    # Python puts the path of the module in the place of "-m" after it has imported the module's package.
    if name == "-m":
        return any(each.split(".")[0] == "stickbreak" for each in sys.orig_argv)
    return Path(name).stem == "stickbreak"


if _is_command() and _is_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)
