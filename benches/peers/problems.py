"""The data sets: rows to fit, rows held out, one prior and one start for all packages."""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from scoring import Prior

Array = NDArray[np.float64]
DATA = Path(os.environ.get("STICKBREAK_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))


class Missing(Exception):
    """Why a data set cannot be used here."""


@dataclass(frozen=True)
class Problem:
    """A data set, K, the prior and the start. The prior mean is zero, its scale a multiple of the identity."""

    name: str
    train: Array
    test: Array
    labels: NDArray[np.int64]
    n_components: int
    scale: float
    # None: the means are zero.
    mean_precision: float | None = 1e-4
    concentration: float = 1.0

    @property
    def dimension(self) -> int:
        return self.train.shape[1]

    @property
    def prior(self) -> Prior:
        assert self.mean_precision is not None, "the scorer knows no zero means"
        mean, scale = np.zeros(self.dimension), self.scale * np.eye(self.dimension)
        return Prior(self.concentration, mean, self.mean_precision, self.dimension + 2.0, scale)

    @property
    def numbers(self) -> dict[str, float | None]:
        """What a package needs to know beside the rows and labels."""
        return {
            "n_components": self.n_components,
            "concentration": self.concentration,
            "mean_precision": self.mean_precision,
            "dof": self.dimension + 2.0,
            "scale": self.scale,
        }

    def write(self, folder: Path) -> None:
        folder.mkdir()
        np.save(folder / "train.npy", self.train)
        np.save(folder / "labels.npy", self.labels)
        (folder / "problem.json").write_text(json.dumps(self.numbers))


def split(rows: Array) -> tuple[Array, Array]:
    """Nine tenths to fit, one tenth held out."""
    order = np.random.default_rng(0).permutation(len(rows))
    held_out = len(rows) // 10
    return rows[order[held_out:]], rows[order[:held_out]]


def start(rows: Array, n_components: int) -> NDArray[np.int64]:
    """A few steps of k-means, its clusters in decreasing size: the best order of the sticks."""
    labels = KMeans(n_components, n_init=1, max_iter=5, random_state=0).fit_predict(rows)
    sizes = np.bincount(labels, minlength=n_components)
    if not sizes.all():
        raise RuntimeError("a cluster of the start is empty; bnpy would leave its component out")
    return np.argsort(np.argsort(-sizes, kind="stable")).astype(np.int64)[labels]


def mixture(n: int, dimension: int, n_true: int) -> Array:
    """Rows of a mixture of Gaussians with full covariances, some of which overlap."""
    rng = np.random.default_rng(0)
    z = rng.choice(n_true, size=n, p=rng.dirichlet(np.full(n_true, 5.0)))
    centres = rng.normal(scale=1.5, size=(n_true, dimension))
    mixing = rng.normal(size=(n_true, dimension, dimension)) / np.sqrt(dimension)
    noise = rng.normal(size=(n, dimension))
    rows = np.empty((n, dimension))
    for k in range(n_true):
        rows[z == k] = centres[k] + noise[z == k] @ mixing[k]
    return rows


def generated(name: str, n: int, dimension: int, n_true: int, n_components: int) -> Problem:
    train, test = split(mixture(n, dimension, n_true))
    centre = train.mean(axis=0)
    labels = start(train - centre, n_components)
    return Problem(name, train - centre, test - centre, labels, n_components, scale=1.0)


def mnist() -> Problem:
    """Images of digits, pixels from 0 to 1, on the first 50 principal components of the rows to fit, not whitened."""
    path = DATA / "mnist" / "train-images-idx3-ubyte.gz"
    if not path.is_file():
        raise Missing("no mnist/train-images-idx3-ubyte.gz: set STICKBREAK_DATA to the folder of the real data")
    with gzip.open(path) as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    train, test = split(images / 255)
    components = PCA(50, svd_solver="covariance_eigh").fit(train)
    rows = components.transform(train)
    return Problem("mnist", rows, components.transform(test), start(rows, 100), 100, scale=0.1)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "mnist": mnist,
    "generated": lambda: generated("generated", 100_000, 16, 20, 40),
    "quick": lambda: generated("quick", 4_000, 4, 5, 10),
}
