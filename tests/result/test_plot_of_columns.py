"""Pictures of tables of several kinds of columns: values by name, beside those of all rows."""

from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib import pyplot

import stickbreak as sb

mpl.use("Agg")

N = 240
RNG = np.random.default_rng(0)
KIND = np.arange(N) % 3
TABLE = pd.DataFrame(
    {
        "town": np.array(["Ulm", "Bonn", "Jena"])[np.where(RNG.random(N) < 0.9, KIND, 0)],
        "age": RNG.normal(30 + 12 * KIND, 4),
        "visits": RNG.poisson(2 + 6 * KIND),
        "income": RNG.normal(20 + 5 * KIND, 2),
        "member": RNG.random(N) < 0.2 + 0.3 * KIND,
        "sex": np.where(RNG.random(N) < 0.2 + 0.6 * (KIND > 0), "f", "m"),
    }
)
MODEL = sb.Mixture(likelihood=sb.columns_for(TABLE, verbose=False))


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Draw every picture to its end, and close it."""
    yield
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


@pytest.fixture(scope="module")
def fit() -> sb.Fit:
    found = sb.fit(MODEL, TABLE, missing="marginalize")
    assert found.n_occupied == 3
    return found


@pytest.fixture(scope="module")
def simulated(fit: sb.Fit) -> pd.DataFrame:
    """Rows of the fit, with a column for each level."""
    rows = pd.DataFrame(fit.sample(200_000, seed=1), columns=fit.column_names)
    for name in ("town", "sex"):
        for code, level in enumerate(fit.levels[name]):
            rows[f"{name} = {level}"] = rows[name] == code
    return rows.astype(float)


def expected(fit: sb.Fit, k: int) -> dict[str, float]:
    """The values of component k by the names of a card, from the table of components."""
    estimates = fit.point_estimates
    found = fit.summary().loc[k]
    values = {name: float(found[f"mean {name}"]) for name in ("age", "visits", "income")}
    values["member"] = float(found["probability member"])
    for place, name in enumerate(("town", "sex")):
        for code, level in enumerate(fit.levels[name]):
            values[f"{name} = {level}"] = float(estimates["town, sex"]["probabilities"][k, place, code])
    return values


def share(probability: float) -> str:
    return f"{100 * probability:.{3 if probability >= 0.01 else 2}g}%"


def labels_of(ax: Any) -> dict[str, str]:
    return dict(label.get_text().split(": ", maxsplit=1) for label in ax.get_yticklabels())


@pytest.mark.parametrize("k", [0, 2])
def test_a_card_has_every_kind_of_column(fit: sb.Fit, simulated: pd.DataFrame, k: int) -> None:
    ax = sb.plot.card(fit, k, n_columns=20)
    labels, values = labels_of(ax), expected(fit, k)
    better = max("fm", key=lambda level: values[f"sex = {level}"])
    assert set(labels) == {
        "age",
        "visits",
        "income",
        "member",
        "town = Ulm",
        "town = Bonn",
        "town = Jena",
        f"sex = {better}",
    }
    for bar, name in zip(ax.patches, labels, strict=True):
        away = (values[name] - simulated[name].mean()) / simulated[name].std()
        assert bar.get_width() == pytest.approx(away, abs=0.06)
        first = labels[name].split(" (")[0]
        assert first == share(values[name]) if "%" in first else first.startswith(f"{values[name]:.4g} ± ")
    widths = [abs(bar.get_width()) for bar in ax.patches]
    assert widths == sorted(widths, reverse=True)
    whole = float(labels["age"].split("(all: ")[1].rstrip(")"))
    assert whole == pytest.approx(simulated["age"].mean(), abs=0.2)
    assert len(sb.plot.card(fit, k, n_columns=3).patches) == 3


def test_profiles_have_all_components_and_groups_of_columns(fit: sb.Fit) -> None:
    ax = sb.plot.profiles(fit)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:4] == ["age", "income", "visits", "member"]
    assert names[4:7] == ["town = Bonn", "town = Jena", "town = Ulm"]
    assert names[7] in ("sex = f", "sex = m")
    order = np.argsort(-fit.weights, kind="stable")
    assert [label.get_text().split("\n")[0] for label in ax.get_xticklabels()] == [str(k) for k in order]
    image = np.asarray(ax.images[0].get_array())
    texts = {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in ax.texts}
    for place, k in enumerate(order.tolist()):
        card = sb.plot.card(fit, k, n_columns=20)
        bars = dict(zip(labels_of(card), (bar.get_width() for bar in card.patches), strict=True))
        values = expected(fit, k)
        for line, name in enumerate(names):
            if name in bars:
                assert image[line, place] == pytest.approx(bars[name])
            written = f"{values[name]:.4g}" if line < 3 else share(values[name])
            assert texts[line, place] == written
    # Lines between kinds.
    assert [line.get_ydata()[0] for line in ax.lines] == [1.5, 2.5, 3.5]
    apart = (fit.weights[order] * image**2).sum(axis=1)
    few = [label.get_text() for label in sb.plot.profiles(fit, n_columns=2).get_yticklabels()]
    assert set(few) == {names[line] for line in np.argsort(-apart)[:2]}


def test_profiles_of_many_components_have_the_largest() -> None:
    init = np.arange(400) // 20
    rows = RNG.normal(np.column_stack([init, init % 3]) * 9.0)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(max_passes=1, tol=0.0), init=init)
    ax = sb.plot.profiles(fit)
    assert np.asarray(ax.images[0].get_array()).shape == (2, 16)
    assert ax.get_xlabel() == f"component, and its weight (and {fit.n_occupied - 16} smaller)"


def test_columns_that_do_not_vary_have_no_density_and_come_last() -> None:
    with pytest.warns(sb.SupportWarning):
        fit = sb.fit(MODEL, TABLE.assign(age=40.0), missing="marginalize")
    *_, last = labels_of(sb.plot.card(fit, 0, n_columns=20))
    assert last == "age"
    assert not np.asarray(sb.plot.profiles(fit).images[0].get_array())[0].any()
    pyplot.close("all")
    for column in ("age", ["income", "age"]):
        with pytest.raises(sb.InvalidArgument) as caught:
            sb.plot.density(fit, column)
        assert caught.value.argument == "column"
    assert not pyplot.get_fignums()


def test_flags_of_two_words_and_codes_without_levels() -> None:
    data = pd.DataFrame({"code": KIND, "smoker": np.where(KIND > 0, "yes", "no"), "x": RNG.normal(9 * KIND)})
    blocks = {"code": sb.Categorical(), "smoker": sb.Bernoulli(), "x": sb.Gaussian()}
    fit = sb.fit(sb.Mixture(likelihood=sb.Columns(blocks)), data, n_components=3)
    assert {"smoker = yes", "code = 0", "code = 1", "code = 2", "x"} == set(labels_of(sb.plot.card(fit, 0)))
    assert sb.plot.means(fit, "smoker").get_xlabel() == "smoker = yes: probability with its 90% interval"


def test_cards_of_codes_alone() -> None:
    codes = pd.DataFrame({"a": KIND % 2, "b": RNG.integers(40, size=N)})
    fit = sb.fit(sb.Mixture(likelihood=sb.Categorical()), codes, n_components=2)
    ax = sb.plot.card(fit, 0, n_columns=99)
    assert sum(name.startswith("a = ") for name in labels_of(ax)) == 1
    assert sum(name.startswith("b = ") for name in labels_of(ax)) == 12
    with pytest.raises(sb.NotSupported, match=r"codes have no means; use plot\.card"):
        sb.plot.means(fit)


@pytest.mark.parametrize("column", ["age", "visits", "member"])
def test_means_have_the_intervals_of_their_block(fit: sb.Fit, column: str) -> None:
    block = next(key for key in fit.point_estimates if column in key.split(", "))
    place = block.split(", ").index(column)
    ((name, points),) = [(key, each) for key, each in fit.point_estimates[block].items() if key != "covariance"]
    low, high = fit.intervals(0.5, seed=3)[block][name][:, :, place]
    order = np.argsort(-fit.weights, kind="stable")
    for bar, k in zip(sb.plot.means(fit, column, level=0.5, seed=3).containers, order, strict=True):
        point, caps, _ = bar
        assert point.get_xdata()[0] == points[k, place]
        ends = min(low[k], points[k, place]), max(high[k], points[k, place])
        np.testing.assert_allclose([cap.get_xdata()[0] for cap in caps], ends)


def test_the_density_of_a_column_is_its_marginal(fit: sb.Fit) -> None:
    ax = sb.plot.density(fit, "income", TABLE)
    *curves, total = ax.lines
    assert len(curves) == 3
    grid = np.asarray(total.get_xdata())
    np.testing.assert_allclose(
        total.get_ydata(), np.exp(fit.marginal("income", plug_in=True).log_density(grid)), atol=1e-3
    )
    assert sum(bar.get_width() * bar.get_height() for bar in ax.patches) == pytest.approx(1.0)


def test_lines_of_equal_density_have_their_shares_inside(fit: sb.Fit) -> None:
    holes = TABLE.copy()
    holes.loc[:4, ["age", "income"]] = np.nan
    ax = sb.plot.density(fit, ["income", "age"], holes)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("income", "age")
    contours, points = ax.collections[::-1]
    assert len(points.get_offsets()) == N - 5
    law = fit.marginal(["income", "age"], plug_in=True)
    heights = np.exp(law.log_density(law.sample(50_000, seed=2)))
    for level, share in zip(contours.levels, (0.95, 0.8, 0.5), strict=True):
        assert (heights >= level).mean() == pytest.approx(share, abs=0.01)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["95% inside", "80% inside", "50% inside", "rows"]


def test_two_columns_of_a_gaussian_have_lines_too() -> None:
    rows = RNG.multivariate_normal([0, 0], [[2, 1], [1, 2]], size=200)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, n_components=1)
    levels = sb.plot.density(fit, [0, 1]).collections[0].levels
    law = scipy.stats.multivariate_normal(fit.point_estimates["mean"][0], fit.point_estimates["covariance"][0])
    peak = law.pdf(law.mean)
    np.testing.assert_allclose(levels, [peak * 0.05, peak * 0.2, peak * 0.5], rtol=0.02)


def test_rows_lie_on_two_columns_and_on_principal_components_of_numbers(fit: sb.Fit) -> None:
    holes = TABLE.assign(sex=TABLE["sex"].where(np.arange(N) > 4))
    ax = sb.plot.clusters(fit, holes, columns=["visits", "income"])
    points = np.concatenate([each.get_offsets() for each in ax.collections])
    assert len(points) == N
    assert not np.isnan(points).any()
    for k, ellipse in enumerate(ax.patches):
        found = fit.summary().loc[k]
        np.testing.assert_allclose(ellipse.center, [found["mean visits"], found["mean income"]])
    ax = sb.plot.clusters(fit, holes)
    points = np.concatenate([each.get_offsets() for each in ax.collections])
    numbers = TABLE[["age", "visits", "income", "member"]].astype(float)
    singular = np.linalg.svd((numbers - numbers.mean()) / numbers.std(ddof=0), compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(points, axis=0), singular[:2], rtol=1e-9)


def test_a_row_that_lacks_another_column_is_drawn() -> None:
    rows = RNG.normal(size=(50, 3))
    rows[0, 2] = np.nan
    fit = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), rows, n_components=1, missing="marginalize")
    assert not np.isnan(sb.plot.clusters(fit, rows, columns=[0, 1]).collections[0].get_offsets()).any()


REFUSED: list[tuple[Callable[[sb.Fit], object], str, str]] = [
    (lambda fit: sb.plot.means(fit, "town"), "column", "'town' of categories"),
    (lambda fit: sb.plot.density(fit, "visits"), "column", "'visits' of NegativeBinomial"),
    (lambda fit: sb.plot.density(fit, ["age", "sex"]), "column", "'sex' of Categorical"),
    (lambda fit: sb.plot.clusters(fit, TABLE, columns=["age", "town"]), "column", "'town' of categories"),
]


@pytest.mark.parametrize(("draw", "argument", "found"), REFUSED)
def test_refused(fit: sb.Fit, draw: Callable[[sb.Fit], object], argument: str, found: str) -> None:
    with pytest.raises(sb.NotSupported, match=found) as caught:
        draw(fit)
    assert caught.value.argument == argument
    assert "plot.card" in str(caught.value)
    assert not pyplot.get_fignums()


def test_a_fit_of_one_column_of_numbers_has_no_plane() -> None:
    data = TABLE[["age", "town"]]
    fit = sb.fit(sb.Mixture(likelihood=sb.columns_for(data, verbose=False)), data, n_components=2)
    with pytest.raises(sb.NotSupported, match="'town' of categories"):
        sb.plot.clusters(fit, data)


DOLLARS = ("$x_{$", "price in $", "$\\frac{$", "\\$a$ and \\b")


@pytest.mark.parametrize("first", DOLLARS)
def test_dollars_in_names_are_no_formulas(first: str) -> None:
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    words = np.array(["$\\frac{$", "$"])
    table = pd.DataFrame({first: rng.normal(9.0 * kind), "$_{": rng.normal(size=60), "w": words[kind]})
    table["f"] = words[rng.permutation(kind)]
    parts = {(first, "$_{"): sb.Gaussian(), "w": sb.Categorical(), "f": sb.Bernoulli()}
    fit = sb.fit(sb.Mixture(sb.Columns(parts)), table, sb.Full(max_passes=3, tol=0), n_components=2)
    pictures = {
        "clusters": sb.plot.clusters(fit, table, columns=[0, 1]),
        "density": sb.plot.density(fit, 0),
        "card": sb.plot.card(fit, 0),
        "profiles": sb.plot.profiles(fit),
        "means": sb.plot.means(fit, 0),
        "means of flags": sb.plot.means(fit, "f"),
    }
    for name, drawn in pictures.items():
        drawn.figure.canvas.draw()
        labels = [drawn.xaxis.label, drawn.yaxis.label, *drawn.get_xticklabels(), *drawn.get_yticklabels()]
        for label in labels:
            shown, is_formula = label._preprocess_math(label.get_text())
            assert not is_formula, (name, shown)
    label = pictures["density"].xaxis.label
    assert label._preprocess_math(label.get_text())[0] == first


def test_dollars_in_words_of_topics_and_in_columns_of_a_trace() -> None:
    counts = np.random.default_rng(0).poisson(2.0, size=(20, 3))
    topics = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Full(max_passes=2, tol=0))
    for words in (DOLLARS[:3], DOLLARS[1:]):
        sb.plot.topics(topics, words).figure.canvas.draw()
        sb.plot.topic(topics, 0, words).figure.canvas.draw()
    table = pd.DataFrame({DOLLARS[0]: counts[:, 0] + np.random.default_rng(1).normal(size=20)})
    trace = sb.sample(sb.Mixture(sb.Gaussian()), table, draws=5, warmup=0, chains=1)
    drawn = sb.plot.density(trace, 0)
    drawn.figure.canvas.draw()
    assert drawn.get_xlabel() == DOLLARS[0].replace("$", r"\$")


def test_messages_of_pictures_name_columns_as_they_are() -> None:
    table = pd.DataFrame({"$a": ["x", "y"] * 20, "b": np.arange(40.0)})
    columns = sb.Columns({"$a": sb.Categorical(), "b": sb.Gaussian()})
    fit = sb.fit(sb.Mixture(columns), table, sb.Full(max_passes=2, tol=0), n_components=1)
    with pytest.raises(sb.NotSupported, match=r"the column '\$a'"):
        sb.plot.density(fit, "$a")
