"""Converts responsibilities, which the core returns as pairs of a component and a value, to tables."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak._core import FitState
from stickbreak.io import arrays, optional


def dense(state: FitState, rows: arrays.Rows, tail: bool, threads: int | None) -> NDArray[np.float64]:
    """Return all responsibilities, with a last column for the tail if asked for; (n, K) or (n, K + 1)."""
    shape = (rows.shape[0], state.n_components + tail)
    try:
        table = np.zeros(shape)
    except MemoryError as error:
        found = f"of {shape[0]} rows, for which {shape[1]} components take about {8e-9 * shape[0] * shape[1]:.1f} GB"
        allowed = "of few enough rows at a time that their responsibilities fit in memory"
        raise checks.invalid_argument("X", found, allowed, "sparse=True keeps a few components per row") from error
    state.fill_responsibilities(rows, tail, threads, table)
    return table


def sparse(state: FitState, rows: arrays.Rows, tail: bool, threads: int | None) -> Any:
    """Return the responsibilities that the fit keeps per row, as a scipy.sparse.csr_array of the same shape."""
    module = optional.scipy_sparse("predict_proba(sparse=True)")
    indices, values = state.responsibilities(rows, state.sparsity, tail, threads)
    n_rows, n_kept = values.shape
    starts = np.arange(0, n_rows * n_kept + 1, n_kept)
    shape = (n_rows, state.n_components + tail)
    matrix = module.csr_array((values.ravel(), indices.ravel(), starts), shape=shape)
    matrix.sort_indices()
    return matrix
