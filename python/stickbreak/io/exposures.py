"""The argument `exposure`: one number for each row, which becomes a last column of the rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stickbreak.checks import describe, invalid_argument, invalid_type, not_supported
from stickbreak.errors import InvalidArgument
from stickbreak.io import arrays
from stickbreak.io.levels import Levels, coded
from stickbreak.io.names import Names

# The name of that column, where columns have names.
NAME = "exposure"


def without(expected: Names | None) -> Names | None:
    """Return the names of the columns of rows whose exposures are given apart."""
    return None if expected is None else expected[:-1]


def with_name(given: Names | None) -> Names | None:
    """Return the names of columns with that of the exposures."""
    if given is not None and NAME in given:
        allowed = f'a table without a column {NAME!r}, or Poisson(exposure="{NAME}") without the argument'
        raise invalid_argument(NAME, "given for a table with a column of that name", allowed)
    return None if given is None else (*given, NAME)


def appended(rows: arrays.Rows, value: object) -> arrays.Rows:
    """Return rows with their exposures as the last column.

    Raises
    ------
    InvalidType, InvalidArgument
        `value` is not one positive number for each row.
    """
    exposures = _checked(value, rows.shape[0])
    if isinstance(rows, arrays.SparseRows):
        ends = rows.starts[1:].astype(np.int64)
        values = np.insert(rows.values.astype(np.float64), ends, exposures)
        columns = np.insert(rows.columns, ends, np.uint32(rows.n_columns))
        starts = (rows.starts + np.arange(rows.starts.size, dtype=np.uint64)).astype(np.uint64)
        return arrays.SparseRows(starts, columns, values, rows.n_columns + 1)
    dtype = rows.dtype if (exposures == exposures.astype(rows.dtype)).all() else np.float64
    return np.column_stack([rows.astype(dtype, copy=False), exposures.astype(dtype, copy=False)])


class Known(NamedTuple):
    """What a model knows of its rows.

    Parameters
    ----------
    likelihood : Likelihood
        Its likelihood, with columns by position.
    names : tuple of str, optional
        The names of the columns.
    levels : tuple
        The levels of the columns.
    n_columns : int
        Number of columns.
    """

    likelihood: Any
    names: Names | None
    levels: Levels
    n_columns: int


def rows(value: object, argument: str, exposure: object, known: Known, *, minimum: int = 0) -> arrays.Rows:
    """Return new rows for a model, with their exposures as the last column if these are given apart.

    Parameters
    ----------
    value : object
        The user's rows.
    argument : str
        Their name in error messages.
    exposure : object
        The user's exposures, or None.
    known : Known
        The columns of the model.
    minimum : int
        Minimum number of rows.

    Raises
    ------
    InvalidType, InvalidArgument, NotSupported
        The rows or the exposures are not as the model requires.
    """
    likelihood, expected, levels, n_columns = known
    kind, own = type(likelihood), getattr(likelihood, NAME, None)
    if exposure is None:
        try:
            data = coded(value, argument, likelihood, expected, levels).data
            return arrays.rows(data, argument, likelihood=kind, n_columns=n_columns, minimum=minimum)
        except InvalidArgument as error:
            if own != n_columns - 1:
                raise
            hint = "give the exposures of these rows by exposure=, or as the last column"
            raise invalid_argument(argument, error.found or "", error.allowed or "", hint) from None
    if own is None:
        allowed = "a model with an exposure, such as that of fit(..., exposure=...)"
        raise not_supported(NAME, f"an exposure for {kind.__name__}", "rows of this model have none", allowed)
    if own != n_columns - 1:
        where = "the total of each row" if isinstance(own, str) else f"column {own}"
        raise invalid_argument(NAME, "given", f"None: this model has the exposures in {where}")
    data = coded(value, argument, likelihood, without(expected), levels).data
    found = arrays.rows(data, argument, likelihood=kind, n_columns=n_columns - 1, minimum=minimum)
    return appended(found, exposure)


def _checked(value: object, n_rows: int) -> NDArray[np.float64]:
    allowed = f"numbers above 0, from 1e-100 to 1e100, of shape ({n_rows},)"
    found = arrays.numeric(value, NAME, allowed)
    if found.dtype.kind == "b":
        raise invalid_type(NAME, describe(value), allowed)
    if found.shape != (n_rows,):
        raise invalid_argument(NAME, f"of shape {found.shape}", allowed)
    exposures = found.astype(np.float64)
    wrong = ~((exposures >= 1e-100) & (exposures <= 1e100))
    if wrong.any():
        row = int(wrong.argmax())
        raise invalid_argument(NAME, f"{exposures[row]} at row {row}", allowed)
    return exposures
