"""Delimited text files of numbers (.csv, .tsv): the csv module splits, NumPy converts."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak.errors import SourceError
from stickbreak.io.cells import MixedRows
from stickbreak.io.datafiles import arrow_text
from stickbreak.io.datafiles.columns import Choice, named, title
from stickbreak.io.datafiles.mixed import TextColumns, read_mixed
from stickbreak.io.datafiles.sources import Source

# Tried in this order, because names, and numbers in other languages, contain commas.
_DELIMITERS = "\t;,"
# Numbers that NumPy's converter accepts. Unlike Python's float it refuses underscores.
_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*|\s*[+-]?(nan|inf|infinity)\s*", re.IGNORECASE | re.ASCII
)


def read_text(
    source: Source,
    choice: Choice,
    delimiter: str | None,
    header: bool | None,
    *,
    may_miss: bool,
    words: TextColumns | None = None,
) -> tuple[Any, tuple[str, ...] | None, dict[str, list[str]]]:
    """Return the chosen columns as rows, with NaN for allowed missing values, their names, and columns to keep.

    `words` states which columns may hold text. If one does, the rows are `MixedRows`.
    """
    path = source.name
    with source.open() as file:
        lines = _Lines(source, file)
        first = next(lines, None)
        if first is None:
            raise SourceError(f"{path}: there are only blank lines in the file")
        sniffs = delimiter is None
        delimiter = delimiter or _sniffed(first)
        begun = chain([first], lines)
        fields = lines.split(begun, delimiter)
        if header is None:
            header = _is_header(path, lines.number, fields, may_miss)
        names = tuple(name.strip() for name in fields) if header else None
        lines.expect(len(fields), delimiter)
        second = next(lines, None) if header else first
        if second is None:
            hint = _hint(fields) if sniffs else ""
            raise SourceError(f"{path}: there are names in the first line, but no rows{hint}")
        first_row = lines.number
        chosen = choice.among(names, len(fields))
        lines.check(second)
        reader = _Reader(lines, delimiter, names, chosen, len(fields), first_row, sniffs=sniffs, may_miss=may_miss)
        rows = reader.read(source, second, words, has_header=header, n_numbers=1 if choice.has_weights else 0)
    if isinstance(rows, np.ndarray):
        _check_finite(path, rows, first_row, names, chosen, may_miss)
    kept = choice.kept_among(names, len(fields))
    return rows, named(names, chosen), _kept(source, kept, delimiter, names, first_row) if kept else {}


@dataclass(frozen=True)
class _Reader:
    """How the rows of a file are read, after its first lines."""

    lines: "_Lines"
    delimiter: str
    names: tuple[str, ...] | None
    chosen: list[int] | None
    n_fields: int
    first_row: int
    sniffs: bool
    may_miss: bool

    def read(
        self, source: Source, second: str, words: TextColumns | None, *, has_header: bool, n_numbers: int
    ) -> NDArray[np.float64] | MixedRows:
        """Return the rows, given the first of them: numbers, or `MixedRows` if a column holds words."""
        if words is None:
            return self._numbers(source, second)
        places = list(range(self.n_fields)) if self.chosen is None else self.chosen
        keys = {place if self.names is None else self.names[column] for place, column in enumerate(places)}
        failure: SourceError | None = None
        if keys.isdisjoint(words.always):
            try:
                return self._numbers(source, second)
            except SourceError as error:
                failure = error
        opened = partial(_lines_of_rows, source, self.n_fields, self.delimiter, has_header=has_header)
        file = self.lines.path, self.delimiter, self.names, places
        rows = read_mixed(opened, *file, words, _Fields(), n_numbers=n_numbers, may_miss=self.may_miss)
        if rows is None:
            raise failure or SourceError(f"{self.lines.path}: no column holds words")
        return rows

    def _numbers(self, source: Source, second: str) -> NDArray[np.float64]:
        rows = arrow_text.read(
            source,
            skip=self.first_row - 1,
            delimiter=self.delimiter,
            n_fields=self.n_fields,
            chosen=self.chosen,
            may_miss=self.may_miss,
        )
        if rows is not None:
            return rows
        text: Iterable[str] = chain([second], self.lines)
        text = _with_nan(self.lines, text, self.delimiter) if self.may_miss else text
        return _numbers(
            self.lines, text, self.delimiter, self.names, self.chosen, sniffs=self.sniffs, first_row=self.first_row
        )


@contextmanager
def _lines_of_rows(
    source: Source, n_fields: int, delimiter: str, *, has_header: bool
) -> Iterator[tuple[Iterator[str], Callable[[], int]]]:
    """Open a file after its line of names; give its lines, and a function that returns the number of the last one."""
    with source.open() as file:
        lines = _Lines(source, file)
        if has_header:
            next(lines, None)
        lines.expect(n_fields, delimiter)
        yield lines, lambda: lines.number


class _Fields:
    """How fields are read."""

    def is_number(self, field: str) -> bool:
        """Return whether a field is a number."""
        return bool(_NUMBER.fullmatch(field))

    def is_missing(self, field: str) -> bool:
        """Return whether a field stands for a missing value."""
        return _is_missing(field)

    def refusal(self, field: str) -> str:
        """Return why a field is no number."""
        return f"{_shown(field)} is not a number{_remedy(field)}"


def _kept(
    source: Source, kept: list[int], delimiter: str, names: tuple[str, ...] | None, first_row: int
) -> dict[str, list[str]]:
    """Return columns as unconverted text."""
    with source.open() as file:
        # Blank lines can only be before the rows and at the end; others were refused above.
        rows = csv.reader(islice(file, first_row - 1, None), delimiter=delimiter)
        try:
            columns = list(zip(*([row[column] for column in kept] for row in rows if row), strict=True))
        except csv.Error as error:
            raise SourceError(f"{source.name}: line {first_row - 1 + rows.line_num}: {error}") from error
    titles = [f"column_{column + 1}" if names is None else names[column] for column in kept]
    return {title: list(values) for title, values in zip(titles, columns, strict=True)}


class _Lines(Iterator[str]):
    """The lines of a file up to the last nonblank one; counts lines and checks their number of fields."""

    def __init__(self, source: Source, file: Iterable[str]) -> None:
        self.path = source.name
        self._source = source
        self.number = 0
        self.last = ""
        self._lines = iter(file)
        self._n_fields: int | None = None
        self._delimiter = ","

    def expect(self, n_fields: int, delimiter: str) -> None:
        """Check every further line for its number of fields."""
        self._n_fields, self._delimiter = n_fields, delimiter

    def __next__(self) -> str:
        blank = None
        while True:
            try:
                line = next(self._lines)
            except UnicodeDecodeError as error:
                raise SourceError(f"{self.path}: line {_undecodable(self._source)}: not text in UTF-8") from error
            self.number += 1
            if line.strip(" \r\n"):
                break
            # A blank line between rows may be a missing row. Skipping it would shift the labels of later rows.
            blank = blank or self.number
        if blank is not None and self._n_fields is not None:
            raise SourceError(f"{self.path}: line {blank}: blank, but more lines follow")
        if self._n_fields is not None:
            self.check(line)
        self.last = line
        return line

    def check(self, line: str) -> None:
        """Raise an error if a line has an unexpected number of fields."""
        quoted = '"' in line
        n_fields = len(self.split([line], self._delimiter)) if quoted else line.count(self._delimiter) + 1
        if n_fields != self._n_fields:
            raise SourceError(
                f"{self.path}: line {self.number}: {_fields(n_fields)} where the first line has {self._n_fields} "
                f"(delimiter {self._delimiter!r})"
            )

    def split(self, lines: Iterable[str], delimiter: str) -> list[str]:
        """Return the fields of the first record."""
        try:
            return next(csv.reader(lines, delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise SourceError(f"{self.path}: line {self.number}: {error}") from error


def _undecodable(source: Source) -> int:
    # Text is decoded ahead of the current line, so the line is searched in the bytes.
    with source.open_bytes() as file:
        return next(number for number, line in enumerate(file, start=1) if not _is_text(line))


def _is_text(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _fields(number: int) -> str:
    return f"{number} field" if number == 1 else f"{number} fields"


def _sniffed(line: str) -> str:
    for delimiter in _DELIMITERS:
        try:
            if len(next(csv.reader([line], delimiter=delimiter))) > 1:
                return delimiter
        except csv.Error:
            continue
    return ","


def _hint(fields: list[str]) -> str:
    """Return a hint if a line with one field looks like several fields with another delimiter."""
    if len(fields) > 1 or not re.search(r"[^\s|:][\s|:]+[^\s|:]", fields[0]):
        return ""
    return "; where another character than tab, semicolon or comma separates the fields, say which (--delimiter)"


def _is_header(path: str, line: int, fields: list[str], may_miss: bool) -> bool:
    numbers = [bool(_NUMBER.fullmatch(field)) for field in fields]
    known = [number or (may_miss and _is_missing(field)) for number, field in zip(numbers, fields, strict=True)]
    if any(numbers) and not all(known):
        place = known.index(False)
        raise SourceError(
            f"{path}: line {line}, column {place + 1}: {_shown(fields[place])} is not a number, but others in the line "
            "are; say whether it is a line of names (header)"
        )
    return not any(numbers)


def _numbers(
    lines: _Lines,
    rows: Iterable[str],
    delimiter: str,
    names: tuple[str, ...] | None,
    chosen: list[int] | None,
    *,
    sniffs: bool,
    first_row: int,
) -> NDArray[np.float64]:
    try:
        # Given lines one by one, NumPy fails at the last line read.
        return np.loadtxt(rows, delimiter=delimiter, comments=None, quotechar='"', usecols=chosen, ndmin=2)
    except ValueError as error:
        reason = _reason(lines, delimiter, names, chosen, error)
        fields = lines.split([lines.last], delimiter)
        hint = _hint(fields) if sniffs else ""
        if not (hint or ";" in reason) and lines.number == first_row and any(map(_is_word, fields)):
            hint = "; columns of words are left out by choosing the others (--columns)"
        raise SourceError(f"{lines.path}: line {lines.number}{reason}{hint}") from error


def _with_nan(lines: _Lines, rows: Iterable[str], delimiter: str) -> Iterator[str]:
    """Yield lines with "nan" for missing values."""
    for line in rows:
        fields = lines.split([line], delimiter)
        if any(map(_is_missing, fields)):
            # Fields that were quoted are quoted again.
            quoted = (f'"{field}"' if delimiter in field else field for field in fields)
            yield delimiter.join("nan" if _is_missing(field) else field for field in quoted)
        else:
            yield line


def _is_word(field: str) -> bool:
    return field.strip()[:1].isalpha() and not _is_missing(field)


def _is_missing(field: str) -> bool:
    return field.strip() in arrow_text.MISSING


def _reason(
    lines: _Lines, delimiter: str, names: tuple[str, ...] | None, chosen: list[int] | None, error: Exception
) -> str:
    fields = lines.split([lines.last], delimiter)
    for column in range(len(fields)) if chosen is None else chosen:
        if not _NUMBER.fullmatch(fields[column]):
            return f", {title(column, names)}: {_shown(fields[column])} is not a number{_remedy(fields[column])}"
    return f": {error}"


def _remedy(field: str) -> str:
    """Return what to do about a missing value or a decimal comma; empty otherwise."""
    if _is_missing(field):
        return "; leave such rows out, or use --missing marginalize and a likelihood such as diagonal-gaussian"
    return "; decimals need a point" if re.fullmatch(r"[-+]?\d+,\d+", field.strip()) else ""


def _check_finite(
    path: str,
    rows: NDArray[Any],
    first_row: int,
    names: tuple[str, ...] | None,
    chosen: list[int] | None,
    may_miss: bool,
) -> None:
    finite = np.isfinite(rows) | np.isnan(rows) if may_miss else np.isfinite(rows)
    if not finite.all():
        row = int(finite.all(axis=1).argmin())
        place = int(finite[row].argmin())
        where = title(place if chosen is None else chosen[place], names)
        raise SourceError(f"{path}: line {first_row + row}, {where}: {rows[row, place]} is not a finite number")


def _shown(field: str) -> str:
    field = field.strip()
    if not field:
        return "an empty field"
    return repr(field if len(field) <= 40 else f"{field[:40]}...")
