"""scikit-learn's validation of rows, with the position of a refused value."""

import sys
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from stickbreak import checks
from stickbreak.errors import StickbreakError
from stickbreak.io import arrays, frames, names
from stickbreak.io.levels import Coded


def validated(estimator: BaseEstimator, X: Any, **options: Any) -> Any:
    """Return rows after `validate_data`; its errors on NaN and infinity also have the row and the column.

    Raises
    ------
    InvalidType
        `X` has a column of dates or times, of which scikit-learn might make numbers, or names that it cannot read.
    NotSupported
        `X` is a table that PyArrow reads, and PyArrow is not installed.
    """
    X = frames.understood(X, "X")
    arrays.check_times(X, "X")
    try:
        return validate_data(estimator, X, **options)
    except ValueError as error:
        place = _place(X, options) if str(error).startswith("Input X contains") else ""
        if not place:
            raise
        raise ValueError(f"{error}\nThe first such value is in {place}.") from None


def _place(X: Any, options: dict[str, Any]) -> str:
    """Return the row and the column of the first refused value; empty if there is none."""
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
    return f"row {row}, column {column if labels is None else checks.quote(labels[column])}"


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
