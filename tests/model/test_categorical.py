"""Columns of integer codes: levels, errors that name column and value, categories of pandas, and missing codes."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import stickbreak as sb
from stickbreak.sklearn import BayesianMixture
from stickbreak.testing import algorithms

Array = NDArray[np.float64]
QUIET: dict[str, Any] = {"progress": False}
CLUSTERS = sb.Memoized(batches=2, moves=(sb.Birth(), sb.Merge(), sb.Delete()))


def codes(seed: int, n: int, levels: list[int], n_clusters: int = 3, sharpness: float = 6.0) -> tuple[Array, Any]:
    """Rows of clusters, each of which has a preferred code in every column, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    columns = []
    for n_levels in levels:
        weights = np.ones((n_clusters, n_levels))
        weights[np.arange(n_clusters), np.arange(n_clusters) % n_levels] += sharpness * n_levels
        weights /= weights.sum(1, keepdims=True)
        columns.append([rng.choice(n_levels, p=weights[label]) for label in labels])
    return np.column_stack(columns).astype(float), labels


def model(**parameters: Any) -> sb.Mixture:
    return sb.Mixture(likelihood=sb.Categorical(**parameters))


@given(seed=st.integers(0, 1000), algorithm=algorithms(n=40, n_components=3, max_passes=3))
def test_two_levels_are_flags(seed: int, algorithm: Any) -> None:
    """With equal pseudo-counts `Categorical` of two levels is `Bernoulli`, missing values included."""
    rows = codes(seed, 40, [2, 2, 2, 2])[0]
    rows[np.random.default_rng(seed).random(rows.shape) < 0.2] = np.nan
    rows[:, 0] = np.arange(40) % 2
    given: dict[str, Any] = {"init": np.arange(40) % 3, "missing": "marginalize"} | QUIET
    found = sb.fit(model(pseudo_counts=0.7, levels=2), rows, algorithm, **given)
    flags = sb.Mixture(likelihood=sb.Bernoulli(0.7, failures=0.7))
    expected = sb.fit(flags, rows, algorithm, **given)
    assert found.elbo == pytest.approx(expected.elbo, rel=1e-10)
    np.testing.assert_allclose(found.predict_proba(rows), expected.predict_proba(rows), atol=1e-8)
    np.testing.assert_allclose(found.components["pseudo_counts"][:, :, 1], expected.components["successes"], rtol=1e-9)
    np.testing.assert_allclose(found.log_predictive(rows), expected.log_predictive(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_two_levels_start_as_flags(seed: int) -> None:
    """Uses so many columns that no two centres are equally near to a row."""
    rows = codes(seed, 500, [2] * 12)[0]
    rows[np.random.default_rng(seed).random(rows.shape) < 0.1] = np.nan
    given: dict[str, Any] = {"n_components": 4, "seed": seed, "missing": "marginalize"} | QUIET
    models = model(pseudo_counts=0.7, levels=2), sb.Mixture(likelihood=sb.Bernoulli(0.7, failures=0.7))
    found, expected = (sb.fit(each, rows, sb.Full(max_passes=0), **given) for each in models)
    assert found.elbo == pytest.approx(expected.elbo, rel=1e-12)


def test_levels_follow_the_data() -> None:
    rows = codes(1, 200, [2, 5, 3])[0]
    fit = sb.fit(model(), rows, n_components=2, **QUIET)
    np.testing.assert_array_equal(fit.model.likelihood.levels, [2, 5, 3])
    pseudo_count = fit.model.likelihood.pseudo_counts[0]
    assert (fit.model.likelihood.pseudo_counts == pseudo_count).all()
    table = fit.components["pseudo_counts"]
    assert table.shape == (fit.n_components, 3, 5)
    assert (table[:, 0, 2:] == 0).all()
    assert (table[:, 2, 3:] == 0).all()
    assert (table[:, 1] > 0).all()
    np.testing.assert_allclose(table.sum((1, 2)), 3 * fit.counts + pseudo_count * 10, rtol=1e-12)


@pytest.mark.parametrize("value", [3.0, -1.0, 0.5])
def test_a_code_beyond_the_levels_is_named(value: float) -> None:
    rows = codes(2, 50, [2, 3])[0]
    wrong = rows.copy()
    wrong[7, 1] = value
    place = rf"{value:g}(\.0)? in row 7, column 1"
    fit = sb.fit(model(), rows, n_components=2, **QUIET)
    for read in (fit.predict, fit.log_predictive, fit.evaluate, fit.update):
        with pytest.raises(sb.InvalidArgument, match=place):
            read(wrong)
    for levels in (3, [2, 3]):
        with pytest.raises(sb.InvalidArgument, match=place) as caught:
            sb.fit(model(levels=levels), wrong, n_components=2, **QUIET)
        assert caught.value.argument == "data"
        assert levels == 3 or value < 1 or "3 levels" in caught.value.allowed
    assert sb.fit(model(levels=[2, 4]), rows, n_components=2, **QUIET).predict([[0.0, 3.0]]).shape == (1,)


@pytest.mark.parametrize("levels", [0, 1.5, [2, 0], [2, 3, 4], 2**21, "many", np.ones((2, 2))])
def test_levels_are_integers(levels: Any) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType), match="levels"):
        sb.fit(model(levels=levels), codes(3, 20, [2, 2])[0], n_components=2, **QUIET)


def test_a_column_of_one_level_says_nothing() -> None:
    rows = codes(4, 80, [3, 4])[0]
    wider = np.column_stack([rows, np.zeros(80)])
    labels = np.arange(80) % 2
    fits = [sb.fit(model(), data, sb.Full(max_passes=5), init=labels, **QUIET) for data in (rows, wider)]
    assert fits[0].elbo == pytest.approx(fits[1].elbo, rel=1e-12)


def test_categories_are_read_by_their_codes() -> None:
    rows = codes(5, 120, [3, 4])[0]
    rows[4, 0] = np.nan
    names = np.array(["red", "green", "blue"], dtype=object)
    colours = [names[int(code)] if code == code else None for code in rows[:, 0]]
    frame = pd.DataFrame({"colour": pd.Categorical(colours, categories=names), "size": rows[:, 1].astype(int)})
    given: dict[str, Any] = {"n_components": 3, "missing": "marginalize"} | QUIET
    expected, found = (sb.fit(model(), data, **given) for data in (rows, frame))
    assert found.elbo == expected.elbo
    np.testing.assert_array_equal(found.predict(frame), expected.predict(rows))
    with pytest.raises(sb.InvalidArgument, match="row 4, column 'colour'"):
        sb.fit(model(), frame, n_components=3, **QUIET)


def test_the_estimator_reads_categories_and_keeps_their_names() -> None:
    rows = codes(5, 120, [3, 4])[0]
    names = np.array(["red", "green", "blue"], dtype=object)
    colours = pd.Categorical(names[rows[:, 0].astype(int)], categories=names)
    frame = pd.DataFrame({"colour": colours, "size": rows[:, 1].astype(int)})
    mixture = BayesianMixture(likelihood=sb.Categorical(), n_components=3, random_state=0)
    labels = mixture.fit_predict(frame)
    assert list(mixture.feature_names_in_) == ["colour", "size"]
    np.testing.assert_array_equal(labels, mixture.fit_predict(rows))


@pytest.mark.parametrize("code", [3.0, 1e300, -1.0, 0.5, np.inf])
def test_codes_that_change_during_a_fit_never_reach_another_column(code: float) -> None:
    rows = codes(7, 60, [3, 3, 3])[0]

    def change(_: sb.Record) -> None:
        rows[:, 0] = code

    fit = sb.fit(model(), rows, sb.Full(max_passes=4, tol=0), n_components=2, callbacks=[change], **QUIET)
    prior = np.zeros((2, 3, 3)) + fit.model.likelihood.pseudo_counts[0]
    counts = (fit.components["pseudo_counts"] - prior).sum(axis=(0, 2))
    np.testing.assert_allclose(counts, [60.0 if code == 0.5 else 0.0, 60.0, 60.0])


def test_a_series_is_told_how_to_become_a_table() -> None:
    with pytest.raises(sb.InvalidArgument, match=r"data\.to_frame\(\)"):
        sb.fit(model(), pd.Series([0, 1, 1]))


def test_a_column_of_text_is_named_where_none_may_be() -> None:
    frame = pd.DataFrame({"colour": pd.Categorical(["red", "blue"]), "name": ["a", "b"]})
    with pytest.raises(sb.InvalidType, match=r"column 'colour' has the dtype category.*columns_for"):
        sb.fit(sb.Mixture(sb.Gaussian()), frame)
    with pytest.raises(sb.InvalidType, match=r"column 'name' has the dtype String.*columns_for"):
        sb.fit(sb.Mixture(sb.Poisson()), pl.DataFrame({"flag": [True, False], "name": ["a", "b"]}))


def test_a_missing_code_is_the_most_probable_one() -> None:
    rows, labels = codes(6, 600, [3, 3, 3], sharpness=30.0)
    fit = sb.fit(model(), rows, CLUSTERS, missing="marginalize", **QUIET)
    incomplete = rows.copy()
    incomplete[::2, 1] = np.nan
    values, variances = fit.impute(incomplete, return_variance=True)
    assert np.isin(values, (0, 1, 2)).all()
    assert (values[::2, 1] == labels[::2] % 3).mean() > 0.9
    assert ((variances[::2, 1] > 0) & (variances[::2, 1] < 2 / 3)).all()
    np.testing.assert_array_equal(values[1::2], rows[1::2])
    drawn = fit.sample_missing(incomplete, seed=1)
    assert np.isin(drawn, (0, 1, 2)).all()
    assert (drawn[::2, 1] == rows[::2, 1]).mean() > 0.7


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_moves_find_the_clusters(seed: int) -> None:
    rows, labels = codes(seed, 1500, [4, 4, 5, 6, 4, 5], n_clusters=4, sharpness=12.0)
    fit = sb.fit(model(), rows, CLUSTERS, seed=seed, **QUIET)
    found = fit.predict(rows)
    # An outlier may have its own component.
    assert (fit.counts > 5).sum() == 4
    agreeing = sum(np.bincount(labels[found == k]).max() for k in np.unique(found))
    assert agreeing / len(rows) > 0.97


def test_a_fit_is_saved_and_loaded(tmp_path: Any) -> None:
    rows = codes(7, 100, [3, 2])[0]
    fit = sb.fit(model(), rows, n_components=3, **QUIET)
    fit.save(tmp_path / "fit.safetensors")
    loaded = sb.load(tmp_path / "fit.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(rows), fit.predict_proba(rows))
    assert loaded.model == fit.model
