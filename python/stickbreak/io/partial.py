"""Partial labels: the `labels` argument of `fit`."""

import numpy as np
from numpy.typing import NDArray

from stickbreak.checks import describe, invalid_argument, invalid_type
from stickbreak.io.arrays import numeric
from stickbreak.io.room import fitting

_LARGEST = 2**63 - 1


def labels(value: object, argument: str, n_rows: int | None) -> NDArray[np.int64] | None:
    """Return the class of each row, -1 where it is unknown, as int64 of shape (n,); None without labels.

    n is unknown for data read in blocks, which the core refuses.
    """
    if value is None:
        return None
    shape = "n" if n_rows is None else str(n_rows)
    allowed = f"integers from -1, which stands for an unknown class, of shape ({shape},), or None"
    found = numeric(value, argument, allowed)
    if found.ndim != 1 or n_rows not in (None, len(found)):
        raise invalid_argument(argument, f"of shape {found.shape}", allowed)
    if found.dtype.kind not in "iu":
        hint = "write -1 for a row of unknown class"
        # Integers with missing values come as floats.
        fill = next((name for name in ("fillna", "fill_null") if hasattr(value, name)), None)
        if fill is not None and found.dtype.kind == "f" and np.isnan(found).any():
            how = f"{hint}: {argument}.{fill}(-1)"
            raise invalid_type(argument, f"{describe(value)} with missing values", allowed, how)
        raise invalid_type(argument, describe(found), allowed, hint)
    # Large unsigned integers would become negative.
    with fitting(argument, found.shape):
        wrong = (found < -1) | (found > _LARGEST)
        if wrong.any():
            row = int(wrong.argmax())
            raise invalid_argument(argument, f"{found[row]} at row {row}", allowed)
        return np.require(found, dtype=np.int64, requirements=["C", "A"])
