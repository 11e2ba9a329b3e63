"""Levels of columns: the words, categories and numbers whose codes a model sees, kept and matched by value."""

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.io import arrays, cells, frames
from stickbreak.io.cells import Column, Level
from stickbreak.io.names import Named, Names, Table, named

# The levels of each column, in the order of their codes; None for columns without. Empty if no column has any.
Levels: TypeAlias = tuple[tuple[Level, ...] | None, ...]

# Domains of likelihoods that take levels: words and declared categories, in tables.
TAKE_LEVELS = ("mixed", "codes", "binary")
_MOST_SHOWN = 5


class Placing(Protocol):
    """A likelihood, as far as it states what columns hold."""

    @property
    def _domain(self) -> str: ...

    def _domains(self, names: Names | None, n_columns: int) -> tuple[str, ...]: ...

    def _n_levels(self, names: Names | None, n_columns: int) -> tuple[int | None, ...]: ...


class OfLevels(NamedTuple):
    """Columns of which those with levels hold codes, whatever their likelihood."""

    levels: Levels

    @property
    def _domain(self) -> str:
        return "mixed" if any(each is not None for each in self.levels) else "real"

    def _domains(self, names: Names | None, n_columns: int) -> tuple[str, ...]:
        return tuple("real" if each is None else "codes" for each in self.levels)

    def _n_levels(self, names: Names | None, n_columns: int) -> tuple[int | None, ...]:
        return (None,) * n_columns


@dataclass(frozen=True, eq=False)
class CodedRows(Table):
    """Rows whose codes have levels.

    Parameters
    ----------
    levels : tuple
        The levels of each column.
    sizes : tuple
        The number of levels of each column of codes, if known.
    """

    levels: Levels = ()
    sizes: tuple[int | None, ...] = ()


class Coded(NamedTuple):
    """Data with codes in place of levels.

    Parameters
    ----------
    data : object
        The data without column names, in the order of `names`.
    names : tuple of str, optional
        The names of the columns.
    order : list of int, optional
        As in `Named`.
    levels : tuple
        The levels of each column.
    sizes : tuple
        The number of levels of each column of codes, if known. Empty if no column has levels.
    """

    data: Any
    names: Names | None
    order: list[int] | None
    levels: Levels
    sizes: tuple[int | None, ...] = ()


def check_codes(argument: str, levels: Levels, names: Names | None) -> None:
    """Refuse an array where a column has numbers as levels, which the codes of the array look like."""
    for place, known in enumerate(levels):
        numbers = known is not None and all(isinstance(level, int | float) for level in known)
        if numbers and known != tuple(range(len(known or ()))):
            column = checks.quote(names[place]) if names is not None else str(place)
            found = f"an array, whose numbers in column {column} would be codes and not the levels {known}"
            hint = "for rows of codes, such as those of sample, write fit.as_table(X)"
            raise checks.invalid_argument(argument, found, "a table with the columns of the fit", hint)


def coded(
    value: Any,
    argument: str,
    likelihood: Placing,
    expected: Names | None = None,
    levels: Levels = (),
    *,
    learn: bool = False,
) -> Coded:
    """Return data with their columns in the order of the `expected` names, and codes in place of levels.

    Parameters
    ----------
    value : object
        The user's data.
    argument : str
        Its name in error messages.
    likelihood : Likelihood
        States which columns hold codes and flags.
    expected : tuple of str, optional
        The names that the columns must have.
    levels : tuple
        The levels of a fit; a value that is none of them is refused.
    learn : bool
        Whether columns without levels get those of the data.

    Raises
    ------
    InvalidType, InvalidArgument
        As in `named`; or a value is no level of its column; or a column holds what its likelihood does not take.
    """
    value = frames.understood(value, argument)
    found = named(value, argument, expected)
    if isinstance(value, CodedRows):
        if any(levels) and value.levels != levels:
            raise checks.invalid_argument(argument, "a table of other levels", "a table with the levels of the fit")
        return Coded(*found, levels=value.levels, sizes=value.sizes)
    is_file = isinstance(value, Table) and isinstance(value.rows, np.ndarray)
    if not (cells.is_of_columns(found.data) or is_file) or likelihood._domain not in TAKE_LEVELS:
        check_codes(argument, levels, expected)
        return Coded(*found, levels=levels, sizes=sizes_of(levels))
    shape = cells.shape_of(found.data)
    n_columns = shape[1]
    if levels and len(levels) != n_columns:
        raise checks.invalid_argument(argument, f"of shape {shape}", f"of {len(levels)} columns, as in the fit")
    seen = Seen(likelihood, found.names, n_columns, levels if not learn or any(levels) else None)
    if not any(levels) and not seen.looks_at(found.data):
        return Coded(*found, levels=())
    if learn:
        seen.add(found, argument)
    known = seen.levels
    return Coded(seen.replaced(found, argument), found.names, found.order, known, seen.sizes)


class Seen:
    """The levels of columns of codes, collected from tables.

    Parameters
    ----------
    likelihood : Likelihood
        States which columns hold codes and flags.
    names : tuple of str, optional
        The names of the columns.
    n_columns : int
        Number of columns.
    levels : tuple, optional
        Known levels; None to collect them.
    """

    def __init__(self, likelihood: Placing, names: Names | None, n_columns: int, levels: Levels | None) -> None:
        self._strict = likelihood._domain == "mixed"
        self._names = names
        self._domains = likelihood._domains(names, n_columns)
        self._given = likelihood._n_levels(names, n_columns)
        self._known = levels
        self._found: list[_Found | None] = [
            _Found() if domain in ("codes", "binary") else None for domain in self._domains
        ]

    @property
    def levels(self) -> Levels:
        """The levels of each column so far."""
        if self._known is not None:
            return self._known
        found = tuple(self._of_column(place) for place in range(len(self._domains)))
        return found if any(each is not None for each in found) else ()

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """The number of levels of each column of codes, if some column has levels."""
        levels = self.levels
        if not any(levels):
            return ()
        return tuple(
            len(known) if known is not None else None if found is None else found.n_codes
            for known, found in zip(levels, self._found, strict=True)
        )

    def looks_at(self, table: Any) -> bool:
        """Return whether columns of a table may have levels: others are not searched."""
        if not self._strict:
            return _has_words(table)
        return "codes" in self._domains or _has_other_columns(table)

    def add(self, data: Named, argument: str) -> None:
        """Collect the levels of a table.

        Raises
        ------
        InvalidType, InvalidArgument
            A column of flags has more than two levels, or a column has values of several types.
        """
        if not (cells.is_of_columns(data.data) or isinstance(data.data, np.ndarray)):
            return
        for place, found in enumerate(self._found):
            if found is None or (self._known and self._known[place] is not None):
                continue
            values = cells.column(data.data, place)
            if values.kind in ("times", "other"):
                raise self._refused(data.data, place, values, argument)
            found.add(values)
            if found.is_mixed:
                text = f"{self._title(place)} with text and numbers"
                raise checks.invalid_type(argument, text, "a table with one kind of levels in each column")
            levels = self._of_column(place) or ()
            if self._domains[place] == "binary" and len(levels) > 2:
                text = f"{self._title(place)} with the values {_listed(levels)}"
                allowed = "a table with at most two levels in columns of Bernoulli"
                raise checks.invalid_argument(argument, text, allowed, "use Categorical for such columns")

    def replaced(self, data: Named, argument: str) -> Any:
        """Return the rows of a table with codes in place of levels; unchanged if there are none.

        Raises
        ------
        InvalidArgument
            A value is not a level of its column.
        InvalidType
            A column without levels has no numbers.
        """
        table = data.data
        known: Levels = self.levels or (None,) * len(self._domains)
        if not any(levels is not None for levels in known):
            is_mixed = isinstance(table, cells.MixedRows)
            has_others = _has_other_columns(table) if self._strict else is_mixed or _has_categories(table)
            if not has_others:
                return table
        rows = np.empty(cells.shape_of(table))
        for place, levels in enumerate(known):
            values = cells.column(table, place)
            if levels is not None:
                rows[:, place] = self._codes(values, place, levels, argument)
            elif values.kind == "categories" and self._domains[place] == "codes":
                rows[:, place] = np.where(values.values < 0, np.nan, values.values)
            elif values.kind in ("numbers", "flags"):
                rows[:, place] = values.values
            else:
                raise self._refused(table, place, values, argument)
        return rows

    def _of_column(self, place: int) -> tuple[Level, ...] | None:
        found = self._found[place]
        return None if found is None else found.levels(self._strict, self._domains[place], self._given[place])

    def _codes(self, values: Column, place: int, levels: tuple[Level, ...], argument: str) -> NDArray[np.float64]:
        """Return the codes of a column, NaN for missing values."""
        if values.kind in ("times", "other") and values.exact is None:
            raise checks.invalid_type(argument, f"{self._title(place)} of the dtype {values.dtype}", _allowed(levels))
        codes = {each: float(code) for code, each in enumerate(levels)}
        distinct, inverse = _distinct(values)
        table = np.array([codes.get(each, -1.0) for each in distinct] + [np.nan])
        found: NDArray[np.float64] = table[inverse]
        unseen = found < 0.0
        if unseen.any():
            row = int(unseen.argmax())
            wrong = distinct[inverse[row]]
            text = f"{wrong!r} in row {row}, {self._title(place)}"
            nearest = (
                checks.did_you_mean(wrong, [each for each in levels if isinstance(each, str)])
                if isinstance(wrong, str)
                else ""
            )
            raise checks.invalid_argument(argument, text, _allowed(levels), nearest)
        return found

    def _title(self, place: int) -> str:
        return f"column {place if self._names is None else checks.quote(self._names[place])}"

    def _refused(self, table: object, place: int, values: Column, argument: str) -> Exception:
        name = place if self._names is None else self._names[place]
        is_text = self._strict and values.kind in ("words", "categories")
        hint = "put such columns in a block of Categorical" if is_text else arrays._WITHOUT_COLUMN
        found = arrays._describe_column(table, name, values.dtype)
        if isinstance(table, cells.MixedRows):
            found = f"a table whose column {str(name)!r} holds text"
        return checks.invalid_type(argument, found, arrays._ROWS_ALLOWED, hint)


class _Found:
    """What a column of codes or flags holds, over all tables of a source."""

    def __init__(self) -> None:
        self._declared: tuple[Level, ...] | None = None
        self._same_declared = True
        self._words: set[str] = set()
        self._numbers: set[float] = set()
        self._has_flags = self._has_other_numbers = self._is_known = False

    @property
    def is_mixed(self) -> bool:
        """Whether it holds both text and numbers."""
        return bool(self._words) and bool(self._numbers) and self._declared is None

    @property
    def n_codes(self) -> int | None:
        """Number of levels of codes; None if these are no codes, or are not known."""
        numbers = self._numbers
        if not self._is_known or not all(0.0 <= each < arrays.LARGEST_WHOLE and each.is_integer() for each in numbers):
            return None
        return int(max(numbers, default=0.0)) + 1

    def add(self, values: Column) -> None:
        """Add the values of a column."""
        self._is_known = True
        if values.kind == "categories":
            self._same_declared &= self._declared in (None, values.categories)
            self._declared = values.categories if self._declared is None else self._declared
            known = values.categories
            self._words.update(each for each in known if isinstance(each, str))
            self._numbers.update(checks.float_or_inf(each) for each in known if not isinstance(each, str))
        elif values.kind == "words":
            self._words.update(each for each in values.values.tolist() if each is not None)
        else:
            self._has_flags |= values.kind == "flags"
            self._has_other_numbers |= values.kind == "numbers"
            numbers = values.values[~np.isnan(values.values)]
            self._numbers.update(np.unique(numbers).tolist())

    def levels(self, strict: bool, domain: str, given: int | None) -> tuple[Level, ...] | None:
        """Return the levels; None if the column holds codes or flags as they are.

        `strict` is whether the likelihood is one of columns, under which numbers that are no codes are levels too.
        `given` is the number of levels that it states.
        """
        if self._declared is not None and self._same_declared:
            return self._declared
        if not strict and self._declared is None and not self._words:
            return None
        if self._words:
            return tuple(sorted(self._words)) + tuple(cells.level(each) for each in sorted(self._numbers))
        numbers = sorted(self._numbers)
        if not numbers or domain == "binary" or not all(map(math.isfinite, numbers)):
            return None
        if self._has_flags and not self._has_other_numbers:
            return (False, True)
        if numbers == list(range(len(numbers))):
            return None
        if given is not None and all(0.0 <= each < given and each.is_integer() for each in numbers):
            return None
        # Larger integers share their float64.
        return None if max(map(abs, numbers)) > arrays.LARGEST_WHOLE else tuple(map(cells.level, numbers))


def _has_categories(table: Any) -> bool:
    """Return whether a table has columns of declared categories."""
    if not frames.is_table(table):
        return False
    names = ("CategoricalDtype", "Enum", "DictionaryType")
    types = table.schema.types if hasattr(table, "schema") and hasattr(table.schema, "types") else table.dtypes
    return any(type(dtype).__name__ in names for dtype in types)


def _has_words(table: Any) -> bool:
    """Return whether a table has columns of other types than numbers and booleans."""
    if not frames.is_table(table):
        return isinstance(table, cells.MixedRows)
    return not all(arrays._holds_numbers(dtype) for _, dtype in arrays._types_of_columns(table))


def _has_other_columns(table: Any) -> bool:
    """Return whether a table has columns of other types than numbers, such as categories or booleans."""
    if not frames.is_table(table):
        return isinstance(table, cells.MixedRows)
    types = (dtype for _, dtype in arrays._types_of_columns(table))
    return not all(arrays._holds_numbers(dtype) and str(dtype).lower() not in ("bool", "boolean") for dtype in types)


def sizes_of(levels: Levels) -> tuple[int | None, ...]:
    """Return the number of levels of each column that has some."""
    return tuple(None if each is None else len(each) for each in levels)


def by_column(levels: Levels, names: Names | None) -> dict[Any, tuple[Level, ...]]:
    """Return the levels by the names of their columns, or their positions."""
    titles: Sequence[Any] = range(len(levels)) if names is None else names
    return {title: each for title, each in zip(titles, levels, strict=False) if each is not None}


def to_header(levels: Levels) -> list[list[Level] | None]:
    """Return levels in the form that files store."""
    return [None if each is None else list(each) for each in levels]


def of_file(value: object, n_columns: int | None) -> Levels:
    """Return the levels stored in a file with `n_columns` columns, if known.

    Raises
    ------
    ValueError
        They are not one list of different words, numbers or flags per column.
    """
    if value is None:
        return ()
    if not isinstance(value, list) or n_columns not in (None, len(value)):
        raise ValueError(f"the levels are not a list of {n_columns} entries")
    found: list[tuple[Level, ...] | None] = []
    for each in value:
        if each is None:
            found.append(None)
            continue
        if not isinstance(each, list) or not all(isinstance(level, str | int | float) for level in each):
            raise ValueError("the levels of a column are not words, numbers or flags")
        if len(set(each)) < len(each) or any(isinstance(level, float) and not math.isfinite(level) for level in each):
            raise ValueError("the levels of a column are not finite and different")
        found.append(tuple(each))
    return tuple(found)


def code(value: object, levels: tuple[Level, ...], argument: str, column: object) -> float:
    """Return the code of a level of a column.

    Raises
    ------
    InvalidArgument
        The value is no level.
    """
    wanted = cells.level(value)
    if wanted not in levels:
        known = [each for each in levels if isinstance(each, str)]
        hint = checks.did_you_mean(wanted, known) if isinstance(wanted, str) else ""
        allowed = f"one of the levels {_listed(levels)} for the column {column!r}"
        raise checks.invalid_argument(argument, reprlib.repr(value), allowed, hint)
    return float(levels.index(wanted))


def shown(value: float, levels: tuple[Level, ...]) -> Level | float:
    """Return the level of a code; the code itself if it has none."""
    return levels[int(value)] if value == value and 0 <= value < len(levels) else value


def decoded(rows: NDArray[np.float64], levels: Levels) -> NDArray[Any]:
    """Return rows with levels in place of codes, as objects; unchanged without levels."""
    if not any(each is not None for each in levels):
        return rows
    found = rows.astype(object)
    for place, each in enumerate(levels):
        if each is not None:
            found[:, place] = [None if value != value else shown(value, each) for value in rows[:, place].tolist()]
    return found


def _distinct(values: Column) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct values of a column, and the place of each value among them; the last place is missing."""
    if values.kind == "categories":
        codes = values.values.astype(np.int64)
        return list(values.categories), np.where(codes < 0, len(values.categories), codes)
    if values.kind == "words" or values.exact is not None:
        places: dict[Any, int] = {}
        given = values.values.tolist() if values.exact is None else values.exact
        found = [-1 if each is None else places.setdefault(each, len(places)) for each in given]
        inverse = np.array(found, dtype=np.int64)
        return list(places), np.where(inverse < 0, len(places), inverse)
    missing = np.isnan(values.values)
    distinct, inverse = np.unique(values.values[~missing], return_inverse=True)
    whole = np.full(len(values.values), len(distinct), dtype=np.int64)
    whole[~missing] = inverse
    return [cells.level(each) for each in distinct.tolist()], whole


def _listed(levels: Sequence[Level]) -> str:
    text = ", ".join(map(repr, levels[:_MOST_SHOWN]))
    return f"{text} and {len(levels) - _MOST_SHOWN} more" if len(levels) > _MOST_SHOWN else text


def _allowed(levels: Sequence[Level]) -> str:
    return f"a table with the levels of the fit ({_listed(levels)})"
