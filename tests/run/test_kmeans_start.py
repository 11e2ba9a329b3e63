"""The k-means++ start finds as many clusters as scikit-learn's k-means, and does not depend on units or threads."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.cluster import KMeans

import stickbreak as sb


def plane(n_clusters: int, rows_each: int, seed: int) -> np.ndarray:
    """Round clusters, their means uniform in a square."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(0, 10 * np.sqrt(n_clusters), size=(n_clusters, 2))
    return np.repeat(means, rows_each, axis=0) + rng.normal(size=(n_clusters * rows_each, 2))


def columns(n_clusters: int, dimension: int, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    means = 3 * rng.normal(size=(n_clusters, dimension))
    return means[rng.integers(n_clusters, size=n)] + rng.normal(size=(n, dimension))


def objective(rows: np.ndarray, n_components: int, init: object, seed: int = 0) -> float:
    model = sb.Mixture(likelihood=sb.Gaussian())
    options = {"n_components": n_components, "init": init, "seed": seed, "progress": False}
    return sb.fit(model, rows, sb.Memoized(max_passes=20), **options).objective


@pytest.mark.parametrize(
    ("make", "n_components"),
    [(lambda: plane(40, 50, 1), 40), (lambda: plane(80, 40, 2), 80), (lambda: columns(40, 16, 3000, 3), 40)],
    ids=["plane_40", "plane_80", "columns_16"],
)
@pytest.mark.one_in(3)
def test_no_lower_than_from_kmeans(make: Callable[[], np.ndarray], n_components: int) -> None:
    rows = make()
    ours = [objective(rows, n_components, "kmeans++", seed) for seed in range(4)]
    labels = [KMeans(n_components, n_init=1, random_state=seed).fit(rows).labels_ for seed in range(4)]
    theirs = [objective(rows, n_components, start) for start in labels]
    assert np.mean(ours) >= np.mean(theirs)


def test_swaps_find_small_clusters_beside_large_ones() -> None:
    """Three large clusters on one side, five small ones on the other: each has a component of its own."""
    rng = np.random.default_rng(4)
    means = np.array([[0, 0], [0, 8], [8, 0], [60, 0], [60, 10], [60, 20], [70, 0], [70, 20]], float)
    sizes = [1500, 1500, 1500, 60, 60, 60, 60, 60]
    rows = np.repeat(means, sizes, axis=0) + rng.normal(size=(sum(sizes), 2))
    model, start = sb.Mixture(likelihood=sb.Gaussian()), sb.Full(max_passes=0)
    for seed in range(5):
        fit = sb.fit(model, rows, start, n_components=8, init="kmeans++", seed=seed, progress=False)
        assert fit.counts.min() > 40


@pytest.mark.parametrize("n_components", [1, 2, 3, 7, 12])
def test_more_components_than_distinct_rows(n_components: int) -> None:
    rows = np.repeat(np.arange(10.0).reshape(5, 2) ** 2, 3, axis=0)
    fit = sb.fit(
        sb.Mixture(likelihood=sb.Gaussian(dof=4.0, scale=np.eye(2), mean=[0.0, 0.0])),
        rows,
        sb.Full(max_passes=0),
        n_components=n_components,
        init="kmeans++",
        progress=False,
    )
    assert fit.n_components == n_components
    np.testing.assert_allclose(fit.counts.sum(), len(rows))


@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.DiagonalGaussian(), sb.ZeroMeanGaussian()])
def test_threads_do_not_change_the_start(likelihood: object) -> None:
    rows = plane(30, 100, 5)
    model, start = sb.Mixture(likelihood=likelihood), sb.Full(max_passes=0)
    options = {"n_components": 30, "init": "kmeans++", "progress": False}
    counts = [sb.fit(model, rows, start, threads=threads, **options).counts.tobytes() for threads in (1, 2, 3)]
    assert counts[0] == counts[1] == counts[2]
