"""Turns what users hold - arrays, tables, lists - into the arrays that the core reads, by copy only where needed."""

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stickbreak.checks import describe, invalid_argument, invalid_type
from stickbreak.errors import ConversionWarning

if TYPE_CHECKING:
    from stickbreak._core import Rows

_NUMBERS = "biuf"  # NumPy's kinds of real numbers, booleans included
_ROWS_ALLOWED = "an array or table of real numbers, of shape (n, D)"
# Sums of weights from the least on keep their products with the squares of data. The rounding of a scatter grows with
# the weight of its component, and above the largest a prior of ordinary size is lost beside it.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-100, 1e12


def rows(value: object, argument: str = "X", *, n_columns: int | None = None, minimum: int = 1) -> "Rows":
    """Return data as float32 or float64 rows.

    float32 and float64 arrays in native byte order stay what they are, memory maps, Fortran order and strides
    included. float16 becomes float32; all other numbers become float64. Where an array or a table changes its type,
    a `ConversionWarning` says so.

    Parameters
    ----------
    value : object
        What the user gave.
    argument : str
        Under which name.
    n_columns : int, optional
        The number of columns it must have.
    minimum : int
        The least number of rows.

    Returns
    -------
    ndarray of shape (n, D)
    """
    array = numeric(value, argument, _ROWS_ALLOWED)
    if array.ndim != 2:
        hint = _hint_on_rank(array, argument, n_columns)
        raise invalid_argument(argument, f"of shape {array.shape}", _ROWS_ALLOWED, hint)
    if array.shape[1] == 0:
        raise invalid_argument(argument, f"of shape {array.shape}", "an array of at least one column")
    if n_columns is not None and array.shape[1] != n_columns:
        raise invalid_argument(argument, f"of shape {array.shape}", f"of {n_columns} columns, as in the fit")
    if array.shape[0] < minimum:
        raise invalid_argument(argument, f"of shape {array.shape}", f"an array of at least {minimum} rows")
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    dtype: type[np.float32] | type[np.float64] = np.float32 if single else np.float64
    if array.dtype == dtype and array.flags.aligned:
        return array
    if hasattr(value, "dtype") or hasattr(value, "dtypes"):  # a list has no type that could be kept
        say_converted(array.dtype, np.dtype(dtype))
    return _converted(array, dtype)


def _hint_on_rank(array: NDArray[Any], argument: str, n_columns: int | None) -> str:
    if array.ndim != 1 or array.size == 0:
        return ""
    if n_columns == array.size:
        return f"for a single row write {argument}.reshape(1, -1)"
    return f"for a single column write {argument}.reshape(-1, 1)"


def say_converted(found: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    """Warn of numbers that change their type."""
    kinds = {"b": "booleans", "i": "integers", "u": "integers", "O": "decimals"}
    if found.name != wanted.name:  # another byte order is no other type
        # At this line, not at the caller's: the default filter then shows it once, wherever the callers are.
        what = f"{found.name} is" if found.kind == "f" else f"{kinds[found.kind]} are"
        text = f"{what} converted to {wanted.name}, in a copy; pass float32 or float64 to spare it"
        warnings.warn(text, ConversionWarning, stacklevel=1)


def _converted(array: NDArray[Any], dtype: type[np.floating[Any]]) -> NDArray[Any]:
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, which is refused as such
        converted: NDArray[Any] = np.array(array, dtype=dtype, order="K")
    return converted


def sample_weights(value: object, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights of the rows as float64 of shape (n,), or None where there are none."""
    if value is None:
        return None
    allowed = f"finite numbers of at least 0, not all zero, of shape ({n_rows},)"
    weights = _vector(numeric(value, "sample_weight", allowed), "sample_weight", n_rows, allowed)
    weights = _plain(weights)
    # One comparison for both rules: it is false for NaN too.
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


def labels(array: NDArray[Any], argument: str, n_rows: int) -> NDArray[np.int64]:
    """Return integer labels of shape (n,), each at least 0 and below n."""
    allowed = f"integers from 0 to {n_rows - 1}, of shape ({n_rows},)"
    labels = _vector(array, argument, n_rows, allowed)
    if labels.dtype.kind not in "iu":
        raise invalid_type(argument, describe(labels), allowed)
    # There are at most as many components as rows. Compared before the cast, which would turn large unsigned labels
    # into negative ones.
    wrong = (labels < 0) | (labels >= n_rows)
    if wrong.any():
        row = int(wrong.argmax())
        raise invalid_argument(argument, f"{labels[row]} at row {row}", allowed)
    return np.require(labels, dtype=np.int64, requirements=["C", "A"])


def responsibilities(array: NDArray[Any], argument: str, n_rows: int) -> NDArray[np.float64]:
    """Return responsibilities of shape (n, K): at least 0, each row with sum one within 1e-6."""
    allowed = f"numbers of at least 0 of shape ({n_rows}, K) whose rows sum to one"
    if array.shape[0] != n_rows or array.shape[1] == 0:
        raise invalid_argument(argument, f"of shape {array.shape}", allowed)
    shares = _plain(array)
    negative = shares.min(axis=1) < 0.0
    # Sums are reduced without n x K scratch; a NaN or an infinity in a row shows in its sum.
    with np.errstate(invalid="ignore", over="ignore"):
        sums = shares.sum(axis=1)
        wrong = negative | ~(np.abs(sums - 1.0) <= 1e-6)
    if wrong.any():
        row = int(wrong.argmax())
        found = "a negative number" if negative[row] else f"the sum {sums[row]}"
        raise invalid_argument(argument, f"{found} in row {row}", allowed)
    return shares


def numeric(value: object, argument: str, allowed: str) -> NDArray[Any]:
    """Return `value` as an array of real numbers of any shape and type, without a copy where it is one."""
    if _is_sparse(value):
        raise invalid_type(argument, f"a sparse {type(value).__name__}", allowed, "convert it by .toarray()")
    if _is_lazy(value):
        raise invalid_type(argument, "a lazy table that holds no numbers yet", allowed, "make them by .collect()")
    array = _as_array(value, argument, allowed)
    if array.dtype.kind not in _NUMBERS:
        raise invalid_type(argument, _describe_values(value, array), allowed)
    return array


def _describe_values(value: object, array: NDArray[Any]) -> str:
    if array.ndim == 0:
        return describe(value)
    holder = "an array" if isinstance(value, np.ndarray) else describe(value)
    return f"{holder} with values of dtype {array.dtype}"


def _as_array(value: Any, argument: str, allowed: str) -> NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise invalid_type(argument, "a masked array with masked values", allowed)
        return value.data
    if isinstance(value, np.memmap):
        return value
    try:
        array: NDArray[Any] = np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # foreign __array__ methods raise what they like
        raise invalid_type(argument, f"{describe(value)} that NumPy cannot read ({error})", allowed) from error
    if array.dtype == object and _is_pandas_table_of_numbers(value):
        array = value.to_numpy(dtype=np.float64, na_value=np.nan)
    return array


def _is_pandas_table_of_numbers(value: object) -> bool:
    """Return whether NumPy reads numbers as objects here: beside booleans, and in nullable columns, pandas says so."""
    pandas = sys.modules.get("pandas")
    return (
        pandas is not None
        and isinstance(value, pandas.DataFrame)
        and all(column.kind in _NUMBERS for column in value.dtypes)
    )


def _is_sparse(value: object) -> bool:
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(value))


def _is_lazy(value: object) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(value, polars.LazyFrame)


def _vector(array: NDArray[Any], argument: str, n_rows: int, allowed: str) -> NDArray[Any]:
    if array.shape != (n_rows,):
        raise invalid_argument(argument, f"of shape {array.shape}", allowed)
    return array
