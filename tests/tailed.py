"""Clusters with heavy tails, and rows with missing values."""

from typing import Any

import numpy as np

from oracles.models import Array


def heavy(
    seed: int, n: int = 800, d: int = 2, k: int = 10, apart: float = 9.0, tail_dof: float = 3.0
) -> tuple[Array, Any]:
    """Return t clusters whose centres are at least `apart` from each other, and their labels."""
    rng = np.random.default_rng(seed)
    centres: list[Array] = []
    while len(centres) < k:
        centre = rng.uniform(-30, 30, d)
        if all(np.linalg.norm(centre - other) > apart for other in centres):
            centres.append(centre)
    labels = rng.integers(k, size=n)
    scales = rng.chisquare(tail_dof, n) / tail_dof
    return np.array(centres)[labels] + rng.standard_normal((n, d)) / np.sqrt(scales)[:, None], labels


def with_holes(rows: Array, seed: int, share: float = 0.3) -> Array:
    """Return rows of which some values are missing, but never all of a row."""
    rng = np.random.default_rng(seed)
    missing = rng.random(rows.shape) < share
    missing[np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))] = False
    return np.where(missing, np.nan, rows)
