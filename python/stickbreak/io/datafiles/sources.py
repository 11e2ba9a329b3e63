"""Sources of the bytes of a text file: a file, a compressed file, or standard input."""

import gzip
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from stickbreak.errors import SourceError

STDIN = "-"

# Called with the fraction of the file read so far, from 0 to 1; restarts if the file is read again.
Watch = Callable[[float], object]

_BUFFER_BYTES = 1 << 18
# Maximum length of a line of a table. A compressed file of zeros would otherwise fill the memory as a single line.
_LONGEST_LINE = 1 << 26


@dataclass(frozen=True)
class Source:
    """Text that can be read several times.

    Parameters
    ----------
    name : str
        Its name in messages.
    open_bytes : callable
        Returns the bytes from the beginning, as a file.
    """

    name: str
    open_bytes: Callable[[], IO[bytes]]

    def open(self) -> io.TextIOWrapper:
        """Return the text; handles byte-order marks and the line endings of all systems."""
        return io.TextIOWrapper(self.open_bytes(), encoding="utf-8-sig")


class _Watched(io.FileIO):
    """A file that reports how much of it has been read."""

    def __init__(self, path: Path, watch: Watch) -> None:
        super().__init__(path)
        self._watch = watch
        self._size = max(1, path.stat().st_size)

    def readinto(self, buffer: Any) -> int | None:
        n = super().readinto(buffer)
        self._watch(min(1.0, self.tell() / self._size))
        return n


class _Checked(io.RawIOBase):
    """Bytes of text; raises an error at a line that is too long to be one."""

    def __init__(self, file: IO[bytes], name: str, longest: int) -> None:
        self._file = file
        self._name = name
        self._longest = longest
        # Number of bytes since the last line break.
        self._length = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        last = max(content.rfind(b"\n"), content.rfind(b"\r"))
        self._length = self._length + len(content) if last < 0 else len(content) - last - 1
        if self._length > self._longest:
            raise SourceError(f"{self._name}: a line has more than {self._longest} bytes; is this text?")
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def of_file(path: Path, watch: Watch | None = None, longest_line: int = _LONGEST_LINE) -> Source:
    """Return the source of a text file; a .gz file is decompressed while it is read.

    Parameters
    ----------
    path : Path
        The file.
    watch : callable, optional
        Called with the fraction of the file read so far.
    longest_line : int
        Maximum number of bytes in a line. A longer one raises a `SourceError` when it is read.
    """

    def opened() -> IO[bytes]:
        file: Any = path.open("rb") if watch is None else io.BufferedReader(_Watched(path, watch), _BUFFER_BYTES)
        content: Any = _Unzipped(file) if path.suffix.lower() == ".gz" else file
        return io.BufferedReader(_Checked(content, str(path), longest_line), _BUFFER_BYTES)

    return Source(str(path), opened)


class _Unzipped(gzip.GzipFile):
    """The content of a compressed file, which is closed with it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._compressed = file

    def close(self) -> None:
        super().close()
        self._compressed.close()


def of_stdin() -> Source:
    """Return the source of standard input, which is read to its end immediately.

    Raises
    ------
    SourceError
        Standard input is closed or empty.
    """
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    if not content:
        raise SourceError("standard input: nothing came")
    return Source("standard input", lambda: io.BytesIO(content))


def suffix_of(path: Path) -> str:
    """Return the file extension that determines the format; for "rows.csv.gz" it is ".csv.gz"."""
    if path.suffix.lower() == ".gz":
        return "".join(path.suffixes[-2:]).lower()
    return path.suffix.lower()
