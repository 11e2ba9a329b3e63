"""Text files with columns of words beside columns of numbers."""

import csv
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from stickbreak.errors import SourceError
from stickbreak.io.cells import MixedRows
from stickbreak.io.datafiles.columns import title

_FLAGS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class TextColumns:
    """Which columns of a data file may hold text, by their names or, without names, their positions from 0.

    Parameters
    ----------
    always : frozenset
        Columns that hold text, whatever it looks like.
    never : frozenset
        Columns that hold numbers.
    others : {"never", "some", "most"}
        When other columns hold text: never, if some value is no number, or if most values are no numbers.
    """

    always: frozenset[Any] = frozenset()
    never: frozenset[Any] = frozenset()
    others: Literal["never", "some", "most"] = "never"


class Cell(Protocol):
    """How the fields of a file are read."""

    def is_number(self, field: str) -> bool:
        """Return whether a field is a number."""

    def is_missing(self, field: str) -> bool:
        """Return whether a field stands for a missing value."""

    def refusal(self, field: str, column: int) -> str:
        """Return why a field of a column is no number."""


def read_mixed(
    opened: Callable[[], AbstractContextManager[tuple[Iterator[str], Callable[[], int]]]],
    path: str,
    delimiter: str,
    names: tuple[str, ...] | None,
    chosen: list[int],
    text: TextColumns,
    cell: Cell,
    *,
    n_numbers: int,
    may_miss: bool,
) -> MixedRows | None:
    """Return the chosen columns; None if none of them holds words or flags.

    Parameters
    ----------
    opened : callable
        Opens the file; gives the lines of its rows, and a function that returns the number of the last line.
    path : str
        Its name in messages.
    delimiter : str
        The delimiter.
    names : tuple of str, optional
        The names of all columns.
    chosen : list of int
        The columns to read.
    text : TextColumns
        Which of them may hold text.
    cell : Cell
        How fields are read.
    n_numbers : int
        Number of columns at the end that must hold numbers.
    may_miss : bool
        Whether values may be missing.

    Raises
    ------
    SourceError
        A line is no row, a value is missing, or a field of a column of numbers is none.
    """
    fields: list[list[str]] = [[] for _ in chosen]
    lines_of_rows: list[int] = []
    with opened() as (lines, number):
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for row in rows:
                lines_of_rows.append(number())
                for place, column in enumerate(chosen):
                    fields[place].append(row[column].strip())
        except (csv.Error, IndexError) as error:
            raise SourceError(f"{path}: line {number()}: {error}") from error
    found: list[NDArray[Any]] = []
    has_words = False
    for place, column in enumerate(chosen):
        key: Any = place if names is None else names[column]
        known = TextColumns() if place >= len(chosen) - n_numbers else text
        values, others = _column(fields[place], key, known, cell)
        missing = () if may_miss else (at for at, field in enumerate(fields[place]) if cell.is_missing(field))
        no_number = values if isinstance(values, int) else None
        refused = min([*missing, *([] if no_number is None else [no_number])], default=None)
        if refused is not None:
            where = f"{path}: line {lines_of_rows[refused]}, {title(column, names)}"
            is_odd = known.others == "most" and refused == no_number
            hint = "; if it holds categories, say so by --columns-spec" if is_odd else ""
            raise SourceError(f"{where}: {cell.refusal(fields[place][refused], column)}{hint}")
        if isinstance(values, np.ndarray):
            _check_finite(values, path, lines_of_rows, title(column, names))
            found.append(values)
        has_words |= others
    return MixedRows(found) if has_words else None


def _check_finite(values: NDArray[Any], path: str, lines: list[int], column: str) -> None:
    if values.dtype == np.float64 and np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise SourceError(f"{path}: line {lines[row]}, {column}: {values[row]} is not a finite number")


def _column(fields: list[str], key: Any, text: TextColumns, cell: Cell) -> tuple[NDArray[Any] | int, bool]:
    """Return the values of a column, or the row of the first one that is no number; and whether it has others."""
    present = [field for field in fields if not cell.is_missing(field)]
    wrong = [field for field in present if not cell.is_number(field)]
    most = {"never": len(fields), "some": 0, "most": len(present) // 2}["never" if key in text.never else text.others]
    is_flag = bool(wrong) and all(field.lower() in _FLAGS for field in present)
    if is_flag and key not in text.always:
        return np.array([_FLAGS.get(field.lower(), np.nan) for field in fields]), True
    if key in text.always or len(wrong) > most:
        words = np.empty(len(fields), dtype=object)
        words[:] = [None if cell.is_missing(field) else field for field in fields]
        return words, True
    if wrong:
        return fields.index(wrong[0]), False
    return np.array([np.nan if cell.is_missing(field) else float(field) for field in fields]), False
