"""Memory that is asked for before it is filled, and errors that name the argument for which there is not enough."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from stickbreak.checks import invalid_argument

_ALLOWED = "few enough values that a copy fits in memory"


@contextmanager
def fitting(argument: str, shape: tuple[int, ...]) -> Iterator[None]:
    """Raise InvalidArgument, with the shape of an argument, where there is not enough memory.

    A view may have far more values than memory: all of its rows may be one.
    """
    try:
        yield
    except MemoryError as error:
        raise invalid_argument(argument, f"of shape {shape}, for which there is not enough memory", _ALLOWED) from error


def check_room(argument: str, shape: tuple[int, ...], n_numbers: int) -> None:
    """Refuse an argument for which this many numbers cannot be allocated at once; nothing is kept.

    The core cannot report a refused allocation of a parameter.
    """
    with fitting(argument, shape):
        try:
            np.empty(n_numbers, dtype=np.float64)
        except ValueError as error:  # more bytes than an address has
            raise MemoryError from error
