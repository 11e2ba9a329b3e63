"""Ctrl-C on the command line while Python still imports: one line in place of a traceback."""

import os
import sys
from pathlib import Path
from types import TracebackType


def _tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Show an error that nothing has caught."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    print("stickbreak: error: interrupted", file=sys.stderr, flush=True)  # noqa: T201
    # The exit code of `stickbreak.cli`, which may not be imported yet.
    os._exit(130)


def is_command() -> bool:
    """Return whether this process is `stickbreak`, or `python -m` with it or one of its modules."""
    name = sys.argv[0] if sys.argv else ""
    # Python puts the path of the module in the place of "-m" after it has imported the module's package.
    if name == "-m":
        return any(each.split(".")[0] == "stickbreak" for each in sys.orig_argv)
    return Path(name).stem == "stickbreak"


if is_command():
    sys.excepthook = _tell
