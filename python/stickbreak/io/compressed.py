"""Checks and compresses sparse arrays of SciPy.

Users may write to the parts of a sparse array, and SciPy's C routines read them without bounds checks. So every part is
checked here before SciPy touches it, and flags that SciPy caches are not trusted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak.checks import brief, describe, invalid_argument
from stickbreak.errors import InvalidArgument


def compressed_rows(table: Any, argument: str) -> Any:
    """Return a two-dimensional sparse array in CSR format, with ascending columns and duplicate entries added.

    Parameters
    ----------
    table : sparse array
        A sparse array of any format; it is not changed.
    argument : str
        Its name in error messages.

    Raises
    ------
    InvalidArgument
        Its parts are inconsistent, some value is no number, or its rows do not fit in memory.
    """
    with fitting_in_memory(table, argument):
        if table.format == "dok":
            table = _listed(table, argument)
        check_values(table, argument)
        _check_parts(table, argument)
        rows = _converted(table, argument)
        _check_parts(rows, argument)
        # Wraps the same parts in a new array without cached flags, because the user may have changed them.
        rows = type(rows)((rows.data, rows.indices, rows.indptr), shape=rows.shape, copy=False)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return rows


@contextmanager
def fitting_in_memory(table: Any, argument: str) -> Iterator[None]:
    """Raise InvalidArgument with the size of a sparse array if its rows do not fit in memory."""
    try:
        yield
    except MemoryError as error:
        # CSR has an offset for each row, and a column and a value for each entry.
        size = 8e-9 * table.shape[0] + 16e-9 * table.nnz
        found = f"of {table.shape[0]} rows, which take about {size:.1f} GB in CSR format"
        raise invalid_argument(argument, found, "a sparse array whose rows fit in memory") from error


def check_values(table: Any, argument: str) -> None:
    """Refuse a sparse array whose values are no array. SciPy asks them for their type without looking."""
    if table.format != "dok" and not isinstance(table.data, np.ndarray):
        raise _broken(table, "data", f"is {describe(table.data)}", "is an array", argument)


def _listed(table: Any, argument: str) -> Any:
    """Return the entries of a dictionary of keys as lists of rows, columns and values."""
    n_rows, n_columns = table.shape
    try:
        return table.tocoo()
    except MemoryError:
        raise
    except Exception as error:  # SciPy raises various errors for keys and values that do not belong there
        allowed = f"has pairs of integers below {n_rows} and {n_columns} as keys, and numbers as values"
        raise _broken(table, "keys", f"do not fit ({error})", allowed, argument) from error


def _converted(table: Any, argument: str) -> Any:
    """Return an array whose parts fit together in CSR format."""
    try:
        return table.tocsr()
    except MemoryError:
        raise
    except Exception as error:  # SciPy raises various errors for values that are no numbers
        raise _broken(
            table, "data", f"cannot be converted ({brief(error)})", "has numbers of its dtype", argument
        ) from error


def _check_parts(table: Any, argument: str) -> None:
    n_rows, n_columns = table.shape
    if table.format == "csr":
        _check_compressed(table, (n_rows, n_columns), argument)
    elif table.format == "csc":
        _check_compressed(table, (n_columns, n_rows), argument)
    elif table.format == "bsr":
        _check_dimensions(table, 3, argument)
        height, width = table.data.shape[1:]
        if min(height, width) == 0 or n_rows % height or n_columns % width:
            raise _broken(table, "data", f"is {describe(table.data)}", "has blocks that tile the shape", argument)
        _check_compressed(table, (n_rows // height, n_columns // width), argument, n_dimensions=3)
    elif table.format == "coo":
        _check_dimensions(table, 1, argument)
        is_sequence = isinstance(table.coords, tuple | list)
        if not is_sequence or len(table.coords) != 2:
            found = f"has {len(table.coords)} vectors" if is_sequence else f"is {describe(table.coords)}"
            raise _broken(table, "coords", found, "is a pair of vectors", argument)
        for name, numbers, n in zip(("row", "col"), table.coords, table.shape, strict=True):
            _check_whole(table, name, numbers, argument)
            if len(numbers) != len(table.data):
                raise _broken(table, name, f"has {len(numbers)} numbers", f"has {len(table.data)} numbers", argument)
            _check_range(table, name, numbers, n, argument)
    elif table.format == "dia":
        _check_whole(table, "offsets", table.offsets, argument)
        _check_dimensions(table, 2, argument)
        if len(table.offsets) != len(table.data):
            raise _broken(
                table,
                "offsets",
                f"has {len(table.offsets)} numbers",
                f"has {len(table.data)} numbers",
                argument,
            )
    elif table.format == "lil":
        _check_lists(table, (n_rows, n_columns), argument)


def _check_lists(table: Any, shape: tuple[int, int], argument: str) -> None:
    """Check an array of lists of columns and values, one of each for a row."""
    for name, lists in (("rows", table.rows), ("data", table.data)):
        found = f"has {len(lists)} lists" if isinstance(lists, np.ndarray) else f"is {describe(lists)}"
        if not isinstance(lists, np.ndarray) or len(lists) != shape[0]:
            raise _broken(table, name, found, f"is an array of {shape[0]} lists", argument)
        if not all(isinstance(one, list) for one in lists):
            raise _broken(table, name, "has other things than lists", f"is an array of {shape[0]} lists", argument)
    if any(len(columns) != len(values) for columns, values in zip(table.rows, table.data, strict=True)):
        raise _broken(
            table, "rows", "has lists of other lengths than `data`", "has lists of the same lengths", argument
        )
    for columns in table.rows:
        for column in columns:
            if not isinstance(column, int | np.integer) or not 0 <= column < shape[1]:
                found, allowed = f"has the column {column!r}", f"has integers from 0 to {shape[1] - 1}"
                raise _broken(table, "rows", found, allowed, argument)


def _check_compressed(table: Any, shape: tuple[int, int], argument: str, n_dimensions: int = 1) -> None:
    """Check the parts of an array of compressed lines; `shape` is the number of lines and the length of each."""
    for name in ("indptr", "indices"):
        _check_whole(table, name, getattr(table, name), argument)
    indptr, indices, data = table.indptr, table.indices, table.data
    _check_dimensions(table, n_dimensions, argument)
    if len(indptr) != shape[0] + 1:
        raise _broken(table, "indptr", f"has {len(indptr)} numbers", f"has {shape[0] + 1} numbers", argument)
    if indptr[0] != 0:
        raise _broken(table, "indptr", f"begins with {indptr[0]}", "begins with 0", argument)
    # Compares instead of subtracting, because differences of unsigned numbers are never negative.
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        row = int(falls.argmax())
        raise _broken(table, "indptr", f"falls from {indptr[row]} to {indptr[row + 1]}", "never falls", argument)
    most = min(len(indices), len(data))
    if indptr[-1] > most:
        raise _broken(table, "indptr", f"ends with {indptr[-1]}", f"ends with at most {most}", argument)
    _check_range(table, "indices", indices[: int(indptr[-1])], shape[1], argument)


def _check_dimensions(table: Any, n_dimensions: int, argument: str) -> None:
    if table.data.ndim != n_dimensions:
        allowed = "has one dimension" if n_dimensions == 1 else f"has {n_dimensions} dimensions"
        raise _broken(table, "data", f"is {describe(table.data)}", allowed, argument)


def _check_whole(table: Any, name: str, numbers: Any, argument: str) -> None:
    if not isinstance(numbers, np.ndarray) or numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise _broken(table, name, f"is {describe(numbers)}", "is a vector of integers", argument)


def _check_range(table: Any, name: str, numbers: NDArray[Any], n: int, argument: str) -> None:
    if len(numbers) == 0:
        return
    for number in (numbers.min(), numbers.max()):
        if not 0 <= number < n:
            allowed = f"has numbers from 0 to {n - 1}" if n > 0 else "is empty"
            raise _broken(table, name, f"has the number {number}", allowed, argument)


def _broken(table: Any, part: str, found: str, allowed: str, argument: str) -> InvalidArgument:
    return invalid_argument(
        argument,
        f"a {type(table).__name__} whose parts do not fit together: `{part}` {found}",
        f"a sparse array whose `{part}` {allowed}",
    )
