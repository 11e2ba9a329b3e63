"""Parquet files, read by PyArrow batch by batch."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import arrays
from stickbreak.datafiles.columns import Choice, named, title
from stickbreak.errors import NotSupported, SourceError


def read_parquet(path: Path, choice: Choice) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return the chosen columns as rows, with their names."""
    pyarrow, parquet = _pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
            if len(set(names)) < len(names):
                raise SourceError(f"{path}: several columns have the same name")
            if not names:
                raise SourceError(f"{path}: has no columns")
            if not file.metadata.num_rows:
                raise SourceError(f"{path}: has no rows")
            chosen = choice.among(names, len(names))
            positions = list(range(len(names))) if chosen is None else chosen
            _check_types(pyarrow, path, file.schema_arrow, positions)
            rows = _rows(pyarrow, path, file, names, positions)
            _say_converted(pyarrow, file, positions[:-1] if choice.has_weights else positions, rows.dtype)
            return rows, named(names, chosen) or ()
    except (pyarrow.ArrowException, OSError) as error:
        raise SourceError(f"{path}: not a Parquet file, or damaged: {error}") from error


def _pyarrow() -> tuple[Any, Any]:
    # Not before: most users have no Parquet files, and PyArrow is large.
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise NotSupported('Parquet files need the package pyarrow: pip install "stickbreak[parquet]"') from error
    return pyarrow, pyarrow.parquet


def _check_types(pyarrow: Any, path: Path, schema: Any, positions: list[int]) -> None:
    types = pyarrow.types
    for position in positions:
        kind = schema.field(position).type
        if not any(test(kind) for test in (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)):
            where = title(position, schema.names)
            raise SourceError(f"{path}: {where} holds values of type {kind}, not real numbers; choose other columns")


def _say_converted(pyarrow: Any, file: Any, positions: list[int], wanted: np.dtype[Any]) -> None:
    types = [file.schema_arrow.field(position).type for position in positions]
    for kind in dict.fromkeys(types):
        # A float32 beside others stays the number that it is, and decimals are no type of NumPy's.
        if kind not in (pyarrow.float32(), pyarrow.float64()):
            decimal = pyarrow.types.is_decimal(kind)
            arrays.say_converted(np.dtype(object if decimal else kind.to_pandas_dtype()), wanted)


def _rows(pyarrow: Any, path: Path, file: Any, names: tuple[str, ...], positions: list[int]) -> NDArray[Any]:
    types = [file.schema_arrow.field(position).type for position in positions]
    single = all(kind in (pyarrow.float16(), pyarrow.float32()) for kind in types)
    rows = np.empty((file.metadata.num_rows, len(positions)), dtype=np.float32 if single else np.float64)
    begin = 0
    for batch in file.iter_batches(columns=[names[position] for position in positions]):
        end = begin + batch.num_rows
        for place, position in enumerate(positions):
            column = batch.column(names[position])
            if column.null_count:
                row = begin + column.is_null().index(True).as_py()
                raise SourceError(f"{path}: row {row} (counted from 0), {title(position, names)}: the value is missing")
            if pyarrow.types.is_decimal(column.type):
                column = column.cast(pyarrow.float64())
            rows[begin:end, place] = column.to_numpy(zero_copy_only=False)
        begin = end
    if begin != len(rows):
        raise SourceError(f"{path}: holds {begin} rows, but says it has {len(rows)}")
    return rows
