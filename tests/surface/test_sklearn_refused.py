"""Estimators after a `fit` that was refused, and arrays that they cannot read."""

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
import pandas as pd
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import stickbreak as sb
from stickbreak.sklearn import BayesianMixture, TopicModel

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ROWS = np.random.default_rng(0).integers(0, 9, size=(40, 2)).astype(float)
FULL = sb.Full(max_passes=2)


def mixture(**options: Any) -> BayesianMixture:
    return BayesianMixture(**{"algorithm": FULL, "n_components": 2, "random_state": 0, "threads": 1} | options)


def topics(**options: Any) -> TopicModel:
    return TopicModel(**{"n_topics": 2, "algorithm": FULL, "random_state": 0, "threads": 1} | options)


METHODS = {
    mixture: ("predict", "predict_proba", "score_samples", "score", "transform"),
    topics: ("transform", "score"),
}
REFUSED: dict[str, dict[str, Any]] = {
    "threads": {"threads": -3},
    "init": {"init": "nothing"},
    "algorithm": {"algorithm": 3},
    "random_state": {"random_state": "x"},
    "verbose": {"verbose": 3},
}


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_a_refused_fit_leaves_an_estimator_unfitted(make: Any, options: dict[str, Any]) -> None:
    estimator = make(**options)
    with pytest.raises((sb.StickbreakError, ValueError)):
        estimator.fit(ROWS)
    for method in METHODS[make]:
        with pytest.raises(NotFittedError):
            getattr(estimator, method)(ROWS)
    with pytest.raises(NotFittedError):
        estimator.get_feature_names_out()
    assert not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize("make", METHODS)
def test_a_refused_fit_leaves_an_earlier_one(make: Any) -> None:
    table = pd.DataFrame(ROWS, columns=["a", "b"])
    estimator = make().fit(table)
    expected = estimator.transform(table)
    wider = pd.DataFrame(np.tile(ROWS, 2), columns=["a", "b", "c", "d"])
    for options in REFUSED.values():
        before = {name: getattr(estimator, name) for name in options}
        with pytest.raises((sb.StickbreakError, ValueError)):
            estimator.set_params(**options).fit(wider)
        estimator.set_params(**before)
        assert estimator.n_features_in_ == 2
        assert estimator.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_array_equal(estimator.transform(table), expected)


@pytest.mark.parametrize("make", METHODS)
def test_a_fit_that_a_warning_ends_is_refused(make: Any) -> None:
    estimator = make(algorithm=sb.Full(max_passes=1, tol=0.0))
    with pytest.warns(ConvergenceWarning):
        estimator.fit(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning):
            estimator.fit(np.tile(ROWS, 2))
    assert estimator.transform(ROWS).shape == (40, 2)


def test_an_interrupted_fit_keeps_no_labels_of_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = mixture().fit(ROWS)
    fitted = sb.fit(sb.Mixture(sb.Gaussian()), ROWS[:10], FULL, n_components=2)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sb.Fit, "predict", interrupt)
    with pytest.raises(KeyboardInterrupt):
        estimator._keep(fitted, ROWS[:10])
    assert estimator.fit_ is fitted
    assert not hasattr(estimator, "labels_")


class Broken:
    """An array that cannot be read."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise RuntimeError("no array")


UNREADABLE: dict[str, Any] = {
    "one field": np.zeros(4, dtype=[("a", float)]),
    "one field in columns": np.zeros((4, 2), dtype=[("a", float)]),
    "fields": np.zeros(4, dtype=[("a", float), ("b", int)]),
    "records": np.rec.array([(1.0, 2)] * 4, dtype=[("a", float), ("b", int)]),
    "no fields": np.zeros(4, dtype=[]),
    "list of records": list(np.zeros(4, dtype=[("a", float), ("b", float)])),
    "bytes": np.zeros((4, 2), dtype="V4"),
    "arrays": np.array([[np.zeros(2), 1.0], [np.zeros(3), 2.0]], dtype=object),
    "table of arrays": pd.DataFrame({"a": [np.zeros(2), np.zeros(3)], "b": [1.0, 2.0]}),
    "ragged": [[1.0, 2.0], [3.0]],
    "broken": Broken(),
    "large": np.array([[10**400, 1.0], [2.0, 3.0]], dtype=object),
}


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
def test_arrays_that_cannot_be_read_are_refused_by_name(make: Any, value: Any) -> None:
    fitted = make().fit(ROWS)
    for call in (make().fit, fitted.partial_fit, *(getattr(fitted, method) for method in METHODS[make])):
        with pytest.raises((sb.InvalidType, sb.InvalidArgument)) as caught:
            call(value)
        assert caught.value.argument == "X"


def test_arrays_among_the_values_of_columns_are_refused_by_name() -> None:
    columns = sb.Columns({0: sb.Categorical(), 1: sb.Gaussian()})
    values = np.array([[np.zeros(2), 1.0], ["a", 2.0], ["b", 3.0], ["a", 4.0]], dtype=object)
    fitted = mixture(likelihood=columns).fit(np.array([[0.0, 1.0], [1.0, 2.0], [0.0, 4.0], [1.0, 3.0]]))
    for table in (values, pd.DataFrame(values, columns=["a", "b"]), values[[0, 0, 0]]):
        for call in (mixture(likelihood=columns).fit, fitted.predict):
            with pytest.raises((sb.InvalidType, sb.InvalidArgument, ValueError)) as caught:
                call(table)
            assert getattr(caught.value, "argument", "X") == "X"
            assert "array element" not in str(caught.value)


@pytest.mark.parametrize("value", [np.zeros(4, dtype=[("a", float)]), Broken(), np.array([np.zeros(2), None], object)])
def test_parameters_that_are_compared_with_words_may_be_anything(value: Any) -> None:
    for name in ("missing", "likelihood", "process", "algorithm", "init", "units", "background"):
        with pytest.raises(sb.StickbreakError) as caught:
            mixture(**{name: value}).fit(ROWS)
        assert caught.value.argument == name
