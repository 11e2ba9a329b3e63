"""Descriptive statistics of the columns of a sample of rows, for advice."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Columns with a larger correlation count as copies.
_SAME = 0.99999
# Unit vectors with such a correlation differ by less than this, up to their signs.
_FARTHEST = (2.0 - 2.0 * _SAME) ** 0.5 + 1e-9
# Correlations that are computed at a time: 16 MB.
_MOST_CORRELATIONS = 2_000_000


def skewness(values: NDArray[Any]) -> tuple[float, float]:
    """Return the skewness of positive values and that of their logarithms; zero for equal values."""
    return _skewness(values.astype(np.float64)), _skewness(np.log(values.astype(np.float64)))


def _skewness(values: NDArray[np.float64]) -> float:
    # Scaled, so that cubes stay in range; the skewness has no units.
    values = values / np.abs(values).max() if values.any() else values
    centred = values - values.mean()
    centred = centred / np.abs(centred).max() if centred.any() else centred
    variance = np.mean(centred**2)
    return float(np.mean(centred**3) / variance**1.5) if variance > 0.0 else 0.0


def copies(rows: NDArray[Any]) -> list[int]:
    """Return the columns, (n, D), that are linear functions of an earlier one."""
    values = rows.astype(np.float64)
    largest = np.abs(values).max(axis=0)
    values = values / np.where(largest > 0.0, largest, 1.0)
    varying = np.flatnonzero(np.ptp(values, axis=0) > 0.0)
    values = values[:, varying]
    values -= values.mean(axis=0)
    values /= np.linalg.norm(values, axis=0)
    # Columns that are nearly parallel have nearly the same projection on any line, so only those are compared.
    line = np.linspace(-1.0, 1.0, len(values)) / np.sqrt(len(values))
    projections = np.abs(line @ values)
    order = np.argsort(projections, kind="stable")
    values, projections = values[:, order], projections[order]
    stops = np.searchsorted(projections, projections + _FARTHEST, side="right")
    found: set[int] = set()
    width = max(1, _MOST_CORRELATIONS // max(1, len(order)))
    for begin in range(0, len(order), width):
        end = min(begin + width, len(order))
        same = np.abs(values[:, begin:end].T @ values[:, begin : stops[end - 1]]) > _SAME
        one, other = (varying[order[begin + positions]] for positions in np.nonzero(same))
        found.update(np.maximum(one, other)[one != other].tolist())
    return sorted(found)


def beyond(
    rows: NDArray[np.float64], usual: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return two quantiles of each column, and how far each value lies outside them, in multiples of their distance.

    Values between the quantiles, missing ones, and those of columns whose quantiles are equal have zero.
    """
    is_empty = np.isnan(rows).all(axis=0)
    low, high = np.nanquantile(np.where(is_empty, 0.0, rows), usual, axis=0, method="nearest")
    width = np.where(high > low, high - low, np.inf)
    with np.errstate(over="ignore"):
        outside = np.fmax((low - rows) / width, (rows - high) / width)
    return low, high, np.nan_to_num(np.fmax(outside, 0.0), nan=0.0, posinf=np.inf)


def quantile(values: NDArray[np.float64], share: float) -> float:
    """Return the value below which this share of the values lies."""
    return float(np.quantile(values, share))
