"""Descriptive statistics of the columns of a sample of rows, for advice."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Columns with a larger correlation carry the same values.
_SAME = 0.99999


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
    if len(varying) < 2:
        return []
    same = np.abs(np.corrcoef(values[:, varying], rowvar=False)) > _SAME
    return [int(varying[at]) for at in range(len(varying)) if same[at, :at].any()]
