"""Corpora as bags of words: the docword files of the UCI repository."""

import os
import warnings
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import SourceError
from stickbreak.io import optional

if TYPE_CHECKING:
    from stickbreak.io.datafiles.sources import Watch

__all__ = ["read_docword"]

# Document and word numbers have 32 bits, and float64 holds sums of counts exactly.
_MOST = 2**32 - 1
_MOST_COUNT = 2**53
# Maximum number of documents or words for an entry, of those beyond the first million.
_PER_ENTRY = 16
_BELIEVED = 2**20
_LONGEST_LINE = 1 << 16  # bytes
# First characters of other file types, decoded as here and without leading blanks; \x1f counts as a blank.
_NO_TEXT = (
    ("\udc8b\x08", "not text but gzip, whose name must end in .gz,"),
    ("\udcff\udcfe", "text in UTF-16, not in UTF-8,"),
    ("\udcfe\udcff", "text in UTF-16, not in UTF-8,"),
)


def read_docword(path: str | os.PathLike[str]) -> Any:
    r"""Read a corpus from a docword file, the bag-of-words format of the UCI repository.

    The first three lines are the number of documents n, the number of words V and the number of lines that follow. Each
    of these is ``document word count``, with documents and words counted from 1. Lines with the same document and word
    are added.

    Parameters
    ----------
    path : str or path-like
        The file, in ASCII or UTF-8. A .gz file is decompressed while it is read.

    Returns
    -------
    scipy.sparse.csr_array of float64, shape (n, V)
        The counts.

    Raises
    ------
    InvalidType
        `path` is not a path.
    SourceError
        The file is missing, unreadable, truncated, malformed (states the line, counted from 1) or larger than memory.
    NotSupported
        The package scipy is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import stickbreak as sb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "docword.txt")
    ...     _ = path.write_text("2\n3\n3\n1 1 4\n1 3 1\n2 2 5\n")
    ...     counts = sb.read_docword(path)
    >>> counts.toarray().astype(int).tolist()
    [[4, 0, 1], [0, 5, 0]]
    """
    return read(path)


def read(path: str | os.PathLike[str], watch: "Watch | None" = None) -> Any:
    """Implement `read_docword`; `watch` receives the fraction of the file read so far."""
    if not isinstance(path, str | os.PathLike):
        raise checks.invalid_type("path", checks.describe(path), "a path: a string or a pathlib.Path")
    if not os.fspath(path):
        raise SourceError("'': cannot be read: the path is empty")
    file = Path(os.fsdecode(path))
    # A named pipe would wait for its writer.
    if os.path.exists(file) and not os.path.isfile(file):
        raise SourceError(f"{file}: cannot be read: it is not a file")
    try:
        with _opened(file, watch) as lines:
            n_documents, n_words, n_lines = _header(file, lines)
            triples = _triples(file, lines, n_lines)
        _check(file, triples, n_documents, n_words)
        check_claims(f"{file}: its head", (n_documents, n_words), n_lines)
        return _table(file, triples, n_documents, n_words)
    except SourceError:
        raise
    except MemoryError as error:
        raise SourceError(f"{file}: there is not enough memory for it") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise SourceError(f"{file}: cannot be read: {reason}") from error


def check_claims(where: str, shape: tuple[int, int], n_entries: int) -> None:
    """Refuse a shape that is out of all proportion to the entries, because memory would be spent on it.

    Raises
    ------
    SourceError
        There are more rows or columns than 16 for an entry, and more than a million.
    """
    most = max(_BELIEVED, _PER_ENTRY * n_entries)
    for size, what in zip(shape, ("rows", "columns"), strict=True):
        if size > most:
            allowed = f"which must be at most {most} with {n_entries} entries"
            raise SourceError(f"{where} claims {size} {what}, {allowed}; leave out those without entries")


def _opened(file: Path, watch: "Watch | None" = None) -> TextIO:
    from stickbreak.io.datafiles.sources import of_file

    # Undecodable bytes are kept, so that the error can state their line.
    return TextIOWrapper(
        of_file(file, watch, _LONGEST_LINE).open_bytes(), encoding="utf-8-sig", errors="surrogateescape"
    )


def _header(file: Path, lines: Iterator[str]) -> list[int]:
    numbers = []
    for line, what in enumerate(("number of documents", "number of words", "number of lines that follow"), start=1):
        text = next(lines, "").strip()
        if not _is_whole(text) or not 0 <= int(text) <= _MOST:
            raise SourceError(f"{file}: line {line}: {_shown(text)} where the {what} is expected, from 0 to {_MOST}")
        numbers.append(int(text))
    return numbers


def _triples(file: Path, lines: TextIO, n_lines: int) -> NDArray[np.int64]:
    try:
        with warnings.catch_warnings():
            # A missing body is detected below.
            warnings.filterwarnings("ignore", message=".*input contained no data")
            triples = np.loadtxt(lines, dtype=np.int64, ndmin=2, comments=None)
    except (ValueError, OverflowError) as error:
        raise SourceError(f"{file}: {_malformed(file)}") from error
    if triples.size == 0:
        triples = triples.reshape(0, 3)
    if triples.shape[1] != 3:
        raise SourceError(f"{file}: {_malformed(file)}")
    if len(triples) != n_lines:
        hint = ": is it cut off?" if len(triples) < n_lines else ""
        given = f"line 3 gives the number of lines that follow as {n_lines}"
        raise SourceError(f"{file}: {given}, but it is {len(triples)}{hint}")
    return triples


def _malformed(file: Path) -> str:
    """Describe the error in the first line that does not consist of three integers."""
    with _opened(file) as lines:
        for number, line in enumerate(islice(lines, 3, None), start=4):
            fields = line.split()
            if fields and (len(fields) != 3 or not all(_is_whole(field) for field in fields)):
                return (
                    f"line {number}: {_shown(line.strip())} where document, word and count are expected, whole numbers"
                )
    return "not made of lines with document, word and count"


def _shown(text: str) -> str:
    """Return the beginning of a line for a message, or the type of the file if it is not text."""
    kind = next((kind for start, kind in _NO_TEXT if text.startswith(start)), None)
    if kind is None and any("\ud800" <= character <= "\udfff" or character == "\0" for character in text):
        kind = "not text"
    return repr(text[:40]) if kind is None else kind


def _is_whole(field: str) -> bool:
    digits = field.removeprefix("-").removeprefix("+")
    return digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(digits) < 2**63


def _check(file: Path, triples: NDArray[np.int64], n_documents: int, n_words: int) -> None:
    limits = (("document", n_documents), ("word", n_words), ("count", _MOST_COUNT))
    for column, (what, most) in zip(triples.T, limits, strict=True):
        wrong = np.flatnonzero((column < 1) | (column > most))
        if wrong.size:
            line = _line_of(file, int(wrong[0]))
            raise SourceError(f"{file}: line {line}: {what} {column[wrong[0]]}, which must be from 1 to {most}")


def _line_of(file: Path, row: int) -> int:
    """Return the line number of a row; blank lines hold no rows."""
    with _opened(file) as lines:
        numbers = (number for number, line in enumerate(lines, start=1) if number > 3 and line.strip())
        return next(islice(numbers, row, None))


def _table(file: Path, triples: NDArray[np.int64], n_documents: int, n_words: int) -> Any:
    sparse = optional.scipy_sparse("read_docword")
    documents, words, counts = triples.T
    entries = (counts.astype(np.float64), (documents - 1, words - 1))
    # Entries at the same position are added.
    table = sparse.coo_array(entries, shape=(n_documents, n_words)).tocsr()
    wrong = np.flatnonzero(table.data > _MOST_COUNT)
    if wrong.size:
        document = int(np.count_nonzero(table.indptr <= wrong[0]))
        word, total = int(table.indices[wrong[0]]) + 1, int(table.data[wrong[0]])
        where = f"the lines of document {document} and word {word} add up to {total}"
        raise SourceError(f"{file}: {where}, which must be at most {_MOST_COUNT}")
    return table
