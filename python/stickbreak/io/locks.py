"""Locks: files that only one fit at a time may hold, in this process or in another one on this machine.

The system releases the lock when the process ends for any reason, so no stale locks remain.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

# A link is not followed. Windows has no such flag.
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


class Held(Exception):
    """The lock is held elsewhere."""


class Lock:
    """The lock of a path, taken on construction.

    If the file system has no locks, the folder is not writable, or the name is a link, `is_held` is False. A link is
    never followed: whoever put it there would choose which file is made.

    Parameters
    ----------
    path : Path
        The lock file to create beside the protected file; it is removed at the end.

    Raises
    ------
    Held
        The lock is held elsewhere.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        while self._file is None:
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
            except OSError:
                return
            try:
                _lock(file)
                # The last holder may have removed the file between the two calls.
                if is_at(file, path):
                    self._file = file
            except BlockingIOError as error:
                raise Held from error
            except OSError:
                path.unlink(missing_ok=True)
                return
            finally:
                if self._file is None:
                    os.close(file)

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._file is not None

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._file is None:
            return
        file, self._file = self._file, None
        if sys.platform != "win32":  # Windows cannot remove open files
            self._path.unlink(missing_ok=True)
        # A forked process shares the open file, so closing it here would not release the lock.
        _unlock(file)
        os.close(file)
        if sys.platform == "win32":
            # The next holder may have the file open.
            with suppress(OSError):
                self._path.unlink()


def is_at(file: int, path: Path) -> bool:
    """Return whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def hold(file: int) -> bool | None:
    """Lock an open file until it is closed, and return whether that succeeded; None where there are no such locks."""
    if sys.platform == "win32":  # it would lock out those who read the file
        return None
    try:
        _lock(file)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error

    def _unlock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
