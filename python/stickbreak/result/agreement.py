"""How far two labellings of the same rows agree."""

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


def adjusted_rand(one: Labels, other: Labels) -> float:
    """Return the adjusted Rand index (Hubert & Arabie 1985)."""
    table = _table(one, other)
    together, of_one, of_other = (_pairs(counts).sum() for counts in (table, table.sum(1), table.sum(0)))
    expected = of_one * of_other / max(1.0, float(_pairs(np.array(float(len(one))))))
    most = (of_one + of_other) / 2
    # Only two labellings of one cluster, or of single rows, leave nothing to adjust.
    return 1.0 if most == expected else float((together - expected) / (most - expected))


def together(one: Labels, other: Labels, n_clusters: int) -> NDArray[np.float64]:
    """Return by cluster of `one` the share of its pairs of rows that `other` leaves together; NaN without pairs."""
    shares = np.full(n_clusters, np.nan)
    present, table = np.unique(one), _table(one, other)
    pairs = _pairs(table.sum(1))
    has_pairs = pairs > 0
    shares[present[has_pairs]] = _pairs(table).sum(1)[has_pairs] / pairs[has_pairs]
    return shares


def off_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entries above the diagonal of a symmetric matrix."""
    return matrix[np.triu_indices(len(matrix), 1)]


def _table(one: Labels, other: Labels) -> NDArray[np.float64]:
    """Return the numbers of rows by label of one and of the other."""
    (_, rows), (_, columns) = (np.unique(labels, return_inverse=True) for labels in (one, other))
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1.0)
    return table


def _pairs(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return counts * (counts - 1.0) / 2.0
