"""Components joined into clusters by their overlap, against the plain sums over dense responsibilities."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb

Array = NDArray[np.float64]
MODEL = sb.Mixture(likelihood=sb.Gaussian())


def entropy(table: Array, masses: Array) -> float:
    logs = np.log(table, out=np.zeros_like(table), where=table > 0)
    return float(-(masses[:, None] * table * logs).sum())


def overlap(table: Array, masses: Array, a: int, b: int) -> tuple[float, float]:
    """The gap of two columns, and its share of the largest there could be."""
    p, q = table[:, [a]], table[:, [b]]
    gap = entropy(p, masses) + entropy(q, masses) - entropy(p + q, masses)
    x, y = float(masses @ p[:, 0]), float(masses @ q[:, 0])
    return gap, gap / (x * np.log1p(y / x) + y * np.log1p(x / y))


def overlapping(seed: int, n: int, k: int) -> tuple[sb.Fit, Array, Array]:
    """A dense fit of clusters that overlap, its rows and their weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=1.5, size=(k, 2))[rng.integers(k, size=n)] + rng.normal(size=(n, 2))
    algorithm = sb.Full(sparsity=None, max_passes=3)
    fit = sb.fit(MODEL, X, algorithm, n_components=k, init="random", seed=seed, progress=False)
    return fit, X, rng.choice([0.5, 1.0, 3.0], size=n)


SIZES = (st.integers(0, 2**32 - 1), st.integers(8, 40), st.integers(1, 7))


@given(*SIZES)
def test_joins_are_those_of_the_dense_table(seed: int, n: int, k: int) -> None:
    fit, X, masses = overlapping(seed, n, k)
    columns = fit.predict_proba(X)
    clusters = fit.combine(X, sample_weight=masses)
    assert clusters.entropy == pytest.approx(entropy(columns, masses), abs=1e-10)
    counts = masses @ columns
    alive = [int(name) for name in np.flatnonzero(counts >= min(0.5, counts.max()))]
    assert len(clusters.joins) == len(alive) - 1
    for join in clusters.joins:
        found = {(a, b): overlap(columns, masses, a, b) for a in alive for b in alive if a < b}
        gap, share = found[join.clusters]
        assert share >= max(value for _, value in found.values()) - 1e-12
        assert (join.gap, join.overlap) == (pytest.approx(gap, abs=1e-10), pytest.approx(share, abs=1e-10))
        assert join.gap >= 0.0  # a join never adds entropy
        one, other = join.clusters
        columns[:, one] += columns[:, other]
        columns[:, other] = 0.0
        alive.remove(other)


@given(*SIZES, st.data())
def test_clusters_hold_whole_components_the_largest_first(seed: int, n: int, k: int, data: st.DataObject) -> None:
    fit, X, _ = overlapping(seed, n, k)
    table = fit.predict_proba(X)
    wanted = data.draw(st.integers(1, len(fit.combine(X).joins) + 1))
    clusters = fit.combine(X, n_clusters=wanted)
    assert clusters.n_clusters == wanted
    assert set(clusters.groups.tolist()) - {-1} == set(range(wanted))
    proba = clusters.predict_proba(X)
    for cluster in range(wanted):
        np.testing.assert_allclose(proba[:, cluster], table[:, clusters.groups == cluster].sum(axis=1), atol=1e-12)
    assert (np.diff(proba.sum(axis=0)) <= 1e-9).all()
    np.testing.assert_array_equal(clusters.predict(X), proba.argmax(axis=1))


def test_clusters_that_are_no_gaussians_are_put_together() -> None:
    X, labels = make_moons(2000, noise=0.05, random_state=0)
    fit = sb.fit(MODEL, X, progress=False)
    assert adjusted_rand_score(labels, fit.predict(X)) < 0.7
    clusters = fit.combine(X)
    assert adjusted_rand_score(labels, clusters.predict(X)) == 1.0
    # The last join is of what hardly any row shares.
    assert 10 * clusters.joins[-1].overlap < clusters.joins[-2].overlap
    assert repr(clusters).startswith(f"<2 clusters of {fit.n_occupied} components")


def test_clear_clusters_stay_apart() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, size=(300, 3)) for centre in (0.0, 10.0, 20.0)])
    fit = sb.fit(MODEL, X, progress=False)
    clusters = fit.combine(X)
    assert clusters.n_clusters == fit.n_occupied == 3
    np.testing.assert_array_equal(np.sort(clusters.groups), [0, 1, 2])


# The overlap rises where two components that are joined overlap a third one.
@example(12, 40, 5)
@given(*SIZES)
def test_levels_are_a_linkage_of_the_joins(seed: int, n: int, k: int) -> None:
    fit, X, masses = overlapping(seed, n, k)
    clusters = fit.combine(X, sample_weight=masses)
    levels, leaves = clusters.levels, np.flatnonzero(clusters.groups >= 0)
    assert levels.shape == (len(clusters.joins), 4)
    if not len(levels):
        return
    assert hierarchy.is_valid_linkage(levels)
    assert hierarchy.is_monotonic(levels)
    assert ((levels[:, 2] >= 0) & (levels[:, 2] <= 12)).all()
    least = np.minimum.accumulate([max(join.overlap, 1e-12) for join in clusters.joins])
    np.testing.assert_allclose(levels[:, 2], -np.log10(least), atol=1e-12)
    for wanted in range(1, len(leaves) + 1):
        cut = clusters.cut(wanted)
        np.testing.assert_array_equal(cut.groups, fit.combine(X, n_clusters=wanted, sample_weight=masses).groups)
        assert (cut.n_clusters, cut.joins, cut.entropy) == (wanted, clusters.joins, clusters.entropy)


def test_cuts_need_a_number_from_one_to_that_of_components() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, size=(50, 2)) for centre in (0.0, 10.0, 20.0)])
    clusters = sb.fit(MODEL, X, init=np.repeat([0, 1, 2], 50), progress=False).combine(X)
    np.testing.assert_array_equal(np.sort(clusters.cut(3).groups), [0, 1, 2])
    assert set(clusters.cut(1).predict(X)) == {0}
    for number in (0, 4):
        with pytest.raises(sb.InvalidArgument, match="n_clusters"):
            clusters.cut(number)
    with pytest.raises(sb.InvalidType, match="n_clusters"):
        clusters.cut(2.0)  # type: ignore[arg-type]


def test_components_without_rows_are_in_no_cluster() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(n_components=4, concentration=0.01))
    fit = sb.fit(model, X, sb.Full(max_passes=200), progress=False)
    clusters = fit.combine(X)
    np.testing.assert_array_equal(clusters.groups < 0, fit.counts < 0.5)


def test_weights_count_as_repeated_rows() -> None:
    X, _ = make_moons(300, noise=0.1, random_state=1)
    fit = sb.fit(MODEL, X, sb.Full(), n_components=4, progress=False)
    weights = 1 + np.arange(len(X)) % 3
    weighted = fit.combine(X, sample_weight=weights)
    repeated = fit.combine(np.repeat(X, weights, axis=0))
    assert weighted.entropy == pytest.approx(repeated.entropy, rel=1e-10)
    np.testing.assert_allclose(
        [join.gap for join in weighted.joins], [join.gap for join in repeated.joins], rtol=1e-10, atol=1e-10
    )
    np.testing.assert_array_equal(weighted.groups, repeated.groups)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"n_clusters": 0}, sb.InvalidArgument, "n_clusters"),
        ({"n_clusters": 4}, sb.InvalidArgument, "from 1 to 3, the number of components with rows"),
        ({"n_clusters": 2.5}, sb.InvalidType, "n_clusters"),
        ({"sample_weight": [1.0]}, sb.InvalidArgument, "sample_weight"),
        ({"threads": 0}, sb.InvalidArgument, "threads"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, size=(50, 2)) for centre in (0.0, 10.0, 20.0)])
    fit = sb.fit(MODEL, X, init=np.repeat([0, 1, 2], 50), progress=False)
    with pytest.raises(error, match=text):
        fit.combine(X, **arguments)


def test_rows_are_needed() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    fit = sb.fit(MODEL, X, progress=False)
    with pytest.raises(sb.InvalidArgument, match="at least one row"):
        fit.combine(X[:0])
    assert fit.combine(X[:1]).n_clusters == 1
