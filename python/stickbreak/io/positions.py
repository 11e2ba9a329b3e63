"""Positions of rows, as arguments give them."""

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.io import arrays
from stickbreak.io.room import fitting


def positions(value: object, argument: str, n: int, *, most: int | None = None) -> NDArray[np.int64]:
    """Return positions from 0 to n - 1 of at least one row, and of at most `most`."""
    limit = "" if most is None else f", {most} at most"
    allowed = f"positions of rows from 0 to {n - 1}{limit}"
    chosen = arrays.as_array(value, argument, allowed)
    if chosen.ndim != 1 or (chosen.dtype.kind not in "iu" and chosen.size):
        raise checks.invalid_type(argument, checks.describe(chosen), allowed)
    if not 0 < len(chosen) <= (len(chosen) if most is None else most):
        raise checks.invalid_argument(argument, f"{len(chosen)} rows", allowed)
    with fitting(argument, chosen.shape):
        outside = chosen[(chosen < 0) | (chosen >= n)]
        if outside.size:
            raise checks.invalid_argument(argument, f"{outside[0]}", allowed)
        return chosen.astype(np.int64)


def distinct(value: object, argument: str, n: int) -> NDArray[np.int64]:
    """As `positions`, each at most once."""
    chosen = positions(value, argument, n)
    with fitting(argument, chosen.shape):
        found, times = np.unique(chosen, return_counts=True)
    if len(found) < len(chosen):
        repeated = found[times.argmax()]
        raise checks.invalid_argument(argument, f"{repeated} more than once", "positions of rows, each at most once")
    return chosen
