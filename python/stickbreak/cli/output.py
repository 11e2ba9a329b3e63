"""What the commands print and write: CSV, .npy and JSON that any program can read."""

import csv
import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import StickbreakError
from stickbreak.io import datafiles
from stickbreak.io.datafiles import arrow_text
from stickbreak.io.datafiles.parquet import write_parquet
from stickbreak.io.datafiles.sources import STDIN
from stickbreak.io.files import is_own
from stickbreak.io.replacing import replacing
from stickbreak.terminal import plain

_ROWS_AT_A_TIME = 65_536
# Smaller tables are written faster than PyArrow is imported.
_LEAST_FOR_ARROW = 1 << 17
# Columns of the data, by name.
Kept: TypeAlias = Mapping[str, list[Any]]


class OutputError(StickbreakError):
    """A table cannot be written to its file after all."""


def say(line: str, *, err: bool = False) -> None:
    """Print a line for people, on stderr if `err`; words of files in it cannot steer the terminal."""
    click.echo(plain(line), err=err)


def print_json(value: Any) -> None:
    """Print one JSON object on a line of its own."""
    click.echo(_json(value))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    lines = list(facts)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        say(f"{name:<{width}}  {value}")


def check_place(
    argument: str, path: str, *, inputs: Iterable[str | None] = (), outputs: Iterable[str | None] = ()
) -> None:
    """Raise where no file can be written at `path`, or where it would replace one that is read or written too."""
    inputs = list(inputs)
    if path == STDIN:
        raise checks.invalid_argument(argument, "'-', which is no file", "the name of a file")
    if not path:
        raise checks.invalid_argument(argument, "empty", "the name of a file")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise checks.invalid_argument(argument, f"{path!r}, which is a folder", "the name of a file")
    if target.exists() and not target.is_file():
        raise checks.invalid_argument(argument, f"{path!r}, which is no regular file", "the name of a file")
    # The Parquet files of a folder are read together.
    folders = {os.path.realpath(other) for other in inputs if other is not None and os.path.isdir(other)}
    if target.suffix.lower() == ".parquet" and str(target.parent) in folders:
        raise checks.invalid_argument(argument, f"{path!r}, in a folder which is read", "a file in another folder")
    for others, said in ((inputs, "read"), (outputs, "written too")):
        if any(other is not None and os.path.realpath(other) == str(target) for other in others):
            raise checks.invalid_argument(argument, f"{path!r}, which is {said}", "the name of another file")
    with _refused(argument, path, "a file in a folder that exists and can be written to"):
        _try_to_write_in(target.parent)


def check_model_place(path: str, *, inputs: Iterable[str | None] = (), force: bool = False) -> None:
    """As `check_place` for `--out`; also raise if the name is one of a data file, or the file of another program.

    With `force` the file of another program is replaced.
    """
    check_place("out", path, inputs=inputs)
    if datafiles.suffix_of(Path(path)) in datafiles.SUFFIXES:
        allowed = "the name of a model file, such as m.safetensors"
        raise checks.invalid_argument("out", f"{path!r}, the name of a data file", allowed)
    if not (force or is_own(path)) and os.path.exists(path) and os.path.getsize(path) > 0:
        allowed = "the name of a new file, or --force to replace it"
        raise checks.invalid_argument("out", f"{path!r}, a file that stickbreak did not write", allowed)


def make_folder(argument: str, path: str) -> None:
    """Make a folder where it is missing; raise where that, or to write in it, is impossible."""
    with _refused(argument, path, "a folder that exists or can be made, and can be written to"):
        Path(path).mkdir(parents=True, exist_ok=True)
        _try_to_write_in(Path(path))


def _try_to_write_in(folder: Path) -> None:
    # Permissions are not enough: a file system may be read-only.
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def _refused(argument: str, path: str, allowed: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise checks.invalid_argument(argument, f"{path!r} ({error.strerror})", allowed) from error


def check_table_place(
    argument: str,
    path: str | None,
    *,
    inputs: Iterable[str | None] = (),
    outputs: Iterable[str | None] = (),
    keeps: bool = False,
    prints: bool = False,
) -> None:
    """Do the same for a table, whose format depends on the extension of its name; None is a good place.

    `keeps` is whether it has columns of the data too, and `prints` whether "-", for stdout, is a good place.
    """
    if path is None or (prints and path == STDIN):
        return
    if Path(path).suffix.lower() not in _WRITERS:
        raise checks.invalid_argument(argument, repr(path), f"the name of a file, ending in {' or '.join(_WRITERS)}")
    if keeps and Path(path).suffix.lower() == ".npy":
        raise checks.invalid_argument(argument, repr(path), "the name of a file with names, as --keep asks")
    check_place(argument, path, inputs=inputs, outputs=outputs)


def check_kept(kept: Kept, names: Iterable[str]) -> None:
    """Raise if a column that `--keep` names has the name of a column, or of a JSON entry, of the result."""
    taken = [name for name in names if name in kept]
    if taken:
        raise checks.invalid_argument("keep", f"{taken[0]!r}", "columns with other names than those of the result")


def write_table(
    path: str, names: Sequence[str], values: NDArray[Any], key: str, kept: Mapping[str, list[Any]] | None = None
) -> None:
    """Write one value a row, or several, to a file; one that exists is replaced once the new one is complete.

    Parameters
    ----------
    path : str
        The file, which `check_table_place` allowed.
    names : sequence of str
        The names of the columns, for CSV.
    values : ndarray of shape (n,) or (n, D)
        The values.
    key : str
        The name of the values in JSON.
    kept : mapping of str to list, optional
        Columns of the data that come before the values.

    Raises
    ------
    NotSupported
        The file is a Parquet file, and PyArrow is not installed.
    OutputError
        The file cannot be written, as where the disk is full.
    """
    target = Path(os.path.realpath(path))
    try:
        with replacing(target) as file:
            _WRITERS[target.suffix.lower()](file, names, values, key, kept or {})
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def give_table(
    path: str | None,
    names: Sequence[str],
    values: NDArray[Any],
    *,
    key: str,
    as_json: bool,
    kept: Mapping[str, list[Any]] | None = None,
) -> None:
    """Write a table to a file and say so, or print it."""
    if path is not None and path != STDIN:
        write_table(path, names, values, key, kept)
        if as_json:
            print_json({"out": path, "shape": values.shape})
    elif as_json:
        print_json({**(kept or {}), key: values})
    else:
        show = _shown if sys.stdout.isatty() else _as_it_is
        _write_rows(sys.stdout, names, values, kept or {}, show)


def _write_csv(file: IO[bytes], names: Sequence[str], values: NDArray[Any], _: str, kept: Kept) -> None:
    if values.size >= _LEAST_FOR_ARROW and arrow_text.write(file, _columns(names, values, kept)):
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    _write_rows(text, names, values, kept)
    text.detach()


def _write_npy(file: IO[bytes], _: Sequence[str], values: NDArray[Any], __: str, ___: Kept) -> None:
    np.save(file, values, allow_pickle=False)


def _write_json(file: IO[bytes], _: Sequence[str], values: NDArray[Any], key: str, kept: Kept) -> None:
    file.write(f"{_json({**kept, key: values})}\n".encode())


def _write_parquet(file: IO[bytes], names: Sequence[str], values: NDArray[Any], _: str, kept: Kept) -> None:
    write_parquet(file, _columns(names, values, kept))


def _columns(names: Sequence[str], values: NDArray[Any], kept: Kept) -> dict[str, Any]:
    table = values[:, None] if values.ndim == 1 else values
    return {**kept, **{name: table[:, place] for place, name in enumerate(names)}}


_WRITERS: dict[str, Callable[[IO[bytes], Sequence[str], NDArray[Any], str, Kept], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".npy": _write_npy,
    ".json": _write_json,
}


def _as_it_is(values: list[Any]) -> list[Any]:
    return values


def _shown(values: list[Any]) -> list[Any]:
    """Return values as a terminal may have them; files and pipes get the words themselves."""
    return [plain(value) if isinstance(value, str) else value for value in values]


def _write_rows(
    file: IO[str],
    names: Sequence[str],
    values: NDArray[Any],
    kept: Kept,
    show: Callable[[list[Any]], list[Any]] = _as_it_is,
) -> None:
    # The writer gives each float the fewest digits that read back exactly.
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(show([*kept, *names]))
    table = values[:, None] if values.ndim == 1 else values
    for begin in range(0, len(table), _ROWS_AT_A_TIME):
        some = slice(begin, begin + _ROWS_AT_A_TIME)
        columns = [column[some] for column in kept.values()] + [column.tolist() for column in table[some].T]
        if len(columns) == 1 and table.dtype.kind == "i":
            # Whole numbers need no quotes, and there may be many labels.
            file.write("\n".join(map(str, columns[0])) + "\n")
        else:
            writer.writerows(zip(*map(show, columns), strict=True))


def _json(value: Any) -> str:
    return json.dumps(_strict(value), allow_nan=False)


def _strict(value: Any) -> Any:
    """Return what JSON can hold: null for numbers that are not finite, lists for arrays, text for dates and others."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
