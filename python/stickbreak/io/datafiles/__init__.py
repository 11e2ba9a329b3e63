"""Data files: .npy, .npz, .csv, .tsv and .parquet, read as rows of numbers. Their content is never executed."""

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import SourceError
from stickbreak.io.datafiles.columns import Choice
from stickbreak.io.datafiles.mixed import TextColumns
from stickbreak.io.datafiles.numpy_files import read_npy, read_npz
from stickbreak.io.datafiles.parquet import read_parquet
from stickbreak.io.datafiles.sources import STDIN, Watch, of_file, of_stdin, suffix_of
from stickbreak.io.datafiles.text import read_text
from stickbreak.io.names import Table

__all__ = ["STDIN", "SUFFIXES", "TEXT", "DataFile", "TextColumns", "read", "suffix_of"]

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SUFFIXES = (".npy", ".npz", *TEXT, ".parquet")


@dataclass(frozen=True, eq=False)
class DataFile(Table):
    """Content of a data file; `rows` is a memory map for a .npy file.

    Parameters
    ----------
    weights : ndarray of shape (n,), optional
        The weights of the rows, if a column of weights was requested.
    kept : dict of str to list
        Columns requested besides the data, by name, unconverted.
    """

    weights: NDArray[Any] | None
    kept: dict[str, list[Any]] = field(default_factory=dict)


def read(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    weight_column: str | None = None,
    key: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    may_miss: bool = False,
    keep: Sequence[str] | None = None,
    watch: Watch | None = None,
    words: TextColumns | None = None,
) -> DataFile:
    r"""Read rows of numbers from a data file. The file extension determines the format.

    ======== ==========================================================================================
    .npy     An array of shape (n, D), memory-mapped; one of shape (n,) is one column.
    .npz     One array of the archive; `key` says which where there are several.
    .csv     Text in UTF-8, with or without a line of names; .tsv is the same, and both may end in .gz.
    .parquet Columns of numbers; needs PyArrow, which ``pip install "stickbreak[parquet]"`` brings.
    folder   Its Parquet files, in the order of their names.
    "-"      Text on standard input.
    ======== ==========================================================================================

    Parameters
    ----------
    path : str or path-like
        The file.
    columns : sequence of str, optional
        The columns to read, in this order: names, positions counted from 1, or ranges of positions such as "2-5".
        Default: all except `weight_column`.
    weight_column : str, optional
        The column with the weights of the rows: a name or a position counted from 1.
    key : str, optional
        The name of the array in an .npz file.
    delimiter : str, optional
        The delimiter of a text file. Default: the first of tab, semicolon and comma that occurs outside of quotes in
        the first line.
    header : bool, optional
        Whether a text file starts with a line of names. Default: whether the first line contains no number.
    may_miss : bool
        Whether values may be missing: empty fields, NA, N/A, NaN and NULL in text, nulls in Parquet. They become NaN.
    keep : sequence of str, optional
        Columns of a text or Parquet file that are not data, such as an id; returned in `DataFile.kept`.
    watch : callable, optional
        Called repeatedly with the fraction of a text or Parquet file that has been read, from 0 to 1.
    words : TextColumns, optional
        Which columns of a text or Parquet file may hold text. If one does, `DataFile.rows` is a `MixedRows`, and true
        and false become 1 and 0. Default: none.

    Returns
    -------
    DataFile
        The rows, with the names of their columns and their weights if available.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described, or the file does not have the requested column or array.
    SourceError
        The file is missing, empty, unreadable, malformed or larger than memory. For text, the line and the column are
        stated, counted from 1.
    NotSupported
        The file is a Parquet file and PyArrow is not installed.

    Warns
    -----
    ConversionWarning
        Columns of a Parquet file are neither float32 nor float64. Columns of other files keep their type.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from stickbreak.io import datafiles
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("height,width\n1.5,2\n3,4\n")
    ...     data = datafiles.read(path)
    >>> data.names, data.rows.tolist()
    (('height', 'width'), [[1.5, 2.0], [3.0, 4.0]])
    """
    choice = Choice(columns, weight_column, keep)
    kept: dict[str, list[Any]] = {}
    if path == STDIN:
        source = of_stdin()
        rows, names, kept = read_text(source, choice, _delimiter(delimiter), header, may_miss=may_miss, words=words)
        return _parted(rows, names, kept, has_weights=weight_column is not None)
    file = _checked(path)
    suffix = suffix_of(file)
    if keep and suffix in (".npy", ".npz"):
        raise checks.invalid_argument("keep", f"given for a {suffix} file", "left out: its columns are all numbers")
    try:
        if suffix == ".npy":
            rows, names = read_npy(file, choice)
        elif suffix == ".npz":
            rows, names = read_npz(file, choice, key)
        elif suffix == ".parquet" or file.is_dir():
            has_words = words is not None
            rows, names, kept = read_parquet(file, choice, may_miss=may_miss, watch=watch, has_words=has_words)
        else:
            source = of_file(file, watch)
            rows, names, kept = read_text(source, choice, _delimiter(delimiter), header, may_miss=may_miss, words=words)
    except MemoryError as error:
        raise SourceError(f"{file}: there is not enough memory for it") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return _parted(rows, names, kept, has_weights=weight_column is not None)


def _checked(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise checks.invalid_type("path", checks.describe(path), "a path: a string or a pathlib.Path")
    text = os.fsdecode(path)
    file = Path(text)
    # Not the method of `Path`, which raises for names that are too long, and takes an empty one for the folder.
    is_folder = os.path.isdir(text)
    if is_folder and any(file.glob("*.parquet")):
        return file
    if suffix_of(file) not in SUFFIXES:
        found = repr(text) + (", a folder without Parquet files" if is_folder else "")
        raise checks.invalid_argument("path", found, f"the name of a data file, ending in {' or '.join(SUFFIXES)}")
    try:
        if not file.is_file():
            raise SourceError(f"{file}: {'not a file' if file.exists() else 'there is no such file'}")
        empty = file.stat().st_size == 0
        # Some readers report system errors as damage, so system errors are raised here first.
        with file.open("rb"):
            pass
    except OSError as error:
        raise SourceError(f"{file}: cannot be read: {error.strerror or error}") from error
    if empty:
        raise SourceError(f"{file}: the file is empty")
    return file


def _delimiter(delimiter: object) -> str | None:
    if delimiter is None:
        return None
    allowed = "one character other than a quote, a line break and what numbers are made of"
    character = checks.instance("delimiter", delimiter, str, allowed)
    if len(character) != 1 or character in '"\r\n+-.' or character.isalnum():
        raise checks.invalid_argument("delimiter", repr(character), allowed)
    return character


def _parted(rows: Any, names: tuple[str, ...] | None, kept: dict[str, list[Any]], *, has_weights: bool) -> DataFile:
    if not has_weights:
        return DataFile(rows, names, None, kept)
    # The column of weights is the last one chosen.
    return DataFile(rows[:, :-1], None if names is None else names[:-1], rows[:, -1], kept)
