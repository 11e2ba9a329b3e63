"""Where `Fit.combine` stops: shapes become whole, and clusters with a valley between them stay apart."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, make_circles
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from stickbreak.result import stopping

Array = NDArray[np.float64]
MODEL = sb.Mixture(likelihood=sb.Gaussian())


def side(values: Array, weight: float = 1.0) -> stopping.Side:
    return stopping.Side(np.sort(values), np.full(len(values), weight))


def ari(fit: sb.Fit, rows: Array, labels: Array) -> float:
    return float(adjusted_rand_score(labels, fit.combine(rows).predict(rows)))


@pytest.mark.parametrize("distance", [0.0, 1.5, 3.0, 4.0, 6.0])
def test_valleys_are_those_of_the_density(distance: float) -> None:
    """Of two normal densities; the kernel makes the valley a little shallower."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0.0, distance / 2, 100)
    density = np.exp(-0.5 * grid**2) + np.exp(-0.5 * (grid - distance) ** 2)
    found = stopping.valley(side(rng.normal(size=20_000)), side(distance + rng.normal(size=20_000)))
    assert found == pytest.approx(density[-1] / density.max(), abs=0.05)


def test_weights_of_a_side_count_as_repeated_values() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=100), 3 + rng.normal(size=60)
    weighted = stopping.valley(side(one, 3.0), side(other, 2.0))
    assert weighted == pytest.approx(stopping.valley(side(np.repeat(one, 3)), side(np.repeat(other, 2))), rel=1e-10)


def test_few_or_equal_rows_have_no_valley() -> None:
    assert stopping.valley(side(np.array([0.0, 1.0])), side(np.arange(9.0) + 50)) == 1.0
    assert stopping.valley(side(np.zeros(50)), side(np.ones(50))) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_separated_squares_stay_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), 300)
    rows = rng.uniform(-1, 1, size=(1200, 2))
    rows[:, 0] += 3.2 * labels
    assert ari(sb.fit(MODEL, rows, seed=seed, progress=False), rows, labels) == 1.0


@pytest.mark.parametrize("distance", [3.0, 4.0])
def test_round_clusters_that_overlap_stay_apart(distance: float) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 600)
    rows = rng.normal(size=(1200, 2)) + distance * labels[:, None] * [1, 0]
    fit = sb.fit(MODEL, rows, progress=False)
    assert fit.combine(rows).n_clusters == fit.n_occupied == 2


@pytest.mark.parametrize(("noise", "factor"), [(0.01, 0.6), (0.1, 0.4)])
def test_rings_become_whole(noise: float, factor: float) -> None:
    rows, labels = make_circles(1000, noise=noise, factor=factor, random_state=0)
    assert ari(sb.fit(MODEL, rows, progress=False), rows, labels) > 0.98


def test_breast_cancer_on_five_components() -> None:
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = PCA(5, random_state=0).fit_transform((rows - rows.mean(axis=0)) / rows.std(axis=0))
    assert ari(sb.fit(MODEL, rows, progress=False), rows, labels) > 0.6


def test_no_join_is_made_over_a_valley() -> None:
    """Whatever else speaks for the join."""
    n = 6
    found = stopping.Evidence(-5.0, np.full(n, 0.3), np.ones(n), np.zeros(n), np.array([1.0, 1.0, 0.2, 0.09, 1.0, 1.0]))
    assert stopping.n_joins(found) == 3
    assert stopping.n_joins(stopping.Evidence(5.0, *(np.array([0.0]) for _ in range(4)))) == 0


def test_units_do_not_change_the_joins() -> None:
    rows, _ = make_circles(300, noise=0.05, factor=0.5, random_state=1)
    fit = sb.fit(MODEL, rows, progress=False)
    scaled = sb.fit(MODEL, rows * [1e6, 1e-3] + [1e3, 0], progress=False)
    np.testing.assert_array_equal(fit.combine(rows).groups, scaled.combine(rows * [1e6, 1e-3] + [1e3, 0]).groups)


@pytest.mark.parametrize(
    "likelihood", [sb.DiagonalGaussian, sb.SphericalGaussian, lambda: sb.KnownCovarianceGaussian(covariance=np.eye(2))]
)
def test_all_gaussians_with_means_have_valleys(likelihood: Callable[[], sb.Gaussian]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 2)) + np.repeat([[0.0, 0.0], [4.5, 0.0]], 300, axis=0)
    clusters = sb.fit(sb.Mixture(likelihood=likelihood()), rows, progress=False).combine(rows)
    assert clusters.n_clusters == 2


def test_missing_values_are_left_out_of_the_projections() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 2)) + np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]], 300, axis=0)
    rows[::7, 1] = np.nan
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    fit = sb.fit(model, rows, missing="marginalize", progress=False)
    assert fit.combine(rows).n_clusters == 3
    rows[:, 1] = np.nan
    assert fit.combine(rows).n_clusters >= 1


def test_counts_are_joined_by_their_overlap() -> None:
    rng = np.random.default_rng(0)
    rows = rng.poisson([[2.0, 30.0], [30.0, 2.0], [33.0, 3.0]], size=(200, 3, 2)).reshape(-1, 2)
    fit = sb.fit(sb.Mixture(likelihood=sb.Poisson()), rows, progress=False)
    clusters = fit.combine(rows)
    groups = fit._state.joins(fit._rows(rows), None, None, None)[2]
    np.testing.assert_array_equal(clusters.groups, groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("battery", "name", "least"),
    [
        ("fcps", "hepta", 1.0),
        ("fcps", "tetra", 1.0),
        ("fcps", "atom", 0.95),
        ("fcps", "engytime", 0.85),
        ("sipu", "r15", 0.99),
        ("sipu", "d31", 0.94),
        ("sipu", "a1", 0.96),
        ("sipu", "spiral", 1.0),
        ("sipu", "s1", 0.98),
        ("graves", "parabolic", 0.9),
        ("other", "square", 0.99),
    ],
)
def test_batteries(data_directory: Path, battery: str, name: str, least: float) -> None:
    with np.load(data_directory / "clusters" / f"{battery}.npz", allow_pickle=False) as file:
        rows, labels = file[name].astype(float), file[f"{name}_labels0"]
    assert ari(sb.fit(MODEL, rows, seed=0, progress=False), rows, labels) >= least
