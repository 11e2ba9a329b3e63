"""How far two labellings of the same rows agree."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.io import arrays, room

Labels = NDArray[np.int64]


_METRICS = ("vi", "binder", "ari")


def partition_distance(a: ArrayLike, b: ArrayLike, metric: str = "vi") -> float:
    r"""Return how far two labellings of the same rows differ. The names of labels do not matter.

    With :math:`n_{cd}` rows that have the label c in one and d in the other,

    .. math:: \mathrm{VI} = \frac1n \Bigl\{ \sum_c n_c \ln n_c + \sum_d n_d \ln n_d
              - 2 \sum_{cd} n_{cd} \ln n_{cd} \Bigr\}

    Parameters
    ----------
    a, b : array_like of shape (n,)
        Labels: integers, truth values or strings.
    metric : {"vi", "binder", "ari"}
        "vi": the variation of information [1]_ in nats, from 0 to ln n; divide it by ln 2 for bits. "binder": Binder's
        loss [2]_, the number of pairs of rows that are together in one labelling only. Both are metrics, 0 if the
        partitions are the same. "ari": the adjusted Rand index [3]_, 1 if they are the same, 0 on average for labels
        that have nothing to do with each other.

    Returns
    -------
    float
        The distance, or the index.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described, or `a` and `b` differ in length.

    References
    ----------
    .. [1] Meila, M. (2007). Comparing clusterings: an information based distance. Journal of Multivariate Analysis 98.
    .. [2] Binder, D. A. (1978). Bayesian cluster analysis. Biometrika 65(1).
    .. [3] Hubert, L. and Arabie, P. (1985). Comparing partitions. Journal of Classification 2.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.partition_distance([0, 0, 1, 1], ["x", "x", "y", "z"], "binder")
    1.0
    >>> sb.partition_distance([0, 0, 1, 1], [5, 5, 2, 2])
    0.0
    """
    chosen = _METRICS.index(checks.word("metric", metric, _METRICS))
    one, other = _numbered(a, "a"), _numbered(b, "b")
    if len(one) != len(other):
        raise checks.invalid_argument("b", f"{len(other)} labels", f"as many labels as `a` has, {len(one)}")
    return _core.partition_distances(one, other)[chosen]


def _numbered(labels: ArrayLike, argument: str) -> NDArray[np.uint32]:
    allowed = "labels of shape (n,): integers, truth values or strings"
    found = arrays.as_array(labels, argument, allowed)
    # A view may have far more rows than memory.
    with room.fitting(argument, found.shape):
        if found.dtype.kind == "O" and found.ndim == 1 and all(isinstance(label, str) for label in found):
            found = found.astype(str)
        if found.ndim != 1 or (found.dtype.kind not in "iubUS" and found.size):
            raise checks.invalid_type(argument, checks.describe(found), allowed)
        if not found.size:
            raise checks.invalid_argument(argument, "no labels", allowed)
        return np.unique(found, return_inverse=True)[1].astype(np.uint32)


def adjusted_rand(one: Labels, other: Labels) -> float:
    """Return the adjusted Rand index (Hubert & Arabie 1985)."""
    return partition_distance(one, other, "ari")


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
