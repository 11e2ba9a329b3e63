"""Room for the labels of all draws: in memory, or in a temporary file."""

import math

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks

# Larger arrays, in bytes, are stored in a memory map.
_MOST_IN_MEMORY = 2**30


def room_of_draws(chains: int, draws: int, n: int) -> NDArray[np.int32]:
    """Return an array for the labels of all draws."""
    shape = (chains, draws, n)
    try:
        if 4 * math.prod(shape) <= _MOST_IN_MEMORY:
            return np.empty(shape, dtype=np.int32)
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            return np.memmap(file, dtype=np.int32, mode="w+", shape=shape)
    except (MemoryError, OSError, OverflowError, ValueError) as error:
        found = (
            f"{draws}, for which {4 * math.prod(shape):.3g} bytes of labels do not fit in memory or on disk ({error})"
        )
        raise checks.invalid_argument("draws", found, "fewer, or thinned by `thin`; or `keep_rows`") from error
