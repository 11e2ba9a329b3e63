"""The cases of `scripts/fuzz.py`, one file for each kind.

A case is a number. It depends on the seed and that number only, so that any of them can be run again alone.
"""

from __future__ import annotations

import numpy as np


class Failure(Exception):
    """A case ended neither well nor in an error of stickbreak."""


def generator(seed: int, kind: int, number: int) -> np.random.Generator:
    """Return the source of all choices of one case."""
    return np.random.default_rng([seed, kind, number])
