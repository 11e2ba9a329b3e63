"""`BayesianMixture` on tables with columns of several kinds: `likelihood="auto"`, levels, and nested blocks."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import stickbreak as sb
from stickbreak.sklearn import BayesianMixture

N = 120
RNG = np.random.default_rng(0)
KIND = np.arange(N) % 3
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(9.0 * KIND),
        "town": pd.Categorical(np.array(["Ulm", "Bonn", "Jena"])[KIND], categories=["Ulm", "Jena", "Bonn"]),
        "visits": RNG.poisson(2.0 + 9.0 * KIND),
        "word": np.array(["x", "y", "z"], dtype=object)[KIND],
    }
)
BLOCKS = {"age": sb.Gaussian(), "visits": sb.NegativeBinomial(), "town, word": sb.Categorical()}
LEVELS = {"town": ("Ulm", "Jena", "Bonn"), "word": ("x", "y", "z")}
TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def mixture(likelihood: Any = "auto", **options: Any) -> BayesianMixture:
    return BayesianMixture(likelihood=likelihood, n_components=3, random_state=0, **options)


@pytest.fixture(scope="module")
def fit() -> sb.Fit:
    return sb.fit(sb.Mixture(likelihood=sb.Columns(BLOCKS)), FRAME, sb.Memoized(), n_components=3)


@pytest.mark.parametrize("likelihood", ["auto", sb.Columns(BLOCKS)], ids=["auto", "columns"])
def test_results_are_those_of_fit(likelihood: Any, fit: sb.Fit) -> None:
    found = mixture(likelihood).fit(FRAME)
    assert (found.fit_.elbo, found.fit_.levels, found.fit_.column_names) == (fit.elbo, LEVELS, tuple(FRAME.columns))
    assert list(found.feature_names_in_) == list(FRAME.columns)
    np.testing.assert_array_equal(found.labels_, fit.predict(FRAME))
    np.testing.assert_array_equal(found.predict_proba(FRAME), fit.predict_proba(FRAME))
    assert found.score(FRAME) == pytest.approx(fit.log_predictive(FRAME).mean())
    assert pickle.loads(pickle.dumps(found)).fit_.levels == LEVELS


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_of_all_packages(table: Callable[[pd.DataFrame], Any], fit: sb.Fit) -> None:
    found = mixture().fit(table(FRAME))
    assert set(found.fit_.levels["town"]) == {"Ulm", "Jena", "Bonn"}
    for other in TABLES.values():
        np.testing.assert_allclose(found.predict_proba(other(FRAME)), fit.predict_proba(FRAME), atol=1e-6)


def test_categories_in_another_order(fit: sb.Fit) -> None:
    found = mixture().fit(FRAME)
    other = FRAME.assign(town=FRAME["town"].cat.reorder_categories(["Bonn", "Ulm", "Jena"]))
    np.testing.assert_array_equal(found.predict_proba(other), fit.predict_proba(FRAME))
    later = found.partial_fit(other[:10])
    assert later.fit_.levels == LEVELS
    assert later.fit_.counts.sum() == pytest.approx(N + 10)
    restarted = mixture(sb.Columns(BLOCKS), init=found.fit_).fit(other)
    assert restarted.fit_.levels == LEVELS


def test_new_levels_and_other_columns_are_refused() -> None:
    found = mixture().fit(FRAME)
    with pytest.raises(sb.InvalidArgument, match="'new' in row 0, column 'word'"):
        found.predict(FRAME.assign(word="new"))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(FRAME[FRAME.columns[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(FRAME.drop(columns="age"))
    with pytest.raises(sb.InvalidArgument, match=r"'id' \(an id"):
        mixture().fit(FRAME.assign(id=np.arange(N)))


def test_nested_blocks() -> None:
    estimator = mixture(sb.Columns(BLOCKS))
    assert estimator.get_params()["likelihood__blocks"] == sb.Columns(BLOCKS).blocks
    copied = clone(estimator)
    assert copied.likelihood == estimator.likelihood
    changed = copied.set_params(likelihood__blocks=BLOCKS | {"visits": sb.Poisson()})
    assert changed.likelihood == sb.Columns(BLOCKS | {"visits": sb.Poisson()})
    assert estimator.likelihood == sb.Columns(BLOCKS)
    with pytest.raises(ValueError, match="invalid parameter 'block' of Columns"):
        copied.set_params(likelihood__block={})
    with pytest.raises(sb.InvalidArgument, match="blocks must be"):
        copied.set_params(likelihood__blocks={})


def test_a_search_on_a_frame() -> None:
    search = GridSearchCV(mixture(), {"n_components": [1, 3]}, cv=3, error_score="raise").fit(FRAME)
    assert search.best_params_ == {"n_components": 3}
    blocks = [BLOCKS, BLOCKS | {"visits": sb.Poisson()}]
    nested = GridSearchCV(mixture(sb.Columns(BLOCKS)), {"likelihood__blocks": blocks}, cv=2, error_score="raise").fit(
        FRAME
    )
    assert nested.best_params_["likelihood__blocks"] in blocks
    pipeline = make_pipeline(FunctionTransformer(), mixture()).fit(FRAME)
    assert pipeline.predict(FRAME).shape == (N,)


def test_numbers_as_levels() -> None:
    frame = FRAME.assign(grade=10 * KIND + 5)
    blocks = {"age": sb.Gaussian(), "visits": sb.NegativeBinomial(), "grade": sb.Categorical()}
    for likelihood in ("auto", sb.Columns(blocks)):
        table = frame if likelihood == "auto" else frame.drop(columns=["town", "word"])
        found = mixture(likelihood).fit(table)
        assert found.fit_.levels["grade"] == (5, 15, 25)
        np.testing.assert_array_equal(found.labels_, found.fit_.predict(table))
        np.testing.assert_array_equal(found.predict(table), found.labels_)
        assert found.score(table) == pytest.approx(found.fit_.log_predictive(table).mean())
        rows, labels = found.sample(20)
        np.testing.assert_array_equal(labels, found.fit_.predict(found.fit_.as_table(rows)))
        assert found.partial_fit(table).fit_.levels["grade"] == (5, 15, 25)
    holes = frame.assign(age=frame["age"].where(frame.index != 4))
    estimator = mixture(missing="marginalize").fit(holes)
    assert estimator.score(holes) == pytest.approx(estimator.fit_.log_predictive(holes).mean())


def test_missing_values_follow_the_estimator() -> None:
    holes = FRAME.copy()
    holes.loc[3, "word"] = None
    holes.loc[4, "age"] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        mixture().fit(holes)
    found = mixture(missing="marginalize").fit(holes)
    assert [type(part) for part in found.fit_.model.likelihood.blocks.values()] == [
        sb.Gaussian,
        sb.NegativeBinomial,
        sb.Categorical,
    ]
    assert np.isfinite(found.score(holes))


def test_words_of_likelihoods() -> None:
    with pytest.raises(sb.InvalidArgument, match="'auto' or a likelihood, but it is 'columns'") as caught:
        mixture("columns").fit(FRAME)
    assert caught.value.argument == "likelihood"
    codes = KIND.reshape(-1, 1)
    assert isinstance(mixture("auto").fit(codes).fit_.model.likelihood, sb.Columns)
    assert (
        mixture("auto", algorithm=sb.Full(max_passes=200), units="auto").fit(np.c_[FRAME["age"], KIND]).n_components_
        == 3
    )


def test_missing_values_are_refused_with_what_to_do() -> None:
    holes = FRAME[["age", "visits"]].assign(age=FRAME["age"].where(FRAME.index != 4))
    estimators = {
        'use missing="marginalize"$': mixture(sb.DiagonalGaussian()),
        'use missing="marginalize" and a likelihood such as': mixture("zero_mean_gaussian"),
        "write 0 where nothing was counted$": mixture("multinomial"),
    }
    for hint, estimator in estimators.items():
        with pytest.raises(sb.InvalidArgument, match=rf"^X .* NaN in row 4, column 'age'; leave .*{hint}") as caught:
            estimator.fit(holes)
        assert (caught.value.argument, caught.value.found) == ("X", "NaN in row 4, column 'age'")
    fitted = mixture(sb.DiagonalGaussian()).fit(holes.fillna(0.0))
    for method in ("predict", "score", "partial_fit"):
        with pytest.raises(sb.InvalidArgument, match=r'^X .*column .age.; .* use missing="marginalize"$'):
            getattr(fitted, method)(holes)


def test_refused_arrays_are_called_by_their_name() -> None:
    """They are refused before scikit-learn warns that they have no names: a warning would be an error here."""
    numbers = FRAME[["age", "visits"]].assign(grade=10 * np.roll(KIND, 40) + 5)
    fitted = mixture().fit(numbers)
    words = mixture().fit(FRAME)
    for method in ("predict", "score", "partial_fit"):
        for estimator, rows, found in (
            (fitted, numbers.to_numpy(), "an array, whose numbers in column 'grade' would be codes"),
            (words, FRAME.to_numpy(), "an array with values of dtype object"),
            (words, FRAME[["age"]].to_numpy(), "of shape (120, 1)"),
        ):
            with pytest.raises(sb.StickbreakError) as caught:
                getattr(estimator, method)(rows)
            assert caught.value.argument == "X"  # type: ignore[attr-defined]
            assert found in str(caught.value)
    with pytest.raises(sb.InvalidArgument, match=r"^X must be whole numbers"):
        mixture("poisson").fit(FRAME[["age", "visits"]] - 100.5)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        mixture("gaussian").fit(numbers).predict(numbers.to_numpy())


def test_new_rows_are_called_x_by_partial_fit() -> None:
    counts = FRAME[["visits"]]
    fitted = mixture("poisson").fit(counts)
    with pytest.raises(sb.InvalidArgument, match=r"^X must be whole numbers") as caught:
        fitted.partial_fit(counts - 100)
    assert caught.value.argument == "X"
