"""Copies of rows and weights, which look like dense clusters, and values that are rounded (mathematics 10.5, 10.12)."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from cases import same_draws

Array = NDArray[np.float64]


def clusters(seed: int, n: int, d: int, k: int = 4) -> tuple[Array, NDArray[np.int64]]:
    """Rows of k separated normal clusters of different sizes and shapes, in random order, and their labels."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((k, d))
    centres[:, 0] = 14.0 * rng.permutation(k)
    centres += rng.uniform(-1.0, 1.0, size=(k, d))
    labels = rng.permutation(np.arange(n) * k // n)
    shapes = np.eye(d) + 0.4 * rng.normal(size=(k, d, d)) / d
    rows = centres[labels] + np.einsum("nde,ne->nd", shapes[labels], rng.normal(size=(n, d)))
    return rows, labels


def fitted(rows: Any, likelihood: Any = None, **options: Any) -> sb.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SupportWarning)
        warnings.simplefilter("ignore", sb.ConversionWarning)
        return sb.fit(sb.Mixture(likelihood=likelihood or sb.Gaussian()), rows, **options)


def kinds(fit: sb.Fit) -> dict[str, str]:
    return {advice.kind: advice.text for advice in fit.advice()}


@given(seed=st.integers(0, 1000), times=st.integers(2, 5), d=st.integers(1, 4))
def test_repeating_a_table_changes_no_label(seed: int, times: int, d: int) -> None:
    rows, _ = clusters(seed, 120, d)
    once, repeated = fitted(rows), fitted(np.tile(rows, (times, 1)))
    assert repeated.search_rows == 120
    assert "copies" in kinds(repeated)
    assert adjusted_rand_score(once.predict(rows), repeated.predict(rows)) == 1.0
    assert repeated.counts.sum() == pytest.approx(120 * times)


@given(seed=st.integers(0, 1000), factor=st.sampled_from([1.5, 10.0, 1e6]))
def test_large_weights_change_no_label_when_they_grow(seed: int, factor: float) -> None:
    rows, _ = clusters(seed, 120, 2)
    weights = np.random.default_rng(seed).uniform(1.0, 5.0, size=120)
    one, other = fitted(rows, sample_weight=weights), fitted(rows, sample_weight=factor * weights)
    assert one.search_rows == other.search_rows == 120
    assert "weights" in kinds(one)
    np.testing.assert_array_equal(one.predict(rows), other.predict(rows))
    assert other.counts.sum() == pytest.approx(factor * weights.sum())


@given(seed=st.integers(0, 1000), d=st.integers(1, 3))
def test_weights_are_copies(seed: int, d: int) -> None:
    """Whole weights, also zeros, and as many copies lead to the same bound and labels."""
    rows, _ = clusters(seed, 120, d)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, size=120)
    copied = np.repeat(rows, weights, axis=0)
    one, other = fitted(rows, sample_weight=weights), fitted(copied)
    assert one.search_rows == other.search_rows == np.count_nonzero(weights)
    assert one.elbo == pytest.approx(other.elbo, rel=1e-9)
    np.testing.assert_array_equal(one.predict(rows), other.predict(rows))


@given(seed=st.integers(0, 1000))
def test_what_says_nothing_changes_no_label(seed: int) -> None:
    """A constant, an affine copy and a flag drawn at random, in any order of columns and in other units."""
    rows, _ = clusters(seed, 150, 2)
    rng = np.random.default_rng(seed)
    flag = (rng.random(150) < rng.uniform(0.1, 0.9)).astype(float)
    table = np.column_stack([rows, np.full(150, 7.0), 1.8 * rows[:, 0] + 32.0, flag])
    table = table[:, rng.permutation(5)] * 10.0 ** rng.integers(-3, 4, size=5)
    assert adjusted_rand_score(fitted(rows).predict(rows), fitted(table).predict(table)) == 1.0


@pytest.mark.parametrize(("n", "d"), [(1000, 2), (1000, 5), (400, 20)])
def test_a_bootstrap_sample_has_its_clusters(n: int, d: int) -> None:
    rows, labels = clusters(5, n, d)
    drawn = np.random.default_rng(1).integers(0, n, size=n)
    fit = fitted(rows[drawn])
    assert fit.n_occupied == 4
    assert adjusted_rand_score(labels[drawn], fit.predict(rows[drawn])) > 0.95
    n_distinct = len(np.unique(drawn))
    assert fit.search_rows == n_distinct
    assert f"{n - n_distinct:,} of {n:,} rows are copies" in kinds(fit)["copies"]


def test_the_bound_is_that_of_all_rows() -> None:
    """More passes over all rows under its base measure gain nothing; the records show which rows they are of."""
    rows, _ = clusters(3, 200, 2)
    weights = np.random.default_rng(0).integers(1, 9, size=200)
    fit = fitted(rows, sample_weight=weights)
    again = sb.fit(fit.model, rows, sb.Full(max_passes=3, tol=0.0), init=fit, sample_weight=weights)
    assert fit.elbo == pytest.approx(again.elbo, rel=1e-8)
    assert fit.history[-1].elbo == fit.elbo
    # The first pass after the search lowers no bound, but is of more rows.
    assert fit.objective != fit.history[-1].objective
    assert fit.objective in [record.objective for record in fit.history]
    assert [record.index for record in fit.history] == list(range(len(fit.history)))


def test_files_keep_the_rows_of_the_search(tmp_path: Any) -> None:
    rows, _ = clusters(3, 200, 2)
    fit = fitted(np.tile(rows, (2, 1)))
    fit.save(tmp_path / "fit.safetensors")
    loaded = sb.load(tmp_path / "fit.safetensors")
    assert isinstance(loaded, sb.Fit)
    assert (loaded.search_rows, loaded.objective, loaded.elbo) == (200, fit.objective, fit.elbo)
    assert loaded.update(rows).search_rows is None


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(threads: int) -> None:
    rows, _ = clusters(4, 3000, 3)
    rows = rows[np.random.default_rng(0).integers(0, 3000, size=6000)]
    one, other = fitted(rows, threads=1), fitted(rows, threads=threads)
    assert (one.elbo, one.objective, one.search_rows) == (other.elbo, other.objective, other.search_rows)


def test_starts_are_compared_by_the_rows_of_the_search() -> None:
    rows, _ = clusters(6, 200, 2)
    fit = fitted(np.tile(rows, (3, 1)), n_init=3)
    assert fit.n_occupied == 4
    assert fit.runner_up is not None
    assert fit.runner_up.objective <= fit.objective


def test_labels_and_starts_by_row() -> None:
    rows, labels = clusters(7, 200, 2)
    twice, of_twice = np.tile(rows, (2, 1)), np.tile(labels, 2)
    some = np.where(np.arange(400) % 3 == 0, of_twice, -1)
    fit = fitted(twice, labels=some)
    assert sorted(set(fit.classes)) == [0, 1, 2, 3]
    assert adjusted_rand_score(of_twice, fit.predict(twice)) > 0.95
    given = fitted(twice, init=of_twice)
    assert adjusted_rand_score(of_twice, given.predict(twice)) > 0.95
    table = np.eye(4)[of_twice]
    assert fitted(twice, init=table).search_rows == 200
    assert fitted(twice, n_components=300).search_rows == 200


@pytest.mark.parametrize(
    "weights",
    [np.full(150, 1e-300), np.full(150, 1e9), np.r_[1e9, np.full(149, 1e-9)], np.r_[np.zeros(50), np.ones(100)]],
)
def test_weights_of_any_size(weights: Array) -> None:
    rows, _ = clusters(8, 150, 2)
    if weights.sum() < 1e-100:
        with pytest.raises(sb.InvalidArgument, match="sample_weight"):
            fitted(rows, sample_weight=weights)
        return
    fit = fitted(rows, sample_weight=weights)
    assert np.isfinite(fit.elbo)
    assert fit.counts.sum() == pytest.approx(weights.sum())


@pytest.mark.parametrize("weights", [np.full(150, np.nan), np.full(150, 1e300), np.full(150, -1.0)])
def test_weights_that_are_none(weights: Array) -> None:
    rows, _ = clusters(8, 150, 2)
    with pytest.raises(sb.InvalidArgument, match="sample_weight"):
        fitted(rows, sample_weight=weights)


def test_few_distinct_rows() -> None:
    assert kinds(fitted(np.ones((50, 3))))["duplicates"] == "all rows are equal"
    two = fitted(np.tile([[1.0, 2.0], [3.0, 5.0]], (30, 1)))
    assert np.isfinite(two.elbo)
    three = fitted(np.tile(np.random.default_rng(0).normal(size=(3, 4)), (30, 1)))
    assert three.search_rows == 3
    assert np.isfinite(three.elbo)


def ages(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(50.0, 12.0, size=n).round().clip(18, 90)


@pytest.mark.parametrize("n", [300, 1000, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("beside", ["one", "flag", "fahrenheit", "rounded"])
def test_whole_ages_are_one_component(n: int, beside: str) -> None:
    age, rng = ages(n, n), np.random.default_rng(1)
    column = {
        "one": np.ones(n),
        "flag": (rng.random(n) < 0.5).astype(float),
        "fahrenheit": 1.8 * age + 32.0,
        "rounded": np.round(1.8 * age + 32.0),
    }[beside]
    frame = pd.DataFrame({"age": age, beside: column})
    likelihood = sb.Gaussian()
    if beside == "flag":
        frame[beside] = frame[beside].map(str)
        likelihood = sb.columns_for(frame, verbose=False)  # type: ignore[assignment]
    fit = fitted(frame, likelihood)
    assert fit.n_occupied == 1


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_most_values_whole_and_some_with_tenths(share: float) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(75.0, 12.0, size=1000)
    x = np.where(rng.random(1000) < share, x.round(), x.round(1))[:, None]
    fit = fitted(x)
    assert fit.n_occupied == 1
    assert 0.1 < float(np.max(fit.model.likelihood.resolution)) <= 1.0


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0])
def test_rounded_rows_that_were_copied(step: float) -> None:
    rows, labels = clusters(9, 500, 5)
    rounded = np.round(rows / step) * step
    drawn = np.random.default_rng(3).integers(0, 500, size=500)
    fit = fitted(rounded[drawn])
    assert fit.n_occupied == 4
    assert adjusted_rand_score(labels[drawn], fit.predict(rounded[drawn])) > 0.95


def test_a_table_of_counts_is_that_of_its_rows() -> None:
    """Distinct ages with the numbers of people are the people."""
    age = ages(2000)
    distinct, numbers = np.unique(age, return_counts=True)
    one, other = fitted(age[:, None]), fitted(distinct[:, None], sample_weight=numbers)
    assert one.n_occupied == other.n_occupied == 1
    assert other.search_rows is None
    assert one.elbo == pytest.approx(other.elbo, rel=1e-6)
    assert "count as numbers of equal rows" in kinds(other)["weights"]


def test_copies_in_blocks_and_without_moves_are_told() -> None:
    rows, _ = clusters(2, 200, 2)
    copied = np.tile(rows, (2, 1))
    fit = fitted(lambda: iter([copied[:150], copied[150:]]), algorithm=sb.Memoized(shuffle=False, moves=()))
    assert fit.search_rows is None
    assert "200 of 400 rows are copies" in kinds(fit)["copies"]
    assert "counts as one more row" in kinds(fit)["copies"]


@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.DiagonalGaussian(), sb.SphericalGaussian(), sb.StudentT()])
@pytest.mark.parametrize("background", [None, sb.Background()])
def test_a_constant_column_changes_nothing(likelihood: Any, background: Any) -> None:
    rows, _ = clusters(1, 200, 2, k=3)
    table = np.insert(rows, 1, 7.0, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SupportWarning)
        one, other = (sb.fit(sb.Mixture(likelihood=likelihood, background=background), each) for each in (rows, table))
        np.testing.assert_array_equal(one.predict(rows), other.predict(table))
    assert (one.elbo, one.n_components) == (other.elbo, other.n_components)
    np.testing.assert_array_equal(one.log_predictive(rows), other.log_predictive(table))
    assert other.support.constant == (1,)


def test_a_constant_in_a_block_and_in_samplers() -> None:
    rows, _ = clusters(1, 150, 2, k=3)
    table = np.insert(rows, 1, 7.0, axis=1)
    blocks = sb.Columns({(0, 1): sb.SphericalGaussian(), (2,): sb.Gaussian()})
    alone = sb.Columns({(0,): sb.SphericalGaussian(), (1,): sb.Gaussian()})
    one, other = fitted(rows, alone), fitted(table, blocks)
    assert one.elbo == other.elbo
    same_draws(sb.SphericalGaussian(), rows, table)


@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_of_counts_are_those_of_all_rows(weighted: bool) -> None:
    """The bound of counts whose dispersion is estimated is near the density of the rows, and below zero."""
    rng = np.random.default_rng(3)
    counts = rng.poisson(np.array([2, 15, 60])[np.arange(300) % 3][:, None], size=(300, 4))
    weights = rng.uniform(0.2, 3.0, size=300) if weighted else np.ones(300)
    rows = counts if weighted else counts[rng.integers(0, 300, size=300)]
    fit = fitted(rows, sb.NegativeBinomial(), sample_weight=weights)
    assert fit.search_rows is not None
    density = float(weights @ fit.log_predictive(rows))
    assert density - 0.05 * abs(density) < fit.elbo < density


def test_callbacks_see_one_start_and_are_not_asked_again() -> None:
    rows, _ = clusters(3, 150, 2)
    seen: list[int] = []
    fit = fitted(np.tile(rows, (2, 1)), callbacks=[lambda record: seen.append(record.index)])
    assert seen == list(range(len(fit.history)))
    assert "starts" not in kinds(fit)
    seen.clear()
    stopped = fitted(np.tile(rows, (2, 1)), callbacks=[lambda record: seen.append(record.index) or len(seen) == 2])
    assert stopped.stop_reason is sb.StopReason.CALLBACK
    assert seen == [0, 1]
    assert stopped.counts.sum() == pytest.approx(300)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("share", "error"), [(0.01, 1.0), (0.02, 30.0), (0.05, 7.0)])
def test_a_column_with_typing_errors_is_no_copy_of_rows(seed: int, share: float, error: float) -> None:
    """Whole numbers beside themselves, some wrong: rows that agree in one column agree in the other."""
    rng = np.random.default_rng(seed)
    labels = np.arange(1500) % 3
    values = rng.normal(20.0 + 40.0 * labels, 4.0).round()
    wrong = rng.random(1500) < share
    rows = np.column_stack([values, values + error * wrong])
    fit = fitted(rows)
    assert fit.search_rows is None
    assert adjusted_rand_score(labels[~wrong], fit.predict(rows)[~wrong]) > 0.98


@pytest.mark.parametrize("decimals", [0, 2, 4, 6])
@pytest.mark.parametrize("times", [2, 3, 10])
def test_a_repeated_table_has_the_labels_of_the_table(decimals: int, times: int) -> None:
    """Also where rows are equal by chance, or where one column on a lattice tells all rows apart."""
    rows, _ = clusters(3, 160, 3)
    rows = (rows * (4.0 if decimals == 0 else 1.0)).round(decimals)
    once = fitted(rows)
    for table in (np.repeat(rows, times, axis=0), np.tile(rows, (times, 1))):
        fit = fitted(table)
        assert fit.search_rows == 160
        np.testing.assert_array_equal(fit.predict(rows), once.predict(rows))


@pytest.mark.parametrize("seed", range(6))
def test_a_small_bootstrap_sample_of_rounded_values(seed: int) -> None:
    """With two decimals two columns tell all rows apart, and none follows from another one: copies agree in all."""
    rng = np.random.default_rng(seed)
    rows, labels = clusters(seed, 300, 5, 3)
    drawn = rng.integers(0, 300, size=300)
    fit = fitted(rows.round(2)[drawn])
    assert fit.search_rows == len(np.unique(drawn))
    assert adjusted_rand_score(labels[drawn], fit.predict(rows.round(2)[drawn])) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_products_of_whole_columns_are_no_copies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    quantity, price = rng.poisson(6.0, size=1500) + 1.0, rng.normal(40.0, 8.0, size=1500).round()
    total = quantity * price
    for rows in ([quantity, price, total], [price, total, quantity]):
        assert fitted(np.column_stack(rows)).search_rows is None


@pytest.mark.parametrize("unit", [1.609344, 2.54, 1 / 3, 0.45359237])
@pytest.mark.parametrize("seed", range(2))
def test_whole_numbers_in_other_units_beside_a_flag_are_one_component(unit: float, seed: int) -> None:
    """Rounded on a finer lattice, on which their gaps have no common step: 1.6 and 1.7 kilometres for a mile."""
    rng = np.random.default_rng(seed)
    values = (rng.normal(60.0, 15.0, size=1000).round() * unit).round(1 if unit > 1.0 else 2)
    flag = rng.random(1000) < 0.5
    assert fitted(np.column_stack([values, flag])).n_components == 1
    frame = pd.DataFrame({"value": values, "sex": np.where(flag, "m", "f")})
    assert fitted(frame, sb.columns_for(frame, verbose=False)).n_components == 1


def test_columns_that_repeat_together_are_named() -> None:
    """Copies that differ in a column are no copies: components follow the columns that repeat."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(clusters(0, 100, 3)[0], columns=["a", "b", "c"])
    panel = rows.loc[np.repeat(np.arange(100), 5)].assign(
        visit=np.tile(np.arange(5.0), 100), level=rng.normal(size=500)
    )
    fit = fitted(panel, algorithm=sb.Memoized(max_passes=3))
    assert fit.search_rows is None
    expected = "columns 'a', 'b', 'c' repeat together, 100 combinations in 500 rows"
    assert kinds(fit)["repeated_columns"].startswith(expected)
    assert "repeated_columns" not in kinds(fitted(rows.assign(level=rng.normal(size=100))))
    ages = pd.DataFrame({"age": rng.normal(45.0, 14.0, size=500).round(), "level": rng.normal(size=500)})
    for other in (2024.0 - ages["age"], ages["age"] ** 2, ages["age"] / 2.54):
        assert "repeated_columns" not in kinds(fitted(ages.assign(other=other), algorithm=sb.Full(max_passes=2)))


def test_articles_in_sales_are_named() -> None:
    """A few articles have the same price or weight; no advice says that chance repeats the rows."""
    rng = np.random.default_rng(0)
    article = rng.integers(200, size=1500)
    price, weight = (rng.gamma(shape, 10.0, size=200).round(2)[article] for shape in (3.0, 1.0))
    sales = np.column_stack([price, weight, 1.0 + rng.poisson(2.0, size=1500)])
    found = kinds(fitted(sales, algorithm=sb.Full(max_passes=2)))
    assert found["repeated_columns"].startswith("columns 0, 1 repeat together")
    assert "duplicates" not in found


@pytest.mark.parametrize(("unit", "decimals"), [(2.54, 1), (1.609344, 1), (1 / 3, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_in_other_units_alone_are_no_copies(unit: float, decimals: int, seed: int) -> None:
    values = (np.random.default_rng(seed).normal(170.0, 15.0, size=3000).round() * unit).round(decimals)
    fit = fitted(values[:, None])
    assert (fit.n_components, fit.search_rows) == (1, None)


@pytest.mark.parametrize("weight", [1 / 600, 1e-6, 0.02])
def test_weights_that_are_shares_are_named(weight: float) -> None:
    rows = clusters(0, 600, 2)[0]
    assert "their sum is only" in kinds(fitted(rows, sample_weight=np.full(600, weight)))["weights"]
    assert "weights" not in kinds(fitted(rows))


def test_numbers_of_copies_add_up() -> None:
    """Rows that were equal before the table was repeated are no copies."""
    rows = clusters(1, 160, 2)[0].round(1)
    rows[:10] = rows[10:20]
    fit = fitted(np.tile(rows, (3, 1)))
    assert kinds(fit)["copies"].startswith("320 of 480 rows are copies of others")
    assert "in 160 rows" in kinds(fit)["copies"]


@pytest.mark.parametrize(("weight", "sum_of_three"), [(0.2, 0.6), (0.5, 1.0)])
def test_rows_of_a_repeated_table_weigh_what_their_copies_weigh(weight: float, sum_of_three: float) -> None:
    rows = clusters(4, 160, 3)[0].round(2)
    once = fitted(rows, sample_weight=np.full(160, sum_of_three))
    fit = fitted(np.tile(rows, (3, 1)), sample_weight=np.full(480, weight))
    assert fit.search_rows == 160
    assert fit.objective == pytest.approx(once.objective, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_that_lack_values_hide_no_copies(seed: int) -> None:
    """Whole ages alone are equal by chance; beside them are copies of rows that have a second value."""
    rng = np.random.default_rng(seed)

    def table(n: int) -> Array:
        kinds = rng.integers(0, 2, size=n)
        return np.column_stack([rng.normal(40.0 + 25.0 * kinds, 8.0).round(), rng.normal(3.0 * kinds)])

    whole, ages = table(300)[rng.integers(0, 300, size=400)], table(400)
    ages[:, 1] = np.nan
    rows = rng.permutation(np.concatenate([whole, ages]))
    fit = fitted(rows, missing="marginalize")
    assert fit.search_rows == len(np.unique(whole, axis=0)) + len(np.unique(ages[:, 0]))


def test_a_column_of_its_own_on_a_fine_lattice_is_copied_or_not() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(np.array([0.0, 9.0])[np.arange(600) % 2], 1.0).round(4)[:, None]
    drawn = values[rng.integers(0, 600, size=900)]
    fit = fitted(drawn)
    assert fit.search_rows == len(np.unique(drawn))
    assert fit.n_occupied == 2
    assert fitted(values.round(1)).search_rows is None


@pytest.mark.parametrize("weights", ["equal", "survey"])
def test_weights_of_codes(weights: str) -> None:
    """Whole weights of rows that repeat are no numbers of people if they are equal or large."""
    rng = np.random.default_rng(5)
    labels = rng.integers(3, size=500)
    shifted = (labels[:, None] + np.arange(8)) % 4
    codes = np.where(rng.random((500, 8)) < 0.85, shifted, rng.integers(4, size=(500, 8)))
    found = {"equal": np.full(500, 10.0), "survey": rng.gamma(2.0, 900.0, size=500).round()}[weights]
    fit = fitted(codes, sb.Categorical(), sample_weight=found)
    plain = fitted(codes, sb.Categorical())
    assert fit.n_occupied == plain.n_occupied
    assert adjusted_rand_score(labels, fit.predict(codes)) > 0.95
    repeated = fitted(np.repeat(codes, 4, axis=0), sb.Categorical())
    assert adjusted_rand_score(repeated.predict(codes), plain.predict(codes)) > 0.99


def test_sparse_tables_have_an_advice() -> None:
    counts = np.random.default_rng(1).poisson(2.0, size=(60, 6))
    for rows, weights, kind in ((np.repeat(counts, 3, axis=0), None, "copies"), (counts, np.full(60, 9.0), "weights")):
        fit = fitted(sparse.csr_array(rows), sb.Poisson(), n_components=2, sample_weight=weights)
        assert kind in kinds(fit)
