"""Data in shards: collections of dask, and Parquet files, cut into pieces of at most `shard_rows` rows.

The data and the number of rows decide the cut, never who reads the pieces.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import InvalidArgument, SourceError, StickbreakError
from stickbreak.io.arrays import DenseRows, is_sparse, say_converted
from stickbreak.io.frames import is_of
from stickbreak.io.names import Names, Table, named, shown

# The form that the core reads: type, number of columns, rows of each shard, whether they are in other processes, and an
# object that loads them or passes requests on.
ShardSource: TypeAlias = tuple[str, int, list[int], bool, object]
# A shard that a worker reads: its number, the rows and their weights.
GivenShard: TypeAlias = tuple[int, DenseRows, NDArray[np.float64] | None]

_ARRAY, _FRAME = ("dask.array", "Array"), ("dask.dataframe", "DataFrame")


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file."""

    path: str
    index: int
    columns: tuple[str, ...]

    def read(self) -> Any:
        """Return the rows as an Arrow table."""
        from pyarrow.parquet import ParquetFile

        with ParquetFile(self.path) as file:
            return file.read_row_group(self.index, columns=list(self.columns))


@dataclass(frozen=True)
class Piece:
    """Rows `begin` to `end` of a chunk: one shard. `name` is for messages."""

    chunk: int
    begin: int
    end: int
    name: str
    # The number of rows of the chunk.
    size: int

    def rows(self, chunk: Any, dtype: str, n_columns: int, columns: Names | None = None) -> DenseRows:
        """Return the rows of the shard, given the chunk; columns of a table are put in the order of `columns`.

        Raises
        ------
        SourceError
            The chunk has other columns, or another number of rows, than it should have, a mask, or no real numbers, or
            is sparse.
        """
        if is_sparse(chunk):
            raise SourceError(f"{self.name} is sparse; collections are dense: make it an array by .toarray()")
        if not hasattr(chunk, "__len__"):
            raise SourceError(f"{self.name} is {checks.describe(chunk)}, not rows")
        if len(chunk) != self.size:
            raise SourceError(f"{self.name} has {len(chunk)} rows, not {self.size}")
        if isinstance(chunk, np.ma.MaskedArray):
            raise SourceError(f"{self.name} is a masked array; write data.map_blocks(numpy.ma.filled, numpy.nan)")
        if columns is not None and is_of(chunk, "pandas", "DataFrame"):
            own = tuple(str(name) for name in chunk.columns)
            if sorted(own) != sorted(columns):
                raise SourceError(f"{self.name} has the columns {shown(own)}, not {shown(columns)}")
            chunk = chunk if own == columns else chunk.iloc[:, [own.index(name) for name in columns]]
        if columns is not None and is_of(chunk, "pyarrow", "Table"):
            chunk = chunk.select(list(columns))
        values = _table(chunk, self.begin, self.end)
        if values.ndim != 2 or values.shape[1] != n_columns:
            raise SourceError(f"{self.name} is of shape {values.shape}, not of {n_columns} columns")
        if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8:
            raise SourceError(f"{self.name} holds values of type {values.dtype}, not real numbers")
        return np.require(values, dtype=dtype, requirements=["C", "A"])


def read_as(dtype: Any) -> str:
    """Return the type in which the core reads values of another one."""
    return "float32" if dtype in (np.float32, np.float16) else "float64"


def _table(chunk: Any, begin: int, end: int) -> NDArray[Any]:
    if isinstance(chunk, np.ndarray):
        return chunk[begin:end]
    if is_of(chunk, "pyarrow", "Table"):
        columns = chunk.slice(begin, end - begin).columns
        arrays = [column.to_numpy() for column in columns]
        # NumPy has no decimals.
        return np.column_stack([values.astype(float) if values.dtype == object else values for values in arrays])
    if is_of(chunk, "pandas", "DataFrame"):
        # Types of pandas that may miss values become objects otherwise.
        with suppress(ValueError, TypeError):
            return np.asarray(chunk.iloc[begin:end].to_numpy(dtype=np.result_type(*_types(chunk.dtypes))))
    return np.asarray(chunk[begin:end])


def _types(dtypes: Any) -> Iterator["np.dtype[Any]"]:
    for dtype in dtypes:
        # pandas' own types have NumPy's in them.
        own = getattr(dtype, "numpy_dtype", dtype)
        yield own if isinstance(own, np.dtype) else np.dtype(object)


@contextmanager
def failing() -> Iterator[None]:
    """Raise a SourceError for whatever the data raise when they are computed or read."""
    try:
        yield
    except (StickbreakError, MemoryError):
        raise
    except Exception as error:
        raise SourceError(f"the data source failed: {type(error).__name__}: {error}") from error


def loaded(chunk: Any) -> Any:
    """Return a chunk in memory: a row group is read.

    Raises
    ------
    SourceError
        Its file is missing or damaged.
    """
    if not isinstance(chunk, RowGroup):
        return chunk
    with failing():
        return chunk.read()


def located(error: InvalidArgument, piece: Piece) -> InvalidArgument:
    """Return an error about a row of a shard that names the row of its chunk."""

    def place(match: "re.Match[str]") -> str:
        return f"row {int(match[1]) + piece.begin} of {piece.name}"

    found = re.sub(r"row (\d+)", place, str(error.found), count=1)
    message = str(error).replace(str(error.found), found, 1)
    return InvalidArgument(message, argument=error.argument, found=found, allowed=error.allowed)


class ShardedData:
    """Rows in shards.

    Parameters
    ----------
    chunks : sequence
        What a piece is a part of: delayed objects of dask, or row groups.
    sizes : sequence of int
        The number of rows of each chunk.
    chunk_names : sequence of str
        What messages call the chunks.
    dtype : dtype
        The common type of all columns.
    n_columns : int
        Number of columns.
    columns : tuple of str, optional
        Their names in the chunks, which may be numbers.
    names : tuple of str, optional
        Their names.
    shard_rows : int
        Maximum number of rows of a shard.
    argument : str
        What errors call the data.

    Raises
    ------
    InvalidArgument
        There are no rows.
    """

    def __init__(
        self,
        chunks: Sequence[Any],
        sizes: Sequence[int],
        chunk_names: Sequence[str],
        *,
        dtype: "np.dtype[Any]",
        n_columns: int,
        columns: Names | None = None,
        names: Names | None = None,
        shard_rows: int,
        argument: str,
    ) -> None:
        self.chunks, self.argument = list(chunks), argument
        self.dtype = read_as(dtype)
        if dtype.kind in "iub":
            say_converted(dtype, np.dtype(self.dtype))
        self.n_columns, self.columns, self.names = n_columns, columns, names
        self.pieces = [
            Piece(chunk, begin, min(begin + shard_rows, size), chunk_names[chunk], size)
            for chunk, size in enumerate(sizes)
            for begin in range(0, size, shard_rows)
        ]
        if not self.pieces:
            raise checks.invalid_argument(argument, "a collection without rows", "at least one row")
        if n_columns == 0:
            raise checks.invalid_argument(argument, "a collection without columns", "at least one column")
        if columns is not None and len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            found = f"a collection with several columns {checks.quote(twice)}"
            raise checks.invalid_argument(argument, found, "columns of different names")

    def put_in_order(self, expected: Names | None) -> bool:
        """Put columns in the order of these names, if both have names, and return whether it is another one.

        Raises
        ------
        InvalidArgument
            A column is missing, or has a name that is not among them.
        """
        found = named(Table(np.empty((0, self.n_columns)), self.names), self.argument, expected)
        self.names = found.names
        if found.order is not None:
            self.columns = found.names
        return found.order is not None

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each shard."""
        return [piece.end - piece.begin for piece in self.pieces]

    @property
    def n_rows(self) -> int:
        """The number of all rows."""
        return sum(self.sizes)

    @property
    def is_delayed(self) -> bool:
        """Whether chunks are delayed objects of dask."""
        return not isinstance(self.chunks[0], RowGroup)

    def here(self) -> ShardSource:
        """Return what the core reads to load the shards in this process."""
        return self.dtype, self.n_columns, self.sizes, False, self.loader

    @cached_property
    def loader(self) -> "Loader":
        """What loads the shards in this process."""
        return Loader(self)


class Loader:
    """Loads shards in this process. It keeps the last chunk, since shards of a chunk follow each other."""

    def __init__(self, data: ShardedData) -> None:
        self._data = data
        self._last: tuple[int, Any] = (-1, None)
        # The last shard that was loaded.
        self.piece: Piece | None = None

    def load(self, shard: int) -> DenseRows:
        """Return the rows of a shard."""
        data = self._data
        piece = data.pieces[shard]
        if self._last[0] != piece.chunk:
            self._last = (-1, None)
            chunk = data.chunks[piece.chunk]
            with failing():
                self._last = (piece.chunk, chunk.compute() if data.is_delayed else loaded(chunk))
        self.piece = piece
        return piece.rows(self._last[1], data.dtype, data.n_columns, data.columns)


def is_array(data: object) -> bool:
    """Return whether data are an array of dask."""
    return is_of(data, *_ARRAY)


def array_of_rows(data: Any, argument: str = "data") -> Any:
    """Return an array of dask with one chunk for all columns, as rows need it.

    Raises
    ------
    InvalidArgument
        It has another number of dimensions, or several chunks side by side.
    """
    if data.ndim != 2:
        raise checks.invalid_argument(argument, f"an array of shape {data.shape}", "an array of shape (n, D)")
    if len(data.chunks[1]) > 1:
        found = f"of {len(data.chunks[1])} chunks side by side"
        hint = f"{argument}.rechunk({{1: -1}}) joins them"
        raise checks.invalid_argument(argument, found, "an array whose chunks have all columns", hint)
    return data


def check_alone(argument: str, value: object) -> None:
    """Refuse values of single rows beside a collection."""
    if value is not None:
        reason = "its rows have no numbers"
        raise checks.not_supported(argument, f"`{argument}` for a collection", reason, f"{argument}=None")


def is_collection(data: object) -> bool:
    """Return whether data are an array or a data frame of dask."""
    return is_of(data, *_ARRAY) or is_of(data, *_FRAME)


def sharded(data: Any, shard_rows: int, compute: Any = None, argument: str = "data") -> ShardedData | None:
    """Return a collection of dask, or the path of Parquet files, in shards; None for other data.

    `compute` computes the lengths of the partitions of a data frame; by default in this process. Errors call the data
    `argument`.

    Raises
    ------
    InvalidArgument, NotSupported
        Its chunks have unknown sizes, several chunks side by side, columns that are no real numbers, or no rows.
    SourceError
        A file is missing or damaged.
    """
    if is_of(data, *_ARRAY):
        return _of_array(data, shard_rows, argument)
    if is_of(data, *_FRAME):
        return _of_frame(data, shard_rows, compute, argument)
    # An empty path would be this folder.
    if isinstance(data, str | Path) and data != "":
        return _of_files(Path(data), shard_rows, argument)
    return None


def _of_array(data: Any, shard_rows: int, argument: str) -> ShardedData:
    array_of_rows(data, argument)
    if any(math.isnan(size) for size in data.chunks[0]):
        allowed, hint = "an array whose chunks have known sizes", f"call {argument}.compute_chunk_sizes()"
        raise checks.invalid_argument(argument, "of chunks of unknown sizes", allowed, hint)
    _check_kind(data.dtype, argument)
    if isinstance(data._meta, np.ma.MaskedArray):
        hint = f"{argument}.map_blocks(numpy.ma.filled, numpy.nan) makes masked values missing ones"
        raise checks.invalid_argument(argument, "a masked array", "an array without a mask", hint)
    chunks = list(data.to_delayed().ravel())
    names = [f"chunk {number}" for number in range(len(chunks))]
    return ShardedData(
        chunks,
        data.chunks[0],
        names,
        dtype=data.dtype,
        n_columns=data.shape[1],
        shard_rows=shard_rows,
        argument=argument,
    )


def _of_frame(data: Any, shard_rows: int, compute: Any, argument: str) -> ShardedData:
    for name, dtype in data.dtypes.items():
        own = getattr(dtype, "numpy_dtype", dtype)
        if not isinstance(own, np.dtype) or own.kind not in "fiub":
            found = f"a column {checks.quote(str(name))} of type {dtype}"
            raise checks.invalid_argument(
                argument, found, "columns of real numbers", f"choose others: {argument}[[...]]"
            )
    lengths = data.map_partitions(len, meta=("length", "i8"))
    with failing():
        sizes = [int(size) for size in (lengths.compute() if compute is None else compute(lengths))]
    names = [f"partition {number}" for number in range(len(sizes))]
    columns = tuple(str(name) for name in data.columns)
    return ShardedData(
        list(data.to_delayed()),
        sizes,
        names,
        dtype=_common(data.dtypes),
        n_columns=len(columns),
        columns=columns,
        names=named(data._meta, argument).names,
        shard_rows=shard_rows,
        argument=argument,
    )


def _common(dtypes: Any) -> "np.dtype[Any]":
    """Return the type of several columns: float32 if all have at most that, else that of one which has not."""
    others = [dtype for dtype in _types(dtypes) if dtype not in (np.float32, np.float16)]
    return max(others, key=lambda dtype: dtype.kind in "iub") if others else np.dtype(np.float32)


def _of_files(path: Path, shard_rows: int, argument: str) -> ShardedData:
    from stickbreak.io.datafiles.parquet import row_groups

    groups = row_groups(path)
    chunks = [RowGroup(str(file.absolute()), index, groups.columns) for file, index, _ in groups.all]
    names = [f"row group {index} of {file}" for file, index, _ in groups.all]
    return ShardedData(
        chunks,
        [size for _, _, size in groups.all],
        names,
        dtype=groups.dtype,
        n_columns=len(groups.columns),
        columns=groups.columns,
        names=groups.columns,
        shard_rows=shard_rows,
        argument=argument,
    )


def _check_kind(dtype: Any, argument: str) -> None:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise checks.invalid_argument(argument, f"an array of {dtype}", "an array of real numbers")
