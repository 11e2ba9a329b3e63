"""Corpora in files: word counts with one row per document."""

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stickbreak import checks
from stickbreak.errors import InvalidArgument, SourceError
from stickbreak.io import datafiles, docword, optional
from stickbreak.io.compressed import compressed_rows
from stickbreak.io.datafiles import cures
from stickbreak.io.datafiles.sources import Watch, of_file
from stickbreak.io.names import Names, Table

_DOCWORD = (".txt", ".gz", ".docword")
_SPARSE_PARTS = {"data", "format", "shape"}
_LONGEST_WORD = 1 << 16  # bytes


def read_corpus(
    path: str | os.PathLike[str],
    argument: str = "path",
    *,
    columns: Sequence[str] | None = None,
    watch: Watch | None = None,
) -> Table:
    """Read word counts from a docword file, a sparse array of SciPy (.npz) or a table of numbers.

    Parameters
    ----------
    path : str or path-like
        A docword file, whose name ends in .txt or .gz; a file written by `scipy.sparse.save_npz`; or a data file with
        one row per document.
    argument : str
        Its name in error messages.
    columns : sequence of str, optional
        The columns of a table to read, as in `datafiles.read`.
    watch : callable, optional
        As in `datafiles.read`.

    Returns
    -------
    Table
        The counts, a csr_array of SciPy or an ndarray of shape (n, V), and the words, if the columns have names.

    Raises
    ------
    InvalidType, InvalidArgument
        `path` is not a path, has an unknown file extension, or holds several arrays; or `columns` is given for a file
        that is not a table.
    SourceError
        The file cannot be read.
    """
    file = Path(os.fsdecode(path))
    is_docword = file.suffix.lower() in _DOCWORD and datafiles.suffix_of(file) not in datafiles.SUFFIXES
    if columns is not None and (is_docword or _is_sparse(file)):
        raise checks.invalid_argument("columns", "given", f"None, because {str(file)!r} is not a table")
    if is_docword:
        return Table(docword.read(file, watch), None)
    if datafiles.suffix_of(file) not in datafiles.SUFFIXES:
        allowed = f"the name of a docword file ({' or '.join(_DOCWORD)}) or of a data file"
        raise checks.invalid_argument(argument, repr(os.fsdecode(path)), f"{allowed} ({', '.join(datafiles.SUFFIXES)})")
    if _is_sparse(file):
        return Table(_read_sparse(file), None)
    try:
        return datafiles.read(file, columns=columns, watch=watch)
    except InvalidArgument as error:
        if error.argument != "key":
            raise
        allowed = "an .npz file with one array, or one of scipy.sparse.save_npz"
        raise checks.invalid_argument(argument, f"{str(file)!r} with several arrays", allowed) from error


def read_vocabulary(path: str | os.PathLike[str]) -> Names:
    """Read words from a text file in UTF-8, one word per line; a file whose name ends in .gz is decompressed.

    Raises
    ------
    SourceError
        The file cannot be read, a line is blank, or two lines have the same word. The message states the line, from 1.
    """
    first: dict[str, int] = {}
    source = of_file(Path(path), longest_line=_LONGEST_WORD)
    try:
        with source.open() as lines:
            for number, line in enumerate(lines, start=1):
                word = line.removesuffix("\n")
                if not word.strip():
                    raise SourceError(f"{path}: line {number} is blank, where a word is expected")
                if first.setdefault(word, number) != number:
                    quoted = checks.quote(word)
                    raise SourceError(f"{path}: line {number}: {quoted} already stands in line {first[word]}")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: cannot be read: not text in UTF-8; {cures.of_encoding(source)}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return tuple(first)


def _is_sparse(file: Path) -> bool:
    """Return whether a file holds a sparse array; files that cannot be opened are left to the reader of tables."""
    if file.suffix.lower() != ".npz" or not os.path.isfile(file):
        return False
    try:
        with zipfile.ZipFile(file) as archive:
            return {Path(name).stem for name in archive.namelist()} >= _SPARSE_PARTS
    except Exception:  # of damaged archives; some have members of unknown versions
        return False


def _read_sparse(file: Path) -> Any:
    sparse = optional.scipy_sparse(f"{file}: a sparse array")
    try:
        table = sparse.load_npz(file)
        if table.dtype.kind not in "biuf":
            raise SourceError(f"{file}: holds values of dtype {table.dtype}, not real numbers")
        docword.check_claims(f"{file}: its shape", table.shape, table.nnz)
        # SciPy does not look at the parts of a file before it converts them.
        return compressed_rows(table, str(file))
    except SourceError:
        raise
    except MemoryError as error:
        raise SourceError(f"{file}: there is not enough memory for it") from error
    except InvalidArgument as error:
        raise SourceError(f"{file}: {error.found}") from error
    except Exception as error:
        # SciPy raises various errors for damaged files. Those of its own code say nothing to a user.
        is_inner = isinstance(error, AttributeError | TypeError | ArithmeticError | IndexError)
        why = "it is damaged" if is_inner else checks.brief(error)
        raise SourceError(f"{file}: not a sparse array that SciPy can read: {why}") from error
