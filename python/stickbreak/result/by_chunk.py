"""What a fit says of the rows of a collection, chunk by chunk."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.errors import InvalidArgument
from stickbreak.shards.pieces import Piece, array_of_rows, check_alone, failing, is_array, located, read_as


def mapped(
    method: Callable[..., Any], X: Any, dtype: Any, exposure: object, *, width: int | None = None, **options: Any
) -> Any:
    """Return the results of a method for each row of a collection, as a collection of the same chunks.

    `width` is the number of columns of the result, if it has several. Data frames give a series or a data frame.
    """
    check_alone("exposure", exposure)
    call = partial(method, **options)
    if is_array(X):
        X = array_of_rows(X, "X")
        # Other columns and bad arguments are refused at once.
        call(np.empty((0, X.shape[1])))
        # With an axis less, dask would look at the chunks, which may be anything.
        chunks, meta = (X.chunks[0], (width or 1,)), np.empty((0, 0), dtype=dtype)
        found = X.map_blocks(partial(_of_block, call, read_as(X.dtype)), dtype=dtype, chunks=chunks, meta=meta)
        return found if width else found[:, 0]
    return X.map_partitions(partial(_of_partition, call), meta=_of_partition(call, X._meta))


def _of_block(call: Callable[[Any], NDArray[Any]], dtype: str, chunk: Any, block_info: Any = None) -> NDArray[Any]:
    given = block_info[0]
    begin, end = given["array-location"][0]
    # The sizes of chunks may be unknown.
    size = len(chunk) if math.isnan(end) and hasattr(chunk, "__len__") else end - begin
    place = Piece(0, 0, size, f"chunk {given['chunk-location'][0]}", size)
    rows = place.rows(chunk, dtype, given["shape"][1])
    with _placing(place):
        found = call(rows)
    return found if found.ndim == 2 else found[:, None]


@contextmanager
def _placing(place: Piece) -> Iterator[None]:
    """Name the chunk in errors about its rows."""
    try:
        yield
    except InvalidArgument as error:
        raise located(error, place) from None


def _of_partition(call: Callable[[Any], NDArray[Any]], partition: Any, partition_info: Any = None) -> Any:
    import pandas as pd

    with _placing(_partition(partition, partition_info)):
        found = call(partition)
    return (pd.Series if found.ndim == 1 else pd.DataFrame)(found, index=partition.index)


def _partition(partition: Any, partition_info: Any) -> Piece:
    size = len(partition)
    return Piece(0, 0, size, f"partition {partition_info and partition_info['number']}", size)


def bound(
    state: _core.FitState, evaluate: Callable[..., float], X: Any, sample_weight: object, exposure: object
) -> float:
    """Return the bound of the rows of a collection: what rows add, chunk by chunk, less what components cost once."""
    check_alone("exposure", exposure)
    check_alone("sample_weight", sample_weight)
    cost = _core.cost_of_components(state)

    def of_rows(chunk: Any) -> NDArray[np.float64]:
        n_rows = len(chunk)
        return np.array([[evaluate(chunk) + cost if n_rows else 0.0, n_rows]])

    if is_array(X):
        X = array_of_rows(X, "X")
        chunks = ((1,) * len(X.chunks[0]), (2,))
        sums = X.map_blocks(
            partial(_of_block, of_rows, read_as(X.dtype)), dtype=float, chunks=chunks, meta=np.empty((0, 2))
        )
    else:
        import pandas as pd

        def of_partition(partition: Any, partition_info: Any = None) -> Any:
            with _placing(_partition(partition, partition_info)):
                return pd.DataFrame(of_rows(partition))

        sums = X.map_partitions(of_partition, meta=pd.DataFrame(np.empty((0, 2))))
    with failing():
        found = np.asarray(sums.compute())
    total, n_rows = found.sum(axis=0)
    if n_rows == 0:
        raise checks.invalid_argument("X", "a collection without rows", "a collection of at least one row")
    return float(total - cost)
