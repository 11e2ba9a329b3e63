"""Reads and writes large text files with PyArrow if it is installed, with the same results as `text`."""

import csv
import io
from collections.abc import Mapping
from importlib import import_module, util
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stickbreak.io.datafiles.parquet import arrow_table
from stickbreak.io.datafiles.sources import Source

# Representations of a missing value.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
# Smaller files are read faster than PyArrow is imported.
_LEAST_BYTES = 1 << 20
# Wider tables are read faster by the slower reader. PyArrow takes some 10 kB a column, and where a damaged line has
# millions of fields and memory is short, it ends the process.
_MOST_FIELDS = 1 << 11


def read(
    source: Source, *, skip: int, delimiter: str, n_fields: int, chosen: list[int] | None, may_miss: bool
) -> NDArray[np.float64] | None:
    """Return the chosen columns as rows; None if PyArrow is missing, or the file needs the slower reader.

    Parameters
    ----------
    source : Source
        The text.
    skip : int
        Number of lines before the first row.
    delimiter : str
        The delimiter.
    n_fields : int
        Number of fields per line.
    chosen : list of int, optional
        The columns to read; None for all.
    may_miss : bool
        Whether values may be missing.
    """
    if n_fields > _MOST_FIELDS or util.find_spec("pyarrow") is None or not _is_large(source):
        return None
    arrow, text = import_module("pyarrow"), import_module("pyarrow.csv")
    names = [str(column) for column in range(n_fields)]
    wanted = names if chosen is None else [names[column] for column in chosen]
    try:
        with source.open_bytes() as file:
            table = text.read_csv(
                file,
                read_options=text.ReadOptions(skip_rows=skip, column_names=names),
                parse_options=text.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
                convert_options=text.ConvertOptions(
                    include_columns=list(dict.fromkeys(wanted)),
                    column_types={name: arrow.float64() for name in wanted},
                    null_values=list(MISSING),
                ),
            )
    except arrow.ArrowException:
        return None
    rows = np.empty((table.num_rows, len(wanted)))
    n_missing = 0
    for place, name in enumerate(wanted):
        column = table.column(name)
        n_missing += column.null_count
        if column.null_count and not may_miss:
            return None
        rows[:, place] = column.to_numpy()
    # A row without any value could also be a blank line.
    if n_missing and np.isnan(rows).all(axis=1).any():
        return None
    return rows if len(rows) and not np.isinf(rows).any() else None


def write(file: IO[bytes], columns: Mapping[str, Any]) -> bool:
    """Write columns to an open CSV file; return False without writing if PyArrow is not installed.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    if util.find_spec("pyarrow") is None:
        return False
    arrow, text = import_module("pyarrow"), import_module("pyarrow.csv")
    # PyArrow would quote all names.
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(columns)
    file.write(head.getvalue().encode())
    text.write_csv(arrow_table(arrow, columns), file, text.WriteOptions(include_header=False))
    return True


def _is_large(source: Source) -> bool:
    with source.open_bytes() as file:
        return len(file.read(_LEAST_BYTES)) == _LEAST_BYTES
