"""scikit-learn's validation of rows, with errors of this package for refused values."""

import sys
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from stickbreak import checks
from stickbreak.errors import StickbreakError
from stickbreak.io import arrays, frames, names
from stickbreak.io.levels import Coded
from stickbreak.io.room import fitting

# How errors of NumPy begin that name neither an argument nor a cure.
_OF_NUMPY = ("setting an array element", "Cannot cast", "Invalid __array")


def validated(estimator: BaseEstimator, X: Any, on_missing: str, **options: Any) -> Any:
    """Return rows after `validate_data`; `on_missing` is what to do about missing values.

    Raises
    ------
    InvalidArgument
        A value is NaN or infinite: the error has its row and its column.
    InvalidType
        `X` has a column of dates or times, of which scikit-learn might make numbers, or names that it cannot read; or
        it is a structured array, has arrays among its values, or is an object that NumPy cannot read.
    NotSupported
        `X` is a table that PyArrow reads, and PyArrow is not installed.
    """
    X = frames.understood(X, "X")
    arrays.check_times(X, "X")
    # Of one field scikit-learn makes numbers, of several an error of NumPy.
    if getattr(getattr(X, "dtype", None), "kind", "") == "V":
        arrays.numeric(X, "X", arrays._ROWS_ALLOWED)
    if not options.get("reset", True) and hasattr(estimator, "feature_names_in_"):
        _check_array(X, estimator.n_features_in_)
    try:
        with fitting("X", getattr(X, "shape", ())):
            return validate_data(estimator, X, **options)
    except Exception as error:
        # Scikit-learn's own errors are those that its users expect; those of NumPy and of foreign arrays are not.
        is_foreign = not isinstance(error, ValueError | TypeError) or str(error).startswith(_OF_NUMPY)
        if isinstance(error, StickbreakError):
            raise
        if is_foreign:
            arrays.numeric(X, "X", arrays._ROWS_ALLOWED)
            found = f"{checks.describe(X)} that NumPy cannot read ({checks.brief(error)})"
            raise checks.invalid_type("X", found, arrays._ROWS_ALLOWED) from error
        if not isinstance(error, ValueError):
            raise
        found = _refused(X, options) if str(error).startswith("Input X contains") else ""
        if not found:
            raise
        hint = on_missing if found.startswith("NaN") else ""
        raise checks.invalid_argument("X", found, "finite", hint) from None


def _check_array(X: Any, n_columns: int) -> None:
    """Refuse an array before scikit-learn warns that it has no names."""
    if frames.is_table(X) or arrays.is_sparse(X):
        return
    array = arrays.numeric(X, "X", arrays._ROWS_ALLOWED)
    if array.ndim == 2 and array.shape[1] != n_columns:
        raise checks.invalid_argument("X", f"of shape {array.shape}", f"of {n_columns} columns, as in the fit")


def _refused(X: Any, options: dict[str, Any]) -> str:
    """Return the first refused value with its row and its column; empty if there is none."""
    try:
        data, labels, _ = names.named(X, "X")
        rows = arrays.rows(data, "X")
    except StickbreakError:
        return ""
    wrong = np.isinf(rows) if options.get("ensure_all_finite") == "allow-nan" else ~np.isfinite(rows)
    if not wrong.any():
        return ""
    row = int(wrong.any(axis=1).argmax())
    column = int(wrong[row].argmax())
    value = "NaN" if np.isnan(rows[row, column]) else str(rows[row, column])
    return f"{value} in row {row}, column {column if labels is None else checks.quote(labels[column])}"


def like(X: Any, coded: Coded) -> Any:
    """Return the rows of a table, with codes in place of levels, as a table of the same package."""
    X = frames.understood(X, "X")
    if not isinstance(coded.data, np.ndarray):
        return X
    if frames.is_of(X, "pandas", "DataFrame"):
        return sys.modules["pandas"].DataFrame(coded.data, index=X.index, columns=X.columns)
    if frames.is_of(X, "polars", "DataFrame"):
        return sys.modules["polars"].DataFrame(coded.data, schema=list(X.columns), orient="row")
    arrow: Any = sys.modules["pyarrow"]
    return arrow.table(dict(zip(X.schema.names, coded.data.T, strict=True)))
