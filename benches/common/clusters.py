"""Data sets with a known structure: downloaded ones, those of scikit-learn and generated ones.

Labels count from 1; rows with label 0 are noise. The files are looked for in `STICKBREAK_DATA`, else `../shared/data`;
sets whose file is not there are left out.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Made = tuple[Array, Labels | None]
NAMES = ("iris", "wine", "breast_cancer", "digits")
BLOBS = 1000


@dataclass(frozen=True)
class DataSet:
    """Rows with reference labels, where there are any.

    `full_rank` is false where columns depend on each other: there a density is one on a plane, and densities of
    different methods do not compare.
    """

    name: str
    group: str
    make: Callable[[], Made]
    full_rank: bool = True


def data_folder() -> Path:
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("STICKBREAK_DATA", beside))


@cache
def archive(path: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of a file, none where it is not there."""
    try:
        with np.load(data_folder() / path, allow_pickle=False) as file:
            return dict(file)
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return {}


def of_archive(path: str, rows: str, labels: str | None, first_label: int = 1) -> Made:
    arrays = archive(path)
    found = None if labels is None else arrays[labels].astype(np.int64) + 1 - first_label
    return np.ascontiguousarray(arrays[rows], float), found


def battery(group: str) -> list[DataSet]:
    path = f"clusters/{group}.npz"
    names = [name for name in archive(path) if "_labels" not in name]
    return [DataSet(name, group, partial(of_archive, path, name, f"{name}_labels0")) for name in names]


def classic_sets() -> list[DataSet]:
    sets = []
    if (data_folder() / "classic" / "faithful.csv").exists():
        sets.append(DataSet("faithful", "classic", faithful))
    for name, path, labels, first in (
        ("gvhd", "gvhd_pos/gvhd_pos.npz", None, 1),
        ("nrmm", "nrmm/toy.npz", "gt_labels", 1),
        ("asterisk", "bnpy_toy/asterisk_k8.npz", "labels", 0),
    ):
        if archive(path):
            sets.append(DataSet(name, "classic", partial(of_archive, path, "X", labels, first)))
    return sets


def faithful() -> Made:
    return np.loadtxt(data_folder() / "classic" / "faithful.csv", delimiter=",", skiprows=1), None


def of_scikit_learn(name: str) -> Made:
    rows, labels = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return rows.astype(float), labels.astype(np.int64) + 1


def standardised(make: Callable[[], Made]) -> Made:
    """Columns of mean 0 and standard deviation 1; constant columns are 0."""
    rows, labels = make()
    deviations = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(deviations > 0, deviations, 1), labels


def scikit_learn_sets() -> list[DataSet]:
    plain = [DataSet(name, "scikit-learn", partial(of_scikit_learn, name)) for name in NAMES]
    scaled = [DataSet(f"{one.name}_standardised", "scikit-learn", partial(standardised, one.make)) for one in plain]
    return plain + scaled


def plane(n_clusters: int, deviation: float) -> Made:
    """Gaussian clusters of 100 rows each, their means uniform in a square of side 100."""
    rng = np.random.default_rng(0)
    means = rng.uniform(0, 100, size=(n_clusters, 2))
    labels = np.repeat(np.arange(n_clusters), 100)
    return means[labels] + deviation * rng.normal(size=(len(labels), 2)), labels + 1


def blobs(dimension: int = 4) -> Made:
    """Five Gaussian clusters of unit covariance; their means have standard deviation 3."""
    rng = np.random.default_rng(4)
    means = 15 + 3 * rng.normal(size=(5, dimension))
    labels = rng.integers(5, size=BLOBS)
    return means[labels] + rng.normal(size=(BLOBS, dimension)), labels + 1


def blobs_with(change: Callable[[Array], Array]) -> Callable[[], Made]:
    def make() -> Made:
        rows, labels = blobs()
        return np.ascontiguousarray(change(rows)), labels

    return make


def random_flags(rows: Array) -> Array:
    """Three columns, exactly one of which is 1 in every row, at random."""
    return np.column_stack([rows, np.eye(3)[np.random.default_rng(1).integers(3, size=len(rows))]])


def compositions(rows: Array) -> Array:
    """All rows of `blobs` are positive."""
    return rows / rows.sum(axis=1, keepdims=True)


def unequal() -> Made:
    """Three clusters of 600, 300 and 100 rows that overlap."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    means = np.array([[0.0, 0.0], [3.0, 0.0], [1.5, 3.0]])
    factors = np.array([[[1.0, 0.0], [0.5, 0.8]], [[0.7, 0.0], [-0.3, 0.7]], [[0.4, 0.0], [0.0, 0.6]]])
    return means[labels] + np.einsum("nij,nj->ni", factors[labels], rng.normal(size=(len(labels), 2))), labels + 1


def generated_sets() -> list[DataSet]:
    """The nearest true mean has an adjusted Rand index of 0.95 on `plane_200` and `plane_500`, of 0.98 on `blobs`."""
    scales = np.array([1e6, 1, 1, 1])
    constant = np.array([0.0, 1.0, -2.5, 1e3])
    return [
        DataSet("unequal", "generated", unequal),
        DataSet("blobs", "generated", blobs),
        DataSet("blobs_one_column_1e6", "generated", blobs_with(lambda rows: rows * scales)),
        DataSet(
            "blobs_4_constant",
            "generated",
            blobs_with(lambda rows: np.column_stack([rows, np.tile(constant, (len(rows), 1))])),
            full_rank=False,
        ),
        DataSet(
            "blobs_copied",
            "generated",
            blobs_with(lambda rows: np.column_stack([rows, 3 * rows - 2])),
            full_rank=False,
        ),
        DataSet("blobs_one_hot", "generated", blobs_with(random_flags), full_rank=False),
        DataSet("compositions", "generated", blobs_with(compositions), full_rank=False),
        DataSet("compositions_less_one", "generated", blobs_with(lambda rows: compositions(rows)[:, :-1])),
        *(DataSet(f"blobs_{columns}d", "generated", partial(blobs, columns)) for columns in (20, 50, 100, 200)),
        DataSet("plane_200", "generated", partial(plane, 200, 0.5)),
        DataSet("plane_500", "generated", partial(plane, 500, 0.3)),
    ]


def all_sets() -> list[DataSet]:
    return battery("fcps") + battery("sipu") + scikit_learn_sets() + classic_sets() + generated_sets()
