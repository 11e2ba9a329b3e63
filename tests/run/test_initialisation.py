"""Where inference starts: `init`, `n_components` and `n_init`."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from cases import (
    LIKELIHOODS,
    LikelihoodName,
    clustered_rows,
    globals_of,
    make_case,
    oracle_of,
    separated_mixture,
    visible_bits,
)
from oracles import variational as oracle

START = sb.Full(sparsity=None, max_passes=0)


def own_model(likelihood: LikelihoodName = "gaussian") -> sb.Mixture:
    chosen = sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian()
    return sb.Mixture(likelihood=chosen, process=sb.DirichletProcess())


def fit(rows: np.ndarray, algorithm: object = START, model: sb.Mixture | None = None, **options: object) -> sb.Fit:
    return sb.fit(own_model() if model is None else model, rows, algorithm, **{"progress": False} | options)


def test_labels_are_one_hot_responsibilities() -> None:
    case = make_case(0)
    labels = np.random.default_rng(0).integers(4, size=60)
    for dtype in [np.int64, np.int32, np.uint8]:
        by_labels = fit(case.rows, model=case.model, init=labels.astype(dtype))
        by_hand = fit(case.rows, model=case.model, init=np.eye(4)[labels])
        assert visible_bits(by_labels, case.rows) == visible_bits(by_hand, case.rows)


def test_labels_of_a_list_and_labels_with_gaps() -> None:
    rows = clustered_rows(np.random.default_rng(1), 10, 2, 2)
    assert fit(rows, init=[0, 0, 1, 1, 0, 1, 0, 1, 0, 1]).n_components == 2
    gaps = fit(rows, init=np.array([0, 0, 3, 3, 0, 3, 0, 3, 0, 3]))
    np.testing.assert_array_equal(gaps.counts, [5, 0, 0, 5])
    more = fit(rows, init=np.array([0, 0, 1, 1, 0, 1, 0, 1, 0, 1]), n_components=4)
    np.testing.assert_array_equal(more.counts, [5, 5, 0, 0])


def test_responsibilities_in_other_types() -> None:
    case = make_case(2)
    exact = np.round(case.responsibilities * 64) / 64
    exact[:, 0] += 1.0 - exact.sum(1)
    exact = np.abs(exact) / np.abs(exact).sum(1, keepdims=True)
    expected = fit(case.rows, model=case.model, init=exact).elbo
    assert fit(case.rows, model=case.model, init=np.asfortranarray(exact)).elbo == expected
    assert fit(case.rows, model=case.model, init=exact[:, ::-1][:, ::-1]).elbo == expected
    single = fit(case.rows, model=case.model, init=exact.astype(np.float32)).elbo
    assert single == pytest.approx(expected, rel=1e-5)


def test_number_of_components() -> None:
    """The number is the requested one, else that of the process, else that of the start, else min(50, n)."""
    rows = clustered_rows(np.random.default_rng(3), 70, 2, 3)
    finite = sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(n_components=6))
    assert fit(rows, n_components=7).n_components == 7
    assert fit(rows, model=finite).n_components == 6
    assert fit(rows, model=finite, n_components=6).n_components == 6
    assert fit(rows, init=np.arange(70) % 5).n_components == 5
    assert fit(rows, init=np.full((70, 4), 0.25)).n_components == 4
    assert fit(rows, init=fit(rows, n_components=9)).n_components == 9
    assert fit(rows).n_components == 50
    assert fit(rows[:30]).n_components == 30


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_words(likelihood: LikelihoodName, init: str) -> None:
    """Both words give a state with all components, which depends on the seed. Random seeds are only a start:
    their summary is not that of all data, so there is no bound before the first pass.
    """
    rows = clustered_rows(np.random.default_rng(4), 400, 3, 5)
    fits = [fit(rows, model=own_model(likelihood), init=init, n_components=8, seed=seed) for seed in (0, 0, 1)]
    assert fits[0].n_components == 8
    assert np.isfinite(fits[0].elbo) == (init == "kmeans++")
    np.testing.assert_allclose(fits[0].counts.sum(), 400 if init == "kmeans++" else 8)
    assert visible_bits(fits[0], rows) == visible_bits(fits[1], rows)
    assert visible_bits(fits[0], rows) != visible_bits(fits[2], rows)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_kmeans_finds_what_the_divergence_says(likelihood: LikelihoodName) -> None:
    """On separated clusters the start is a fixed point: every row lies with its nearest centre, by the divergence of
    the specification between smoothed statistics.
    """
    rng, labels = np.random.default_rng(5), np.repeat(np.arange(3), 40)
    if likelihood == "gaussian":
        rows = rng.standard_normal((120, 2)) * 0.3 + np.array([[0, 0], [9, 0], [0, 9]])[labels]
    else:
        directions = np.array([[1.0, 0.0], [0.5, 0.9], [-0.5, 0.9]])[labels]
        rows = directions * rng.choice([-1, 1], (120, 1)) * rng.uniform(4, 6, (120, 1)) + 0.05
    model = own_model(likelihood)
    # Among several seeds, because one run of k-means++ may put two centres into one cluster.
    fits = [fit(rows, model=model, n_components=3, seed=seed) for seed in range(5)]
    best = max(fits, key=lambda each: each.elbo)
    likelihood = oracle_of(best.model).likelihood
    # The best centre of a set is the average of the smoothed statistics of its rows.
    statistics = [natural - likelihood.prior_natural for natural in globals_of(best).naturals]
    centres = [likelihood.prior_natural + sums / n for sums, n in zip(statistics, best.counts, strict=True)]
    nearest = oracle.kmeans_divergence(rows, likelihood, centres).argmin(1)
    assert adjusted_rand_score(labels, nearest) == pytest.approx(1.0)
    np.testing.assert_allclose(best.counts, np.bincount(nearest, minlength=3), rtol=1e-9)
    by_hand = fit(rows, model=model, init=nearest)
    np.testing.assert_allclose(best.components["scale"], by_hand.components["scale"], rtol=1e-9, atol=1e-9)


def test_kmeans_spreads_its_seeds() -> None:
    """Far-apart clusters of very different size: k-means++ finds all of them nearly always, random seeds do not."""
    rng = np.random.default_rng(6)
    sizes = [2000, 40, 40, 40, 40, 40]
    labels = np.repeat(np.arange(6), sizes)
    rows = (
        rng.standard_normal((len(labels), 2))
        + 40.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [0, 2]])[labels]
    )

    def found(init: str) -> int:
        fits = [fit(rows, init=init, n_components=6, seed=seed) for seed in range(10)]
        return sum(adjusted_rand_score(labels, each.predict(rows)) > 0.99 for each in fits)

    assert found("kmeans++") >= 7
    assert found("random") <= 3


def test_start_from_a_fit_goes_on_where_it_ended() -> None:
    """`Full` has no memory: p passes and then q more are p + q passes."""
    case = make_case(7, n=120, n_components=4)
    whole = fit(case.rows, sb.Full(sparsity=2, max_passes=9, tol=0.0), case.model, init=case.responsibilities)
    first = fit(case.rows, sb.Full(sparsity=2, max_passes=5, tol=0.0), case.model, init=case.responsibilities)
    second = fit(case.rows, sb.Full(sparsity=2, max_passes=4, tol=0.0), case.model, init=first)
    np.testing.assert_allclose(
        [record.elbo for record in (*first.history, *second.history)],
        [record.elbo for record in whole.history],
        rtol=1e-11,
    )
    np.testing.assert_allclose(second.components["scale"], whole.components["scale"], rtol=1e-9)


def test_start_from_a_fit_of_other_data() -> None:
    rows, _ = separated_mixture(1, n=900, dimension=2, n_clusters=4)
    trained = fit(rows[:600], sb.Full(max_passes=30), n_components=4, seed=2)
    other = fit(rows[600:], sb.Full(max_passes=5), init=trained)
    # The components carry over, each at its place in the order of the new counts.
    pairs = set(zip(trained.predict(rows).tolist(), other.predict(rows).tolist(), strict=True))
    assert len(pairs) == 4
    assert other.counts.sum() == pytest.approx(300.0)


def test_restarts_keep_the_best() -> None:
    rows = clustered_rows(np.random.default_rng(8), 300, 2, 8)
    algorithm = sb.Full(max_passes=20)
    once = fit(rows, algorithm, n_components=8, init="random", seed=3)
    often = fit(rows, algorithm, n_components=8, init="random", seed=3, n_init=6)
    assert often.elbo >= once.elbo
    assert often.history[-1].elbo == often.elbo
    others = [fit(rows, algorithm, n_components=8, init="random", seed=3, n_init=n).elbo for n in (1, 2, 4)]
    assert others == sorted(others)
    assert others[0] == once.elbo
    again = fit(rows, algorithm, n_components=8, init="random", seed=3, n_init=6)
    assert visible_bits(again, rows) == visible_bits(often, rows)


@pytest.mark.parametrize("init", ["kmeans++", "random", "sequential"])
def test_starts_side_by_side_are_those_one_after_another(init: str) -> None:
    """A callback makes the starts run one after another."""
    rows = clustered_rows(np.random.default_rng(8), 400, 2, 8)
    algorithm = sb.Memoized(batches=3, max_passes=8)
    settings = {"n_components": 6, "init": init, "seed": 3, "n_init": 5}
    after_another = fit(rows, algorithm, **settings, callbacks=[lambda _: False])
    for threads in (1, 2, 3, 8):
        assert visible_bits(fit(rows, algorithm, **settings, threads=threads), rows) == visible_bits(
            after_another, rows
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_second_best_start_is_compared(dtype: type, tmp_path: Path) -> None:
    rows = clustered_rows(np.random.default_rng(8), 300, 2, 8).astype(dtype)
    algorithm = sb.Full(max_passes=20)
    settings = {"n_components": 8, "init": "random"}
    seeds = [3, *np.random.SeedSequence(3).generate_state(5, np.uint64).tolist()]
    by_hand = [fit(rows, algorithm, seed=seed, **settings) for seed in seeds]
    for n_init in (2, 4, 6):
        found = fit(rows, algorithm, seed=3, n_init=n_init, threads=2, **settings)
        best, second = sorted(by_hand[:n_init], key=lambda each: -each.objective)[:2]
        ari = adjusted_rand_score(best.predict(rows), second.predict(rows))
        assert found.runner_up is not None
        assert (found.objective, found.runner_up.objective) == (best.objective, second.objective)
        assert found.runner_up.ari == pytest.approx(ari, abs=1e-12)
        disagreement = [advice for advice in found.advice() if advice.kind == "disagreement"]
        assert len(disagreement) == (ari < 0.8)
        found.save(tmp_path / "model.safetensors")
        assert sb.load(tmp_path / "model.safetensors").runner_up == found.runner_up
        assert found.update(rows[:20]).runner_up is None
    assert by_hand[0].runner_up is None


def test_labels_that_differ_are_told() -> None:
    """Two components for a square of four clusters: some starts end with other pairs of them."""
    rng = np.random.default_rng(0)
    corners = 20.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    rows = rng.normal(np.repeat(corners, 100, axis=0))
    model = sb.Mixture(likelihood=sb.SphericalGaussian(), process=sb.FiniteDirichlet(2))
    told = [fit(rows, sb.Full(), model, seed=seed, n_init=4) for seed in range(3)]
    differ = [each for each in told if each.runner_up is not None and each.runner_up.ari < 0.8]
    assert 0 < len(differ) < len(told)
    for each in told:
        texts = [advice.text for advice in each.advice() if advice.kind == "disagreement"]
        assert len(texts) == (each in differ)
        assert not texts or texts[0].startswith("the best two starts, ")


MOVES = (sb.Birth(), sb.Merge(), sb.Delete())


def overlapping_rows(seed: int, n: int = 3000) -> np.ndarray:
    """Seventeen round clusters in five columns, the nearest of them two standard deviations apart."""
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=1.5, size=(17, 5))
    return rng.normal(means[rng.integers(17, size=n)])


@pytest.mark.slow
def test_from_one_component_every_second_start_is_wide() -> None:
    model = sb.Mixture(likelihood=sb.KnownCovarianceGaussian(covariance=np.eye(5)))
    rows = overlapping_rows(3, 800)
    algorithm = sb.Memoized(moves=MOVES)
    seeds = [3, *np.random.SeedSequence(3).generate_state(3, np.uint64).tolist()]
    once = fit(rows, algorithm, model, seed=3)
    n_wide = 2 * once.n_occupied + 10
    by_hand = [once] + [
        fit(rows, algorithm, model, seed=seed, n_components=(n_wide, None)[index % 2])
        for index, seed in enumerate(seeds[1:])
    ]
    for n_init in (2, 4):
        several = fit(rows, algorithm, model, seed=3, n_init=n_init)
        best = max(by_hand[:n_init], key=lambda each: each.elbo)
        assert visible_bits(several, rows) == visible_bits(best, rows)
    # So the best start is not the first: it is 2.5 nats better.
    assert by_hand[1].elbo > once.elbo


@pytest.mark.parametrize("said", [{"n_components": 2}, {"init": np.arange(900) % 3}])
def test_no_start_is_wide_where_the_user_says_how_many_there_are_at_first(said: dict[str, object]) -> None:
    rows = overlapping_rows(1, 900)
    seeds = [3, *np.random.SeedSequence(3).generate_state(1, np.uint64).tolist()]
    algorithm = sb.Memoized(moves=MOVES, max_passes=3)
    by_hand = [fit(rows, algorithm, seed=seed, **said) for seed in seeds]
    best = max(by_hand, key=lambda each: each.elbo)
    assert visible_bits(fit(rows, algorithm, seed=3, n_init=2, **said), rows) == visible_bits(best, rows)


def test_wide_starts_have_no_more_components_than_rows() -> None:
    rows = np.array([[0.0, 1.0], [5.0, 2.0], [9.0, 9.0]])
    in_memory = fit(rows, None, n_init=2)
    assert in_memory.n_components <= 3
    assert fit(lambda: iter([rows]), None, n_init=2).n_components <= 3


@pytest.mark.slow
def test_wide_starts_side_by_side_are_those_one_after_another() -> None:
    rows = overlapping_rows(2, 600)
    algorithm = sb.Memoized(moves=MOVES, max_passes=10)
    counts: list[int] = []
    after_another = fit(rows, algorithm, n_init=5, callbacks=[lambda record: counts.append(record.n_components)])
    for threads in (1, 2, 8):
        assert visible_bits(fit(rows, algorithm, n_init=5, threads=threads), rows) == visible_bits(after_another, rows)
    in_blocks = sb.Memoized(moves=MOVES, max_passes=10, shuffle=False)
    streamed = fit(lambda: iter([rows]), in_blocks, n_init=2)
    assert streamed.elbo >= fit(lambda: iter([rows]), in_blocks).elbo


def test_an_error_in_one_of_the_starts_is_raised() -> None:
    rows = clustered_rows(np.random.default_rng(8), 100, 2, 3)
    rows[50, 1] = np.inf
    with pytest.raises(sb.InvalidArgument) as caught:
        fit(rows, sb.Full(), n_components=3, n_init=4, threads=4)
    assert caught.value.argument == "data"


def test_no_passes_leave_no_history() -> None:
    rows = clustered_rows(np.random.default_rng(9), 100, 2, 3)
    for algorithm in [START, sb.Memoized(batches=4, max_passes=0)]:
        state = fit(rows, algorithm, n_components=3)
        assert state.history == []
        assert state.stop_reason is sb.StopReason.MAX_PASSES
        assert np.isfinite(state.elbo)
        assert state.counts.sum() == pytest.approx(100.0)
