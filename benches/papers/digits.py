"""The training images of MNIST as the papers fit them, and the model.

Pixels / 255, centred, on the first 50 principal components, not whitened, float32. The files are looked for in `mnist/`
of `STICKBREAK_DATA`, else of `../shared/data`.
"""

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb

SIDE = 28
DIMENSION = 50
N_DIGITS = 10
SCALE = 0.1

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Digits:
    """Rows of shape (n, 50), their digits, and the mean image and principal components that rows are made with."""

    rows: NDArray[np.float32]
    labels: NDArray[np.int64]
    centre: Array
    components: Array

    def images(self, points: Array) -> Array:
        """What points of the fifty dimensions look like, shape (points, 28, 28)."""
        return (points @ self.components.T + self.centre).reshape(-1, SIDE, SIDE)


def load() -> Digits:
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("STICKBREAK_DATA", beside)) / "mnist"
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, SIDE**2)
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)
    return project(pixels, labels)


def project(pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> Digits:
    images = pixels / 255
    centre = images.mean(axis=0)
    images -= centre
    # Eigenvalues come in rising order.
    components = np.linalg.eigh(images.T @ images)[1][:, : -DIMENSION - 1 : -1]
    return Digits((images @ components).astype(np.float32), labels, centre, components)


def model(scale: float = SCALE) -> sb.Mixture:
    likelihood = sb.Gaussian(
        mean=np.zeros(DIMENSION), mean_precision=1e-4, dof=DIMENSION + 2, scale=scale * np.eye(DIMENSION)
    )
    return sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(concentration=1.0))
