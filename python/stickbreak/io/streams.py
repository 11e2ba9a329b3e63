"""Data read in blocks, again in every pass: a function that returns iterators of blocks, or a Parquet file."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import SourceError, StickbreakError
from stickbreak.io import arrays, cells, frames, levels, names

# Number of rows of the first block that are kept in memory.
_FIRST_ROWS = 10_000

Source = Callable[[], Iterable[Any]]
Blocks = Generator[arrays.DenseRows, None, None]


class Stream:
    """Rows in blocks, as the core reads them: all of one type and width, C-contiguous and nonempty.

    Parameters
    ----------
    source : callable
        Returns a new iterable of blocks at every call.
    likelihood : Likelihood
        States which columns hold codes.
    expected : tuple of str, optional
        The names that the columns must have; columns in another order are reordered. Default: the names in the first
        block.
    known : tuple
        The levels that columns must have. Default: those of the data, which may take one more reading.
    n_rows : int, optional
        Number of rows, if known.

    Raises
    ------
    InvalidType
        The function returns an object that is not iterable.
    SourceError
        There are no blocks, or the first one cannot be read.
    """

    def __init__(
        self,
        source: Source,
        likelihood: levels.Placing,
        expected: names.Names | None = None,
        known: levels.Levels = (),
        n_rows: int | None = None,
    ) -> None:
        self._source = source
        self._n_rows = n_rows
        # Called with the fraction of rows read so far, if their number is known; restarts with every reading.
        self.watch: Callable[[float], object] | None = None
        self._likelihood = likelihood
        self._kind: type[Any] = type(likelihood)
        self.names = expected
        self.levels = known
        # The number of levels of each column of codes, if known.
        self.sizes = levels.sizes_of(known)
        # Whether the columns of some block have another order than `names`.
        self.is_reordered = False
        # Data that later readings must repeat, as far as they have been read here: which rows are all NaN, and the
        # first rows. The core itself compares what it reads.
        self._empty: NDArray[np.bool_] | None = None
        # What the source raised to end the process; the core takes it for a failure of the source.
        self.exit: SystemExit | None = None
        self.first: arrays.DenseRows = np.empty((0, 0))
        try:
            if not known:
                self._collect_levels()
            with closing(self._blocks(None, None)) as blocks:
                first = next(blocks, None)
        except StickbreakError:
            raise
        except Exception as error:  # foreign functions raise what they like
            raise _failed(error) from error
        if first is None:
            raise SourceError("data: the source has no rows")
        self._dtype, self.n_columns = first.dtype, first.shape[1]
        self.first = first[:_FIRST_ROWS].copy()

    @property
    def for_core(self) -> arrays.BlockSource:
        """Type, number of columns, and the function that returns the blocks."""
        return self._dtype.name, self.n_columns, lambda: self._blocks(self._dtype, self.n_columns)

    def rows_without_values(self) -> NDArray[np.bool_]:
        """Return which rows are all NaN, shape (n,); reads the data once.

        Raises
        ------
        SourceError
            The source fails, or has no rows in this reading.
        """
        try:
            with closing(self._blocks(self._dtype, self.n_columns)) as blocks:
                empty = [arrays.rows_without_values(block) for block in blocks]
        except StickbreakError:
            raise
        except Exception as error:
            raise _failed(error) from error
        if not empty:
            raise SourceError("data: the source has no rows any more; every reading must begin anew")
        self._empty = np.concatenate(empty)
        return self._empty

    def _collect_levels(self) -> None:
        """Collect the levels of tables, in one reading if there may be some."""
        if self._likelihood._domain not in levels.TAKE_LEVELS:
            return
        with closing(self._given()) as blocks:
            seen: levels.Seen | None = None
            row = 0
            for block in blocks:
                try:
                    found = names.named(frames.understood(block, "a block"), "a block", self.names)
                    if not (cells.is_of_columns(found.data) or isinstance(block, names.Table)):
                        return
                    n, n_columns = cells.shape_of(found.data)
                    if seen is None:
                        self.names = found.names
                        seen = levels.Seen(self._likelihood, found.names, n_columns, None)
                        if not seen.looks_at(found.data):
                            return
                    seen.add(found, "a block")
                except StickbreakError as error:
                    # Names of the model that the data do not have are no fault of the source.
                    if getattr(error, "argument", None) != "a block":
                        raise
                    raise SourceError(f"at row {row}: {error}") from error
                row += n
        if seen is not None:
            self.levels, self.sizes = seen.levels, seen.sizes

    def _given(self) -> Generator[Any, None, None]:
        """Yield the blocks as they are, and close their iterator if it is a generator."""
        blocks = self._source()
        if not isinstance(blocks, Iterable):
            allowed = "a function that returns an iterator of blocks"
            raise checks.invalid_type("data", f"a function that returns {checks.describe(blocks)}", allowed)
        iterator = iter(blocks)
        try:
            yield from iterator
        finally:
            if isinstance(iterator, Generator):
                iterator.close()

    def _blocks(self, dtype: "np.dtype[Any] | None", n_columns: int | None) -> Blocks:
        """Read all blocks, and close the iterator if it is a generator: an error may keep it, and its locks, alive."""
        try:
            with closing(self._given()) as blocks:
                yield from self._read(blocks, dtype, n_columns)
        except SystemExit as error:
            self.exit = error
            raise

    def _read(self, blocks: Iterator[Any], dtype: "np.dtype[Any] | None", n_columns: int | None) -> Blocks:
        row = 0
        for block in blocks:
            rows = self._checked(block, row)
            dtype = rows.dtype if dtype is None else dtype
            n_columns = rows.shape[1] if n_columns is None else n_columns
            if rows.shape[1] != n_columns:
                raise SourceError(f"the block at row {row} has {rows.shape[1]} columns, the first one {n_columns}")
            if rows.dtype.itemsize > dtype.itemsize:
                raise SourceError(f"the block at row {row} is of {rows.dtype}, the first one of {dtype}")
            rows = np.require(rows, dtype=dtype, requirements=["C", "A"])
            self._compare(rows, row)
            row += len(rows)
            if self.watch is not None and self._n_rows:
                self.watch(min(1.0, row / self._n_rows))
            if len(rows):
                yield rows
        if self._empty is not None and row < len(self._empty):
            raise _other_number(len(self._empty), f"{row}")

    def _compare(self, rows: arrays.DenseRows, row: int) -> None:
        """Refuse rows, starting at a row number, that differ from an earlier reading here."""
        if self._empty is not None and row + len(rows) > len(self._empty):
            raise _other_number(len(self._empty), "more")
        same, known = True, self.first[row : row + len(rows)]
        if len(known):
            now = rows[: len(known)]
            same = bool(((known == now) | ((known != known) & (now != now))).all())
        if self._empty is not None:
            same &= bool((self._empty[row : row + len(rows)] == arrays.rows_without_values(rows)).all())
        if not same:
            raise SourceError(
                f"rows {row} to {row + len(rows) - 1} have other values than when they were read first; "
                "every reading must bring the same rows"
            )

    def _checked(self, block: object, row: int) -> arrays.DenseRows:
        try:
            found = levels.coded(block, "a block", self._likelihood, self.names, self.levels)
            self.names, self.is_reordered = found.names, self.is_reordered or found.order is not None
            rows = arrays.rows(found.data, "a block", likelihood=self._kind, minimum=0)
        except StickbreakError as error:
            raise SourceError(f"at row {row}: {error}") from error
        if isinstance(rows, arrays.SparseRows):
            raise SourceError(
                f"at row {row}: a block must be dense, but it is a sparse array; convert it by .toarray()"
            )
        return rows


def _other_number(before: int, now: str) -> SourceError:
    return SourceError(f"data: {before} rows at first, and {now} then; every reading must bring the same rows")


def _failed(error: Exception) -> SourceError:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its own text may raise
        text = type(error).__name__
    return SourceError(f"the data source failed: {text}")


def stream(
    data: object,
    likelihood: levels.Placing,
    expected: names.Names | None = None,
    known: levels.Levels = (),
    *,
    may_miss: bool = False,
) -> Stream | None:
    """Return the stream for a function or the path of a Parquet file; None for anything else.

    `expected` has the required names of the columns, and `known` their levels, if any.

    Raises
    ------
    InvalidType
        An iterator, which can be read only once, or the path of another file.
    """
    if isinstance(data, str | os.PathLike):
        source, n_rows = _file(data, may_miss, likelihood._domain)
        return Stream(source, likelihood, expected, known, n_rows)
    # Arrow's reader of batches is an iterator too, but is read at once, as a table.
    if frames.is_only_stream(data):
        return None
    if hasattr(data, "__next__") and not isinstance(data, type):
        allowed = "an array, a table, or a function that returns an iterator of blocks"
        hint = "an iterator can be read only once: give the function that makes it"
        raise checks.invalid_type("data", checks.describe(data), allowed, hint)
    # Arrays and tables are never called, even if they are callable.
    if callable(data) and not hasattr(data, "__array__"):
        return Stream(data, likelihood, expected, known)
    return None


def _file(path: "str | os.PathLike[str]", may_miss: bool, domain: str) -> tuple[Source, int]:
    text = os.fsdecode(path)
    file = Path(text)
    # Not the methods of `Path`, which raise for names that are too long, and take an empty one for the folder.
    if file.suffix.lower() != ".parquet" and not os.path.isdir(text):
        allowed = (
            "an array, a table, a function that returns blocks, or the path of a .parquet file or of a folder of them"
        )
        hint = "for a .npy file write numpy.load(path, mmap_mode='r')"
        raise checks.invalid_argument("data", checks.quote(text), allowed, hint)
    if not os.path.isfile(file) and not os.path.isdir(file):
        raise SourceError(f"{file}: {'not a file' if os.path.exists(file) else 'there is no such file'}")
    from stickbreak.io.datafiles.parquet import parquet_rows

    rows = parquet_rows(file, may_miss=may_miss, has_words=domain in levels.TAKE_LEVELS)
    if domain != "mixed":
        rows.say_converted()
    return lambda: (names.Table(block, rows.names) for block in rows.blocks()), rows.n_rows
