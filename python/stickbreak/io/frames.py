"""Tables of other packages: read as Arrow tables with names, or refused, never read by position."""

import sys
from typing import Any

from stickbreak.checks import describe, invalid_argument, invalid_type
from stickbreak.errors import NotSupported

# Tables whose columns are read as they are.
_KNOWN = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch"))
# Lazy tables, with what to do about them; they are refused later.
_LAZY = {("polars", "LazyFrame"): "call .collect() first", ("dask.dataframe", "DataFrame"): "call .compute() first"}
_ALLOWED = "an array, or a table of pandas, Polars or Arrow, or one that has __arrow_c_stream__ or __dataframe__"


def is_of(value: object, module: str, kind: str) -> bool:
    """Return whether a value is an instance of a class of a package, without importing the package."""
    found = getattr(sys.modules.get(module), kind, None)
    return isinstance(found, type) and isinstance(value, found)


def is_table(value: object) -> bool:
    """Return whether a value is a table of pandas, Polars or Arrow that holds its rows."""
    return any(is_of(value, *kind) for kind in _KNOWN)


def hint_if_lazy(value: object) -> str | None:
    """Return how a lazy table is made one that holds its rows; None for other values."""
    return next((hint for kind, hint in _LAZY.items() if is_of(value, *kind)), None)


def is_only_stream(value: object) -> bool:
    """Return whether a value has Arrow's stream, and is no array, which may have it too."""
    return hasattr(value, "__arrow_c_stream__") and not hasattr(value, "__array__")


def understood(value: Any, argument: str) -> Any:
    """Return a table of another package as an Arrow table with its names; return anything else unchanged.

    A stream of Arrow is read to its end, so the value must not be read again.

    Raises
    ------
    InvalidArgument
        The value is a reader of batches, which can be read only once, and has no rows any more.
    InvalidType
        The value has names of columns, but no interface of tables, or its columns have names of several levels.
    NotSupported
        It is such a table, and PyArrow, which reads it, is not installed.
    """
    if is_of(value, "pandas", "DataFrame") and is_of(value.columns, "pandas", "MultiIndex"):
        found = f"{describe(value)} whose columns have names of {value.columns.nlevels} levels"
        hint = f"flatten them: {argument}.columns = ['_'.join(map(str, names)) for names in {argument}.columns]"
        raise invalid_type(argument, found, "a table whose columns have names of one level", hint)
    if is_table(value) or hint_if_lazy(value) is not None:
        return value
    # An array of one dimension may have the interface too.
    if not _has_names(value):
        return value
    if not (hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")):
        found = f"{describe(value)}, whose columns have names"
        raise invalid_type(argument, found, _ALLOWED, "convert it, for example by .to_pandas() or .to_numpy()")
    try:
        import pyarrow
        import pyarrow.interchange
    except ImportError as error:
        what = f"{argument}: a table of type {type(value).__name__} needs the package pyarrow"
        raise NotSupported(f'{what}: pip install "stickbreak[parquet]"') from error
    try:
        is_stream = hasattr(value, "__arrow_c_stream__")
        table = pyarrow.table(value) if is_stream else pyarrow.interchange.from_dataframe(value)
    except Exception as error:  # of foreign tables, which raise what they like
        raise invalid_type(argument, f"{describe(value)} that PyArrow cannot read ({error})", _ALLOWED) from error
    # An empty reader looks like one that has been read.
    if table.num_rows == 0 and any(hasattr(value, name) for name in ("__next__", "read_next_batch")):
        hint = "it can be read only once: give a new reader; if it never had a row, give its table, .read_all()"
        raise invalid_argument(
            argument, f"{describe(value)} without a row left", "a table, or a reader with rows", hint
        )
    return table


def _has_names(value: Any) -> bool:
    """Return whether a value is a table: it has the names of several columns of its own."""
    if hasattr(value, "__dataframe__") or is_only_stream(value):
        return True
    for attribute in ("columns", "column_names"):
        try:
            labels = list(getattr(value, attribute, ()))
        except Exception:  # an attribute of another meaning
            continue
        if labels and all(isinstance(label, str) for label in labels):
            return True
    return False
