"""The dip statistic of Hartigan and Hartigan (1985), The Annals of Statistics 13."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def dip(values: ArrayLike) -> float:
    """Return the largest distance between the empirical distribution and the nearest one with a single mode.

    It is between 1 / (2 n) and 1/4. Equal values are taken for rounded ones: they are spread evenly up to halfway to
    their neighbours.

    Parameters
    ----------
    values : array_like of shape (n,)
        At least one finite value, in any order.

    Returns
    -------
    float
        The dip. Takes O(n log n) for the sort, then O(n) for each of a few modal intervals.
    """
    x = _spread(np.asarray(values, np.float64))
    n = len(x)
    below, above = np.arange(n, dtype=np.float64), np.arange(1.0, n + 1.0)
    # The modal interval shrinks until its middle part is closer to a distribution with one mode than the parts outside.
    # Distances are in units of 1 / (2 n).
    first, last, distance = 0, n - 1, 1.0
    while first < last:
        inside = slice(first, last + 1)
        here, low, high = x[inside], below[inside], above[inside]
        convex, concave = _hull(here, low, 1.0), _hull(here, high, -1.0)
        minorant = np.interp(here, here[convex], low[convex])
        majorant = np.interp(here, here[concave], high[concave])
        gap = majorant - minorant
        at_convex, at_concave = convex[gap[convex].argmax()], concave[gap[concave].argmax()]
        if gap[at_convex] >= gap[at_concave]:
            begin, end = at_convex, concave[np.searchsorted(concave, at_convex)]
        else:
            begin, end = convex[np.searchsorted(convex, at_concave, side="right") - 1], at_concave
        if max(gap[at_convex], gap[at_concave]) <= distance:
            break
        outside = (high - minorant)[: begin + 1].max(), (majorant - low)[end:].max()
        distance = max(distance, *outside)
        if begin == 0 and end == last - first:
            break
        first, last = first + int(begin), first + int(end)
    return float(distance / (2 * n))


def critical_dip(n: float) -> float:
    """Return the dip that 10 % of samples of n uniform values exceed.

    The formula was fitted to the points of the published table. It is within 2 % of them from n = 10 on.
    """
    return float((0.503 - 0.3 / n**0.5) / n**0.5)


def _spread(values: Array) -> Array:
    """Return sorted values, with equal ones spread."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) in (1, len(values)):
        return np.linspace(0.0, 1.0, len(values)) if len(distinct) == 1 else distinct
    halves = np.diff(distinct) / 2
    left, right = np.append(halves[:1], halves), np.append(halves, halves[-1:])
    position = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    share = (position + 0.5) / np.repeat(counts, counts)
    single = np.repeat(counts == 1, counts)
    moved = np.repeat(distinct - left, counts) + share * np.repeat(left + right, counts)
    return np.where(single, np.repeat(distinct, counts), moved)


def _hull(x: Array, y: Array, sign: float) -> NDArray[np.int64]:
    """Return the corners of the greatest convex minorant (`sign` 1) or of the least concave majorant (-1)."""
    abscissae, ordinates = x.tolist(), (sign * y).tolist()
    corners: list[int] = []
    for i, (a, b) in enumerate(zip(abscissae, ordinates, strict=True)):
        while len(corners) > 1:
            j, k = corners[-2], corners[-1]
            rise, run = ordinates[k] - ordinates[j], abscissae[k] - abscissae[j]
            if rise * (a - abscissae[j]) < (b - ordinates[j]) * run:
                break
            corners.pop()
        corners.append(i)
    return np.array(corners)
