"""The toy data of Hughes and Sudderth (2013), section 4.1: patches with an edge, and the model that the paper fits.

Patches of 5 x 5 pixels from 8 zero-mean Gaussians of equal weight, each a strong edge at one place: with s = 1
on one side of the edge and -1 on the other its covariance is s s' + 0.1 R + 0.01 I, where R[i, j] = exp(-distance of i
and j) on the same side and 0 across the edge. (The paper says "with a strong edge" and no more.) Edges are vertical,
horizontal, rising and falling, at two places each. A patch of low contrast could be of any kind, so the true model
itself does not sort them all. The prior follows the data, concentration 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
SIDE = 5
N_TRUE = 8


def edges() -> list[NDArray[np.bool_]]:
    """Which pixels are on one side: vertical, horizontal, rising and falling edges at two places each."""
    row, column = np.indices((SIDE, SIDE))
    sides = []
    for position, cut in ((column, 2), (column, 3), (row, 2), (row, 3)):
        sides.append(position < cut)
    for position in (row + column, row - column + SIDE - 1):
        sides += [position < SIDE - 1, position < SIDE]
    return [side.ravel() for side in sides]


def covariance(side: NDArray[np.bool_]) -> Array:
    """Of a patch with an edge between one side and the other."""
    signs = np.where(side, 1.0, -1.0)
    places = np.stack(np.unravel_index(np.arange(SIDE**2), (SIDE, SIDE)))
    distances = np.sqrt(((places[:, :, None] - places[:, None]) ** 2).sum(axis=0))
    neighbours = np.exp(-distances) * (side[:, None] == side)
    return np.outer(signs, signs) + 0.1 * neighbours + 0.01 * np.eye(SIDE**2)


@dataclass(frozen=True)
class Patches:
    """Rows, and what they are made of."""

    rows: Array
    labels: Labels
    covariances: Array


def generate(n: int, seed: int = 0) -> Patches:
    rng = np.random.default_rng(seed)
    covariances = np.array([covariance(side) for side in edges()])
    labels = rng.permutation(np.arange(n) % N_TRUE)
    rows = np.empty((n, SIDE**2))
    for label, factor in enumerate(np.linalg.cholesky(covariances)):
        own = np.flatnonzero(labels == label)
        rows[own] = rng.normal(size=(len(own), SIDE**2)) @ factor.T
    return Patches(rows, labels, covariances)


def model() -> sb.Mixture:
    return sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.DirichletProcess(concentration=1.0))


def best_possible(patches: Patches) -> sb.Fit:
    """From the true labels."""
    labels = patches.labels
    return sb.fit(model(), patches.rows, sb.Full(sparsity=None), n_components=N_TRUE, init=labels, progress=False)
