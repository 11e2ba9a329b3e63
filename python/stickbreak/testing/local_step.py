"""One local step of a fit, as tables: its responsibilities and its summary, which a fit does not expose."""

import numpy as np
from numpy.typing import NDArray

from stickbreak.io.arrays import DenseRows
from stickbreak.result.fit import Fit


def responsibilities_of(fit: Fit, rows: DenseRows) -> NDArray[np.float64]:
    """Return the responsibilities of the fit's own local step, with the sparsity of the fit; (n, K).

    A tail has no column, as in `Fit.predict_proba`.
    """
    indices, values = fit._state.responsibilities(rows, fit._state.sparsity, False, None)
    table = np.zeros((len(rows), fit.n_components))
    np.put_along_axis(table, indices, values, axis=1)
    return table


def summary_of(
    fit: Fit, rows: DenseRows, weights: NDArray[np.float64] | None, sparsity: int | None
) -> dict[str, NDArray[np.float64]]:
    """Return the additive parts of the summary of one local step at the components of the fit, by name.

    Parameters
    ----------
    fit : Fit
        The fit.
    rows : ndarray of shape (n, D)
        The rows.
    weights : ndarray of shape (n,), optional
        Their weights.
    sparsity : int or None
        Number of components per row; None for all.
    """
    summary = fit._state.summary(rows, weights, sparsity, pair_gaps=True, threads=1)
    gaps = np.zeros((fit.n_components, fit.n_components))
    for (a, b), gap in summary.pop("pair_gaps").items():
        gaps[a, b] = gaps[b, a] = gap
    known = {name: np.asarray(values) for name, values in summary.items() if values is not None}
    return known | {"pair_gaps": gaps}


def size_of_statistics(fit: Fit, rows: DenseRows, weights: NDArray[np.float64]) -> float:
    """Return the sum of absolute contributions of rows to first and second moments about the origin of the fit."""
    _, parts = fit._state.to_parts()
    units = parts["coordinates.units"]
    seen = rows[:, units > 0].astype(np.float64) / units[units > 0]
    largest = np.abs(seen - parts["origin"]).max(axis=1)
    return float((weights * (largest + largest**2)).sum())
