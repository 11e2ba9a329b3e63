"""Parquet files, read by PyArrow batch by batch."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stickbreak.checks import brief
from stickbreak.errors import NotSupported, SourceError, StickbreakError
from stickbreak.io import arrays
from stickbreak.io.cells import MixedRows, are_levels, declares
from stickbreak.io.datafiles.columns import Choice, named, title
from stickbreak.io.datafiles.sources import Watch

# Approximate number of values per block.
_VALUES = 1 << 21


def read_parquet(
    path: Path, choice: Choice, *, may_miss: bool, watch: Watch | None = None, has_words: bool = False
) -> tuple[Any, tuple[str, ...], dict[str, list[Any]]]:
    """Return the chosen columns as rows, their names, and columns to keep; for a folder, of all its files."""
    file = parquet_rows(path, choice, may_miss=may_miss, has_words=has_words)
    shape = (0 if file.has_words else file.n_rows, len(file.names))
    rows: Any = np.empty(shape, dtype=file.dtype)
    mixed: list[MixedRows] = []
    end = 0
    for block in file.blocks():
        begin, end = end, end + len(block)
        if file.has_words:
            mixed.append(block)
        else:
            rows[begin:end] = block
        if watch is not None:
            watch(end / file.n_rows)
    file.say_converted()
    if file.has_words:
        columns = zip(*(block.columns for block in mixed), strict=True)
        declared = [
            found[0] if len(set(found)) == 1 else None for found in zip(*(b.declared for b in mixed), strict=True)
        ]
        rows = MixedRows([np.concatenate(parts) for parts in columns], declared)
    return rows, file.names, file.kept()


def parquet_rows(
    path: Path, choice: Choice | None = None, *, may_miss: bool = False, has_words: bool = False
) -> "ParquetRows | ParquetFolder":
    """Return the rows of a Parquet file, or of all Parquet files in a folder."""
    return (ParquetFolder if path.is_dir() else ParquetRows)(path, choice, may_miss=may_miss, has_words=has_words)


@dataclass(frozen=True)
class RowGroups:
    """The row groups of Parquet files: file, index in the file, and number of rows; with the columns and their type."""

    all: list[tuple[Path, int, int]]
    columns: tuple[str, ...]
    dtype: "np.dtype[Any]"


def row_groups(path: Path) -> RowGroups:
    """Return the row groups of a Parquet file, or of all Parquet files in a folder.

    Raises
    ------
    NotSupported, SourceError
        As in `ParquetRows`; or there is no such file.
    """
    if not path.exists():
        raise SourceError(f"{path}: there is no such file")
    rows = parquet_rows(path)
    files = rows.files if isinstance(rows, ParquetFolder) else [rows]
    rows.say_converted()
    all_groups = [(file.path, index, size) for file in files for index, size in enumerate(file.group_sizes())]
    return RowGroups(all_groups, rows.names, rows.dtype)


class ParquetRows:
    """Columns of a Parquet file as rows of numbers, which can be read repeatedly.

    Parameters
    ----------
    path : Path
        The file.
    choice : Choice, optional
        The columns; by default all columns.
    may_miss : bool
        Whether values may be missing; they become NaN.
    has_words : bool
        Whether columns may hold text. If one does, blocks are `MixedRows`.
    may_be_empty : bool
        Whether the file may have no rows.

    Raises
    ------
    NotSupported
        PyArrow is not installed.
    SourceError
        The file is damaged, has no rows, or a chosen column does not hold real numbers.
    """

    def __init__(
        self,
        path: Path,
        choice: Choice | None = None,
        *,
        may_miss: bool = False,
        has_words: bool = False,
        may_be_empty: bool = False,
    ) -> None:
        self._may_miss = may_miss
        choice = Choice(None, None) if choice is None else choice
        self._pyarrow, self._parquet = _pyarrow()
        self.path = path
        # A named pipe would wait for its writer.
        if not os.path.isfile(path):
            raise SourceError(f"{path}: {'not a file' if os.path.exists(path) else 'there is no such file'}")
        with self._opened() as file:
            names = tuple(file.schema_arrow.names)
            if len(set(names)) < len(names):
                raise SourceError(f"{path}: several columns have the same name")
            if not names:
                raise SourceError(f"{path}: has no columns")
            self.n_rows: int = file.metadata.num_rows
            if not self.n_rows and not may_be_empty:
                raise SourceError(f"{path}: has no rows")
            chosen = choice.among(names, len(names))
            self.positions = list(range(len(names))) if chosen is None else chosen
            types = [file.schema_arrow.field(position).type for position in self.positions]
            words = [_holds_words(self._pyarrow, kind) for kind in types] if has_words else [False] * len(types)
            numbers = [place for place, is_text in zip(self.positions, words, strict=True) if not is_text]
            _check_types(self._pyarrow, path, file.schema_arrow, numbers)
            self.has_words = any(words)
            single = all(kind in (self._pyarrow.float16(), self._pyarrow.float32()) for kind in types)
            self.dtype = np.dtype(np.float32 if single else np.float64)
            # Tables of several kinds of columns have no type to keep.
            self._types = [] if self.has_words else types[:-1] if choice.has_weights else types
            self._all_names = names
            self._kept = [names[column] for column in choice.kept_among(names, len(names))]
            self.names = named(names, chosen) or ()

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with self._parquet.ParquetFile(self.path) as file:
                yield file
        except (StickbreakError, MemoryError):
            raise
        except Exception as error:
            # PyArrow raises various errors for damaged files, some of Python's own where a footer is not UTF-8.
            raise SourceError(f"{self.path}: not a Parquet file, or damaged: {brief(error)}") from error

    def group_sizes(self) -> list[int]:
        """Return the number of rows of each row group."""
        with self._opened() as file:
            return [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]

    def put_in_order(self, names: Sequence[str]) -> None:
        """Read the columns in the order of these names."""
        self.positions = [self.positions[self.names.index(name)] for name in names]
        self.names = tuple(names)

    def say_converted(self) -> None:
        """Warn of data columns that change their type."""
        for kind in dict.fromkeys(self._types):
            # float32 is exact in any common type, so it needs no warning. NumPy has no decimals.
            if kind not in (self._pyarrow.float32(), self._pyarrow.float64()):
                decimal = self._pyarrow.types.is_decimal(kind)
                arrays.say_converted(np.dtype(object if decimal else kind.to_pandas_dtype()), self.dtype)

    def kept(self) -> dict[str, list[Any]]:
        """Return the columns to keep, by name."""
        if not self._kept:
            return {}
        with self._opened() as file:
            table = file.read(columns=self._kept)
        return {name: table.column(name).to_pylist() for name in self._kept}

    def blocks(self) -> Iterator[Any]:
        """Yield the rows from the beginning, in blocks of shape (n, D): arrays, or `MixedRows` if a column has text."""
        names = self._all_names
        end = 0
        with self._opened() as file:
            columns = [names[position] for position in self.positions]
            for batch in file.iter_batches(batch_size=max(1024, _VALUES // len(columns)), columns=columns):
                begin, end = end, end + batch.num_rows
                if end > self.n_rows:
                    break
                rows = np.empty((0 if self.has_words else batch.num_rows, len(self.positions)), dtype=self.dtype)
                mixed: list[NDArray[Any]] = []
                declared: list[tuple[str, ...] | None] = []
                for place, position in enumerate(self.positions):
                    column = batch.column(names[position])
                    if column.null_count and not self._may_miss:
                        row = begin + column.is_null().index(True).as_py()
                        where = f"row {row} (counted from 0), {title(position, names)}"
                        raise SourceError(f"{self.path}: {where}: the value is missing")
                    is_text = self.has_words and _holds_words(self._pyarrow, column.type)
                    if not is_text and (column.null_count or self._pyarrow.types.is_decimal(column.type)):
                        column = column.cast(self._pyarrow.float64())
                    if self.has_words:
                        mixed.append(_column(self._pyarrow, column))
                        declared.append(_declared(batch.schema, names[position], column) if is_text else None)
                    else:
                        rows[:, place] = column.to_numpy(zero_copy_only=False)
                yield MixedRows(mixed, declared) if self.has_words else rows
        if end != self.n_rows:
            raise SourceError(f"{self.path}: does not hold the {self.n_rows} rows that it says it has")


def arrow_table(pyarrow: Any, columns: Mapping[str, Any]) -> Any:
    """Return columns as an Arrow table; values that have no common type become text."""
    return pyarrow.table({name: _arrow_column(pyarrow, values) for name, values in columns.items()})


def _arrow_column(pyarrow: Any, values: Any) -> Any:
    try:
        return pyarrow.array(values)
    except (OverflowError, pyarrow.ArrowException):
        # Arrow guesses 64 bits with a sign for Python's integers.
        return pyarrow.array([None if value is None else str(value) for value in values])


def write_parquet(file: IO[bytes], columns: Mapping[str, Any]) -> None:
    """Write columns to an open Parquet file.

    Raises
    ------
    NotSupported
        PyArrow is not installed.
    OSError
        The file cannot be written.
    """
    pyarrow, parquet = _pyarrow()
    parquet.write_table(arrow_table(pyarrow, columns), file)


class ParquetFolder:
    """The Parquet files of a folder, sorted by name, read as one.

    Parameters
    ----------
    path : Path
        The folder.
    choice, may_miss, has_words
        As in `ParquetRows`.

    Raises
    ------
    NotSupported, SourceError
        As in `ParquetRows`; or there are no files, or the columns of a file differ from those of the first.
    """

    def __init__(
        self, path: Path, choice: Choice | None = None, *, may_miss: bool = False, has_words: bool = False
    ) -> None:
        # Hidden files are those of programs that write.
        paths = sorted(file for file in path.glob("*.parquet") if not file.name.startswith((".", "_")))
        every = [ParquetRows(file, choice, may_miss=may_miss, has_words=has_words, may_be_empty=True) for file in paths]
        if not every:
            raise SourceError(f"{path}: there is no Parquet file in the folder itself")
        # Programs write empty files, too.
        self.files = [file for file in every if file.n_rows]
        if not self.files:
            raise SourceError(f"{path}: its files have no rows")
        self.names = self.files[0].names
        for file in self.files:
            if sorted(file.names) != sorted(self.names):
                raise SourceError(f"{file.path}: has the columns {file.names}, and {self.files[0].path} {self.names}")
            file.put_in_order(self.names)
        self.n_rows = sum(file.n_rows for file in self.files)
        self.dtype = np.result_type(*[file.dtype for file in self.files])
        self.has_words = any(file.has_words for file in self.files)
        for file in self.files:
            # A column may have text in some files only.
            file.has_words = self.has_words

    def say_converted(self) -> None:
        """Warn of data columns that change their type."""
        for file in self.files:
            file.say_converted()

    def kept(self) -> dict[str, list[Any]]:
        """Return the columns to keep, by name."""
        parts = [file.kept() for file in self.files]
        return {name: [value for part in parts for value in part[name]] for name in parts[0]}

    def blocks(self) -> Iterator[Any]:
        """Yield the rows from the beginning, in blocks of shape (n, D), as `ParquetRows.blocks`."""
        for file in self.files:
            for block in file.blocks():
                yield block if self.has_words else np.require(block, dtype=self.dtype)


def _pyarrow() -> tuple[Any, Any]:
    # Imported late: most users have no Parquet files, and PyArrow is large.
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise NotSupported('Parquet files need the package pyarrow: pip install "stickbreak[parquet]"') from error
    # PyArrow imports pandas, if there is one, when it first converts a column, and would lose an interrupt meanwhile.
    with suppress(ImportError):
        import pandas  # noqa: F401
    return pyarrow, pyarrow.parquet


def _holds_words(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view))


def _declared(schema: Any, name: str, column: Any) -> tuple[str, ...] | None:
    """Return the declared categories of a column of words, if it has some."""
    if not declares(schema, schema.get_field_index(name)):
        return None
    known = column.dictionary.to_pylist()
    return tuple(known) if are_levels(known) else None


def _column(pyarrow: Any, column: Any) -> NDArray[Any]:
    """Return a column of numbers or words, as `MixedRows` holds it."""
    if not _holds_words(pyarrow, column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    words = np.empty(len(column), dtype=object)
    words[:] = column.to_pylist()
    return words


def _check_types(pyarrow: Any, path: Path, schema: Any, positions: list[int]) -> None:
    types = pyarrow.types
    for position in positions:
        kind = schema.field(position).type
        if not any(test(kind) for test in (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)):
            where = title(position, schema.names)
            raise SourceError(f"{path}: {where} holds values of type {kind}, not real numbers; choose other columns")
