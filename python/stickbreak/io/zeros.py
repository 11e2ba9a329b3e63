"""`split_zeros`: amounts with many zeros as a flag and an amount that is missing at zero."""

import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from stickbreak import checks
from stickbreak.io import cells, frames
from stickbreak.io.names import named

_ALLOWED = "the name of a column of numbers, or a list of them"


def split_zeros(data: Any, columns: str | Iterable[str]) -> Any:
    """Return a table in which amounts with many zeros are two columns: whether there is one, and how much.

    The column NAME becomes "NAME > 0", a flag, and NAME, which is missing where it was zero. A mixture then models the
    zeros and the amounts apart. Fit the table with ``missing="marginalize"``.

    Parameters
    ----------
    data : table
        A table of pandas, Polars or Arrow.
    columns : str or iterable of str
        Names of columns of numbers of at least 0.

    Returns
    -------
    table
        A new table of the same package. The flag stands before its amount, and is missing where the value was.

    Raises
    ------
    InvalidType
        `data` is no such table, `columns` are no names, or a column does not hold numbers.
    InvalidArgument
        A column does not exist, is named twice, or has a negative value, or the name of a flag is taken.

    Examples
    --------
    >>> import pandas as pd
    >>> import stickbreak as sb
    >>> sb.split_zeros(pd.DataFrame({"gain": [0.0, 2.5, 0.0]}), "gain")
       gain > 0  gain
    0     False   NaN
    1      True   2.5
    2     False   NaN
    """
    if not frames.is_table(data):
        raise checks.invalid_type("data", checks.describe(data), "a table of pandas, Polars or Arrow")
    labels = named(frames.understood(data, "data"), "data").names or ()
    listed = [columns] if isinstance(columns, str) else checks.items("columns", columns, _ALLOWED)
    parts: dict[str, dict[str, Any]] = {}
    for name in listed:
        if not isinstance(name, str):
            raise checks.invalid_type("columns", f"with {checks.describe(name)}", _ALLOWED)
        if name not in labels:
            raise checks.invalid_argument("columns", checks.quote(name), _ALLOWED, checks.did_you_mean(name, labels))
        if name in parts or f"{name} > 0" in labels:
            taken = f"{checks.quote(name)} twice" if name in parts else f"{checks.quote(name)} beside '{name} > 0'"
            raise checks.invalid_argument("columns", taken, "each column once, not split yet")
        parts[name] = _split(cells.column(data, labels.index(name)), name)
    return _replaced(data, labels, parts)


def _split(column: cells.Column, name: str) -> dict[str, Any]:
    if column.kind != "numbers":
        raise checks.invalid_type("columns", f"{checks.quote(name)}, of the dtype {column.dtype}", _ALLOWED)
    values = column.values
    if (values < 0.0).any():
        row = int((values < 0.0).argmax())
        found = f"{checks.quote(name)}, with {values[row]:g} in row {row}"
        raise checks.invalid_argument("columns", found, "columns of numbers of at least 0")
    flags = np.where(np.isnan(values), np.nan, values > 0.0)
    amounts = np.where(values > 0.0, values, np.nan)
    return {f"{name} > 0": flags if np.isnan(flags).any() else flags.astype(bool), name: amounts}


def _replaced(data: Any, labels: tuple[str, ...], parts: dict[str, dict[str, Any]]) -> Any:
    """Return the table with two columns in the place of each split one."""
    found: dict[str, Any] = {}
    for place, label in enumerate(labels):
        found |= parts.get(label) or {label: _whole(data, place)}
    if frames.is_of(data, "pandas", "DataFrame"):
        return sys.modules["pandas"].DataFrame(found, index=data.index)
    # Missing values of other packages are null.
    if frames.is_of(data, "polars", "DataFrame"):
        polars: Any = sys.modules["polars"]
        return polars.DataFrame({name: _with_null(polars.Series, values) for name, values in found.items()})
    arrow: Any = sys.modules["pyarrow"]
    made = partial(arrow.array, from_pandas=True)
    return arrow.table(
        {name: made(values) if isinstance(values, np.ndarray) else values for name, values in found.items()}
    )


def _with_null(series: Any, values: Any) -> Any:
    if not isinstance(values, np.ndarray):
        return values
    made = series(values)
    return made if values.dtype == bool else made.fill_nan(None)


def _whole(data: Any, place: int) -> Any:
    if frames.is_of(data, "pandas", "DataFrame"):
        return data.iloc[:, place]
    return data.to_series(place) if frames.is_of(data, "polars", "DataFrame") else data.column(place)
