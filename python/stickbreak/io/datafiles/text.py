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
from stickbreak.io.datafiles import arrow_text, cures
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
        if "\0" in first and "UTF" in (cure := cures.of_encoding(source)):
            raise SourceError(f"{path}: line {lines.number}: not text in UTF-8; {cure}")
        delimiter = delimiter or _sniffed(first)
        begun = chain([first], lines)
        fields = lines.split(begun, delimiter)
        if header is None:
            header = _is_header(path, lines.number, fields, may_miss)
        names = tuple(name.strip() for name in fields) if header else None
        # Words in one field each may be several fields.
        if sniffs and words is not None and len(fields) == 1 and (cure := cures.of_delimiter(source)):
            raise SourceError(f"{path}: {cure}")
        lines.expect(fields, delimiter)
        second = next(lines, None) if header else first
        if second is None:
            hint = _hint(fields) if sniffs else ""
            raise SourceError(f"{path}: there are names in the first line, but no rows{hint}")
        first_row = lines.number
        chosen = choice.among(names, len(fields))
        lines.check(second)
        form = _Form(source, delimiter, names, chosen, len(fields), first_row, has_weights=choice.has_weights)
        reader = _Reader(form, lines, sniffs=sniffs, may_miss=may_miss)
        rows = reader.read(second, words, has_header=header)
    if isinstance(rows, np.ndarray):
        _check_finite(path, rows, first_row, names, chosen, may_miss)
    kept = choice.kept_among(names, len(fields))
    return rows, named(names, chosen), _kept(source, kept, delimiter, names, first_row) if kept else {}


@dataclass(frozen=True)
class _Form:
    """What the first lines of a file say about its rows, which begin in line `first_row`."""

    source: Source
    delimiter: str
    names: tuple[str, ...] | None
    chosen: list[int] | None
    n_fields: int
    first_row: int
    has_weights: bool

    @property
    def places(self) -> list[int]:
        """The chosen columns."""
        return list(range(self.n_fields)) if self.chosen is None else self.chosen

    def is_number(self, field: str) -> bool:
        """Return whether a field is a number."""
        return bool(_NUMBER.fullmatch(field))

    def is_missing(self, field: str) -> bool:
        """Return whether a field stands for a missing value."""
        return _is_missing(field)

    def refusal(self, field: str, column: int) -> str:
        """Return why a field of a column is no number."""
        cure = self._cure_of_empty(column) if _is_missing(field) else ""
        return f"{_shown(field)} is not a number{f'; {cure}' if cure else _remedy(field)}"

    def _cure_of_empty(self, column: int) -> str:
        """Return what to do about a column without any value, and others like it; empty if it has one."""
        empty = set(self.places)
        with self.source.open() as file:
            rows = csv.reader(islice(file, self.first_row - 1, None), delimiter=self.delimiter)
            try:
                for row in rows:
                    empty = {place for place in empty if place < len(row) and _is_missing(row[place])} if row else empty
                    if column not in empty:
                        return ""
            except (csv.Error, UnicodeDecodeError):  # beyond the line at fault
                return ""
        data = self.places[:-1] if self.has_weights else self.places
        return cures.of_empty(sorted(empty), data, self.delimiter, self.n_fields) if column in data else ""


@dataclass(frozen=True)
class _Reader:
    """How the rows of a file are read, after its first lines."""

    form: _Form
    lines: "_Lines"
    sniffs: bool
    may_miss: bool

    def read(self, second: str, words: TextColumns | None, *, has_header: bool) -> NDArray[np.float64] | MixedRows:
        """Return the rows, given the first of them: numbers, or `MixedRows` if a column holds words."""
        if words is None:
            return self._numbers(second)
        form = self.form
        keys = {place if form.names is None else form.names[column] for place, column in enumerate(form.places)}
        failure: SourceError | None = None
        if keys.isdisjoint(words.always):
            try:
                return self._numbers(second)
            except SourceError as error:
                failure = error
        opened = partial(_lines_of_rows, form.source, form.n_fields, form.delimiter, has_header=has_header)
        file = self.lines.path, form.delimiter, form.names, form.places
        n_numbers = 1 if form.has_weights else 0
        rows = read_mixed(opened, *file, words, form, n_numbers=n_numbers, may_miss=self.may_miss)
        if rows is None:
            raise failure or SourceError(f"{self.lines.path}: no column holds words")
        return rows

    def _numbers(self, second: str) -> NDArray[np.float64]:
        form = self.form
        rows = arrow_text.read(
            form.source,
            skip=form.first_row - 1,
            delimiter=form.delimiter,
            n_fields=form.n_fields,
            chosen=form.chosen,
            may_miss=self.may_miss,
        )
        if rows is not None:
            return rows
        text: Iterable[str] = chain([second], self.lines)
        text = _with_nan(self.lines, text, form.delimiter) if self.may_miss else text
        try:
            # Given lines one by one, NumPy fails at the last line read.
            return np.loadtxt(
                text, delimiter=form.delimiter, comments=None, quotechar='"', usecols=form.chosen, ndmin=2
            )
        except ValueError as error:
            raise self._refused(error) from error

    def _refused(self, error: ValueError) -> SourceError:
        """Return the error for the last line read."""
        lines, form = self.lines, self.form
        fields = lines.split([lines.last], form.delimiter)
        wrong = next((column for column in form.places if not _NUMBER.fullmatch(fields[column])), None)
        reason = f": {error}"
        if wrong is not None:
            reason = f", {title(wrong, form.names)}: {form.refusal(fields[wrong], wrong)}"
        hint = _hint(fields) if self.sniffs else ""
        if not (hint or ";" in reason) and lines.number == form.first_row and any(map(_is_word, fields)):
            hint = "; columns of words are left out by choosing the others (--columns)"
        return SourceError(f"{lines.path}: line {lines.number}{reason}{hint}")


@contextmanager
def _lines_of_rows(
    source: Source, n_fields: int, delimiter: str, *, has_header: bool
) -> Iterator[tuple[Iterator[str], Callable[[], int]]]:
    """Open a file after its line of names; give its lines, and a function that returns the number of the last one."""
    with source.open() as file:
        lines = _Lines(source, file)
        if has_header:
            next(lines, None)
        lines.expect([""] * n_fields, delimiter)
        yield lines, lambda: lines.number


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
        self._first: list[str] = []

    def expect(self, fields: list[str], delimiter: str) -> None:
        """Check every further line for the number of fields that the first line has."""
        self._n_fields, self._delimiter, self._first = len(fields), delimiter, fields

    def __next__(self) -> str:
        blank = None
        while True:
            try:
                line = next(self._lines)
            except UnicodeDecodeError as error:
                text = f"not text in UTF-8; {cures.of_encoding(self._source)}"
                raise SourceError(f"{self.path}: line {_undecodable(self._source)}: {text}") from error
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
                f"(delimiter {self._delimiter!r}){self._hint_on_ends(line, n_fields)}"
            )

    def _hint_on_ends(self, line: str, n_fields: int) -> str:
        """Return a hint where only some lines end in a delimiter."""
        ends = line.rstrip("\r\n").endswith(self._delimiter)
        if n_fields == len(self._first) + 1 and ends:
            return "; it ends in a delimiter, and the first line does not"
        if n_fields == len(self._first) - 1 and not self._first[-1]:
            return "; the first line ends in a delimiter, and this one does not"
        return ""

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
    # A line of numbers that ends in a delimiter has an empty field.
    if any(numbers) and not all(known[:-1] if not fields[-1].strip() else known):
        place = known.index(False)
        raise SourceError(
            f"{path}: line {line}, column {place + 1}: {_shown(fields[place])} is not a number, but others in the line "
            "are; say whether it is a line of names (header)"
        )
    return not any(numbers)


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


def _remedy(field: str) -> str:
    """Return what to do about a missing value, or a number that is written in another way; empty otherwise."""
    if _is_missing(field):
        return "; leave such rows out, or use --missing marginalize and a likelihood such as diagonal-gaussian"
    cure = cures.of_number(field)
    return f"; {cure}" if cure else ""


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
