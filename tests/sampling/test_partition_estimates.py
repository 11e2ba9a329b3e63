"""Point estimates and credible balls against enumeration, and against losses counted one by one."""

import warnings
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import stickbreak as sb
from stickbreak import _core, checks
from stickbreak.result.partitioning import estimate

MODEL = sb.Mixture(likelihood=sb.KnownCovarianceGaussian(covariance=[[1.0]], mean=[0.0], mean_precision=0.1))


def sampled(n: int, seed: int = 0, **options: object) -> sb.Trace:
    X = np.random.default_rng(seed).normal(np.linspace(-3.0, 3.0, n))[:, None]
    return sb.sample(MODEL, X, draws=60, warmup=20, chains=2, threads=1, **options)  # type: ignore[arg-type]


def all_labels(n: int) -> list[tuple[int, ...]]:
    """Return all partitions of n rows: labels by first appearance."""
    found = product(*(range(row + 1) for row in range(n)))
    return [
        labels
        for labels in found
        if all(label <= max(labels[:row], default=-1) + 1 for row, label in enumerate(labels))
    ]


def expected_loss(trace: sb.Trace, labels: object, loss: str) -> float:
    draws = trace.partitions.reshape(-1, trace.partitions.shape[-1])
    return float(np.mean([sb.partition_distance(draw, labels, loss) for draw in draws]))  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_no_partition_has_a_lower_expected_loss(loss: str) -> None:
    trace = sampled(6)
    found = trace.point_estimate(loss, max_clusters=6, threads=1)  # type: ignore[arg-type]
    assert found.expected_loss == pytest.approx(expected_loss(trace, found.labels, loss), abs=1e-12)
    distinct, times = np.unique(trace.partitions.reshape(-1, 6), axis=0, return_counts=True)
    assert len(distinct) > 5
    losses = [
        sum(count * sb.partition_distance(draw, labels, loss) for draw, count in zip(distinct, times, strict=True))
        for labels in all_labels(6)
    ]
    assert found.expected_loss == pytest.approx(min(losses) / times.sum(), abs=1e-12)
    assert found.loss == loss
    assert found.labels[0] == 0
    assert found.n_clusters == found.labels.max() + 1
    assert not found.labels.flags.writeable
    assert loss in repr(found)


def test_the_most_probable_draw() -> None:
    trace = sampled(6)
    found = trace.point_estimate("map")
    draws, best = trace.partitions.reshape(-1, 6), trace.log_joint.argmax()
    np.testing.assert_array_equal(found.labels, draws[best])
    assert found.expected_loss == 1.0 - (draws == draws[best]).all(axis=1).mean()


def test_clusters_are_limited() -> None:
    trace = sampled(20)
    usual = trace.point_estimate("binder", threads=1)
    assert 2 < usual.n_clusters <= trace.n_clusters.max()
    limited = trace.point_estimate("binder", max_clusters=2, threads=1)
    assert limited.n_clusters <= 2
    assert limited.expected_loss >= usual.expected_loss


def test_the_usual_limit_is_the_draw_with_the_most_clusters() -> None:
    # Any two rows are together in one draw of three, so that Binder's loss prefers four clusters.
    labels = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]], dtype=np.int32)
    free, loss = estimate(labels, "binder", max_clusters=4, seed=0, threads=1)
    assert free.max() == 3
    assert loss == pytest.approx(2.0)
    limited, loss = estimate(labels, "binder", seed=0, threads=1)
    assert limited.max() == 1
    assert loss > 2.0


def test_seeds_and_threads_change_no_bit() -> None:
    trace = sampled(30)
    one, other = (trace.point_estimate(threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.expected_loss == other.expected_loss


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("level", [0.3, 0.95])
def test_a_ball_holds_its_share_of_the_draws(loss: str, level: float) -> None:
    trace = sampled(8)
    ball = trace.credible_ball(level, loss=loss, threads=1)  # type: ignore[arg-type]
    draws = trace.partitions.reshape(-1, 8)
    apart = np.array([sb.partition_distance(draw, ball.centre.labels, loss) for draw in draws])
    inside = apart <= ball.radius + 1e-12
    assert inside.mean() >= level > (apart < ball.radius - 1e-12).mean()
    clusters = draws.max(axis=1) + 1
    for labels, number in (
        (ball.upper, clusters[inside].min()),
        (ball.lower, clusters[inside].max()),
        (ball.horizontal, None),
    ):
        own = sb.partition_distance(labels, ball.centre.labels, loss)
        eligible = inside if number is None else inside & (clusters == number)
        assert number in (None, labels.max() + 1)
        assert own == pytest.approx(apart[eligible].max(), abs=1e-12)
    assert f"{level:g}" in repr(ball)


def test_blocks_are_those_of_the_matrix() -> None:
    trace = sampled(11)
    whole, seen = trace.similarity(), np.zeros((11, 11))
    for rows, columns, values in trace.similarity_blocks(4):
        np.testing.assert_array_equal(whole[rows, columns], values)
        seen[rows, columns] += 1.0
    np.testing.assert_array_equal(np.triu(seen), np.triu(np.ones((11, 11))))


def test_kept_rows_and_sizes() -> None:
    whole, part = sampled(12), sampled(12, keep_rows=[7, 2, 9])
    np.testing.assert_array_equal(part.partitions, whole.partitions[..., [7, 2, 9]])
    np.testing.assert_array_equal(part.log_joint, whole.log_joint)
    kept = part.kept_rows
    assert kept is not None
    assert kept.tolist() == [7, 2, 9]
    assert whole.kept_rows is None
    for chain, draw in [(0, 0), (1, 17), (1, 59)]:
        sizes = np.bincount(whole.partitions[chain, draw])
        np.testing.assert_array_equal(whole.cluster_sizes(chain, draw), sizes)
        np.testing.assert_array_equal(part.cluster_sizes(chain, draw), sizes)
        assert part.largest_cluster[chain, draw] == sizes.max()
    np.testing.assert_array_equal(part.similarity([2, 9]), whole.similarity([2, 9]))
    np.testing.assert_array_equal(part.similarity(), whole.similarity([7, 2, 9]))
    assert len(part.point_estimate().labels) == 3
    assert "12 rows, with the labels of 3" in repr(part)
    for method in (part.predict, part.log_predictive):
        with pytest.raises(sb.NotSupported, match="keep_rows=None"):
            method([[0.0]])
    with pytest.raises(sb.InvalidArgument, match="kept_rows"):
        part.similarity([3])


@pytest.mark.parametrize("rows", [[], [12], [-1], [1, 1], [0.5], [[1]], "all", 3, np.array(["a"])])
def test_bad_rows_to_keep_are_named(rows: object) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sampled(12, keep_rows=rows)
    assert caught.value.argument == "keep_rows"


def test_predictions_are_labels_of_the_estimate() -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(-6.0, size=(20, 1)), rng.normal(6.0, size=(20, 1))])
    trace = sb.sample(MODEL, X, draws=50, warmup=20, chains=2, threads=1)
    labels = trace.point_estimate().labels
    assert trace.predict([[-6.0], [6.0], [300.0]]).tolist() == [labels[0], labels[-1], labels.max() + 1]
    assert trace.predict([[-6.0]], loss="map").shape == (1,)


def test_a_row_whose_distance_overflows_has_no_label() -> None:
    X = np.random.default_rng(0).normal(np.repeat([[0.0], [60.0]], 9, axis=0), [[1.0]] * 9 + [[3.0]] * 9)
    likelihood = sb.Gaussian(mean=[20.0], mean_precision=0.01, dof=4.0, scale=[[2.0]])
    trace = sb.sample(sb.Mixture(likelihood=likelihood), X, draws=50, warmup=50, chains=1, threads=1)
    assert trace.predict([[1e150]]).tolist() == [trace.point_estimate().n_clusters]
    with pytest.raises(sb.NumericalError, match="row 1 is so far"):
        trace.predict([[0.0], [1e200]])
    # Where distances overflow for some clusters and not yet for others, none of them is the nearest.
    exact = trace.log_predictive([[1e150]])[0]
    for decade in np.linspace(150.0, 158.0, 81):
        x = 10.0**decade
        found = trace.log_predictive([[x]])[0]
        assert found == -np.inf or exact - 100.0 < found <= exact
        try:
            assert trace.predict([[x]]).tolist() == [trace.point_estimate().n_clusters]
        except sb.NumericalError:
            assert x > 1e153


def test_draws_of_a_search_are_estimated_with_a_warning() -> None:
    X = np.random.default_rng(0).normal(size=(12, 1))
    trace = sb.sample(MODEL, X, sb.TreeGuided(exact=False), draws=10, warmup=2, chains=1, threads=1)
    for call in (trace.point_estimate, trace.credible_ball, lambda: trace.predict([[0.0]])):
        with pytest.warns(sb.BiasWarning, match="exact=True") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sb.ConvergenceWarning)
        sampled(5).point_estimate()


BAD: list[tuple[str, object, str]] = [
    ("point_estimate", {"loss": "ari"}, "loss"),
    ("point_estimate", {"loss": 3}, "loss"),
    ("point_estimate", {"max_clusters": 0}, "max_clusters"),
    ("point_estimate", {"runs": 0}, "runs"),
    ("point_estimate", {"runs": 1.5}, "runs"),
    ("point_estimate", {"seed": -1}, "seed"),
    ("point_estimate", {"loss": "map", "max_clusters": 3}, "max_clusters"),
    ("credible_ball", {"level": 1.0}, "level"),
    ("credible_ball", {"level": float("nan")}, "level"),
    ("credible_ball", {"level": "0.9"}, "level"),
    ("credible_ball", {"loss": "map"}, "loss"),
    ("similarity_blocks", {"size": 0}, "size"),
    ("similarity_blocks", {"size": 10_001}, "size"),
    ("cluster_sizes", {"chain": 2, "draw": 0}, "chain"),
    ("cluster_sizes", {"chain": 0, "draw": 60}, "draw"),
    ("predict", {"X": [[0.0]], "loss": "best"}, "loss"),
]


@pytest.mark.parametrize(("method", "options", "argument"), BAD)
def test_bad_arguments_are_named(method: str, options: dict[str, object], argument: str) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType, sb.NotSupported)) as caught:
        getattr(sampled(5), method)(**options)
    assert caught.value.argument == argument


def test_short_memory_is_told_without_arguments_of_point_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = sampled(5)

    def refuse(*_: object) -> None:
        raise checks.invalid_argument("max_clusters", "9 clusters, for which counts take about 9 TB", "fewer")

    monkeypatch.setattr(_core, "point_estimate", refuse)
    calls = {"max_clusters": trace.point_estimate, "trace": trace.credible_ball}
    for argument, call in (*calls.items(), ("trace", lambda: trace.predict([[0.0]]))):
        with pytest.raises(sb.InvalidArgument, match=f"^{argument} must be .* about 9 TB$") as caught:
            call()
        assert caught.value.argument == argument


def test_one_draw_of_one_row() -> None:
    trace = sb.sample(MODEL, [[0.5]], draws=1, warmup=0, chains=1, threads=1)
    for loss in ("vi", "binder", "map"):
        found = trace.point_estimate(loss)  # type: ignore[arg-type]
        assert found.labels.tolist() == [0]
        assert found.expected_loss == 0.0
    assert trace.credible_ball().radius == 0.0
    assert trace.predict([[0.5]]).tolist() == [0]


def test_fits_of_several_seeds_are_joined() -> None:
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(-4.0, size=(30, 2)), rng.normal(4.0, size=(30, 2))])
    found = sb.stability(sb.Mixture(likelihood=sb.Gaussian()), X, n_seeds=3, threads=1)
    labels: NDArray[np.int64] = found.labels
    assert sb.partition_distance(labels, np.repeat([0, 1], 30)) == 0.0


def test_a_ball_of_kept_rows_counts_their_clusters() -> None:
    part = sampled(12, keep_rows=range(5))
    ball = part.credible_ball(0.9, threads=1)
    draws = part.partitions.reshape(-1, 5)
    apart = np.array([sb.partition_distance(draw, ball.centre.labels) for draw in draws])
    clusters = np.array([len(np.unique(draw)) for draw in draws])[apart <= ball.radius + 1e-12]
    assert (ball.upper.max() + 1, ball.lower.max() + 1) == (clusters.min(), clusters.max())
    with pytest.raises(ValueError, match="read-only"):
        part.largest_cluster[0] = 1
