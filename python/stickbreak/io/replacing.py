"""Files that are replaced only when the new one is complete and on disk.

The new file has a random name that does not exist yet, so no link that somebody put there leads it elsewhere. Its
writer holds a lock on it. The system releases the lock when the writer ends for any reason, so that a later writer can
tell a file that was left behind from one that is being written, also in another container with the same host name.
"""

import hashlib
import os
import platform
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from stickbreak.io import locks

_LONGEST_STEM = 200


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """Yield a new file, which replaces `target` once it is complete and on disk.

    It keeps the permissions of a file that it replaces. Files that killed writers on this machine left are removed
    first, where the file system has locks.

    Parameters
    ----------
    target : Path
        The file to create or to replace.

    Yields
    ------
    file
        An open binary file to write to.
    """
    _remove_left(target)
    file, part = _created(target)
    # Windows cannot rename an open file. Elsewhere the lock ends when the file is closed.
    while_open = sys.platform != "win32"
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if while_open:
                part.replace(target)
        if not while_open:
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def check_replaceable(target: Path) -> None:
    """Raise the OSError that `replacing` would raise for this path, as far as it can be known beforehand.

    Files that killed writers left are removed here too: a run that goes on from its end writes no more.
    """
    _remove_left(target)
    file, part = _created(target)
    file.close()
    part.unlink(missing_ok=True)


def beside(target: Path, ending: str) -> Path:
    """Return the name of a hidden file in the same folder."""
    name = os.fsencode(target.name)
    # File names have at most 255 bytes, so a long name leaves no room for the suffix.
    stem = target.name if len(name) <= _LONGEST_STEM else hashlib.blake2b(name, digest_size=16).hexdigest()
    return target.with_name(f".{stem}{ending}")


def _created(target: Path) -> tuple[IO[bytes], Path]:
    """Return a new locked file in the folder of a target, with the permissions of the target, and its path."""
    while True:
        part = beside(target, f".{_machine()}.{os.urandom(16).hex()}.part")
        replaced = _status(target)
        # No other user may open the file before it has the permissions of the one that it replaces.
        opener = partial(os.open, mode=0o666 if replaced is None else 0o600)
        file = open(part, "xb", opener=opener)  # noqa: SIM115
        try:
            # Another writer may have taken it for a file that was left, before it was locked.
            if locks.hold(file.fileno()) is not False and locks.is_at(file.fileno(), part):
                if replaced is not None:
                    _keep_permissions(file.fileno(), replaced)
                return file, part
            file.close()
        except BaseException:
            file.close()
            part.unlink(missing_ok=True)
            raise


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _keep_permissions(file: int, replaced: os.stat_result) -> None:
    """Give a new file the permissions of the one that it replaces, and its owner and group as far as possible."""
    if sys.platform == "win32":
        return
    mode = stat.S_IMODE(replaced.st_mode) & 0o777
    # Only the superuser may change the owner, and others the group among their own.
    for owner in (replaced.st_uid, -1):
        with suppress(OSError):
            os.fchown(file, owner, replaced.st_gid)
            break
    if os.fstat(file).st_gid != replaced.st_gid:
        # What only the former group was allowed is allowed to no other group.
        mode &= ~0o070 | (mode & 0o007) << 3
    # A file system may have no permissions.
    with suppress(OSError):
        os.fchmod(file, mode)


def _remove_left(target: Path) -> None:
    """Remove new files of a target whose writer, a process of this machine, has ended."""
    name = re.compile(re.escape(beside(target, f".{_machine()}.").name) + r"[0-9a-f]{32}\.part")
    with suppress(OSError):
        for path in target.parent.iterdir():
            if name.fullmatch(path.name):
                _remove_unless_locked(path)


def _remove_unless_locked(path: Path) -> None:
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | locks.NO_LINKS)
        try:
            if locks.hold(file) and locks.is_at(file, path):
                path.unlink()
        finally:
            os.close(file)


def _machine() -> str:
    """Return a short name of this machine: in a shared folder, locks of another one may be unknown here."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()
