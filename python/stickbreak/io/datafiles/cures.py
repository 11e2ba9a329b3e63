"""What to do about text that is no table as it stands: its encoding, its delimiter, and columns without values."""

import re
from collections.abc import Sequence
from itertools import islice

from stickbreak.io import numerals
from stickbreak.io.datafiles.sources import Source

# Marks at the beginning of a file. The longer ones come first.
_MARKS = {b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_HEAD_BYTES = 4096
# Share of null bytes in text of two bytes a character.
_MANY_NULLS = 0.3
# Number of lines, and characters of a line, that show a delimiter.
_MOST_LINES, _MOST_CHARACTERS = 50, 10_000
_SEPARATORS = "|^~"


def of_encoding(source: Source) -> str:
    """Return what to do about text that is not in UTF-8."""
    with source.open_bytes() as file:
        head = file.read(_HEAD_BYTES)
    found = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if found is None and head.count(b"\0") >= _MANY_NULLS * len(head):
        found = "UTF-16LE" if head[1::2].count(b"\0") >= head[::2].count(b"\0") else "UTF-16BE"
    guess, known = ("it is " + found, found) if found else ("perhaps it is Latin-1", "LATIN1")
    return f"{guess}: save it as UTF-8, or convert it by iconv -f {known} -t UTF-8"


def of_delimiter(source: Source) -> str:
    """Return what to do about lines that are one field each, if another character separates fields; else empty."""
    with source.open_bytes() as file:
        raw = list(islice(file, _MOST_LINES))
    lines = [line.decode("utf-8-sig", "replace").strip("\r\n")[:_MOST_CHARACTERS] for line in raw]
    lines = [line for line in lines if line.strip()]
    if len(lines) < 2:
        return ""
    otherwise = "; if it is one column of text, write --delimiter comma"
    for character in _SEPARATORS:
        numbers = {line.count(character) for line in lines}
        if len(numbers) == 1 and 0 not in numbers:
            said = f"every line has {numbers.pop() + 1} fields between {character!r}"
            return f"{said}: write --delimiter '{character}'{otherwise}"
    parts = [line.split() for line in lines]
    n_fields = len(parts[0])
    if n_fields == 1 or any(len(row) != n_fields for row in parts):
        return ""
    # Two words are a name as often as two fields; a column of numbers is a field.
    if not any(all(_is_number(row[place]) for row in parts[1:]) for place in range(n_fields)):
        return ""
    said = f"every line has {n_fields} fields between blanks"
    if all(line.count(" ") == n_fields - 1 and line == line.strip() for line in lines):
        return f"{said}: write --delimiter space{otherwise}"
    return f"{said}: replace each run of blanks by one comma, and drop those at the ends of lines{otherwise}"


def of_empty(empty: Sequence[int], chosen: Sequence[int], delimiter: str, n_fields: int) -> str:
    """Return what to do about columns without any value, given all `chosen` ones, counted from 0."""
    left = [column for column in chosen if column not in empty]
    if not left:
        return ""
    ends = f", as if {delimiter!r} ended each line" if n_fields - 1 in empty else ""
    said = "the column has no value" if len(empty) == 1 else f"columns {ranges(empty)} have no value"
    return f"{said} in any row{ends}: choose the others by --columns {ranges(left)}"


def ranges(columns: Sequence[int]) -> str:
    """Return columns, counted from 0, as positions from 1 and ranges of them."""
    found: list[list[int]] = []
    for column in columns:
        if found and column == found[-1][1] + 1:
            found[-1][1] = column
        else:
            found.append([column, column])
    return ",".join(f"{first + 1}" if first == last else f"{first + 1}-{last + 1}" for first, last in found)


def of_number(field: str) -> str:
    """Return what to do about a field that people read as a number; empty for others."""
    text = field.strip()
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?", text):
        return "decimals need a point, and thousands no comma"
    if re.fullmatch(r"[-+]?\d+,\d+", text):
        return "decimals need a point"
    if numerals.has_decoration(text):
        return "numbers have no currency, no percent sign and no separators of thousands"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
