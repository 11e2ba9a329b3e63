"""Where the bytes of a text file come from: a file, a compressed one, or standard input."""

import gzip
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stickbreak.errors import SourceError

STDIN = "-"


@dataclass(frozen=True)
class Source:
    """Text that can be read several times.

    Parameters
    ----------
    name : str
        What messages call it.
    open_bytes : callable
        Returns its bytes from the beginning, as a file.
    """

    name: str
    open_bytes: Callable[[], IO[bytes]]

    def open(self) -> io.TextIOWrapper:
        """Return its text; byte-order marks and the line ends of all systems are taken care of."""
        return io.TextIOWrapper(self.open_bytes(), encoding="utf-8-sig")


def of_file(path: Path) -> Source:
    """Return the source of a text file; one that ends in .gz is uncompressed as it is read."""
    if path.suffix.lower() == ".gz":
        return Source(str(path), lambda: io.BufferedReader(gzip.open(path, "rb")))
    return Source(str(path), lambda: path.open("rb"))


def of_stdin() -> Source:
    """Return the source of standard input, which is read to its end at once.

    Raises
    ------
    SourceError
        It is closed or empty.
    """
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    if not content:
        raise SourceError("standard input: nothing came")
    return Source("standard input", lambda: io.BytesIO(content))


def suffix_of(path: Path) -> str:
    """Return the end of a name that tells its format: of "rows.csv.gz" it is ".csv.gz"."""
    if path.suffix.lower() == ".gz":
        return "".join(path.suffixes[-2:]).lower()
    return path.suffix.lower()
