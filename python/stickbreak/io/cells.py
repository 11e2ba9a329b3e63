"""Single columns of tables: numbers, flags, words or declared categories, whatever package holds them."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.io import arrays, frames

Level: TypeAlias = str | int | float | bool
Content: TypeAlias = Literal["numbers", "flags", "words", "categories", "times", "other"]


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows of a data file with columns of numbers and of words.

    Parameters
    ----------
    columns : list of ndarray
        The columns: float64 with NaN for missing values, or objects, strings with None for missing ones.
    declared : list of tuple, optional
        The declared categories of each column, None for columns without.
    """

    columns: list[NDArray[Any]]
    declared: Sequence[tuple[str, ...] | None] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.columns[0]) if self.columns else 0, len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: tuple[slice, Any]) -> Any:
        rows, columns = key
        if isinstance(columns, int):
            return self.columns[columns][rows]
        places = range(len(self.columns))[columns] if isinstance(columns, slice) else columns
        declared = [self.declared[place] for place in places] if self.declared else ()
        return MixedRows([self.columns[place][rows] for place in places], declared)


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Parameters
    ----------
    kind : str
        What it holds: "numbers", "flags" (booleans), "words", "categories", "times" or "other".
    values : ndarray of shape (n,)
        float64 with NaN for missing values, for flags too; objects with None for missing words; for categories integer
        codes, -1 for missing ones. Empty for times and others.
    categories : tuple
        The declared categories, by code.
    dtype : object
        The type of the column in its table, for messages.
    exact : sequence, optional
        The values as levels, None for missing ones, where `values` cannot hold them: text beside numbers, or integers
        that float64 rounds.
    """

    kind: Content
    values: NDArray[Any]
    categories: tuple[Level, ...] = ()
    dtype: Any = None
    exact: Sequence[Level | None] | None = None


def is_of_columns(value: object) -> bool:
    """Return whether a value is a table whose columns `column` reads."""
    return frames.is_table(value) or isinstance(value, MixedRows)


def shape_of(value: Any) -> tuple[int, int]:
    """Return the numbers of rows and columns of a table."""
    rows, columns = value.shape if hasattr(value, "shape") else (value.num_rows, value.num_columns)
    return int(rows), int(columns)


def column(value: Any, position: int) -> Column:
    """Return a column of a table of pandas, Polars or Arrow, of a `MixedRows`, or of an array."""
    if isinstance(value, np.ndarray):
        return _of_array(value[:, position], value.dtype)
    if isinstance(value, MixedRows):
        values, declared = value.columns[position], value.declared[position] if value.declared else None
        return _of_array(values, values.dtype) if declared is None else _of_declared(values, declared)
    if frames.is_of(value, "pandas", "DataFrame"):
        return _of_pandas(value.iloc[:, position])
    if frames.is_of(value, "polars", "DataFrame"):
        return _of_polars(value.to_series(position))
    return _of_arrow(value.column(position), is_declared=declares(value.schema, position))


def declares(schema: Any, position: int) -> bool:
    """Return whether a column of an Arrow schema is a dictionary that declares categories: others only save memory."""
    field = schema.field(position)
    if not sys.modules["pyarrow"].types.is_dictionary(field.type):
        return False
    if field.type.ordered:
        return True
    # Categories of pandas become dictionaries that are not ordered.
    try:
        notes = {note["name"]: note["pandas_type"] for note in schema.pandas_metadata["columns"]}
    except (KeyError, TypeError, ValueError):  # no notes, or those of another program
        return False
    return notes.get(field.name) == "categorical"


def are_levels(values: Sequence[Any]) -> bool:
    """Return whether the values of a dictionary are different, and none is missing, or a list of values."""
    try:
        return None not in values and len(set(values)) == len(values)
    except TypeError:  # lists and the like
        return False


def level(value: Any) -> Level:
    """Return a value as a level: text, a number or a flag; other values as their text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int | float) else str(value)


def _of_array(values: NDArray[Any], dtype: Any) -> Column:
    kind = values.dtype.kind
    if kind == "b":
        return Column("flags", values.astype(np.float64), dtype=dtype)
    if kind in "iuf":
        with np.errstate(over="ignore"):
            return _of_numbers(values.astype(np.float64), dtype, values.tolist if kind in "iu" else None)
    if kind in "mM":
        return Column("times", np.empty(0), dtype=dtype)
    return _of_objects(values.tolist(), dtype)


def _of_declared(values: NDArray[Any], declared: tuple[str, ...]) -> Column:
    """Return a column of words that are declared categories."""
    codes = {word: code for code, word in enumerate(declared)}
    found = np.array([-1 if word is None else codes[word] for word in values.tolist()], dtype=np.int64)
    return Column("categories", found, declared, values.dtype)


def _of_objects(values: Sequence[Any], dtype: Any) -> Column:
    """Return a column of Python objects, with None, NaN and the like for missing values."""
    found = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in found} - {type(None)}
    if all(issubclass(kind, str) for kind in kinds) and kinds:
        words = np.empty(len(found), dtype=object)
        words[:] = [None if value is None else str(value) for value in found]
        return Column("words", words, dtype=dtype)
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        kind: Content = "flags" if kinds else "numbers"
        return Column(kind, np.array([np.nan if value is None else float(value) for value in found]), dtype=dtype)
    if all(_is_number(kind) for kind in kinds):
        numbers = [np.nan if value is None else checks.float_or_inf(value) for value in found]
        return _of_numbers(np.array(numbers, dtype=np.float64), dtype, lambda: found)
    if all(_is_time(kind) for kind in kinds):
        return Column("times", np.empty(0), dtype=dtype)
    exact = _levels(found) if all(issubclass(kind, str) or _is_number(kind) for kind in kinds) else None
    return Column("other", np.empty(0), dtype=f"{dtype}, with values of the types {_names(kinds)}", exact=exact)


def _of_numbers(values: NDArray[np.float64], dtype: Any, given: Callable[[], Sequence[Any]] | None) -> Column:
    """Return a column of numbers, and with them what was `given` if float64 may have rounded it."""
    rounds = given is not None and bool((np.abs(values) > arrays.LARGEST_WHOLE).any())
    return Column("numbers", values, dtype=dtype, exact=_levels(given()) if given is not None and rounds else None)


def _levels(values: Sequence[Any]) -> list[Level | None]:
    """Return values as levels, None for missing ones."""
    from decimal import Decimal

    found = [float(value) if isinstance(value, Decimal) else value for value in values]
    return [None if _is_missing(value) else level(value) for value in found]


def _names(kinds: set[type]) -> str:
    return " and ".join(sorted(kind.__name__ for kind in kinds))


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float | np.floating) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def _is_number(kind: type) -> bool:
    from decimal import Decimal

    return issubclass(kind, int | float | np.integer | np.floating | Decimal | bool | np.bool_)


def _is_time(kind: type) -> bool:
    from datetime import date, time, timedelta

    return issubclass(kind, date | time | timedelta) or kind.__name__ in ("datetime64", "timedelta64", "Period")


def _of_pandas(series: Any) -> Column:
    pandas: Any = sys.modules["pandas"]
    dtype = series.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return Column("categories", series.cat.codes.to_numpy(), tuple(map(level, dtype.categories)), dtype)
    if arrays._holds_times(dtype):
        return Column("times", np.empty(0), dtype=dtype)
    if getattr(dtype, "kind", "O") in "biuf":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        if dtype.kind == "b":
            return Column("flags", values, dtype=dtype)
        return _of_numbers(values, dtype, series.tolist if dtype.kind in "iu" else None)
    return _of_objects(series.to_numpy(dtype=object).tolist(), dtype)


def _of_polars(series: Any) -> Column:
    polars: Any = sys.modules["polars"]
    dtype = series.dtype
    if isinstance(dtype, polars.Enum):
        codes = series.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
        return Column("categories", codes, tuple(dtype.categories.to_list()), dtype)
    if dtype.is_temporal():
        return Column("times", np.empty(0), dtype=dtype)
    if dtype.is_numeric() or dtype == polars.Boolean:
        values = series.cast(polars.Float64).to_numpy()
        if dtype == polars.Boolean:
            return Column("flags", values, dtype=dtype)
        return _of_numbers(values, dtype, series.to_list if dtype.is_integer() else None)
    if dtype == polars.Null:
        return Column("numbers", np.full(len(series), np.nan), dtype=dtype)
    # The categories of a Categorical stand in the order in which any table had them.
    return _of_objects(series.cast(polars.String).to_list() if dtype == polars.Categorical else series.to_list(), dtype)


def _of_arrow(values: Any, *, is_declared: bool) -> Column:
    arrow: Any = sys.modules["pyarrow"]
    types, dtype = arrow.types, values.type
    if types.is_dictionary(dtype):
        if not is_declared:
            return _of_objects(_decoded(values), dtype)
        whole = values.combine_chunks() if hasattr(values, "combine_chunks") else values
        if hasattr(whole, "chunks"):
            whole = whole.unify_dictionaries().combine_chunks()
        known = whole.dictionary.to_pylist()
        if not are_levels(known):
            return _of_objects(_decoded(values), dtype)
        codes = np.array([-1 if code is None else code for code in whole.indices.to_pylist()], dtype=np.int64)
        return Column("categories", codes, tuple(map(level, known)), dtype)
    if types.is_temporal(dtype):
        return Column("times", np.empty(0), dtype=dtype)
    tests = (types.is_floating, types.is_integer, types.is_decimal, types.is_boolean)
    if any(test(dtype) for test in tests):
        numbers = values.cast(arrow.int8()) if types.is_boolean(dtype) else values
        numbers = numbers.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
        if types.is_boolean(dtype):
            return Column("flags", numbers, dtype=dtype)
        return _of_numbers(numbers, dtype, values.to_pylist if types.is_integer(dtype) else None)
    return _of_objects(values.to_pylist(), dtype)


def _decoded(values: Any) -> list[Any]:
    """Return the values of a dictionary of Arrow by row. PyArrow cannot decode all of them, such as views of text."""
    found: list[Any] = []
    for chunk in values.chunks if hasattr(values, "chunks") else [values]:
        known = chunk.dictionary.to_pylist()
        found += [None if code is None else known[code] for code in chunk.indices.to_pylist()]
    return found
