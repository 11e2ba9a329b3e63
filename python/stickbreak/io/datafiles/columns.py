"""Selection of the columns of a data file."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from stickbreak import checks


class Choice:
    """The columns that a user requests, matched with those of a file.

    Parameters
    ----------
    columns : sequence of str, optional
        Names, positions counted from 1, or ranges of positions; None for all except `weight_column`.
    weight_column : str, optional
        A name or a position; it comes last among the chosen columns.
    keep : sequence of str, optional
        Columns that are not data, and are returned unconverted.
    """

    def __init__(
        self, columns: Sequence[str] | None, weight_column: str | None, keep: Sequence[str] | None = None
    ) -> None:
        if columns is not None:
            allowed = "a sequence of names, positions or ranges of positions"
            if isinstance(columns, str) or not isinstance(columns, Sequence):
                raise checks.invalid_type("columns", checks.describe(columns), allowed)
            if not columns:
                raise checks.invalid_argument("columns", "empty", allowed)
        self.has_weights = weight_column is not None
        self._columns = columns
        self._keep = keep or ()
        self._weight_column = weight_column

    def among(self, names: Sequence[str] | None, n_columns: int) -> list[int] | None:
        """Return the chosen columns, counted from 0; None for all columns in order."""
        if self._columns is None and self._weight_column is None and not self._keep:
            return None
        weights = [] if self._weight_column is None else _found("weight_column", self._weight_column, names, n_columns)
        if len(weights) > 1:
            raise checks.invalid_argument("weight_column", repr(self._weight_column), "one column")
        if self._columns is None:
            apart = {*weights, *self.kept_among(names, n_columns)}
            chosen = [column for column in range(n_columns) if column not in apart]
        else:
            chosen = [column for text in self._columns for column in _found("columns", text, names, n_columns)]
            for place, column in enumerate(chosen):
                if column in chosen[:place]:
                    raise checks.invalid_argument("columns", f"{title(column, names)} twice", "each column once")
        if not chosen:
            argument = "keep" if self._keep else "weight_column"
            found = "all columns" if self._keep else "the only column"
            raise checks.invalid_argument(argument, found, "a column besides those of the data")
        return [*chosen, *weights]

    def kept_among(self, names: Sequence[str] | None, n_columns: int) -> list[int]:
        """Return the columns to keep, counted from 0."""
        return [column for text in self._keep for column in _found("keep", text, names, n_columns)]


def take(rows: NDArray[Any], chosen: list[int] | None) -> NDArray[Any]:
    """Return the chosen columns, as a view if they are adjacent, so that a memory map stays one."""
    if chosen is None:
        return rows
    first, last = chosen[0], chosen[-1]
    return rows[:, first : last + 1] if chosen == list(range(first, last + 1)) else rows[:, chosen]


def named(names: Sequence[str] | None, chosen: list[int] | None) -> tuple[str, ...] | None:
    """Return the names of the chosen columns."""
    if names is None or chosen is None:
        return None if names is None else tuple(names)
    return tuple(names[column] for column in chosen)


def title(column: int, names: Sequence[str] | None) -> str:
    """Return the description of a column in messages: its position from 1, and its name if it has one."""
    known = "" if names is None else names[column]
    return f"column {column + 1} ({checks.quote(known)})" if known else f"column {column + 1}"


def _found(argument: str, text: object, names: Sequence[str] | None, n_columns: int) -> list[int]:
    allowed = f"a position from 1 to {n_columns}" + ("" if names is None else " or the name of a column")
    wanted = checks.instance(argument, text, str, allowed).strip()
    if names is not None and wanted in names:
        if names.count(wanted) > 1:
            raise checks.invalid_argument(argument, f"{wanted!r}, the name of several columns", allowed)
        return [names.index(wanted)]
    ends = re.fullmatch(r"(\d+)(?:\s*-\s*(\d+))?", wanted, re.ASCII)
    if ends is None:
        nearest = difflib.get_close_matches(wanted, names or (), n=1, cutoff=0.5)
        hint = f"did you mean {nearest[0]!r}?" if nearest else "" if names else "the columns have no names"
        raise checks.invalid_argument(argument, repr(wanted), allowed, hint)
    first, last = int(ends[1]), int(ends[2] or ends[1])
    if not 1 <= first <= last <= n_columns:
        raise checks.invalid_argument(argument, repr(wanted), allowed)
    return list(range(first - 1, last))
