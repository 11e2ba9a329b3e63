"""Moves find the number of clusters: from one component, and from far too many."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from cases import separated_mixture
from growing import MOVES, assert_sound

N, TRUE = 1000, 4


def real(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return separated_mixture(seed, n=N, dimension=3, n_clusters=TRUE)


def around_zero(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four planes of eight dimensions."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(TRUE, size=N)
    scales = np.full((TRUE, 8), 0.1)
    for label in range(TRUE):
        scales[label, 2 * label : 2 * label + 2] = 3.0
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    return (rng.standard_normal((N, 8)) * scales[labels]) @ rotation, labels


def counts(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four profiles of 24 words, each mostly of its own six."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(TRUE, size=N)
    rates = np.full((TRUE, 24), 0.5)
    for label in range(TRUE):
        rates[label, 6 * label : 6 * label + 6] = 8.0
    return rng.poisson(rates[labels]).astype(float), labels


def bits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = counts(seed)
    return (rows > 2).astype(float), labels


MODELS: dict[str, Any] = {
    "gaussian": (real, sb.Gaussian()),
    "diagonal": (real, sb.DiagonalGaussian()),
    "spherical": (real, sb.SphericalGaussian()),
    "known": (real, sb.KnownCovarianceGaussian(covariance=np.eye(3), mean_precision=0.01)),
    "zero_mean": (around_zero, sb.ZeroMeanGaussian()),
    "multinomial": (counts, sb.Multinomial()),
    "poisson": (counts, sb.Poisson()),
    "bernoulli": (bits, sb.Bernoulli()),
}
every_model = pytest.mark.parametrize("name", MODELS)


def grown(name: str, moves: Any, seed: int, **options: Any) -> tuple[sb.Fit, float]:
    """The fit, and its agreement with the truth."""
    make, likelihood = MODELS[name]
    rows, labels = make(seed)
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess())
    algorithm = sb.Memoized(batches=4, max_passes=40, moves=moves)
    fit = sb.fit(model, rows, algorithm, seed=seed, progress=False, **options)
    assert_sound(fit, rows, N)
    return fit, adjusted_rand_score(labels, fit.predict(rows))


@every_model
@pytest.mark.parametrize("moves", ["births", "adopted", "splits"])
@pytest.mark.one_in(3)
def test_from_one_component(name: str, moves: str) -> None:
    """Clusters that share no row but in ten thousands are found exactly; clusters of unequal shape may be cut further
    by likelihoods that cannot have their shape, but never joined.
    """
    for seed in range(3):
        fit, agreement = grown(name, MOVES[moves], seed)
        if name in ("diagonal", "spherical", "known"):
            assert fit.n_occupied >= TRUE
        else:
            assert fit.n_components == TRUE
            assert agreement > 0.99


@pytest.mark.slow
def test_every_seed_finds_four_gaussians() -> None:
    """At most one of 40 seeds may fail: were one in ten to fail, two or more would do so in 92 % of such tests."""
    failures = [seed for seed in range(40) if grown("gaussian", MOVES["births"], seed)[0].n_components != TRUE]
    assert len(failures) <= 1


@every_model
def test_from_far_too_many(name: str) -> None:
    """A k-means++ start with 25 components: merges and deletes leave the true ones, and perhaps some with a share of a
    row so small that the bound does not gain by their end.
    """
    fit, agreement = grown(name, (sb.Merge(), sb.Delete()), 1, n_components=25)
    assert fit.n_components < 12
    if name in ("diagonal", "spherical", "known"):
        assert fit.n_occupied >= TRUE
    else:
        assert fit.n_occupied == TRUE
        assert agreement > 0.99


@pytest.mark.parametrize(("n_columns", "distance"), [(2, 8.0), (5, 9.0), (10, 9.0)])
@pytest.mark.slow
def test_a_small_cluster_beside_a_large_one(n_columns: int, distance: float) -> None:
    """Parts of the large cluster are merged with each other, not with the small cluster."""
    labels = np.repeat([0, 1], [7900, 100])
    for seed in range(3):
        rows = np.random.default_rng(seed).normal(size=(8000, n_columns))
        rows[labels == 1] += distance / np.sqrt(n_columns)
        model = sb.Mixture(likelihood=sb.Gaussian())
        fit = sb.fit(model, rows, progress=False)
        assert fit.n_occupied == 2
        assert fit.elbo == pytest.approx(sb.fit(model, rows, init=labels, progress=False).elbo, abs=1e-6 * N)


@pytest.mark.parametrize("most", [4, 10, 50, 99, 100])
@pytest.mark.parametrize("adoption", ["split", "pass"])
def test_parts_of_few_rows(most: int, adoption: str) -> None:
    rows, _ = real(0)
    birth = sb.Birth(adoption=adoption, max_subsample=most)
    fit = sb.fit(
        sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Memoized(moves=(birth, sb.Merge(), sb.Delete())), progress=False
    )
    assert_sound(fit, rows, N)
    assert most < 50 or fit.n_occupied == TRUE


def test_clusters_of_one_row() -> None:
    """Three rows far apart under a known covariance: the bound is that of three components."""
    rows = np.random.default_rng(0).normal([[0, 0], [0, 1000], [1000, 0]])
    model = sb.Mixture(likelihood=sb.KnownCovarianceGaussian(np.eye(2)))
    fit, told = (sb.fit(model, rows, init=init, progress=False) for init in ("kmeans++", [0, 1, 2]))
    assert fit.n_occupied == 3
    assert fit.elbo == pytest.approx(told.elbo)


def test_splits_have_their_turn_beside_births() -> None:
    """Splits try targets where births failed."""
    rows = np.random.default_rng(0).normal(size=(500, 2))
    algorithm = sb.Memoized(moves=(sb.Birth(), sb.Split(), sb.Merge(), sb.Delete()))
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, algorithm, progress=False)
    proposed = {report.kind: report.proposed for report in sb.result.history.moves_of(fit.history)}
    assert proposed["birth"] > 0
    assert proposed["split"] > 0


@pytest.mark.parametrize("moves", ["births", "splits"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.one_in(6)
def test_two_clusters_that_overlap(moves: str, seed: int) -> None:
    """Three standard deviations apart: every cut with whole rows loses more than it gains."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=20_000)
    rows = rng.normal(size=(20_000, 2))
    rows[:, 0] += 3 * labels
    model = sb.Mixture(likelihood=sb.Gaussian())
    passes = {"max_passes": 200, "tol": 1e-7}
    found = sb.fit(model, rows, sb.Memoized(moves=MOVES[moves], **passes), seed=seed, progress=False)
    assert_sound(found, rows, len(rows))
    told = sb.fit(model, rows, sb.Memoized(**passes), init=labels, seed=seed, progress=False)
    assert found.n_components == 2
    assert found.elbo == pytest.approx(told.elbo, abs=1.0)


# The tenth component of seed 2 hides in the others, where no move that is tried removes it.
TEN_FOR_NINE = pytest.param(
    2, marks=pytest.mark.xfail(reason="ends with ten components, 17 nats below nine", strict=True)
)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, TEN_FOR_NINE])
def test_nine_clusters_that_overlap(seed: int) -> None:
    """A grid of three by three, neighbours 2.5 standard deviations apart: from one component nearly all is found that
    there is to gain, and more than from far too many.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(9, size=20_000)
    rows = rng.normal(size=(20_000, 2)) + 2.5 * np.stack(np.divmod(labels, 3), axis=1)
    model = sb.Mixture(likelihood=sb.DiagonalGaussian(prior="rule"))
    grown, pruned = (sb.fit(model, rows, n_components=k, seed=seed, progress=False) for k in (1, 20))
    one, told = (sb.fit(model, rows, sb.Memoized(), init=init, progress=False) for init in (0 * labels, labels))
    assert_sound(grown, rows, len(rows))
    assert grown.elbo >= pruned.elbo
    assert grown.elbo - one.elbo > 0.98 * (told.elbo - one.elbo) > 2000


@pytest.mark.slow
def test_clusters_that_hide_in_each_other() -> None:
    """On a grid two standard deviations wide ten parts at a time gain little more than nothing: two halves lead on.
    From one component the bound ends above that of the true clusters.
    """
    rng = np.random.default_rng(0)
    grid = 2.0 * np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3)
    labels = rng.integers(len(grid), size=20_000)
    rows = grid[labels] + rng.standard_normal((20_000, 3))
    model = sb.Mixture(likelihood=sb.Gaussian(prior="rule"), process=sb.DirichletProcess())
    grown = sb.fit(model, rows, sb.Memoized(max_passes=30, moves=MOVES["births"]), progress=False)
    true = sb.fit(model, rows, sb.Memoized(max_passes=15), init=labels, progress=False)
    assert grown.elbo > true.elbo


def test_clusters_that_flags_cut_in_two_are_joined() -> None:
    """Three one-hot flags that say nothing about five clusters. This start finds ten halves of them, and under the base
    measure of halves no merge alone is a gain; all together are one under the base measure that they lead to.
    """
    rng = np.random.default_rng(4)
    means, labels = 15 + 3 * rng.normal(size=(5, 4)), rng.integers(5, size=1000)
    flags = np.eye(3)[np.random.default_rng(1).integers(3, size=1000)]
    rows = np.column_stack([means[labels] + rng.normal(size=(1000, 4)), flags])
    # The resolution that is found for flags cuts nothing.
    cells = sb.Gaussian(resolution=[0.0] * 4 + [1.0] * 3)
    with pytest.warns(sb.SupportWarning):
        fit = sb.fit(sb.Mixture(cells), rows, seed=0, progress=False)
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.95
    numbers = [record.n_components for record in fit.history]
    together = [index for index in range(1, len(numbers)) if numbers[index] <= numbers[index - 1] - 4]
    assert together, numbers
    for index in together:
        before, after = fit.history[index - 1 : index + 1]
        assert after.objective - before.objective >= sum(moves.gain for moves in after.moves) > 0


@pytest.mark.parametrize("n", [50, 100])
def test_two_clusters_of_few_rows_in_many_columns(n: int) -> None:
    """Under a base measure as wide as both no part of the one component is a gain by itself."""
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], n)
    rows = rng.normal(scale=5, size=(2, 20))[labels] + rng.normal(size=(2 * n, 20))
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, progress=False)
    assert adjusted_rand_score(labels, fit.predict(rows)) == 1.0


def test_clusters_in_two_groups_far_apart() -> None:
    """The estimate of two wide components is sure that all are like these two."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 500)
    corners = np.array([(x + far, y) for far in (0, 200) for x in (0, 6) for y in (0, 6)])
    rows = corners[labels] + rng.normal(size=(4000, 2))
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, progress=False)
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.98


def test_labels_are_not_joined_before_the_base_measure_knows_of_them() -> None:
    """The rule hides clusters of fewer rows than the variance of the data over their own."""
    labels = np.repeat(np.arange(8), 50)
    rows = (12.0 * labels + np.random.default_rng(0).normal(size=400))[:, None]
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, init=labels, progress=False)
    assert adjusted_rand_score(labels, fit.predict(rows)) == 1.0


@pytest.mark.parametrize("likelihood", [sb.Gaussian, sb.ZeroMeanGaussian, sb.DiagonalGaussian, sb.SphericalGaussian])
def test_one_row_unlike_all_others(likelihood: Any) -> None:
    rows = np.random.default_rng(0).standard_normal((4000, 2))
    rows[17] = 1e5
    fit = sb.fit(sb.Mixture(likelihood=likelihood(), process=sb.DirichletProcess()), rows, progress=False)
    assert_sound(fit, rows, 4000)
    np.testing.assert_array_equal(np.bincount(fit.predict(rows)), [3999, 1])


@pytest.mark.parametrize("sparsity", ["auto", None])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.slow
def test_births_tell_overlapping_clusters_apart(seed: int, sparsity: str | None) -> None:
    """Rows belong to several components here, and so do most of those that parts are made of."""
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=1.5, size=(17, 5))
    labels = rng.integers(17, size=3000)
    rows = rng.normal(means[labels])
    model = sb.Mixture(likelihood=sb.KnownCovarianceGaussian(covariance=np.eye(5)))
    others = (sb.Merge(), sb.Delete())
    told = sb.fit(model, rows, sb.Memoized(moves=others), init=labels, progress=False)
    grown = sb.fit(model, rows, sb.Memoized(sparsity=sparsity, moves=(sb.Birth(), *others)), progress=False)
    assert grown.elbo > told.elbo - 0.01 * len(rows)
