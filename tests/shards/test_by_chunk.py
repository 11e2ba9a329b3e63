"""What a fit says of the rows of collections."""

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import stickbreak as sb

N, D = 1000, 3
NAMES = ["a", "b", "c"]
X = np.random.default_rng(3).normal(np.random.default_rng(0).normal(scale=8.0, size=(4, D))[np.arange(N) % 4])
TABLE = pd.DataFrame(X, columns=NAMES, index=np.arange(N) + 5)


@pytest.fixture(scope="module")
def found() -> sb.Fit:
    model = sb.Mixture(likelihood=sb.Gaussian())
    return sb.fit(model, TABLE, sb.Full(max_passes=5), n_components=4, progress=False)


def as_array(chunk: int = 300) -> Any:
    return da.from_array(X, chunks=(chunk, -1))


def test_outlier_scores_of_collections_have_the_draws_of_their_seed(found: sb.Fit) -> None:
    expected = found.outlier_scores(X, n=100, seed=3)
    np.testing.assert_array_equal(found.outlier_scores(as_array(), n=100, seed=3).compute(), expected)
    assert (expected != found.outlier_scores(X, n=100)).any()


METHODS = ("predict", "predict_proba", "log_predictive", "outlier_scores")


@pytest.mark.parametrize("method", METHODS)
def test_predictions_of_collections_are_those_of_their_rows(method: str, found: sb.Fit) -> None:
    of_rows = getattr(found, method)
    expected = of_rows(X)
    np.testing.assert_array_equal(of_rows(as_array()).compute(), expected)
    ours = of_rows(dd.from_pandas(TABLE, chunksize=300)).compute()
    np.testing.assert_array_equal(ours.to_numpy(), expected)
    assert ours.index.equals(TABLE.index)
    empty = of_rows(da.from_array(X, chunks=((0, 300, 0, 700), -1)))
    np.testing.assert_array_equal(empty.compute(), expected)
    assert empty.chunks[0] == (0, 300, 0, 700)


@pytest.mark.parametrize("method", METHODS)
def test_bad_collections_are_refused_before_they_are_computed(method: str, found: sb.Fit) -> None:
    of_rows, table = getattr(found, method), dd.from_pandas(TABLE, chunksize=300)
    with pytest.raises(sb.InvalidArgument, match="3 columns"):
        of_rows(as_array()[:, :2])
    with pytest.raises(sb.InvalidArgument, match="without 'c'"):
        of_rows(table[["a", "b"]])
    with pytest.raises(sb.InvalidArgument) as raised:
        of_rows(as_array(), threads=-1)
    assert raised.value.argument == "threads"


def test_clusters_of_collections_are_those_of_their_rows(found: sb.Fit) -> None:
    clusters = found.combine(TABLE, n_clusters=2)
    noisy = sb.Mixture(likelihood=sb.Gaussian(), background=sb.Background())
    with_background = sb.fit(noisy, TABLE, sb.Full(max_passes=5), n_components=4, progress=False).combine(TABLE)
    for own in (clusters, with_background):
        for method in (own.predict, own.predict_proba):
            expected = method(X)
            np.testing.assert_array_equal(method(as_array()).compute(), expected)
            ours = method(dd.from_pandas(TABLE, chunksize=300)).compute()
            np.testing.assert_array_equal(ours.to_numpy(), expected)
            assert ours.index.equals(TABLE.index)
            unknown = as_array()[da.from_array(X[:, 0] > -1e9, chunks=300)]
            np.testing.assert_array_equal(method(unknown).compute(), expected)
    with pytest.raises(sb.InvalidArgument, match="3 columns"):
        clusters.predict(as_array()[:, :2])


@pytest.mark.parametrize("n_components", [1, 4])
def test_stability_computes_the_labels_of_a_collection(n_components: int, found: sb.Fit) -> None:
    options = {"n_seeds": 2, "n_components": n_components, "progress": False}
    ours = sb.stability(found.model, as_array(), sb.Full(max_passes=3), **options)
    expected = sb.stability(found.model, X, sb.Full(max_passes=3), **options)
    np.testing.assert_array_equal(ours.labels, expected.labels)
    np.testing.assert_array_equal(ours.ari, expected.ari)
    np.testing.assert_array_equal(ours.together, expected.together)


def test_exposures_are_columns(found: sb.Fit) -> None:
    with pytest.raises(sb.NotSupported) as raised:
        found.predict(as_array(), exposure=np.ones(N))
    assert raised.value.argument == "exposure"


def test_columns_are_matched_by_name(found: sb.Fit) -> None:
    turned = dd.from_pandas(TABLE[["c", "a", "b"]], chunksize=300)
    np.testing.assert_array_equal(found.predict(turned).compute(), found.predict(TABLE))


def test_the_bound_of_a_collection_is_that_of_its_rows(found: sb.Fit) -> None:
    for data in (as_array(), da.from_array(X, chunks=((0, N), -1)), dd.from_pandas(TABLE, chunksize=300)):
        assert found.evaluate(data) == pytest.approx(found.evaluate(X), rel=1e-12)
    with pytest.raises(sb.NotSupported) as raised:
        found.evaluate(as_array(), sample_weight=np.ones(N))
    assert raised.value.argument == "sample_weight"
    with pytest.raises(sb.InvalidArgument, match="without rows"):
        found.evaluate(as_array()[:0])


@pytest.mark.parametrize("method", [*METHODS, "evaluate"])
def test_errors_name_the_chunk(method: str, found: sb.Fit) -> None:
    spoilt = TABLE.copy()
    spoilt.iloc[701, 1] = np.nan
    of_rows = getattr(found, method)

    def computed(data: Any) -> Any:
        values = of_rows(data)
        return values if method == "evaluate" else values.compute()

    with pytest.raises(sb.InvalidArgument, match=r"row 101 of chunk 2, column 'b'"):
        computed(da.from_array(spoilt.to_numpy(), chunks=(300, -1)))
    with pytest.raises(sb.InvalidArgument, match=r"row 101 of partition 2, column 'b'"):
        computed(dd.from_pandas(spoilt, chunksize=300))


@pytest.mark.parametrize("method", [*METHODS, "evaluate"])
def test_sizes_of_chunks_may_be_unknown(method: str, found: sb.Fit) -> None:
    data, of_rows = as_array(), getattr(found, method)
    np.testing.assert_allclose(of_rows(data[data[:, 0] > 0.0]), of_rows(X[X[:, 0] > 0.0]), rtol=1e-12)


@pytest.mark.parametrize("method", [*METHODS, "evaluate"])
@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (lambda x: x[1:], r"chunk \d has (299|99) rows, not (300|100)"),
        (np.ma.masked_invalid, r"chunk \d is a masked array"),
        (lambda x: x[:, 1:], r"chunk \d is of shape \((300|100), 2\), not of 3 columns"),
        (lambda x: x[:, 0], r"chunk \d is of shape"),
        (lambda _: None, r"chunk \d is None, not rows"),
    ],
)
def test_chunks_that_fits_refuse_are_refused(changed: Any, text: str, method: str, found: sb.Fit) -> None:
    data = as_array().map_blocks(changed, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(sb.SourceError, match=text):
        np.asarray(getattr(found, method)(data))


def test_what_the_data_raise_is_told(found: sb.Fit) -> None:
    with pytest.raises(sb.SourceError, match="ZeroDivisionError"):
        found.evaluate(as_array().map_blocks(lambda x: x / 0 if x.size == 1 else 1 // 0, meta=np.empty((0, 3))))
    with pytest.raises(sb.InvalidArgument, match="array of shape"):
        found.evaluate(as_array().sum())


def test_other_methods_refuse_lazy_tables(found: sb.Fit) -> None:
    with pytest.raises(sb.InvalidType, match=r"lazy.*\.compute\(\) first"):
        found.combine(dd.from_pandas(TABLE, chunksize=300))
