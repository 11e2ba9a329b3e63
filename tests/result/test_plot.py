"""Pictures: the positions of their artists are what the fit and the rows say."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.cluster.hierarchy
import scipy.stats
from matplotlib import pyplot
from matplotlib.patches import Ellipse

import stickbreak as sb

mpl.use("Agg")

NAMES = ("height", "width", "depth")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Draw every picture to its end, and close it."""
    yield
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


def rows(d: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    factor = np.tril(rng.normal(size=(d, d))) + 2 * np.eye(d)
    return rng.normal(size=(300, d)) @ factor.T + np.repeat([[0.0], [30.0], [-40.0]], 100, axis=0) * np.arange(1, d + 1)


X = rows()


@pytest.fixture(scope="module")
def fit() -> sb.Fit:
    return sb.fit(sb.Mixture(likelihood=sb.Gaussian()), pd.DataFrame(X, columns=NAMES))


@pytest.fixture(scope="module")
def trace() -> sb.Trace:
    return sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X[::10], draws=30, warmup=5, chains=3)


@pytest.fixture(scope="module")
def tree() -> sb.Hierarchy:
    return sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), X[::10])


WORDS = ["tree", "leaf", "root", "sea", "fish", "boat"]
DOCUMENTS = np.random.default_rng(0).poisson(
    np.repeat([[5, 3, 2, 0.2, 0.2, 0.2], [0.1, 0.1, 0.1, 4, 2, 1]], 20, axis=0)
)


@pytest.fixture(scope="module")
def topics() -> sb.TopicFit:
    return sb.fit(sb.TopicModel(sb.LatentDirichlet(3)), DOCUMENTS, sb.Full(max_passes=10, tol=0))


def inside(ellipse: Ellipse, points: np.ndarray) -> np.ndarray:
    """Which points lie in an ellipse, from its own centre, axes and angle."""
    turn = np.radians(ellipse.angle)
    across = (points - ellipse.center) @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return ((across / [ellipse.width / 2, ellipse.height / 2]) ** 2).sum(axis=1) <= 1


def test_bound_has_a_point_a_pass(fit: sb.Fit) -> None:
    line = sb.plot.bound(fit).lines[0]
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, len(fit.history) + 1))
    np.testing.assert_array_equal(line.get_ydata(), [record.elbo for record in fit.history])


def test_numbers_of_components_and_moves(fit: sb.Fit) -> None:
    ax = sb.plot.n_components(fit)
    steps, *markers = ax.lines
    numbers = [record.n_components for record in fit.history]
    np.testing.assert_array_equal(steps.get_ydata(), numbers)
    births = [
        index + 1 for index, r in enumerate(fit.history) if any(m.kind == "birth" and m.accepted for m in r.moves)
    ]
    assert births
    np.testing.assert_array_equal(markers[0].get_xdata(), births)
    np.testing.assert_array_equal(markers[0].get_ydata(), [numbers[index - 1] for index in births])
    assert "birth" in ax.get_legend().get_texts()[0].get_text()


def test_clusters_on_two_columns(fit: sb.Fit) -> None:
    ax = sb.plot.clusters(fit, X, columns=["depth", 0], level=0.8)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("depth", "height")
    labels = fit.predict(X)
    assert len(ax.collections) == len(ax.patches) == 3
    for k, (points, ellipse) in enumerate(zip(ax.collections, ax.patches, strict=True)):
        np.testing.assert_allclose(points.get_offsets(), X[labels == k][:, [2, 0]])
        np.testing.assert_allclose(ellipse.center, fit.point_estimates["mean"][k, [2, 0]])
        drawn = np.random.default_rng(1).multivariate_normal(
            fit.point_estimates["mean"][k], fit.point_estimates["covariance"][k], size=20_000
        )
        assert abs(inside(ellipse, drawn[:, [2, 0]]).mean() - 0.8) < 0.015


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("tail_dof", [1.0, 3.0, 30.0])
def test_ellipses_of_heavy_tails_hold_their_share(d: int, tail_dof: float) -> None:
    """In two columns, and in the principal components of three."""
    fit = sb.fit(sb.Mixture(sb.StudentT(tail_dof, prior="rule")), X[:100, :d], n_components=1)
    ax = sb.plot.clusters(fit, X[:100, :d], level=0.9)
    assert ax.get_legend().get_title().get_text() == "90% of each in its ellipse"
    point = fit.point_estimates
    drawn = scipy.stats.multivariate_t(point["mean"][0], point["covariance"][0], df=tail_dof).rvs(
        40_000, random_state=1
    )
    if d == 3:
        scaled = X[:100] / X[:100].std(axis=0)
        axes = np.linalg.eigh(np.cov(scaled, rowvar=False))[1][:, ::-1][:, :2] / X[:100].std(axis=0)[:, None]
        drawn = (drawn - X[:100].mean(axis=0)) @ axes
    assert inside(ax.patches[0], drawn).mean() == pytest.approx(0.9, abs=0.006)


def test_ellipses_of_blocks_with_tails_are_about_right() -> None:
    model = sb.Columns({(0, 1): sb.StudentT(tail_dof=3, prior="rule"), (2,): sb.Gaussian()})
    fit = sb.fit(sb.Mixture(model), X[:100], sb.Full(moves=()), n_components=1)
    titles = [
        sb.plot.clusters(fit, X[:100], columns=pair).get_legend().get_title().get_text() for pair in ([0, 1], [1, 2])
    ]
    assert titles == ["90% of each in its ellipse", "about 90% of each in its ellipse"]
    law = fit.marginal([1, 2], plug_in=True)
    assert inside(sb.plot.clusters(fit, X[:100], columns=[1, 2]).patches[0], law.sample(40_000, seed=0)).mean() > 0.9


def test_clusters_on_principal_components(fit: sb.Fit) -> None:
    ax = sb.plot.clusters(fit, X)
    points = np.concatenate([collection.get_offsets() for collection in ax.collections])
    singular = np.linalg.svd((X - X.mean(axis=0)) / X.std(axis=0), compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(points, axis=0), singular[:2], rtol=1e-9)
    for points_of, ellipse in zip(ax.collections, ax.patches, strict=True):
        assert inside(ellipse, np.asarray(points_of.get_offsets())).mean() > 0.8


def test_a_frame_in_another_order_is_drawn_right(fit: sb.Fit) -> None:
    turned = pd.DataFrame(X, columns=NAMES)[["depth", "height", "width"]]
    one, other = (sb.plot.clusters(fit, data, columns=[0, 1]) for data in (X, turned))
    for left, right in zip(one.collections, other.collections, strict=True):
        np.testing.assert_array_equal(left.get_offsets(), right.get_offsets())


def test_clusters_of_other_likelihoods() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.repeat([[2.0, 9.0], [20.0, 30.0]], 50, axis=0)).astype(float)
    for likelihood, data in [
        (sb.Poisson(), counts),
        (sb.Bernoulli(), (counts > 8).astype(float)),
        (sb.DiagonalGaussian(), X),
        (sb.SphericalGaussian(), X),
        (sb.KnownCovarianceGaussian(np.eye(3)), X),
        (sb.ZeroMeanGaussian(), X),
    ]:
        fit = sb.fit(sb.Mixture(likelihood=likelihood), data, sb.Full(max_passes=3), n_components=2)
        ax = sb.plot.clusters(fit, data, columns=[0, 1])
        assert len(ax.patches) == fit.n_occupied
    codes = sb.fit(sb.Mixture(likelihood=sb.Categorical()), rng.integers(3, size=(60, 2)).astype(float), n_components=2)
    with pytest.raises(sb.NotSupported, match="codes have no means"):
        sb.plot.clusters(codes, rng.integers(3, size=(60, 2)).astype(float))


def test_one_component_is_drawn() -> None:
    data = np.random.default_rng(0).normal(size=(100, 2))
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), data)
    assert fit.n_components == 1
    assert len(sb.plot.clusters(fit, data).patches) == 1
    assert len(sb.plot.density(fit, 1, data).lines) == 2
    assert len(sb.plot.card(fit, 0).patches) == 2
    assert len(sb.plot.means(fit).lines) == 3


def test_densities_are_those_of_the_mixture(fit: sb.Fit) -> None:
    ax = sb.plot.density(fit, "width", X)
    *components, total = ax.lines
    grid = np.asarray(total.get_xdata())
    means, covariances = fit.point_estimates["mean"], fit.point_estimates["covariance"]
    curves = [
        weight * scipy.stats.norm(mean[1], covariance[1, 1] ** 0.5).pdf(grid)
        for weight, mean, covariance in zip(fit.weights, means, covariances, strict=True)
    ]
    for line, curve in zip(components, curves, strict=True):
        np.testing.assert_allclose(line.get_ydata(), curve, atol=1e-12)
    np.testing.assert_allclose(total.get_ydata(), sum(curves), atol=1e-12)
    assert grid[0] <= X[:, 1].min() <= X[:, 1].max() <= grid[-1]
    # The bars of the histogram have the area one.
    assert sum(bar.get_width() * bar.get_height() for bar in ax.patches) == pytest.approx(1.0)
    assert ax.get_xlabel() == "width"


def test_responsibilities_are_sorted(fit: sb.Fit) -> None:
    image = np.asarray(sb.plot.responsibilities(fit, X).images[0].get_array())
    expected = fit.predict_proba(X)
    assert (np.diff(image.argmax(axis=1)) >= 0).all()
    np.testing.assert_array_equal(np.sort(image, axis=0), np.sort(expected, axis=0))


def test_means_have_their_intervals(fit: sb.Fit) -> None:
    ax = sb.plot.means(fit, "depth", level=0.5, seed=3)
    low, high = fit.intervals(0.5, seed=3)["mean"][:, :, 2]
    order = np.argsort(-fit.weights, kind="stable")
    for height, (bar, k) in enumerate(zip(ax.containers, order, strict=True)):
        point, caps, _ = bar
        assert (point.get_xdata()[0], point.get_ydata()[0]) == (fit.point_estimates["mean"][k, 2], height)
        np.testing.assert_allclose([cap.get_xdata()[0] for cap in caps], [low[k], high[k]])
    assert ax.get_yticklabels()[0].get_text() == f"component {order[0]}, {fit.weights[order[0]]:.1%}"


def test_a_card_has_the_most_distinctive_columns_on_top(fit: sb.Fit) -> None:
    ax = sb.plot.card(fit, 1, n_columns=2)
    drawn = np.array([bar.get_width() for bar in ax.patches])
    simulated = fit.sample(200_000, seed=1)
    expected = (fit.point_estimates["mean"][1] - simulated.mean(axis=0)) / simulated.std(axis=0)
    shown = [NAMES.index(label.get_text().split(":")[0]) for label in ax.get_yticklabels()]
    assert len(set(shown)) == 2
    # The left-over weight has rows in the simulation and none in the card.
    np.testing.assert_allclose(drawn, expected[shown], atol=0.05)
    assert abs(drawn[0]) >= abs(drawn[1])
    (rest,) = {0, 1, 2} - set(shown)
    assert abs(expected[rest]) <= abs(drawn[1]) + 0.05
    mean, spread = (fit.point_estimates[name][1] for name in ("mean", "covariance"))
    top = shown[0]
    assert f": {mean[top]:.4g} ± {spread[top, top] ** 0.5:.2g}" in ax.get_yticklabels()[0].get_text()
    assert f"{fit.weights[1]:.1%}" in ax.get_title()


def test_chains_and_numbers_of_clusters(trace: sb.Trace) -> None:
    for name in ("log_joint", "n_clusters"):
        for line, values in zip(sb.plot.chains(trace, name).lines, getattr(trace, name), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), values)
    bars = sb.plot.cluster_numbers(trace).patches
    shares = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in bars}
    for number, share in shares.items():
        assert share == pytest.approx((trace.n_clusters == number).mean())
    assert sum(shares.values()) == pytest.approx(1.0)


def test_similarity_is_sorted_by_cluster(trace: sb.Trace) -> None:
    n = trace.partitions.shape[-1]
    expected = trace.similarity()
    draws = trace.partitions.reshape(-1, n)
    np.testing.assert_allclose(expected, (draws[:, :, None] == draws[:, None, :]).mean(axis=0), rtol=1e-12)
    image = np.asarray(sb.plot.similarity(trace).images[0].get_array())
    best = draws[trace.log_joint.argmax()]
    sizes = np.bincount(best)
    order = sorted(range(n), key=lambda row: (-sizes[best[row]], best[row], row))
    np.testing.assert_array_equal(image, expected[np.ix_(order, order)])
    some = [25, 3, 3, 14]
    np.testing.assert_array_equal(trace.similarity(some), expected[np.ix_(some, some)])
    assert np.asarray(sb.plot.similarity(trace, some).images[0].get_array()).shape == (4, 4)


def test_dendrograms_have_the_joins_of_the_linkage(tree: sb.Hierarchy) -> None:
    ax = sb.plot.dendrogram(tree)
    lines = ax.collections[0].get_segments()
    n = len(tree.cut())
    drawn = scipy.cluster.hierarchy.dendrogram(tree.linkage, no_plot=True)
    order = [int(label.get_text()) for label in ax.get_xticklabels()]
    assert sorted(order) == list(range(n))
    place = {row: float(position) for position, row in enumerate(order)}
    rows_below = {row: [row] for row in range(n)}
    for join, (line, (left, right, height, size)) in enumerate(zip(lines, tree.linkage, strict=True)):
        rows_below[n + join] = rows_below[int(left)] + rows_below[int(right)]
        assert len(rows_below[n + join]) == size
        np.testing.assert_allclose(line[:, 0], np.repeat([place[int(left)], place[int(right)]], 2))
        assert line[1, 1] == line[2, 1] == height
        place[n + join] = line[:, 0].mean()
        # The rows of a node stand together.
        positions = sorted(order.index(row) for row in rows_below[n + join])
        assert positions == list(range(positions[0], positions[0] + len(positions)))
    assert sorted(line[1, 1] for line in lines) == pytest.approx(sorted(height[1] for height in drawn["dcoord"]))


def test_dendrograms_colour_the_clusters_of_the_cut(tree: sb.Hierarchy) -> None:
    colours = mpl.colors.to_rgba_array(sb.plot.dendrogram(tree).collections[0].get_color())
    labels = tree.cut()
    assert len(set(labels.tolist())) == 3
    # Between clusters there is one join less than clusters; within one of m rows there are m - 1 of its colour.
    grey = mpl.colors.to_rgba(sb.plot.canvas.FAINT)
    assert sum(tuple(colour) == grey for colour in colours) == 2
    for cluster in range(3):
        colour_of_cluster = mpl.colors.to_rgba(sb.plot.canvas.colour(cluster))
        assert sum(tuple(colour) == colour_of_cluster for colour in colours) == (labels == cluster).sum() - 1


def test_dendrograms_of_clusters_have_the_levels() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(800, 2)) + np.repeat([[0.0, 0.0], [4.0, 0.0]], 400, axis=0)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, progress=False)
    clusters = fit.combine(rows)
    assert clusters.n_clusters == 2 < fit.n_occupied
    ax = sb.plot.dendrogram(clusters)
    np.testing.assert_allclose([line[1, 1] for line in ax.collections[0].get_segments()], clusters.levels[:, 2])
    leaves = [int(label.get_text()) for label in ax.get_xticklabels()]
    assert sorted(leaves) == np.flatnonzero(clusters.groups >= 0).tolist()
    grey = mpl.colors.to_rgba(sb.plot.canvas.FAINT)
    colours = mpl.colors.to_rgba_array(ax.collections[0].get_color())
    assert [tuple(colour) == grey for colour in colours] == [False] * (len(colours) - 1) + [True]
    assert ax.get_xlabel() == "components"
    with pytest.raises(sb.InvalidArgument, match="method"):
        sb.plot.dendrogram(clusters, method="cut")  # type: ignore[arg-type]
    one = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows[:3], n_components=1, progress=False).combine(rows)
    with pytest.raises(sb.InvalidArgument, match="single component"):
        sb.plot.dendrogram(one)


def test_a_tree_too_deep_for_recursion_is_drawn() -> None:
    chain = np.cumsum(np.arange(1500.0))[:, None]
    deep = sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), chain, "incremental")
    assert len(sb.plot.dendrogram(deep).collections[0].get_segments()) == 1499


def test_topics_by_size_with_their_words(topics: sb.TopicFit) -> None:
    ax = sb.plot.topics(topics, WORDS, n_topics=2, n_words=2)
    shares = topics.counts / topics.counts.sum()
    shown = np.argsort(-shares)[:2]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], shares[shown])
    best = topics.top_words(WORDS, 2)
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"{k}: {' '.join(best[k])}" for k in shown]
    assert ax.yaxis_inverted()


def test_a_topic_has_its_words_and_their_shares(topics: sb.TopicFit) -> None:
    ax = sb.plot.topic(topics, 1, WORDS, n_words=4)
    words = topics.top_words(WORDS, 4)[1]
    assert [label.get_text() for label in ax.get_yticklabels()] == words
    columns = [WORDS.index(word) for word in words]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], topics.topics[1, columns])
    np.testing.assert_allclose(ax.lines[0].get_xdata(), (DOCUMENTS.sum(axis=0) / DOCUMENTS.sum())[columns])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), range(4))
    assert f"{topics.counts[1] / topics.counts.sum():.1%}" in ax.get_title()


def test_axes_in_axes_out(fit: sb.Fit, trace: sb.Trace, tree: sb.Hierarchy, topics: sb.TopicFit) -> None:
    draws: list[Callable[[Any], Any]] = [
        lambda ax: sb.plot.bound(fit, ax=ax),
        lambda ax: sb.plot.n_components(fit, ax=ax),
        lambda ax: sb.plot.clusters(fit, X, ax=ax),
        lambda ax: sb.plot.density(fit, ax=ax),
        lambda ax: sb.plot.responsibilities(fit, X, ax=ax),
        lambda ax: sb.plot.means(fit, ax=ax),
        lambda ax: sb.plot.card(fit, 0, ax=ax),
        lambda ax: sb.plot.profiles(fit, ax=ax),
        lambda ax: sb.plot.chains(trace, ax=ax),
        lambda ax: sb.plot.cluster_numbers(trace, ax=ax),
        lambda ax: sb.plot.similarity(trace, ax=ax),
        lambda ax: sb.plot.autocorrelation(trace, ax=ax),
        lambda ax: sb.plot.dendrogram(tree, ax=ax),
        lambda ax: sb.plot.topics(topics, ax=ax),
        lambda ax: sb.plot.topic(topics, 0, ax=ax),
    ]
    assert len(draws) == len(sb.plot.__all__)
    for draw in draws:
        ax = pyplot.subplots()[1]
        assert draw(ax) is ax
        assert ax.get_xlabel()
        assert draw(None).figure is not ax.figure
        with pytest.raises(sb.InvalidType) as caught:
            draw("ax")
        assert caught.value.argument == "ax"
        pyplot.close("all")


WRONG: list[tuple[Callable[[sb.Fit], object], type[Exception], str]] = [
    (lambda fit: sb.plot.clusters("fit", X), sb.InvalidType, "fit"),
    (lambda fit: sb.plot.clusters(fit, X, columns=["height"]), sb.InvalidArgument, "columns"),
    (lambda fit: sb.plot.clusters(fit, X, columns=[1, 1]), sb.InvalidArgument, "columns"),
    (lambda fit: sb.plot.clusters(fit, X, columns=[]), sb.InvalidArgument, "columns"),
    (lambda fit: sb.plot.clusters(fit, X, columns="height"), sb.InvalidType, "columns"),
    (lambda fit: sb.plot.clusters(fit, X, columns=["height", "hight"]), sb.InvalidArgument, "columns"),
    (lambda fit: sb.plot.clusters(fit, X, columns=[0, 3]), sb.InvalidArgument, "columns"),
    (lambda fit: sb.plot.clusters(fit, X, level=1.0), sb.InvalidArgument, "level"),
    (lambda fit: sb.plot.clusters(fit, X[:, :2]), sb.InvalidArgument, "X"),
    (lambda fit: sb.plot.clusters(fit, X[:1]), sb.InvalidArgument, "X"),
    (lambda fit: sb.plot.density(fit, "colour"), sb.InvalidArgument, "column"),
    (lambda fit: sb.plot.density(fit, 1.5), sb.InvalidType, "column"),  # type: ignore[arg-type]
    (lambda fit: sb.plot.density(fit, ["height"]), sb.InvalidArgument, "column"),
    (lambda fit: sb.plot.density(fit, [0, "height"]), sb.InvalidArgument, "column"),
    (lambda fit: sb.plot.profiles(fit, n_columns=0), sb.InvalidArgument, "n_columns"),
    (lambda fit: sb.plot.means(fit, 3), sb.InvalidArgument, "column"),
    (lambda fit: sb.plot.card(fit, 3), sb.InvalidArgument, "component"),
    (lambda fit: sb.plot.card(fit, 0, n_columns=0), sb.InvalidArgument, "n_columns"),
    (lambda fit: sb.plot.chains(fit), sb.InvalidType, "trace"),  # type: ignore[arg-type]
    (lambda fit: sb.plot.similarity(fit), sb.InvalidType, "trace"),  # type: ignore[arg-type]
    (lambda fit: sb.plot.dendrogram(fit), sb.InvalidType, "tree"),  # type: ignore[arg-type]
    (lambda fit: sb.plot.topics(fit), sb.InvalidType, "fit"),  # type: ignore[arg-type]
    (lambda fit: sb.plot.topic(fit, 0), sb.InvalidType, "fit"),  # type: ignore[arg-type]
]


def test_topics_have_pictures_of_their_own(topics: sb.TopicFit) -> None:
    with pytest.raises(sb.InvalidType, match=r"plot\.topics"):
        sb.plot.means(topics)  # type: ignore[arg-type]


@pytest.mark.parametrize(("draw", "kind", "argument"), WRONG)
def test_refused(fit: sb.Fit, draw: Callable[[sb.Fit], object], kind: type[Any], argument: str) -> None:
    with pytest.raises(kind) as caught:
        draw(fit)
    assert caught.value.argument == argument


def test_more_refusals(trace: sb.Trace, tree: sb.Hierarchy, topics: sb.TopicFit) -> None:
    one = sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), X[:1])
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: sb.plot.similarity(trace, [0, 30]), sb.InvalidArgument, "rows"),
        (lambda: sb.plot.similarity(trace, np.ma.masked_array([0, 1], mask=[True, False])), sb.InvalidType, "rows"),
        (lambda: sb.plot.similarity(trace, [-1]), sb.InvalidArgument, "rows"),
        (lambda: sb.plot.similarity(trace, []), sb.InvalidArgument, "rows"),
        (lambda: sb.plot.similarity(trace, [0.5]), sb.InvalidType, "rows"),
        (lambda: sb.plot.similarity(trace, 3), sb.InvalidType, "rows"),
        (lambda: sb.plot.dendrogram(one), sb.InvalidArgument, "tree"),
        (lambda: sb.plot.dendrogram(tree, method="cut"), sb.InvalidArgument, "method"),  # type: ignore[arg-type]
        (lambda: sb.plot.topics(topics, WORDS[:2]), sb.InvalidArgument, "vocabulary"),
        (lambda: sb.plot.topics(topics, n_words=0), sb.InvalidArgument, "n_words"),
        (lambda: sb.plot.topic(topics, 3), sb.InvalidArgument, "number"),
    ]
    for call, kind, argument in calls:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.argument == argument  # type: ignore[attr-defined]


def test_a_fit_of_one_column_has_no_plane() -> None:
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X[:, :1])
    with pytest.raises(sb.InvalidArgument, match="use density"):
        sb.plot.clusters(fit, X[:, :1])


def test_a_missing_package_is_named(fit: sb.Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(sb.NotSupported, match=r'pip install "stickbreak\[plot\]"'):
        sb.plot.bound(fit)
    monkeypatch.undo()


NOISE = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("abc"))


def test_a_constant_column_is_no_feature_of_a_card() -> None:
    model = sb.Mixture(likelihood=sb.Gaussian())
    with pytest.warns(sb.SupportWarning):
        fit = sb.fit(model, NOISE.assign(year=2007.0), sb.Full(), n_components=5)
    for component in range(fit.n_components):
        ax = sb.plot.card(fit, component)
        assert ax.get_yticklabels()[-1].get_text() == "year: 2007 ± 0 (all: 2007)"
        assert ax.patches[-1].get_width() == 0.0
        assert all(bar.get_width() != 0.0 for bar in ax.patches[:-1])
        assert len(sb.plot.card(fit, component, n_columns=3).patches) == 3


BAD_ROWS = {
    "infinite": (NOISE.replace(NOISE.iloc[3, 1], np.inf), "inf in row 3"),
    "missing": (NOISE * np.nan, "NaN in row 0"),
    "empty": (NOISE[:0], "of shape (0, 3)"),
    "other columns": (NOISE[["a", "b"]], "without 'c'"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_rows_that_a_fit_cannot_read_are_refused_before_drawing(name: str) -> None:
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), NOISE)
    data, found = BAD_ROWS[name]
    draws: list[Callable[[], object]] = [
        lambda: sb.plot.clusters(fit, data),
        lambda: sb.plot.clusters(fit, data, columns=["a", "b"]),
        lambda: sb.plot.density(fit, "a", data),
        lambda: sb.plot.responsibilities(fit, data),
    ]
    for draw in draws:
        with pytest.raises(sb.InvalidArgument) as caught:
            draw()
        assert caught.value.argument == "X"
        assert caught.value.allowed
        assert found in str(caught.value)
    assert not pyplot.get_fignums()


def test_a_column_without_a_value_has_no_histogram() -> None:
    fit = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), NOISE, missing="marginalize")
    holes = NOISE.assign(b=np.nan)
    with pytest.raises(sb.InvalidArgument, match="without a value in 'b'"):
        sb.plot.density(fit, "b", holes)
    assert sb.plot.density(fit, "a", holes).patches


@pytest.mark.parametrize("n_components", [2, 10, 11, 28])
@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.one_in(3)
def test_legends_are_short_and_leave_other_axes_free(n_components: int, layout: str | None) -> None:
    centres = np.stack([np.arange(n_components) * 9.0, np.arange(n_components) % 3 * 9.0], axis=1)
    data = np.random.default_rng(0).normal(np.repeat(centres, 20, axis=0))
    init = np.repeat(np.arange(n_components), 20)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), data, sb.Full(max_passes=1, tol=0.0), init=init)
    assert fit.n_occupied == n_components
    draws: list[Callable[[Any], Any]] = [
        lambda ax: sb.plot.clusters(fit, data, ax=ax),
        lambda ax: sb.plot.density(fit, 0, data, ax=ax),
    ]
    for draw, last in zip(draws, ([], ["all components", "rows"]), strict=True):
        figure, (left, right) = pyplot.subplots(1, 2, layout=layout)
        legend = draw(left).get_legend()
        texts = [text.get_text() for text in legend.get_texts()]
        assert texts[len(texts) - len(last) :] == last
        named = [text for text in texts if text.startswith("component ")]
        assert [int(text.split()[1].strip(",")) for text in named] == list(range(min(n_components, 10)))
        more = [text for text in texts if text.startswith("and ")]
        others = n_components - 10
        assert more == ([] if others <= 0 else ["and 1 other" if others == 1 else f"and {others} others"])
        figure.canvas.draw()
        box = legend.get_window_extent()
        assert not box.overlaps(right.get_tightbbox())
        assert box.height <= left.get_window_extent().height
        pyplot.close(figure)


def test_numbers_of_components_have_whole_ticks() -> None:
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), NOISE)
    ticks = sb.plot.n_components(fit).get_yticks()
    np.testing.assert_array_equal(ticks, ticks.round())


def test_the_extra_installs_all_that_pictures_import(checkout: Path) -> None:
    extras = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert {requirement.split(">=")[0] for requirement in extras["plot"]} == {"matplotlib"}


def test_the_density_of_a_trace_has_a_band() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 1))
    model = sb.Mixture(likelihood=sb.Gaussian())
    trace = sb.sample(model, rows, draws=10, warmup=2, chains=1, threads=1)
    drawn = sb.plot.density(trace, 0, rows)
    grid, curve = drawn.lines[0].get_data()
    np.testing.assert_allclose(curve, trace.density(np.asarray(grid)[:, None]).mean)
    assert len(drawn.collections) == 1
    assert len(drawn.containers) == 1
    assert grid[0] < rows.min()
    assert grid[-1] > rows.max()
    with pytest.raises(sb.InvalidArgument, match="column"):
        sb.plot.density(trace, 1)
    for column in (False, 0.0, np.array([])):
        with pytest.raises(sb.InvalidType, match="column"):
            sb.plot.density(trace, column)  # type: ignore[arg-type]
    wide = sb.sample(model, np.column_stack([rows, rows**2]), draws=2, warmup=0, chains=1, threads=1)
    with pytest.raises(sb.NotSupported, match=r"Trace\.density"):
        sb.plot.density(wide)


def test_autocorrelations_have_a_line_for_each_chain(trace: sb.Trace) -> None:
    drawn = sb.plot.autocorrelation(trace, "n_clusters", 5)
    values = trace.autocorrelation("n_clusters", 5)
    for line, expected in zip(drawn.lines, values, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), expected)
    assert len(drawn.lines) == len(values) + 1
