"""What a fit says of the rows of a collection, chunk by chunk."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.io.shards import array_of_rows, is_array


def mapped(
    method: Callable[..., Any], X: Any, dtype: Any, exposure: object, *, width: int | None = None, **options: Any
) -> Any:
    """Return the results of a method for each row of a collection, as a collection of the same chunks.

    `width` is the number of columns of the result, if it has several. Data frames give a series or a data frame.
    """
    _check_alone("exposure", exposure)
    call = partial(_of_chunk, method, dtype, width, options)
    if is_array(X):
        chunks = (X.chunks[0],) if width is None else (X.chunks[0], (width,))
        drop = {"drop_axis": 1} if width is None else {}
        meta = np.empty((0,) * len(chunks), dtype=dtype)
        return array_of_rows(X, "X").map_blocks(call, dtype=dtype, chunks=chunks, meta=meta, **drop)
    return X.map_partitions(partial(_of_partition, call), meta=_of_partition(call, X._meta))


def _of_chunk(
    method: Callable[..., Any], dtype: Any, width: int | None, options: dict[str, Any], chunk: Any
) -> NDArray[Any]:
    # Chunks may be empty, and so is what dask tries first.
    if len(chunk) == 0:
        return np.empty((0,) if width is None else (0, width), dtype=dtype)
    found: NDArray[Any] = method(chunk, **options)
    return found


def _of_partition(call: Callable[[Any], NDArray[Any]], partition: Any) -> Any:
    import pandas as pd

    found = call(partition)
    return (pd.Series if found.ndim == 1 else pd.DataFrame)(found, index=partition.index)


def bound(
    state: _core.FitState, evaluate: Callable[..., float], X: Any, sample_weight: object, exposure: object
) -> float:
    """Return the bound of the rows of a collection: what rows add, chunk by chunk, less what components cost once."""
    _check_alone("exposure", exposure)
    _check_alone("sample_weight", sample_weight)
    cost = _core.cost_of_components(state)

    def of_rows(chunk: Any) -> NDArray[np.float64]:
        return np.array([evaluate(chunk) + cost if len(chunk) else 0.0])

    if is_array(X):
        ones = (1,) * len(X.chunks[0])
        sums = (
            array_of_rows(X, "X")
            .map_blocks(of_rows, dtype=float, chunks=(ones,), drop_axis=1, meta=np.empty(0))
            .compute()
        )
    else:
        import pandas as pd

        sums = X.map_partitions(lambda part: pd.Series(of_rows(part)), meta=pd.Series(dtype=float)).compute().to_numpy()
    return float(sums.sum() - cost)


def _check_alone(argument: str, value: object) -> None:
    if value is not None:
        reason = "its rows have no numbers"
        raise checks.not_supported(argument, f"`{argument}` for a collection", reason, f"{argument}=None")
