"""A background against its oracle, and what users would see."""

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from sklearn.metrics import adjusted_rand_score

import kinds
import stickbreak as sb
from oracles import background as oracle
from oracles.models import Array

DENSE = {"moves": (), "sparsity": None, "margin": None, "tol": 0}
REAL = [name for name, kind in kinds.LIKELIHOODS.items() if kind.domain == "real"]


def with_outliers(seed: int, n: int = 400, d: int = 2, k: int = 3, share: float = 0.05) -> tuple[Array, Array]:
    """Rows of clusters of which a share is replaced by uniform ones, and their clusters; -1 for the uniform ones."""
    rng = np.random.default_rng(seed)
    centres: list[Array] = []
    while len(centres) < k:
        centre = rng.uniform(-20, 20, d)
        if all(np.linalg.norm(centre - other) > 9 for other in centres):
            centres.append(centre)
    labels = rng.integers(k, size=n)
    rows = np.array(centres)[labels] + rng.standard_normal((n, d))
    out = rng.random(n) < share
    rows[out] = rng.uniform(-30, 30, (out.sum(), d))
    return rows, np.where(out, -1, labels)


def mixture(likelihood: Any = None, **options: Any) -> sb.Mixture:
    own = sb.Gaussian() if likelihood is None else likelihood
    return sb.Mixture(own, background=sb.Background(), **options)


def fitted(model: sb.Mixture, rows: Array, passes: int, **options: Any) -> sb.Fit:
    return sb.fit(model, rows, sb.Full(max_passes=passes, **DENSE), progress=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("process", ["finite", "nested"])
@pytest.mark.parametrize("sparsity", [None, 2])
def test_passes_are_those_of_the_oracle(name: str, process: str, sparsity: int | None) -> None:
    rng = np.random.default_rng(REAL.index(name))
    rows = kinds.make_rows(name, rng, 50, 2, 3)
    rows[:5] = rng.uniform(-40, 40, (5, 2))
    likelihood = kinds.make_likelihood(name, rng, 2)
    weights = sb.FiniteDirichlet(3, concentration=1.3) if process == "finite" else sb.DirichletProcess(1.3)
    model = sb.Mixture(likelihood, process=weights, background=sb.Background(outliers=2.0, inliers=20.0))
    labels = np.arange(50) % 3
    responsibilities = np.column_stack([np.eye(3)[labels], np.zeros(50)])
    for passes in range(4):
        algorithm = sb.Full(max_passes=passes, **{**DENSE, "sparsity": sparsity})  # type: ignore[arg-type]
        fit = sb.fit(model, rows, algorithm, init=labels, progress=False)
        own, of_components = oracle.Background.of(fit), kinds.oracle_of(fit.model)
        assert fit.elbo == pytest.approx(oracle.bound(rows, responsibilities, of_components, own), rel=1e-9)
        outside, inside = responsibilities[:, -1].sum(), responsibilities[:, :-1].sum()
        assert fit.background_count == pytest.approx(outside, rel=1e-7, abs=1e-12)
        assert fit.background_weight == pytest.approx(own.weight(outside, inside), rel=1e-9)
        assert fit.counts.sum() + fit.background_count == pytest.approx(50)
        total = fit.weights.sum() + fit.leftover_weight + fit.background_weight
        assert total == pytest.approx(1)
        dense = oracle.step(rows, responsibilities, of_components, own)
        responsibilities = oracle.step(rows, responsibilities, of_components, own, sparsity)
        np.testing.assert_allclose(fit.predict_proba(rows, tail=True), dense, rtol=1e-6, atol=1e-9)
        order = np.argsort(-responsibilities[:, :-1].sum(0), kind="stable") if process == "nested" else [0, 1, 2]
        responsibilities = np.column_stack([responsibilities[:, order], responsibilities[:, -1]])
    assert fit.background_count > 1
    best = fit.predict_proba(rows, tail=True).argmax(axis=1)
    np.testing.assert_array_equal(fit.predict(rows), np.where(best == 3, -1, best))


def test_the_bound_is_below_the_evidence_by_enumeration() -> None:
    rng = np.random.default_rng(1)
    rows = np.r_[rng.normal(size=(5, 1)) * 0.3, [[6.0]]]
    scale = np.eye(1)
    likelihood = sb.Gaussian(mean=[0.0], mean_precision=0.3, dof=3.0, scale=scale, resolution=0)
    background = sb.Background(outliers=1.0, inliers=5.0)
    model = sb.Mixture(likelihood, process=sb.FiniteDirichlet(2, concentration=1.0), background=background)
    fit = fitted(model, rows, 60, init=np.arange(6) % 2)
    own = oracle.Background.of(fit)
    evidence = oracle.log_evidence(rows, kinds.oracle_of(fit.model), own, 2)
    assert fit.elbo < evidence < fit.elbo + 5
    assert fit.background_count > 0.1


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([sb.Gaussian, sb.StudentT, sb.DiagonalGaussian]))
def test_the_objective_never_falls(seed: int, d: int, kind: Any) -> None:
    rows, _ = with_outliers(seed, n=90, d=d, k=3, share=0.1)
    fit = sb.fit(mixture(kind()), rows, seed=1, progress=False)
    values = [record.objective for record in fit.history]
    assert all(after >= before - 1e-7 * abs(before) for before, after in pairwise(values))
    assert fit.evaluate(rows) >= fit.elbo - 1e-6 * abs(fit.elbo)


def test_batches_threads_weights_and_precision() -> None:
    rows, labels = with_outliers(3)
    labels = np.maximum(labels, 0)
    options: dict[str, Any] = {"init": labels, "progress": False}
    one = fitted(mixture(), rows, 6, init=labels)
    memoized = sb.Memoized(batches=1, shuffle=False, max_passes=6, **DENSE)  # type: ignore[arg-type]
    assert sb.fit(mixture(), rows, memoized, **options).elbo == one.elbo
    assert fitted(mixture(), rows, 6, init=labels, threads=2).elbo == one.elbo
    twice = fitted(
        mixture(one.model.likelihood, process=sb.DirichletProcess(1.0)), np.r_[rows, rows], 6, init=[*labels, *labels]
    )
    both = fitted(
        sb.Mixture(one.model.likelihood, process=sb.DirichletProcess(1.0), background=twice.model.background),
        rows,
        6,
        init=labels,
        sample_weight=np.full(len(rows), 2.0),
    )
    assert both.elbo == pytest.approx(twice.elbo, rel=1e-9)
    assert both.background_count == pytest.approx(twice.background_count, rel=1e-6)
    single = fitted(mixture(), rows.astype(np.float32), 6, init=labels)
    assert single.elbo == pytest.approx(one.elbo, rel=1e-5)
    longer = fitted(mixture(), rows, 100, init=labels)
    batches = sb.Memoized(batches=4, max_passes=100, **DENSE)  # type: ignore[arg-type]
    batched = sb.fit(mixture(), rows, batches, **options)
    assert batched.elbo == pytest.approx(longer.elbo, rel=1e-4)
    assert batched.background_count == pytest.approx(longer.background_count, rel=0.05)


def test_hard_assignments_count_whole_rows() -> None:
    rows, labels = with_outliers(4)
    algorithm = sb.Full(max_passes=5, **{**DENSE, "sparsity": 1})  # type: ignore[arg-type]
    hard = sb.fit(mixture(), rows, algorithm, init=np.maximum(labels, 0), progress=False)
    assert set(np.unique(hard.predict(rows))) <= {-1, 0, 1, 2}
    assert hard.background_count >= 1
    assert hard.background_count == pytest.approx(round(hard.background_count))


@pytest.mark.parametrize("kind", [sb.Gaussian, sb.StudentT])
def test_outliers_between_clusters_become_the_background(kind: Any) -> None:
    for seed in (0, 2, 3):
        rows, labels = with_outliers(seed, n=600, k=5)
        fit = sb.fit(mixture(kind()), rows, seed=seed, progress=False)
        inside, found = labels >= 0, fit.predict(rows)
        assert fit.n_components == 5
        assert adjusted_rand_score(labels[inside], found[inside]) > 0.97
        assert np.mean(found[~inside] == -1) > 0.8
        assert np.mean(found[inside] == -1) < 0.01


@pytest.mark.parametrize("d", [1, 2, 4])
def test_many_outliers_are_no_wide_component(d: int) -> None:
    rng = np.random.default_rng(d)
    labels = rng.integers(2, size=4000)
    rows = np.r_[rng.normal(size=(4000, d)) + 12.0 * labels[:, None], rng.uniform(-15, 25, (300, d))]
    fit = sb.fit(mixture(), rows, progress=False)
    found = fit.predict(rows)
    assert fit.n_components == 2
    assert adjusted_rand_score(labels, found[:4000]) > 0.99
    assert np.mean(found[4000:] == -1) > 0.7


@pytest.mark.parametrize("far", [30.0, 1e3, 1e6])
def test_rows_far_away_are_in_the_background(far: float) -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1000, 3)) + 12.0 * rng.integers(2, size=1000)[:, None]
    rows[:8] += far * rng.uniform(0.5, 2, (8, 1)) * rng.normal(size=(8, 3))
    fit = sb.fit(mixture(), rows, progress=False)
    assert fit.n_components == 2
    assert np.mean(fit.predict(rows)[:8] == -1) > 0.6
    own = fit.model.background
    assert own is not None
    near = rows[8:]
    # Of the far rows, some are within ten usual ranges.
    assert np.all(np.abs(np.asarray(own.centre)) < 200)
    assert np.all(np.asarray(own.reach) >= (near.max(0) - near.min(0)) / 2)


def test_the_density_follows_from_most_rows() -> None:
    rng = np.random.default_rng(6)
    near = rng.uniform(-1, 1, (990, 2)) * [3.0, 50.0] + [7.0, 0.0]
    far = np.array([[7.0, 4e3], [7.0, -4e3], [2e3, 0.0], [7.0, 5e4], [-5e2, 3.0]]).repeat(2, axis=0)
    fit = sb.fit(mixture(), np.r_[near, far], sb.Full(max_passes=0), n_components=1, progress=False)
    own = fit.model.background
    assert own is not None
    low, high = near.min(0), near.max(0)
    np.testing.assert_allclose(own.centre, (low + high) / 2)
    np.testing.assert_allclose(own.reach, 1.01 * (high - low) / 2)
    assert own.tails == pytest.approx((10 / 1000 + 0.02 / 100) / (10 / 1000 + 1 / 100))
    distances = np.sort((np.abs(far - (low + high) / 2) / ((high - low) / 2)).max(axis=1))
    assert own.spread == pytest.approx(distances[5])


def test_a_background_opens_while_a_tail_is_still_estimated() -> None:
    rng = np.random.default_rng(0)
    rows = np.r_[rng.normal(size=(3000, 2)), rng.uniform(-20, 20, (60, 2))]
    fit = sb.fit(mixture(sb.StudentT()), rows, progress=False)
    assert fit.n_components == 1
    assert fit.background_count > 50


def test_tails_of_a_given_reach_do_not_follow_from_another_one() -> None:
    rng = np.random.default_rng(1)
    rows = np.r_[rng.uniform(-1, 1, (500, 2)), [[100.0, 0.0], [0.0, 300.0]]]
    for options, expected in (({}, 300.0), ({"reach": 50.0}, 1.0), ({"centre": [0.0, 0.0]}, 1.0)):
        own = sb.Background(**options)
        start = sb.Full(max_passes=0)
        found = sb.fit(sb.Mixture(sb.Gaussian(), background=own), rows, start, progress=False).model.background
        assert found is not None
        assert found.spread == pytest.approx(expected, rel=0.02)
        assert (found.tails == 0.02) == bool(options)


@pytest.mark.parametrize("far", [15.0, 60.0])
def test_a_small_cluster_far_away_is_no_background(far: float) -> None:
    rng = np.random.default_rng(5)
    rows = np.r_[
        rng.normal(size=(900, 3)), rng.normal(size=(900, 3)) + 9, rng.normal(size=(30, 3)) + np.array([far, -far, 0.0])
    ]
    fit = sb.fit(mixture(), rows, progress=False)
    assert fit.n_components == 3
    assert np.all(fit.predict(rows)[-30:] == 2)
    assert fit.background_count < 2


def test_clusters_without_outliers_are_as_without_a_background() -> None:
    rows, labels = with_outliers(6, share=0.0)
    fit, plain = (sb.fit(model, rows, progress=False) for model in (mixture(), sb.Mixture(sb.Gaussian())))
    assert fit.n_components == plain.n_components == 3
    assert adjusted_rand_score(labels, fit.predict(rows)) == 1
    assert fit.background_count < 1
    # Only what it costs to say that no row is in the background.
    assert 0 < plain.elbo - fit.elbo < 5


def test_a_delete_gives_outliers_to_the_background() -> None:
    rows, labels = with_outliers(7, n=200, k=2, share=0.04)
    outliers = np.flatnonzero(labels < 0)
    start = labels.copy()
    start[outliers] = 2 + np.arange(len(outliers))
    base = sb.fit(mixture(), rows, progress=False).model.likelihood
    model = mixture(base)
    kept = sb.fit(model, rows, sb.Full(moves=()), init=start, progress=False)
    fit = sb.fit(model, rows, sb.Full(moves=(sb.Delete(),)), init=start, progress=False)
    assert len(outliers) >= 4
    assert fit.n_components == 2 < kept.n_components
    assert fit.elbo > kept.elbo
    assert np.all(fit.predict(rows[outliers]) == -1)
    gains = sum(report.gain for record in fit.history for report in record.moves if report.accepted)
    assert gains > 0
    values = [record.elbo for record in fit.history]
    assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(values))


@pytest.mark.parametrize("kind", [sb.Gaussian, sb.StudentT])
def test_the_predictive_is_that_of_the_law_and_integrates_to_one(kind: Any) -> None:
    rows, _ = with_outliers(8, n=200, d=1, k=2)
    fit = sb.fit(mixture(kind()), rows, progress=False)
    law = fit.marginal([0])
    grid = np.sinh(np.linspace(-14, 14, 40_001))[:, None]
    densities = np.exp(fit.log_predictive(grid))
    np.testing.assert_allclose(np.exp(law.log_density(grid)), densities, rtol=1e-7)
    assert np.trapezoid(densities, grid[:, 0]) == pytest.approx(1, abs=1e-4)
    plug_in = np.exp(fit.log_predictive(grid, plug_in=True))
    assert np.trapezoid(plug_in, grid[:, 0]) == pytest.approx(1, abs=1e-4)


def test_the_predictive_contains_the_density_of_the_background() -> None:
    rows, _ = with_outliers(9)
    fit = sb.fit(mixture(), rows, progress=False)
    own = fit.model.background
    assert own is not None
    some = np.r_[rows[:5], [[1e6, 2e5]]]

    def student_t(values: dict[str, Any]) -> Array:
        dof, precision = values["dof"] - 1, values["mean_precision"]
        scale = np.asarray(values["scale"]) * (precision + 1) / precision / dof
        return np.asarray(stats.multivariate_t(values["mean"], scale, df=dof).pdf(some))

    prior = vars(fit.model.likelihood)
    densities = fit.background_weight * np.exp(oracle.Background.of(fit).log_density(some))
    densities = densities + fit.leftover_weight * student_t(prior)
    for k, weight in enumerate(fit.weights):
        densities = densities + weight * student_t({name: values[k] for name, values in fit.components.items()})
    np.testing.assert_allclose(fit.log_predictive(some), np.log(densities), rtol=1e-9)


def test_draws_are_of_the_predictive() -> None:
    rows, _ = with_outliers(10, n=300, d=1, k=2, share=0.2)
    fit = sb.fit(mixture(), rows, progress=False)
    drawn = np.sort(fit.sample(20_000, seed=1)[:, 0])
    grid = np.sinh(np.linspace(-14, 14, 200_001))
    cdf = np.cumsum(np.exp(fit.log_predictive(grid[:, None])) * np.gradient(grid))
    assert stats.kstest(np.interp(drawn, grid, cdf), "uniform").pvalue > 1e-3
    weights = fit.sample_parameters(4000, seed=1)["weights"].sum(axis=1)
    expected = 1 - fit.background_weight - fit.leftover_weight
    assert weights.mean() == pytest.approx(expected, abs=5 * weights.std() / np.sqrt(4000))
    assert weights.std() > 0.002


@pytest.mark.parametrize("kind", [sb.Gaussian, sb.DiagonalGaussian])
def test_missing_values_leave_the_density_of_the_others(kind: Any) -> None:
    rng = np.random.default_rng(11)
    rows, labels = with_outliers(11, n=300, d=3, k=2)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    rows = rows[~np.isnan(rows).all(axis=1)]
    fit = sb.fit(mixture(kind()), rows, missing="marginalize", progress=False)
    own = oracle.Background.of(fit)
    behind = fit.predict_proba(rows, tail=True)[:, -1]
    assert behind.sum() == pytest.approx(fit.background_count, rel=1e-3)
    assert fit.background_count > 5
    some = rows.copy()
    some[:, 1] = np.nan
    some = some[~np.isnan(some).all(axis=1)]
    complete = some[~np.isnan(some[:, [0, 2]]).any(axis=1)]
    np.testing.assert_allclose(
        fit.log_predictive(complete), fit.marginal([0, 2]).log_density(complete[:, [0, 2]]), rtol=1e-7
    )
    far = np.array([[1e7, np.nan, 3e6]])
    expected = np.log(fit.background_weight) + own.log_density(far)
    assert fit.log_predictive(far) == pytest.approx(expected, abs=1e-4)
    assert np.isfinite(fit.impute(rows)).all()
    assert len(labels) > 0


def test_columns_of_real_numbers_have_one_background() -> None:
    rows, labels = with_outliers(12, n=300, d=3, k=2)
    model = mixture(sb.Columns({(0, 1): sb.Gaussian(), 2: sb.DiagonalGaussian()}))
    fit = sb.fit(model, rows, progress=False)
    assert fit.n_components == 2
    assert np.mean(fit.predict(rows)[labels < 0] == -1) > 0.8
    assert fit.evaluate(rows) == pytest.approx(fit.elbo, rel=1e-6)


def test_units_do_not_matter() -> None:
    rows, _ = with_outliers(13, n=300)
    times, plus = np.array([1000.0, 0.25]), np.array([5.0, -3e4])
    fit, other = (sb.fit(mixture(), each, progress=False) for each in (rows, rows * times + plus))
    np.testing.assert_array_equal(fit.predict(rows), other.predict(rows * times + plus))
    assert other.elbo + len(rows) * np.log(times).sum() == pytest.approx(fit.elbo, rel=1e-6)
    own, changed = fit.model.background, other.model.background
    assert own is not None
    assert changed is not None
    np.testing.assert_allclose(changed.centre, np.asarray(own.centre) * times + plus, rtol=1e-6)
    np.testing.assert_allclose(changed.reach, np.asarray(own.reach) * times, rtol=1e-6)


def test_constant_columns_are_left_out() -> None:
    rows, _ = with_outliers(14, n=300)
    fit = sb.fit(mixture(), rows, progress=False)
    wide_rows = np.insert(rows, 1, 7.0, axis=1)
    with pytest.warns(sb.SupportWarning):
        wide = sb.fit(mixture(), wide_rows, progress=False)
    with pytest.warns(sb.SupportWarning):
        again = sb.fit(sb.Mixture(sb.Gaussian(), background=wide.model.background), wide_rows, progress=False)
    assert wide.elbo == pytest.approx(fit.elbo)
    own = wide.model.background
    assert own is not None
    assert np.asarray(own.centre)[1] == 7
    assert again.elbo == pytest.approx(fit.elbo)


def test_a_given_density_is_used() -> None:
    rows, _ = with_outliers(15)
    own = sb.Background(centre=[1.0, 2.0], reach=[30.0, 4.0], tails=0.3, spread=2.0)
    fit = sb.fit(sb.Mixture(sb.Gaussian(), background=own), rows, progress=False)
    assert fit.model.background == own
    assert sb.Mixture(sb.Gaussian(), background=own) != sb.Mixture(sb.Gaussian())


def test_a_fit_is_stored_and_continued(tmp_path: Any) -> None:
    rows, _ = with_outliers(16)
    fit = sb.fit(mixture(), rows, progress=False)
    fit.save(tmp_path / "fit")
    loaded = sb.load(tmp_path / "fit")
    assert loaded.model == fit.model
    assert (loaded.elbo, loaded.background_count) == (fit.elbo, fit.background_count)
    np.testing.assert_array_equal(loaded.predict(rows), fit.predict(rows))
    later = fit.update(rows[:100])
    assert later.background_count > fit.background_count
    assert later.counts.sum() + later.background_count == pytest.approx(500)
    for model in (mixture(), sb.Mixture(sb.Gaussian())):
        other = sb.fit(model, rows, init=fit, progress=False)
        assert other.counts.sum() + other.background_count == pytest.approx(400)
    clusters = fit.combine(rows)
    assert clusters.n_clusters == 3
    assert "background" in repr(fit)
    assert fit.compare(sb.fit(sb.Mixture(sb.Gaussian()), rows, progress=False)) > 0


def test_a_run_is_resumed_with_the_same_bits(tmp_path: Any) -> None:
    rows, _ = with_outliers(17)
    whole = sb.fit(mixture(), rows, sb.Memoized(batches=3), seed=2, progress=False)
    for passes in (1, len(whole.history) // 2, len(whole.history) - 1):
        path = tmp_path / f"run{passes}"
        sb.fit(
            mixture(),
            rows,
            sb.Memoized(batches=3, max_passes=passes),
            seed=2,
            checkpoint=sb.Checkpoint(path),
            progress=False,
        )
        resumed = sb.fit(
            mixture(), rows, sb.Memoized(batches=3), seed=2, checkpoint=sb.Checkpoint(path), progress=False
        )
        assert (resumed.elbo, resumed.background_count) == (whole.elbo, whole.background_count)
    with pytest.raises(sb.CheckpointError, match="background"):
        sb.fit(
            sb.Mixture(sb.Gaussian()),
            rows,
            sb.Memoized(batches=3),
            seed=2,
            checkpoint=sb.Checkpoint(path),
            progress=False,
        )


def test_a_short_run_has_a_background_too() -> None:
    rows, _ = with_outliers(18)
    for passes in (0, 1, 2):
        fit = sb.fit(mixture(), rows, sb.Full(max_passes=passes), progress=False)
        assert fit.predict_proba(rows, tail=True).shape == (400, fit.n_components + 1)
        assert 0 < fit.background_weight < 1


def test_rows_of_known_class_are_not_in_the_background() -> None:
    rows, labels = with_outliers(19)
    known = np.where(np.arange(400) % 2 == 0, labels, -1)
    outlier = np.flatnonzero(labels < 0)[0]
    known[outlier] = 1
    fit = sb.fit(mixture(), rows, labels=known, progress=False)
    found = fit.predict(rows)
    others = labels < 0
    others[outlier] = False
    assert np.mean(found[others] == -1) > 0.7
    assert 5 < fit.background_count < others.sum() + 1


@pytest.mark.parametrize(
    ("change", "argument", "words"),
    [
        ({"likelihood": sb.Poisson()}, "background", "Poisson"),
        ({"likelihood": sb.Bernoulli()}, "background", "Bernoulli"),
        ({"likelihood": sb.Columns({0: sb.Gaussian(), 1: sb.Poisson()})}, "background", "Poisson"),
        ({"process": sb.DirichletProcess(truncation="tail")}, "background", "tail"),
        ({"algorithm": sb.Full(objective="map")}, "background", "map"),
        ({"algorithm": sb.Full(units=sb.KdTree())}, "units", "background"),
    ],
)
def test_what_has_no_background_is_refused_by_name(change: dict[str, Any], argument: str, words: str) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (40, 2)).astype(float)
    options = {"likelihood": sb.Gaussian(), "process": sb.DirichletProcess(), "algorithm": None, **change}
    algorithm = options.pop("algorithm")
    with pytest.raises(sb.NotSupported, match=words) as caught:
        sb.fit(sb.Mixture(background=sb.Background(), **options), rows, algorithm, progress=False)
    assert caught.value.argument == argument


def test_samplers_and_hierarchies_refuse_it() -> None:
    rows, _ = with_outliers(20, n=40)
    for refused in (
        lambda: sb.sample(mixture(), rows),
        lambda: sb.hierarchy(mixture(), rows),
        lambda: sb.sample_prior(mixture(sb.Gaussian(mean=[0, 0], dof=4, scale=np.eye(2), mean_precision=1)), 10),
    ):
        with pytest.raises(sb.NotSupported) as caught:
            refused()
        assert caught.value.argument == "background"


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"outliers": 0}, "outliers"),
        ({"outliers": "many"}, "outliers"),
        ({"inliers": -1.0}, "inliers"),
        ({"inliers": np.nan}, "inliers"),
        ({"centre": [np.inf, 0]}, "centre"),
        ({"reach": [1.0, 0.0]}, "reach"),
        ({"tails": 0.0}, "tails"),
        ({"tails": 1.5}, "tails"),
        ({"spread": -1.0}, "spread"),
    ],
)
def test_bad_parameters_are_refused_at_once(options: dict[str, Any], argument: str) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sb.Background(**options)
    assert caught.value.argument == argument


def test_bad_sizes_are_refused_before_the_fit() -> None:
    rows, _ = with_outliers(21, n=40)
    for options, argument in (({"centre": [0.0] * 3}, "centre"), ({"reach": [1.0] * 3}, "reach")):
        with pytest.raises(sb.InvalidArgument) as caught:
            sb.fit(sb.Mixture(sb.Gaussian(), background=sb.Background(**options)), rows, progress=False)
        assert caught.value.argument == argument
    with pytest.raises(sb.InvalidType) as wrong:
        sb.Mixture(sb.Gaussian(), background=1.0)  # type: ignore[arg-type]
    assert wrong.value.argument == "background"


def test_a_fit_goes_on_from_its_own_background() -> None:
    rows, _ = with_outliers(22)
    fit = sb.fit(mixture(), rows, progress=False)
    assert fit.background_count > 5
    same = sb.fit(mixture(), rows, sb.Full(max_passes=0), init=fit, progress=False)
    assert same.background_count == fit.background_count
    assert same.counts.sum() + same.background_count == pytest.approx(400)
    later = sb.fit(mixture(), rows, init=fit, progress=False)
    assert later.n_components == fit.n_components
    assert later.elbo >= fit.elbo - 1e-6 * abs(fit.elbo)
    # The density that follows from other rows is another one.
    other = sb.fit(mixture(), rows[:300], sb.Full(max_passes=0), init=fit, progress=False)
    assert other.background_count == 0


def test_the_background_is_one_more_group_of_a_stability() -> None:
    rows, _ = with_outliers(23, n=200)
    found = sb.stability(mixture(), rows, n_seeds=2)
    assert found.best.background_count > 1
    assert len(found.together) == found.best.n_components
    assert found.ari.min() > 0.9


def test_columns_of_one_scale_have_one_reach() -> None:
    rows, _ = with_outliers(24, n=200, d=3)
    rows[:, 2] *= 0.01
    for likelihood in (sb.SphericalGaussian(), sb.KnownCovarianceGaussian(np.eye(3))):
        fit = sb.fit(mixture(likelihood), rows, progress=False)
        own = fit.model.background
        assert own is not None
        np.testing.assert_allclose(own.reach, np.asarray(own.reach)[0])
        assert fit.background_count < 40
    constant = np.insert(rows[:, :2], 2, 1.0, axis=1)
    with pytest.warns(sb.SupportWarning, match="column 2 is constant"):
        assert sb.fit(mixture(sb.SphericalGaussian()), constant, progress=False).background_count < 40


def test_columns_that_repeat_have_the_same_reach() -> None:
    rows, _ = with_outliers(25, n=200)
    with pytest.warns(sb.SupportWarning):
        fit = sb.fit(mixture(), np.column_stack([rows, -2 * rows[:, 0]]), progress=False)
    own = fit.model.background
    assert own is not None
    assert np.asarray(own.reach)[2] == pytest.approx(2 * np.asarray(own.reach)[0])


def test_pictures_show_the_background() -> None:
    plot = pytest.importorskip("matplotlib.pyplot")
    rows, _ = with_outliers(26)
    fit = sb.fit(mixture(), rows, progress=False)
    axes = sb.plot.density(fit, 0, rows)
    lines = {line.get_label(): line for line in axes.lines}
    grid, total = lines["all components"].get_data()
    np.testing.assert_allclose(
        total, np.exp(fit.marginal([0]).log_density(np.asarray(grid)[:, None])), rtol=0.2, atol=1e-4
    )
    assert "background" in lines
    assert sb.plot.responsibilities(fit, rows).images[0].get_array().shape[1] == fit.n_components + 1
    legend = sb.plot.clusters(fit, rows).get_legend()
    assert legend is not None
    assert "background" in [text.get_text() for text in legend.texts]
    plot.close("all")
