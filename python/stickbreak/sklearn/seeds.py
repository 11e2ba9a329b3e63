"""Converts scikit-learn's random states to the seed of a fit."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from stickbreak import checks


def seed_of(random_state: object) -> int:
    """Return the seed of a fit: an integer is used directly, other states draw one."""
    if isinstance(random_state, Integral):
        return checks.integer("random_state", random_state, minimum=0, maximum=2**64 - 1)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
