"""Labels of the rows in each cluster, for labels that the fit did not use."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io import arrays, room

_ALLOWED = "component numbers of shape (n,) or responsibilities of shape (n, K)"
_LABELS_ALLOWED = "a label for each row, in an array, a list or a column"
# Every cluster up to the highest number gets a list. This limit catches a column of large numbers passed by mistake.
_LARGEST_COMPONENT = 2**20
# NumPy kinds whose values are plain Python objects.
_PLAIN = "biufUSO"

Codes = NDArray[np.int64]
Counts = NDArray[np.float64]
Weights = NDArray[np.float64] | None


class LabelShare(NamedTuple):
    """The share of one label in one cluster.

    Parameters
    ----------
    label : object
        The label; None stands for missing labels.
    share : float
        Fraction of the cluster with this label, above 0 and at most 1.
    rows : float
        Number of rows of the cluster with this label: a sum of responsibilities times weights.
    """

    label: Any
    share: float
    rows: float


def label_shares(
    responsibilities: ArrayLike,
    labels: ArrayLike,
    *,
    n: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> list[list[LabelShare]]:
    r"""Rank the labels of the rows by their share in each cluster.

    The number of rows of cluster k with label l, and the share of l in the cluster, are

    .. math:: N_{kl} = \sum_{n : y_n = l} \omega_n r_{nk}, \quad N_{kl} / \sum_{l'} N_{kl'}

    Parameters
    ----------
    responsibilities : array_like of shape (n,) or (n, K), or sparse matrix of shape (n, K)
        The cluster of each row, from 0, as `Fit.predict` returns it; or responsibilities, dense or sparse, as
        `Fit.predict_proba` returns them.
    labels : array_like of shape (n,)
        A label for each row: strings, integers, or anything else that can be a key of a dict, in an array, a list, or
        a column of a table. Missing labels (None, NaN, NaT, NA) count as one label None.
    n : int, optional
        Maximum number of labels per cluster to return. Default: all.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows, at least 0, not all zero.

    Returns
    -------
    list of lists of LabelShare
        For each cluster (the K columns, or the clusters from 0 to the highest number), its labels by decreasing share;
        ties are in the order of first occurrence in `labels`. Without `n` the shares of a cluster sum to one; an empty
        cluster has no labels.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.label_shares([0, 0, 0, 1], ["dog", "cat", "cat", "dog"])[1]
    [LabelShare(label='dog', share=1.0, rows=1.0)]
    >>> responsibilities = [[1.0, 0.0], [0.25, 0.75], [0.25, 0.75]]
    >>> for cluster in sb.label_shares(responsibilities, ["cat", "dog", "cat"]):
    ...     print([(label, round(share, 2)) for label, share, rows in cluster])
    [('cat', 0.83), ('dog', 0.17)]
    [('cat', 0.5), ('dog', 0.5)]
    """
    with room.fitting("labels", getattr(labels, "shape", ())):
        names, codes = _coded(labels)
    n = None if n is None else checks.integer("n", n, minimum=1, or_else=["None"])
    weights = arrays.sample_weights(sample_weight, len(codes))
    count = _counts_of_sparse if arrays.is_sparse(responsibilities) else _counts_of_array
    return [_ranked(counts, names, n) for counts in count(responsibilities, codes, len(names), weights)]


def _coded(labels: object) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct labels in order of occurrence, and for each row the index of its label."""
    values = _values(labels)
    numbers: dict[Any, int] = {}
    try:
        codes = [numbers.setdefault(None if _is_missing(value) else value, len(numbers)) for value in values]
    except MemoryError:
        raise
    except Exception as error:  # foreign values raise what they like when they are compared
        found = f"{checks.describe(labels)} with values that cannot be keys of a dict"
        raise checks.invalid_type("labels", found, _LABELS_ALLOWED) from error
    return list(numbers), np.array(codes, dtype=np.int64)


def _values(labels: object) -> list[Any]:
    if isinstance(labels, list | tuple):
        return list(labels)  # an array would convert all labels to one type, and numbers to strings
    array = arrays.as_array(labels, "labels", _LABELS_ALLOWED)
    if array.ndim != 1:
        raise checks.invalid_argument(
            "labels", f"{checks.describe(labels)}, which is not one-dimensional", _LABELS_ALLOWED
        )
    return array.tolist() if array.dtype.kind in _PLAIN else list(array)


def _is_missing(label: object) -> bool:
    """Return whether a label is None, or a value that does not equal itself: NaN or NaT."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # comparing the NA of pandas raises
        return True


def _counts_of_array(value: object, codes: Codes, n_labels: int, weights: Weights) -> Counts:
    """Return the count of each label in each cluster, shape (K, number of labels)."""
    array = arrays.numeric(value, "responsibilities", _ALLOWED)
    if array.ndim not in (1, 2):
        raise checks.invalid_argument("responsibilities", f"of shape {array.shape}", _ALLOWED)
    _check_number(codes, len(array))
    with room.fitting("responsibilities", array.shape):
        if array.ndim == 1:
            assignments = _assignments(array)
            return _tallied(assignments, codes, weights, (int(assignments.max(initial=-1)) + 1, n_labels))
        shares = arrays.responsibilities(array, "responsibilities", len(codes))
        counts = np.zeros((shares.shape[1], n_labels))
        for k, share in enumerate(shares.T):
            counts[k] = np.bincount(codes, share if weights is None else share * weights, minlength=n_labels)
        return counts


def _check_number(codes: Codes, n_rows: int) -> None:
    """Refuse a number of labels that differs from the number of rows."""
    if len(codes) != n_rows:
        allowed = f"of {n_rows} values, one for every row of `responsibilities`"
        raise checks.invalid_argument("labels", f"of {len(codes)} values", allowed)


def _assignments(array: NDArray[Any]) -> NDArray[np.int64]:
    allowed = f"integers from 0 to {_LARGEST_COMPONENT}, of shape (n,)"
    if array.dtype.kind not in "iu":
        raise checks.invalid_type("responsibilities", checks.describe(array), allowed)
    wrong = (array < 0) | (array > _LARGEST_COMPONENT)
    if wrong.any():
        row = int(wrong.argmax())
        raise checks.invalid_argument("responsibilities", f"{array[row]} at row {row}", allowed)
    return array.astype(np.int64)


def _counts_of_sparse(value: Any, codes: Codes, n_labels: int, weights: Weights) -> Counts:
    """Return the same counts for a sparse matrix, without a dense copy."""
    if value.ndim != 2:
        raise checks.invalid_argument("responsibilities", f"of shape {value.shape}", _ALLOWED)
    _check_number(codes, value.shape[0])
    allowed = f"numbers of at least 0 of shape ({len(codes)}, K) whose rows sum to one"
    if value.dtype.kind not in "biuf":
        raise checks.invalid_type("responsibilities", f"a sparse matrix with values of dtype {value.dtype}", allowed)
    matrix = arrays.with_whole_parts(value, "responsibilities")
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    if not ((abs(sums - 1.0) <= 1e-6).all() and (matrix.data >= 0.0).all()):
        raise checks.invalid_argument("responsibilities", "a sparse matrix with other numbers", allowed)
    n_kept = matrix.indptr[1:] - matrix.indptr[:-1]
    shares = matrix.data if weights is None else matrix.data * weights.repeat(n_kept)
    return _tallied(matrix.indices.astype(np.int64), codes.repeat(n_kept), shares, (matrix.shape[1], n_labels))


def _tallied(components: NDArray[np.int64], codes: Codes, shares: Weights, shape: tuple[int, int]) -> Counts:
    cells = components * shape[1] + codes
    return np.bincount(cells, shares, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)


def _ranked(counts: Counts, names: list[Any], n: int | None) -> list[LabelShare]:
    total, n_present = float(counts.sum()), np.count_nonzero(counts)
    largest = (-counts).argsort(kind="stable")[:n_present][:n].tolist()
    return [LabelShare(names[code], float(counts[code]) / total, float(counts[code])) for code in largest]
