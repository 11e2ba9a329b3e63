"""Columns that nearly follow from others, such as the end of a job beside its start (mathematics 1.10)."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from cases import same_draws

Array = NDArray[np.float64]


def jobs(n: int = 600, *, whole: bool = False, seed: int = 0) -> tuple[Array, Array, NDArray[np.int64]]:
    """Start and end in seconds, start and duration, and the kinds of jobs, which durations tell apart."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, size=n)
    start = rng.normal(1.6e9, 3e6, size=n).round()
    duration = rng.normal(np.array([10.0, 60.0])[kinds], np.array([1.0, 5.0])[kinds])
    # The numbers that float64 holds, so that both tables say the same.
    end = start + (duration.round() if whole else duration)
    return np.column_stack([start, end]), np.column_stack([start, end - start]), kinds


def fitted(rows: Any, likelihood: Any = None, **options: Any) -> sb.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SupportWarning)
        return sb.fit(sb.Mixture(likelihood=likelihood or sb.Gaussian()), rows, **options)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_differences_keep_their_digits(whole: bool, seed: int) -> None:
    """The fit of starts and ends is that of starts and durations: the map has volume one."""
    rows, plain, kinds = jobs(whole=whole, seed=seed)
    fit, expected = fitted(rows), fitted(plain)
    assert adjusted_rand_score(kinds, fit.predict(rows)) > 0.95
    np.testing.assert_array_equal(fit.predict(rows), expected.predict(plain))
    assert fit.elbo == pytest.approx(expected.elbo, rel=1e-9)
    np.testing.assert_allclose(fit.log_predictive(rows), expected.log_predictive(plain), rtol=1e-6)
    assert fit.support.residual == (1,)
    assert fit.support.dependent == ()
    assert fit.support.rank == 2
    assert "nearly follows from the others" in {each.kind: each.text for each in fit.advice()}["residual_columns"]


def test_results_are_in_the_columns_of_the_data(tmp_path: Any) -> None:
    rows, plain, _ = jobs()
    fit, expected = fitted(rows), fitted(plain)
    for mean, other in zip(fit.components["mean"], expected.components["mean"], strict=True):
        assert mean[1] - mean[0] == pytest.approx(other[1], abs=1e-3)
    # Durations of drawn rows, and of rows under a condition.
    drawn = fit.sample(2000, seed=1)
    assert np.std(drawn[:, 1] - drawn[:, 0]) == pytest.approx(np.std(plain[:, 1]), rel=0.1)
    given = fit.conditional({0: 1.6e9})
    other = expected.conditional({0: 1.6e9})
    assert given.mean[0] - 1.6e9 == pytest.approx(other.mean[0], rel=1e-3)
    assert fit.marginal([1]).mean[0] == pytest.approx(rows[:, 1].mean(), rel=1e-4)
    np.testing.assert_allclose(fit.marginal([0, 1]).log_density(rows[:50]), fit.log_predictive(rows[:50]), rtol=1e-4)
    fit.save(tmp_path / "jobs.safetensors")
    loaded = sb.load(tmp_path / "jobs.safetensors")
    assert isinstance(loaded, sb.Fit)
    np.testing.assert_array_equal(loaded.log_predictive(rows), fit.log_predictive(rows))
    assert loaded.support.residual == (1,)
    again = sb.fit(fit.model, rows, init=fit)
    np.testing.assert_array_equal(again.predict(rows), fit.predict(rows))
    assert np.isfinite(fit.update(rows[:100]).elbo)


@pytest.mark.parametrize("front", [False, True])
def test_blocks_may_have_other_columns_in_front(front: bool) -> None:
    """Slopes are those of the columns of a block, wherever it stands."""
    rng = np.random.default_rng(3)
    start = rng.normal(4.0, 2.0, size=500)
    pair = np.column_stack([start, 3.0 * start + rng.normal(0.0, 1e-6, size=500)])
    counts = rng.poisson(4.0, size=(500, 1)).astype(float)
    first, second, count = (1, 2, 0) if front else (0, 1, 2)
    rows = np.hstack([counts, pair] if front else [pair, counts])
    fit = fitted(rows, sb.Columns({(count,): sb.Poisson(), (first, second): sb.Gaussian()}))
    assert fit.support.residual == (second,)
    given = fit.conditional({first: 5.0})
    assert given.mean[sorted([second, count]).index(second)] == pytest.approx(15.0, abs=1e-4)
    # The marginal is a Student t. It has so many degrees of freedom that a normal density is close enough.
    found = fit.marginal([second]).log_density([[15.0]])[0]
    mean, scale = pair[:, 1].mean(), pair[:, 1].std()
    assert found == pytest.approx(-0.5 * ((15.0 - mean) / scale) ** 2 - np.log(scale * np.sqrt(2.0 * np.pi)), abs=0.05)


def test_frames_streams_and_float32() -> None:
    rows, _, kinds = jobs()
    frame = pd.DataFrame(rows, columns=["start", "end"]).assign(kind=np.where(np.arange(600) % 2, "a", "b"))
    fit = fitted(frame, sb.Columns({("start", "end"): sb.Gaussian(), ("kind",): sb.Categorical()}))
    assert adjusted_rand_score(kinds, fit.predict(frame)) > 0.95
    stream = fitted(lambda: iter([rows[:250], rows[250:]]))
    assert adjusted_rand_score(kinds, stream.predict(rows)) > 0.95
    small = (rows - [1.6e9, 1.6e9]).astype(np.float32)
    assert adjusted_rand_score(kinds, fitted(small).predict(small)) > 0.8


def test_two_columns_near_one_and_one_that_follows_from_them() -> None:
    rows, plain, _ = jobs()
    rng = np.random.default_rng(5)
    wait = rng.gamma(4.0, 2.0, size=600)
    table = np.column_stack([rows[:, 0] - wait, rows, 2.0 * rows[:, 1] - rows[:, 0]])
    fit = fitted(table)
    expected = fitted(np.column_stack([rows[:, 0] - wait, wait, plain[:, 1]]))
    assert fit.support.residual == (1, 2)
    assert fit.support.dependent == (3,)
    assert (
        adjusted_rand_score(fit.predict(table), expected.predict(np.column_stack([table[:, 0], wait, plain[:, 1]])))
        > 0.95
    )


def test_columns_that_follow_exactly_are_left_out() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(1e6, 2e5, size=(400, 2)).round(2)
    euros = (0.92 * x[:, 0]).round(2)
    fit = fitted(np.column_stack([x, euros, x.sum(axis=1)]))
    assert fit.support.dependent == (2, 3)
    assert fit.support.residual == ()


def test_samplers_and_student_t() -> None:
    rows, plain, kinds = jobs(300)
    fit = fitted(rows, sb.StudentT())
    assert adjusted_rand_score(kinds, fit.predict(rows)) > 0.95
    same_draws(sb.Gaussian(), rows, plain)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 1, 0)])
def test_three_related_times_in_any_order(order: tuple[int, ...]) -> None:
    """Second moments tell two directions of three, and not which columns they are."""
    rng = np.random.default_rng(41)
    kinds = np.arange(800) % 2
    start = 1.6e9 + rng.normal(0.0, 8e6, size=800).round()
    duration = np.where(kinds == 0, rng.normal(60.0, 5.0, size=800), rng.normal(300.0, 20.0, size=800)).round()
    rows = np.column_stack([start, start + duration, start + rng.normal(3600.0, 600.0, size=800).round()])
    fit = fitted(rows[:, order])
    assert fit.support.residual == (1, 2)
    assert adjusted_rand_score(kinds, fit.predict(rows[:, order])) > 0.95


def test_rounded_copies_in_float32_are_left_out() -> None:
    rng = np.random.default_rng(1)
    dollars = np.where(np.arange(500) % 2, rng.normal(100.0, 5.0, size=500), rng.normal(200.0, 9.0, size=500)).round(2)
    fit = fitted(np.column_stack([dollars, (0.92 * dollars).round(2)]).astype(np.float32))
    assert fit.support.dependent == (1,)
    assert fit.n_occupied == 2


@pytest.mark.parametrize("separation", [1.5, 8.0])
@pytest.mark.parametrize("beside", ["number", "time"])
def test_a_class_in_the_order_of_rows_stays(separation: float, beside: str) -> None:
    """Rows sorted by class: it is a function of the row number and of the time, and tells the clusters."""
    rng = np.random.default_rng(2)
    kinds = np.repeat([0, 1, 2], 200)
    place = rng.normal(size=(600, 2)) + separation * np.array([[0, 0], [1, 0], [0, 1]])[kinds]
    other = np.arange(600.0) if beside == "number" else 1.6e9 + np.cumsum(rng.exponential(30.0, size=600))
    rows = np.column_stack([other, kinds, place])
    fit = fitted(rows)
    assert (fit.n_components, fit.support.dependent) == (3, ())
    assert adjusted_rand_score(kinds, fit.predict(rows)) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_residuals_far_below_the_digits_of_a_matrix(seed: int) -> None:
    """Milliseconds over months: the fit is that of the difference, and its scale is refused as a given one."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, size=800)
    start = 1.6e12 + rng.normal(0.0, 1e10, size=800).round()
    rows = np.column_stack(
        [start, start + rng.normal(np.array([60.0, 5.0])[kinds], np.array([8.0, 1.0])[kinds]).round()]
    )
    fit = fitted(rows)
    assert fit.n_occupied == 2
    assert adjusted_rand_score(kinds, fit.predict(rows)) == 1.0
    with pytest.raises(sb.InvalidArgument, match=r"scale .* column 1 has beyond the others is lost"):
        sb.fit(fit.model, rows)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_few_repeated_values_are_no_function(seed: int) -> None:
    """Thirty rows drawn again and again, in two clusters."""
    rng = np.random.default_rng(seed)
    base = rng.normal(np.repeat([[-4.0, -4.0], [4.0, 4.0]], 15, axis=0))
    fit = fitted(base[rng.integers(0, 30, size=150)])
    assert (fit.n_components, fit.support.dependent) == (2, ())


@pytest.mark.parametrize("seed", range(3))
def test_what_float32_leaves_of_a_column_is_nothing(seed: int) -> None:
    values = np.random.default_rng(seed).normal(170.0, 9.0, size=1000)
    fit = fitted(np.column_stack([values, values.astype(np.float32)]))
    assert (fit.n_components, fit.support.residual) == (1, ())
    assert len(fit.support.dependent) == 1
    # Whole seconds are numbers of float32, too, and what is left of them counts.
    durations = np.array([10.0, 20.0])[np.arange(600) % 2] + np.random.default_rng(seed).normal(size=600).round()
    start = np.random.default_rng(seed).uniform(0.0, 1e7, size=600).round()
    assert fitted(np.column_stack([start, start + durations])).support.residual == (1,)


@pytest.mark.parametrize("seed", range(2))
def test_functions_of_a_whole_column_are_left_out(seed: int) -> None:
    """Groups in any order, curves and rare thresholds follow from whole ages; a table of any values does not."""
    rng = np.random.default_rng(seed)
    ages = rng.normal(45.0, 12.0, size=1500).round()
    groups = np.array([3.0, 0.0, 5.0, 2.0, 4.0, 1.0])[np.digitize(ages, [20, 30, 40, 50, 60])]
    logs = np.log(np.maximum(ages, 1.0))
    for other in (groups, ages**2, (ages - 45.0) ** 2, logs, np.sin(ages / 8.0), ages >= np.sort(ages)[5]):
        for rows, place in (([ages, other], 1), ([-3.0 * other, ages / 7.0], 0)):
            fit = fitted(np.column_stack(rows))
            assert (fit.n_components, fit.support.dependent) == (1, (place,))
            assert fit.search_rows is None
    kinds = np.arange(1500) % 2
    ages = rng.normal(30.0 + 30.0 * kinds, 5.0).round()
    groups = np.array([3.0, 0.0, 5.0, 2.0, 4.0, 1.0])[np.digitize(ages, [20, 30, 40, 50, 60])]
    rows = np.column_stack([ages, groups, rng.normal(5.0 * kinds)])
    assert adjusted_rand_score(kinds, fitted(rows).predict(rows)) > 0.99
    table = rng.normal(size=200)[np.abs(ages).astype(int)]
    few = sb.Full(max_passes=2)
    assert fitted(np.column_stack([ages, table, rows[:, 2]]), algorithm=few).support.dependent == ()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_differences_that_another_column_foretells_stay(seed: int, decimals: int | None) -> None:
    """The last day is the first one or the next, as the price tells roughly: no rounding, but what tells clusters."""
    rng = np.random.default_rng(seed)
    n = (600, 1500, 3000)[seed]
    kinds = rng.integers(2, size=n)
    first, price = rng.normal(180.0, 40.0, size=n).round(), rng.normal(100.0 + 30.0 * kinds, 10.0)
    price = price if decimals is None else price.round(decimals)
    rows = np.column_stack([first, first + kinds, price])
    fit = fitted(rows)
    assert fit.support.dependent == ()
    assert adjusted_rand_score(kinds, fit.predict(rows)) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_a_column_are_left_out(seed: int, tmp_path: Any) -> None:
    """Groups of ages follow from whole ages, and tell nothing: the clusters are those without them."""
    rng = np.random.default_rng(seed)
    ages, other = rng.normal(45.0, 12.0, size=1000).round(), rng.normal(size=1000)
    for groups in (np.digitize(ages, [30, 50, 65]), ages >= 40, 9 - ages // 15):
        fit = fitted(np.column_stack([ages, groups]))
        assert (fit.n_components, fit.support.dependent) == (1, (1,))
    kinds = np.arange(1500) % 3
    ages = rng.normal(np.array([25.0, 45.0, 70.0])[kinds], 4.0).round()
    rows = np.column_stack([np.digitize(ages, [35, 58]), ages, rng.normal(size=1500)])
    fit = fitted(rows)
    np.testing.assert_array_equal(fit.predict(rows), fitted(rows[:, 1:]).predict(rows[:, 1:]))
    assert fit.support.dependent == (0,)
    assert np.isfinite(fit.log_predictive(rows)).all()
    fit.save(tmp_path / "fit.safetensors")
    again = sb.load(tmp_path / "fit.safetensors")
    np.testing.assert_array_equal(again.log_predictive(rows), fit.log_predictive(rows))
    # The model does not see the column, whatever value it has in a new row: beyond the oldest age, or a wrong one.
    new = np.array([[2.0, 99.0, 0.0], [0.0, 99.0, 0.0]])
    densities = fit.log_predictive(new)
    assert densities[0] == densities[1]
    np.testing.assert_allclose(densities, fitted(rows[:, 1:]).log_predictive(new[:, 1:]), rtol=1e-3)
    with pytest.warns(sb.SupportWarning, match="column 0"):
        trace = sb.sample(sb.Mixture(sb.Gaussian()), rows[:400], draws=5, warmup=5, chains=1, progress=False)
    assert trace.support.dependent == (0,)
    # Groups of groups follow from the ages, too.
    decades = ages // 10
    with pytest.warns(sb.SupportWarning, match="columns 0, 1"):
        both = sb.sample(
            sb.Mixture(sb.Gaussian()),
            np.column_stack([decades > 4, decades, ages])[:400],
            draws=5,
            warmup=5,
            chains=1,
            progress=False,
        )
    assert both.support.dependent == (0, 1)
    # Rows of another year, in which the column says something else, come behind the first thousands.
    early = np.column_stack([rng.normal(45.0, 9.0, 4100).round(), np.zeros(4100)])
    early[:, 1] = early[:, 0] >= 40
    late = np.column_stack([rng.normal(45.0, 9.0, 3000).round(), rng.integers(0, 2, 3000)])
    both = fitted(np.concatenate([early, late]), algorithm=sb.Full(max_passes=2))
    assert both.support.dependent == ()
    # A flag that one row contradicts is a flag, and so are groups of values that hardly repeat.
    contradicted = (ages >= 40).astype(float)
    contradicted[0] = 1.0 - contradicted[0]
    assert fitted(np.column_stack([contradicted, ages]), algorithm=sb.Full(max_passes=2)).support.dependent == ()
    for groups in (other > 0.0, np.searchsorted([-1.0, 0.0, 1.0], other)):
        rows = np.column_stack([groups, other])
        assert fitted(rows, algorithm=sb.Full(max_passes=2)).support.dependent == ()
    for one in (np.log(other + 9.0), groups ^ 1):
        rows = np.column_stack([one, other])
        assert fitted(rows, algorithm=sb.Full(max_passes=2)).support.dependent == ()


def converted(kind: str, clusters: int, n: int, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Two columns, one computed from the other and rounded."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, clusters, size=n)
    values = rng.normal(np.array([30.0, 70.0, 110.0])[labels], 5.0)
    if kind == "Fahrenheit":
        first = values.round()
        second = (1.8 * first + 32.0).round()
    elif kind == "Celsius":
        first = values.round()
        second = ((first - 32.0) / 1.8).round(1)
    elif kind == "both":
        first = values.round()
        second = (values / 2.54).round()
    elif kind == "centimetres":
        first = (values / 4.0).round()
        second = (2.54 * first).round()
    elif kind == "inches":
        first = values.round()
        second = (first / 2.54).round()
    else:
        first = values.round(1)
        second = (2.2046 * first).round(1)
    return np.column_stack([first, second]), labels


@pytest.mark.parametrize("kind", ["Fahrenheit", "Celsius", "inches", "centimetres", "both", "pounds"])
@pytest.mark.parametrize(("clusters", "n"), [(1, 4000), (3, 1500)])
def test_columns_computed_and_rounded_are_left_out(kind: str, clusters: int, n: int) -> None:
    rows, labels = converted(kind, clusters, n, seed=n)
    for table in (rows, rows[:, ::-1], rows * [16.0, -0.25], rows.astype(np.float32)):
        fit = fitted(table)
        assert fit.n_components == clusters
        assert len(fit.support.dependent) == 1
        assert clusters == 1 or adjusted_rand_score(labels, fit.predict(table)) > 0.98
        assert np.isfinite(fit.log_predictive(table)).all()


def test_rounded_columns_beside_others(tmp_path: Any) -> None:
    """A rounded column on which a copy depends, and the file of the fit."""
    rows, labels = converted("inches", 3, 1500, seed=3)
    other = np.random.default_rng(3).normal(labels, 0.2)
    table = np.column_stack([rows[:, 1], other, rows[:, 0], 3.0 * rows[:, 1] - 2.0])
    fit = fitted(table)
    assert fit.support.dependent == (0, 3)
    assert adjusted_rand_score(labels, fit.predict(table)) > 0.98
    fit.save(tmp_path / "fit.stickbreak")
    again = sb.load(tmp_path / "fit.stickbreak")
    np.testing.assert_array_equal(again.log_predictive(table), fit.log_predictive(table))
    assert np.isfinite(fit.log_predictive(table)).all()
    with pytest.warns(sb.SupportWarning, match="1500 rows lie off the subspace of the fit in column 0"):
        assert np.isneginf(fit.log_predictive(table + np.array([3.0, 0.0, 0.0, 0.0]))).all()


def test_what_is_no_rounding_stays() -> None:
    """First and last days that are equal or one day apart, groups of noise, and few rows."""
    rng = np.random.default_rng(4)
    first = rng.normal(200.0, 60.0, size=2000).round()
    days = np.column_stack([first, first + rng.integers(0, 2, size=2000)])
    value = rng.normal(size=400)
    flag = np.column_stack([value, value + 0.2 * rng.normal(size=400) > 0.0])
    few = rng.normal(size=(12, 5)).round(1)
    for table in (days, flag, few):
        assert fitted(table).support.dependent == ()


@pytest.mark.parametrize("seed", range(3))
def test_lines_under_a_given_scale_stay_in_any_order(seed: int) -> None:
    """A scale that lets rows vary beside the line keeps both columns, whatever rounding errors say."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(11, 1)) * [1.0, 1.9049461] + rng.normal(size=(11, 2)) * [0.0, 2e-9]
    likelihood = sb.ZeroMeanGaussian(dof=4.7, scale=[[8.0, 7.6], [7.6, 23.0]])
    few = sb.Full(max_passes=1)
    fits = [fitted(rows[rng.permutation(11)], likelihood, algorithm=few, n_components=1) for _ in range(8)]
    assert {fit.support.rank for fit in fits} == {2}
    assert [fit.elbo for fit in fits] == pytest.approx([fits[0].elbo] * 8, rel=1e-9)
