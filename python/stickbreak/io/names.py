"""Names of columns: read from tables, checked, and matched with those of a fit."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import InvalidArgument
from stickbreak.io import frames

Names: TypeAlias = tuple[str, ...]

# Maximum number of names in a message or a line.
_MOST_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and the names of their columns, as read from a data file.

    Parameters
    ----------
    rows : ndarray or sparse array of shape (n, D)
        The rows.
    names : tuple of str, optional
        The names of the columns.
    """

    rows: Any
    names: Names | None

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.rows, dtype=dtype)


class Named(NamedTuple):
    """Data with their columns in the expected order.

    Parameters
    ----------
    data : object
        The data without column names.
    names : tuple of str, optional
        The names of the columns of `data`.
    order : list of int, optional
        For each column of `data`, its position in the user's data; None if unchanged.
    """

    data: Any
    names: Names | None
    order: list[int] | None


def named(value: Any, argument: str, expected: Names | None = None) -> Named:
    """Return data with their columns in the order of the `expected` names.

    Columns of tables are matched by name. Everything else is matched by position: arrays, and pandas tables without
    string labels.

    Parameters
    ----------
    value : object
        The user's data.
    argument : str
        Its name in error messages.
    expected : tuple of str, optional
        The names that the columns must have, in the required order. Default: their own names.

    Raises
    ------
    InvalidType
        Some names are strings and others are not, or the value has names and is no table that can be read.
    InvalidArgument
        Two columns have the same name, a name has a lone surrogate, a column of `expected` is missing, a column is not
        in `expected`, or numbers in place of names are not in ascending order.
    """
    value = frames.understood(value, argument)
    found = _names_of(value)
    if found is None:
        _check_numbers(value, argument)
    if found is None:
        return Named(value.rows if isinstance(value, Table) else value, expected, None)
    names = _checked(found, argument)
    if expected is None or names == expected:
        return Named(value.rows if isinstance(value, Table) else value, names, None)
    _check_same(names, argument, expected)
    places = {name: place for place, name in enumerate(names)}
    order = [places[name] for name in expected]
    return Named(_taken(value, order), expected, order)


def position(value: object, argument: str, names: Names | None, n_columns: int) -> int:
    """Return the position of a column given by name or position.

    Parameters
    ----------
    value : object
        The user's value.
    argument : str
        Its name in error messages.
    names : tuple of str, optional
        The names of all columns, if they have any.
    n_columns : int
        Number of columns.

    Raises
    ------
    InvalidType
        It is neither a string nor an integer.
    InvalidArgument
        The column does not exist.
    """
    if not isinstance(value, str):
        return checks.integer(argument, value, minimum=0, maximum=n_columns - 1, or_else=["a name"])
    known = names or ()
    if value not in known:
        allowed = f"a position from 0 to {n_columns - 1}" + (" or the name of a column" if known else "")
        hint = checks.did_you_mean(value, known) if known else "the columns of the fit have no names"
        raise checks.invalid_argument(argument, checks.quote(value), allowed, hint)
    return known.index(value)


def shown(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones."""
    listed = ", ".join(map(checks.quote, names[:_MOST_SHOWN]))
    more = len(names) - _MOST_SHOWN
    return f"{listed} and {more} more" if more > 0 else listed


@contextmanager
def naming(names: Names | None, on_missing: str = "") -> Iterator[None]:
    """Name the columns of values that the core refuses; `on_missing` says what to do about missing ones."""
    try:
        yield
    except InvalidArgument as error:
        raise with_column(error, names, on_missing) from None


def with_column(error: InvalidArgument, names: Names | None, on_missing: str = "") -> InvalidArgument:
    """Return the error of a single value with the name of its column, if it has one; others as they are."""
    found = error.found or ""
    place = re.search(r"(?<= in row )(\d+(?: of .+)?, column )(\d+)$", found)
    if place is None:
        return error
    hint = f"; {on_missing}" if found.startswith("NaN") and on_missing else ""
    named = found
    if names is not None and int(place[2]) < len(names):
        # The position may be another one in the user's table.
        named = f"{found[: place.start()]}{place[1]}{checks.quote(names[int(place[2])])}"
    message = str(error).replace(found, named, 1) + hint
    return InvalidArgument(message, argument=error.argument, found=named, allowed=error.allowed)


def in_place(values: NDArray[np.float64], order: list[int] | None) -> NDArray[np.float64]:
    """Return columns in the user's order, given the order of `Named.data`."""
    if order is None:
        return values
    given = np.empty(values.shape)
    given[:, order] = values
    return given


def of_file(value: object, n_columns: int | None) -> Names | None:
    """Return the names stored in a file with `n_columns` columns; None if the file has no rows to count them by.

    Raises
    ------
    ValueError
        They are not one distinct string per column.
    """
    if value is None:
        return None
    strings = isinstance(value, list) and all(isinstance(name, str) for name in value)
    most = n_columns if n_columns is not None or not isinstance(value, list) else len(value)
    if not isinstance(value, list) or not strings or not len(set(value)) == len(value) == most:
        raise ValueError(f"the names of the columns are not {most} different words")
    return tuple(value)


def _names_of(value: Any) -> list[Any] | None:
    """Return the labels of the columns; None if they have none."""
    if isinstance(value, Table):
        return None if value.names is None else list(value.names)
    if frames.is_of(value, "pandas", "DataFrame"):
        labels = list(value.columns)
        # Numbers, dates and tuples are positions, not names.
        return labels if any(isinstance(label, str) for label in labels) else None
    if frames.is_of(value, "polars", "DataFrame"):
        return list(value.columns)
    if frames.is_of(value, "pyarrow", "Table") or frames.is_of(value, "pyarrow", "RecordBatch"):
        return list(value.schema.names)
    return None


def _checked(labels: list[Any], argument: str) -> Names:
    other = [label for label in labels if not isinstance(label, str)]
    if other:
        found = f"a table with the column {other[0]!r}, whose name is a {type(other[0]).__name__}, beside names"
        hint = f"write {argument}.columns = {argument}.columns.astype(str)"
        raise checks.invalid_type(argument, found, "a table whose column names are all strings", hint)
    seen: set[str] = set()
    for name in labels:
        if name in seen:
            found = f"a table with several columns called {checks.quote(name)}"
            raise checks.invalid_argument(argument, found, "a table whose columns have different names")
        if checks.has_surrogate(name):
            found = f"a table with the column {checks.quote(name)}, which has a lone surrogate"
            raise checks.invalid_argument(argument, found, "a table whose column names can be written as UTF-8")
        seen.add(name)
    return tuple(labels)


def _check_numbers(value: Any, argument: str) -> None:
    """Refuse a table whose columns have numbers in another order: columns without names go by position."""
    labels = list(value.columns) if frames.is_of(value, "pandas", "DataFrame") else []
    if not all(isinstance(label, int | np.integer) for label in labels) or len(set(labels)) < len(labels):
        return
    if labels != sorted(labels):
        found = f"a table whose columns have the numbers {', '.join(map(str, labels[:_MOST_SHOWN]))} in place of names"
        hint = f"write {argument}.columns = {argument}.columns.astype(str), or {argument}.to_numpy() to go by position"
        raise checks.invalid_argument(argument, found, "names, or numbers in ascending order", hint)


def _check_same(names: Names, argument: str, expected: Names) -> None:
    given, wanted = set(names), set(expected)
    missing = [name for name in expected if name not in given]
    new = [name for name in names if name not in wanted]
    if not missing and not new:
        return
    parts = [f"{word} {shown(group)}" for word, group in (("without", missing), ("with", new)) if group]
    allowed = f"a table with the columns of the fit ({shown(expected)})"
    hint = "" if missing else "choose its columns, in a table X by X[names], in a file by --columns"
    if missing and new:
        nearest = checks.did_you_mean(missing[0], new)
        hint = nearest and f"{checks.quote(missing[0])}: {nearest}"
    raise checks.invalid_argument(argument, f"a table {' and '.join(parts)}", allowed, hint)


def _taken(value: Any, order: list[int]) -> Any:
    """Return a table with the columns at these positions, in this order."""
    if isinstance(value, Table):
        return value.rows[:, order]
    if frames.is_of(value, "pandas", "DataFrame"):
        return value.iloc[:, order]
    if frames.is_of(value, "polars", "DataFrame"):
        return value[:, order]
    return value.select(order)
