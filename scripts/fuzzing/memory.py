"""The memory that a case takes, where the system reports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzzing import Failure


@contextmanager
def limited(allowed: int, what: str) -> Iterator[None]:
    """Fail if the block takes more memory than the given number of bytes."""
    before = _memory("VmRSS")
    _forget_peak()
    try:
        yield
    finally:
        grown = _memory("VmHWM") - before
        if grown > allowed:
            raise Failure(f"{what} took {grown} bytes of memory")


def _memory(name: str) -> int:
    """Return a figure of /proc/self/status in bytes, 0 where there is none."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:")), 0)


def _forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return
