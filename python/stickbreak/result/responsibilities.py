"""Responsibilities of the core, which come as pairs of a component and a value, as tables."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak._core import FitState
from stickbreak.io import arrays, optional

# Rows whose dense responsibilities pass through index and value arrays at a time.
_ROWS_AT_A_TIME = 65_536


def dense(state: FitState, rows: arrays.Rows, tail: bool, threads: int | None) -> NDArray[np.float64]:
    """Return all responsibilities, with a last column for the tail if asked for; (n, K) or (n, K + 1)."""
    table = np.zeros((rows.shape[0], state.n_components + tail))
    for begin in range(0, rows.shape[0], _ROWS_AT_A_TIME):
        part = slice(begin, begin + _ROWS_AT_A_TIME)
        indices, values = state.responsibilities(arrays.part(rows, part), None, tail, threads)
        np.put_along_axis(table[part], indices, values, axis=1)
    return table


def sparse(state: FitState, rows: arrays.Rows, tail: bool, threads: int | None) -> Any:
    """Return as many responsibilities a row as the fit keeps, as a scipy.sparse.csr_array of the same shape."""
    module = optional.scipy_sparse("predict_proba(sparse=True)")
    indices, values = state.responsibilities(rows, state.sparsity, tail, threads)
    n_rows, n_kept = values.shape
    starts = np.arange(0, n_rows * n_kept + 1, n_kept)
    shape = (n_rows, state.n_components + tail)
    matrix = module.csr_array((values.ravel(), indices.ravel(), starts), shape=shape)
    matrix.sort_indices()
    return matrix
