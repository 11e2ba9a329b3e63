"""Converts user data (arrays, tables, lists) to the arrays that the core reads, copying only if needed."""

import sys
import warnings
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from stickbreak.checks import describe, invalid_argument, invalid_type
from stickbreak.errors import ConversionWarning, EmptyRowsWarning
from stickbreak.io.compressed import check_values, compressed_rows, fitting_in_memory
from stickbreak.io.frames import hint_if_lazy, is_table
from stickbreak.io.room import fitting

_NUMBERS = "biuf"  # NumPy's kinds of real numbers, booleans included
# Domains of likelihoods for which integers are no other numbers.
_WHOLE = ("counts", "binary", "codes", "mixed")
_TIMES = "mM"  # its kinds of durations and dates
_ROWS_ALLOWED = "an array or table of real numbers, of shape (n, D)"
# Arguments that are rows.
_OF_ROWS = ("data", "X", "X_new")
# What stands for a missing value.
_HOLES = {"data": "NaN", "X": "NaN", "X_new": "NaN", "labels": "-1", "partial_labels": "-1"}
_WITHOUT_COLUMN = "leave such columns out, or make numbers of them"
_WITHOUT_TEXT = "leave such columns out, or choose a likelihood that takes text, as columns_for does"
_WITHOUT_WORDS = "text must be in a table, such as a pandas DataFrame; see columns_for"
# Largest range in which float64 represents every integer.
LARGEST_WHOLE = 2**53
# The core numbers the columns of a sparse table in 32 bits.
_MOST_SPARSE_COLUMNS = 2**32
# Number of rows checked together.
_ROWS_AT_A_TIME = 65_536
# Range of the sum of weights. Above the minimum, products of weights with squares of data keep their digits. The
# rounding of a scatter grows with the weight of its component, and above the maximum it would hide a prior of ordinary
# size.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-100, 1e12


class SparseRows(NamedTuple):
    """Rows in compressed sparse form, as the core reads them: the columns of each row ascend, without duplicates."""

    starts: NDArray[np.uint64]
    columns: NDArray[np.uint32]
    values: NDArray[np.float32] | NDArray[np.float64]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.starts.size - 1, self.n_columns


DenseRows: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Rows: TypeAlias = DenseRows | SparseRows
# Type, number of columns, and a function that returns a new iterator of C-contiguous blocks of rows.
BlockSource: TypeAlias = tuple[str, int, Callable[[], Iterator[DenseRows]]]


class Domain(Protocol):
    """Properties of a likelihood that concern the rows that it reads."""

    _domain: ClassVar[str]
    _accepts_sparse: ClassVar[bool]


@overload
def rows(
    value: object, argument: str = "X", *, likelihood: None = None, n_columns: int | None = None, minimum: int = 1
) -> DenseRows: ...


@overload
def rows(
    value: object,
    argument: str = "X",
    *,
    likelihood: type[Domain],
    n_columns: int | None = None,
    minimum: int = 1,
) -> Rows: ...


def rows(
    value: object,
    argument: str = "X",
    *,
    likelihood: type[Domain] | None = None,
    n_columns: int | None = None,
    minimum: int = 1,
) -> Rows:
    """Return data as float32 or float64 rows.

    float32 and float64 arrays in native byte order are used as they are, including memory maps, Fortran order and
    strides. float16 becomes float32; all other numbers become float64. A `ConversionWarning` reports when an array or a
    table changes its type.

    Parameters
    ----------
    value : object
        The user's data.
    argument : str
        Its name in error messages.
    likelihood : type, optional
        States whether rows may be sparse, and whether it expects integers.
    n_columns : int, optional
        The required number of columns.
    minimum : int
        Minimum number of rows.

    Returns
    -------
    ndarray of shape (n, D), or SparseRows
    """
    if likelihood is not None and likelihood._accepts_sparse and is_sparse(value):
        return _sparse_rows(value, argument, n_columns, minimum)
    array = numeric(value, argument, _ROWS_ALLOWED)
    if array.ndim != 2:
        hint = _hint_on_rank(array, argument, n_columns, hasattr(value, "to_frame"))
        raise invalid_argument(argument, f"of shape {array.shape}", _ROWS_ALLOWED, hint)
    _check_shape(array.shape, argument, n_columns, minimum)
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    dtype: type[np.float32] | type[np.float64] = np.float32 if single else np.float64
    if array.dtype == dtype and array.flags.aligned:
        return array
    whole_numbers = likelihood is not None and likelihood._domain in _WHOLE and array.dtype.kind in "biu"
    if whole_numbers:
        _check_held(array, argument)
    # A list has no type to keep, and the type of counts is fixed. Blocks of columns may be counts.
    is_mixed = likelihood is not None and likelihood._domain == "mixed"
    if (hasattr(value, "dtype") or hasattr(value, "dtypes")) and not (whole_numbers or is_mixed):
        say_converted(array.dtype, np.dtype(dtype), rounds=_rounds(array))
    with fitting(argument, array.shape):
        return _converted(array, dtype)


def _check_shape(shape: tuple[int, ...], argument: str, n_columns: int | None, minimum: int) -> None:
    if shape[1] == 0:
        raise invalid_argument(argument, f"of shape {shape}", "an array of at least one column")
    if n_columns is not None and shape[1] != n_columns:
        raise invalid_argument(argument, f"of shape {shape}", f"of {n_columns} columns, as in the fit")
    if shape[0] < minimum:
        rows = "one row" if minimum == 1 else f"{minimum} rows"
        raise invalid_argument(argument, f"of shape {shape}", f"an array of at least {rows}")


def _sparse_rows(value: Any, argument: str, n_columns: int | None, minimum: int) -> SparseRows:
    if value.ndim != 2:
        raise invalid_argument(argument, f"of shape {value.shape}", _ROWS_ALLOWED)
    _check_shape(value.shape, argument, n_columns, minimum)
    if value.shape[1] > _MOST_SPARSE_COLUMNS:
        raise invalid_argument(argument, f"of shape {value.shape}", f"of at most {_MOST_SPARSE_COLUMNS} columns")
    check_values(value, argument)
    if value.dtype.kind not in _NUMBERS:
        raise invalid_type(argument, f"a sparse array with values of dtype {value.dtype}", _ROWS_ALLOWED)
    table = compressed_rows(value, argument)
    if table.dtype.kind in "iu":
        _check_held(table.data, argument)
    with fitting_in_memory(table, argument):
        return _as_the_core_reads(table)


def _as_the_core_reads(table: Any) -> SparseRows:
    """Return a checked CSR array as the core reads it, copying what has another type."""
    single = table.dtype.kind == "f" and table.dtype.itemsize <= 4
    values = np.require(table.data, dtype=np.float32 if single else np.float64, requirements=["C", "A"])
    indices = table.indices
    # Columns are never negative, so the bytes are the same.
    indices = indices.view(np.uint32) if indices.dtype == np.int32 else indices
    columns = np.require(indices, dtype=np.uint32, requirements=["C", "A"])
    starts = np.require(table.indptr, dtype=np.uint64, requirements=["C", "A"])
    return SparseRows(starts, columns, values, table.shape[1])


def sparse_counts(rows: Rows, argument: str) -> SparseRows:
    """Return counts in compressed sparse rows of float64; the core checks those of a dense array later."""
    if isinstance(rows, SparseRows):
        return SparseRows(rows.starts, rows.columns, np.asarray(rows.values, dtype=np.float64), rows.n_columns)
    if rows.shape[1] > _MOST_SPARSE_COLUMNS:
        raise invalid_argument(argument, f"of shape {rows.shape}", f"of at most {_MOST_SPARSE_COLUMNS} columns")
    columns = [np.flatnonzero(row) for row in rows]
    ends = [0]
    for columns_of_row in columns:
        ends.append(ends[-1] + columns_of_row.size)
    values = [row[columns_of_row] for row, columns_of_row in zip(rows, columns, strict=True)]
    return SparseRows(
        np.asarray(ends, dtype=np.uint64),
        np.concatenate([*columns, np.zeros(0, dtype=np.int64)]).astype(np.uint32),
        np.concatenate([*values, np.zeros(0)]).astype(np.float64),
        rows.shape[1],
    )


def with_whole_parts(value: Any, argument: str) -> Any:
    """Return a sparse table in compressed rows after checking its parts; return anything else unchanged."""
    return compressed_rows(value, argument) if is_sparse(value) and value.ndim == 2 else value


def rows_without_values(rows: Rows) -> NDArray[np.bool_]:
    """Return which rows are all NaN, shape (n,)."""
    if isinstance(rows, SparseRows):
        return np.zeros(rows.shape[0], dtype=bool)
    empty = np.empty(rows.shape[0], dtype=bool)
    for begin in range(0, rows.shape[0], _ROWS_AT_A_TIME):
        block = slice(begin, begin + _ROWS_AT_A_TIME)
        empty[block] = np.isnan(rows[block]).all(axis=1)
    return empty


def without_empty_rows(
    weights: NDArray[np.float64] | None, empty: NDArray[np.bool_], argument: str, what: str = "fit"
) -> NDArray[np.float64] | None:
    """Return weights that are zero for rows without any value, and warn if some of these had another weight."""
    n_empty = np.count_nonzero(empty)
    if n_empty == 0:
        return weights
    if weights is not None and len(weights) != len(empty):  # data in blocks are counted here for the first time
        raise invalid_argument("sample_weight", f"of shape {weights.shape}", f"of shape ({len(empty)},)")
    if weights is not None:
        n_empty = np.count_nonzero(weights[empty])
    weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
    if not weights.any():
        raise invalid_argument(argument, "without a value in any row of positive weight", "rows with values")
    if n_empty > 0:
        text = f"{n_empty} {'row has' if n_empty == 1 else 'rows have'} no value at all and no part in the {what}"
        # In the name of the caller of `fit` or of a method of a fit.
        warnings.warn(text, EmptyRowsWarning, stacklevel=4 if what == "fit" else 3)
    return weights


def with_density(
    log_densities: NDArray[np.float64], weights: NDArray[np.float64] | None, argument: str
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the log densities that are not minus infinity, with their weights."""
    finite = np.isfinite(log_densities)
    if finite.all():
        return log_densities, weights
    weights = weights if weights is None else weights[finite]
    if not finite.any() or (weights is not None and not weights.any()):
        raise invalid_argument(argument, "off the subspace of the fit in every row", "rows on the subspace of the fit")
    return log_densities[finite], weights


def _check_held(array: NDArray[Any], argument: str) -> None:
    """Refuse integers that float64 would round to another integer."""
    if array.dtype.itemsize == 8 and array.size and int(array.max()) > LARGEST_WHOLE:
        raise invalid_argument(argument, f"with the value {int(array.max())}", "whole numbers from 0 to 2^53")


def _rounds(array: NDArray[Any]) -> bool:
    """Return whether float64 may round some of the numbers to another integer."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return False
    return max(int(array.max()), -int(array.min())) > LARGEST_WHOLE


def _hint_on_rank(array: NDArray[Any], argument: str, n_columns: int | None, is_column: bool) -> str:
    if array.ndim != 1 or array.size == 0:
        return ""
    if n_columns == array.size:
        return f"for a single row write {argument}.reshape(1, -1)"
    return f"for a single column write {argument}.{'to_frame()' if is_column else 'reshape(-1, 1)'}"


def say_converted(found: np.dtype[Any], wanted: np.dtype[Any], *, rounds: bool = False) -> None:
    """Warn of numbers that change their type, and of integers that it `rounds`."""
    kinds = {"b": "booleans", "i": "integers", "u": "integers", "O": "decimals"}
    if found.name != wanted.name:  # another byte order is the same type
        # Warns at this line, not at the caller's, so that the default filter shows the warning once.
        what = f"{found.name} is" if found.kind == "f" else f"{kinds[found.kind]} are"
        more = ", which rounds those above 2^53" if rounds else ""
        text = f"{what} converted to {wanted.name}, in a copy{more}; pass float32 or float64 to spare it"
        warnings.warn(text, ConversionWarning, stacklevel=1)


def _converted(array: NDArray[Any], dtype: type[np.floating[Any]]) -> NDArray[Any]:
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, which is refused later
        converted: NDArray[Any] = np.array(array, dtype=dtype, order="K")
    return converted


def sample_weights(value: object, n_rows: int | None) -> NDArray[np.float64] | None:
    """Return the weights of the rows as float64 of shape (n,), or None if there are no weights.

    Here and below, n is unknown for data read in blocks; the core then checks it.
    """
    if value is None:
        return None
    allowed = f"finite numbers of at least 0, not all zero, of shape ({_n(n_rows)},)"
    weights = _vector(numeric(value, "sample_weight", allowed), "sample_weight", n_rows, allowed)
    with fitting("sample_weight", weights.shape):
        weights = _plain(weights)
        # One comparison for both rules; it is also false for NaN.
        wrong = ~((weights >= 0.0) & (weights < np.inf))
    if wrong.any():
        row = int(wrong.argmax())
        raise invalid_argument("sample_weight", f"{weights[row]} at row {row}", allowed)
    if not weights.any():
        raise invalid_argument("sample_weight", "zero everywhere", allowed)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not _LEAST_TOTAL <= total <= _LARGEST_TOTAL:
        limits = f"of a sum from {_LEAST_TOTAL:g} to {_LARGEST_TOTAL:g}"
        raise invalid_argument("sample_weight", f"of sum {total:g}", limits)
    return weights


def _plain(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers as the core reads weights and responsibilities: aligned float64 in C order."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = _converted(array, np.float64)
    return np.require(array, dtype=np.float64, requirements=["C", "A"])


def labels(array: NDArray[Any], argument: str, n_rows: int | None) -> NDArray[np.int64]:
    """Return integer labels of shape (n,), each at least 0 and below n."""
    most = len(array) if n_rows is None else n_rows
    allowed = f"integers from 0 to {most - 1}, of shape ({_n(n_rows)},)"
    labels = _vector(array, argument, n_rows, allowed)
    if labels.dtype.kind not in "iu":
        raise invalid_type(argument, describe(labels), allowed)
    # There are at most as many components as rows. Checks before the cast, which would make large unsigned labels
    # negative.
    with fitting(argument, labels.shape):
        wrong = (labels < 0) | (labels >= most)
        if wrong.any():
            row = int(wrong.argmax())
            raise invalid_argument(argument, f"{labels[row]} at row {row}", allowed)
        return np.require(labels, dtype=np.int64, requirements=["C", "A"])


def responsibilities(array: NDArray[Any], argument: str, n_rows: int | None) -> NDArray[np.float64]:
    """Return responsibilities of shape (n, K): at least 0, with rows that sum to one within 1e-6."""
    allowed = f"numbers of at least 0 of shape ({_n(n_rows)}, K) whose rows sum to one"
    if n_rows not in (None, array.shape[0]) or array.shape[1] == 0:
        raise invalid_argument(argument, f"of shape {array.shape}", allowed)
    # Computes sums without n x K scratch space; a NaN or an infinity in a row shows in its sum.
    with fitting(argument, array.shape), np.errstate(invalid="ignore", over="ignore"):
        shares = _plain(array)
        negative = shares.min(axis=1) < 0.0
        sums = shares.sum(axis=1)
        wrong = negative | ~(np.abs(sums - 1.0) <= 1e-6)
    if wrong.any():
        row = int(wrong.argmax())
        found = "a negative number" if negative[row] else f"the sum {sums[row]}"
        raise invalid_argument(argument, f"{found} in row {row}", allowed)
    return shares


def numeric(value: object, argument: str, allowed: str) -> NDArray[Any]:
    """Return `value` as an array of real numbers of any shape and type, without a copy if it is an array."""
    if is_sparse(value):
        hint = "convert it by .toarray()"
        if argument in _OF_ROWS:
            hint += ", or use Multinomial, Bernoulli, Poisson or NegativeBinomial, which take it as it is"
        raise invalid_type(argument, f"a sparse {type(value).__name__}", allowed, hint)
    if (lazy := hint_if_lazy(value)) is not None:
        raise invalid_type(argument, "a lazy table that holds no numbers yet", allowed, lazy)
    check_times(value, argument, allowed)
    array = as_array(value, argument, allowed)
    if array.dtype.kind not in _NUMBERS:
        found = _describe_values(value, array)
        is_text = argument in _OF_ROWS and _holds_text(array)
        hint = _WITHOUT_WORDS if is_text else ""
        if "whose column" in found:
            hint = _WITHOUT_TEXT if is_text else _WITHOUT_COLUMN
        if argument in _HOLES and _has_holes(array):
            hint = f"write {_HOLES[argument]} where a value is missing"
        raise invalid_type(argument, found, allowed, hint)
    return array


def _holds_text(array: NDArray[Any]) -> bool:
    """Return whether an array holds words."""
    is_object = array.dtype == object
    return array.dtype.kind in "UT" or (is_object and any(isinstance(value, str) for value in array.flat))


def _has_holes(array: NDArray[Any]) -> bool:
    """Return whether an array of objects has numbers, and None or pandas' NA where one is missing."""
    if array.dtype != object:
        return False
    n_missing = 0
    for value in array.flat:
        if not isinstance(value, Real):
            if not (value is None or type(value).__name__ == "NAType"):
                return False
            n_missing += 1
    return 0 < n_missing < array.size


def check_times(value: object, argument: str, allowed: str = _ROWS_ALLOWED) -> None:
    """Refuse a table with a column of dates, times or durations.

    Polars would make numbers of them silently, and NumPy would raise an error that names no column of an Arrow table.

    Raises
    ------
    InvalidType
        A column of a table of pandas, Polars or Arrow has such a type.
    """
    if not is_table(value):
        return
    for name, dtype in _types_of_columns(value):
        if _holds_times(dtype):
            raise invalid_type(argument, _describe_column(value, name, dtype), allowed, _WITHOUT_COLUMN)


def _describe_values(value: object, array: NDArray[Any]) -> str:
    if array.ndim == 0:
        return describe(value)
    for name, dtype in _types_of_columns(value):
        if not _holds_numbers(dtype):
            return _describe_column(value, name, dtype)
    holder = "an array" if isinstance(value, np.ndarray) else describe(value)
    return f"{holder} with values of dtype {getattr(value, 'dtype', array.dtype)}"


def _describe_column(value: object, name: object, dtype: object) -> str:
    return f"{describe(value)} whose column {str(name)!r} has the dtype {dtype}"


def _types_of_columns(value: Any) -> Iterator[tuple[object, Any]]:
    """Yield the columns of a table with their types."""
    schema: Any = getattr(value, "schema", None)
    if hasattr(schema, "pandas_metadata"):  # Arrow
        for name, kind in zip(schema.names, schema.types, strict=True):
            try:
                yield name, np.dtype(kind.to_pandas_dtype())
            except (NotImplementedError, TypeError):
                yield name, kind
    elif is_table(value):  # a single column of pandas has one type, which it calls `dtypes` too
        yield from zip(value.columns, value.dtypes, strict=True)


def _holds_numbers(dtype: Any) -> bool:
    """Return whether a column of this dtype, of pandas or of Polars, holds real numbers."""
    is_numeric = getattr(dtype, "is_numeric", None)
    if is_numeric is not None:
        return bool(is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in _NUMBERS


def _holds_times(dtype: Any) -> bool:
    """Return whether a column of this dtype, of pandas, Polars or Arrow, holds dates, times or durations."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(dtype, arrow.DataType):
        return bool(arrow.types.is_temporal(dtype))
    is_temporal = getattr(dtype, "is_temporal", None)
    return bool(is_temporal()) if is_temporal is not None else getattr(dtype, "kind", "O") in _TIMES


def as_array(value: Any, argument: str, allowed: str) -> NDArray[Any]:
    """Convert `value` to an array with NumPy, without a copy if it is an array.

    Raises
    ------
    InvalidType
        NumPy cannot read it, or some of its values are masked.
    """
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise invalid_type(argument, "a masked array with masked values", allowed)
        return value.data
    if isinstance(value, np.memmap):
        return value
    try:
        array: NDArray[Any] = np.asarray(value)
    except MemoryError as error:
        found = f"{describe(value)}, for which there is not enough memory"
        raise invalid_argument(argument, found, "one that fits in memory as an array") from error
    except Exception as error:  # foreign __array__ methods raise what they like
        raise invalid_type(argument, f"{describe(value)} that NumPy cannot read ({error})", allowed) from error
    if array.dtype == object and _is_pandas_table_of_numbers(value):
        array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    return array


def _is_pandas_table_of_numbers(value: object) -> bool:
    """Return whether NumPy would read numbers of a pandas table as objects (booleans, nullable columns)."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame) and all(map(_holds_numbers, value.dtypes))


def is_sparse(value: object) -> bool:
    """Return whether `value` is a sparse array or matrix of SciPy."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(value))


def _n(n_rows: int | None) -> str:
    return "n" if n_rows is None else str(n_rows)


def _vector(array: NDArray[Any], argument: str, n_rows: int | None, allowed: str) -> NDArray[Any]:
    if array.ndim != 1 or n_rows not in (None, len(array)):
        raise invalid_argument(argument, f"of shape {array.shape}", allowed)
    return array
