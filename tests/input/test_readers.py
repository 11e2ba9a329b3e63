"""Readers of Arrow can be read only once: each call reads them once, and refuses those that have been read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak.sklearn import BayesianMixture, TopicModel

KIND = np.arange(40) % 2
ROWS = np.random.default_rng(0).normal(7.0 * KIND[:, None], 1.0, size=(40, 2))
TABLE = pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1]})
WORDS = pa.table({"a": ROWS[:, 0], "c": np.array(["u", "v"])[KIND]})
COUNTS = pa.table({f"w{word}": np.random.default_rng(word).poisson(4.0, 20).astype(float) for word in range(12)})
QUICK = sb.Full(max_passes=2, tol=0)
MODEL = sb.Mixture(likelihood=sb.Gaussian())
OF_WORDS = sb.Mixture(likelihood=sb.Columns({"a": sb.Gaussian(), "c": sb.Categorical()}))
FIT = sb.fit(MODEL, TABLE, QUICK, n_components=2)
BEHIND = sb.fit(sb.Mixture(likelihood=sb.Gaussian(), background=sb.Background()), TABLE, QUICK, n_components=2)
WORDED = sb.fit(OF_WORDS, WORDS, QUICK, n_components=2)
TOPICS = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), COUNTS, QUICK)
TRACE = sb.sample(MODEL, TABLE, draws=2, warmup=1, chains=1)
ESTIMATOR = BayesianMixture(n_components=2, random_state=0).fit(TABLE)
TOPIC_MODEL = TopicModel(2, random_state=0).fit(COUNTS)
# What each call returns is compared where it is an array or a number.
CALLS: dict[str, tuple[Callable[[Any], Any], pa.Table]] = {
    "fit": (lambda rows: sb.fit(MODEL, rows, QUICK, n_components=2).elbo, TABLE),
    "fit from a fit": (lambda rows: sb.fit(MODEL, rows, QUICK, init=FIT).elbo, TABLE),
    "fit with levels": (lambda rows: sb.fit(OF_WORDS, rows, QUICK, n_components=2).elbo, WORDS),
    "fit of topics": (lambda rows: sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), rows, QUICK).elbo, COUNTS),
    "update": (lambda rows: FIT.update(rows).elbo, TABLE),
    "update of topics": (lambda rows: TOPICS.update(rows).elbo, COUNTS),
    "predict": (FIT.predict, TABLE),
    "predict with levels": (WORDED.predict, WORDS),
    "predict_proba": (FIT.predict_proba, TABLE),
    "log_predictive": (FIT.log_predictive, TABLE),
    "evaluate": (FIT.evaluate, TABLE),
    "outlier_scores": (FIT.outlier_scores, TABLE),
    "combine": (lambda rows: FIT.combine(rows).entropy, TABLE),
    "combine with a background": (lambda rows: BEHIND.combine(rows).entropy, TABLE),
    "labels of clusters": (BEHIND.combine(TABLE).predict, TABLE),
    "transform": (TOPICS.transform, COUNTS),
    "document_completion": (lambda rows: TOPICS.document_completion(rows, min_words=2), COUNTS),
    "coherence": (TOPICS.coherence, COUNTS),
    "sample": (lambda rows: sb.sample(MODEL, rows, draws=2, warmup=1, chains=1).partitions, TABLE),
    "hierarchy": (lambda rows: repr(sb.hierarchy(MODEL, rows)), TABLE),
    "predict of a trace": (TRACE.log_predictive, TABLE),
    "stability": (lambda rows: sb.stability(MODEL, rows, QUICK, n_seeds=2, n_components=2).objectives, TABLE),
    "cross_validate": (
        lambda rows: sb.cross_validate(MODEL, rows, QUICK, folds=2, n_components=2)["log_predictive"],
        TABLE,
    ),
    "compare": (lambda rows: sb.compare([FIT, FIT], held_out=rows)["held_out"].to_numpy(), TABLE),
    "columns_for": (lambda rows: repr(sb.columns_for(rows, verbose=False)), WORDS),
    "clusters": (lambda rows: len(sb.plot.clusters(FIT, rows).collections), TABLE),
    "responsibilities": (lambda rows: len(sb.plot.responsibilities(FIT, rows).images), TABLE),
    "density": (lambda rows: len(sb.plot.density(FIT, 0, rows).patches), TABLE),
    "fit of the estimator": (
        lambda rows: BayesianMixture(n_components=2, random_state=0).fit(rows).lower_bound_,
        TABLE,
    ),
    "fit of the estimator, auto": (
        lambda rows: BayesianMixture(likelihood="auto", n_components=2, random_state=0).fit(rows).lower_bound_,
        WORDS,
    ),
    "predict of the estimator": (ESTIMATOR.predict, TABLE),
    "score of the estimator": (ESTIMATOR.score, TABLE),
    "transform of topics": (TOPIC_MODEL.transform, COUNTS),
    "score of topics": (TOPIC_MODEL.score, COUNTS),
}


def reader(table: pa.Table) -> Any:
    return table.to_reader(max_chunksize=7)


@pytest.fixture(autouse=True)
def without_windows() -> None:
    pytest.importorskip("matplotlib").use("Agg")


@pytest.mark.parametrize(("call", "table"), CALLS.values(), ids=CALLS)
def test_a_reader_is_read_once_and_refused_then(call: Callable[[Any], Any], table: pa.Table) -> None:
    rows = reader(table)
    np.testing.assert_array_equal(call(rows), call(table))
    with pytest.raises(sb.InvalidArgument, match="RecordBatchReader without a row left; it can be read only once"):
        call(rows)


@given(n_rows=st.integers(0, 3), is_read=st.booleans())
def test_readers_without_rows_are_refused_and_tables_are_not(n_rows: int, is_read: bool) -> None:
    """An empty reader looks like one that has been read; as a table it has no labels."""
    table = TABLE.slice(0, n_rows)
    rows = reader(table)
    if is_read:
        rows.read_all()
    if is_read or n_rows == 0:
        with pytest.raises(
            sb.InvalidArgument, match=r"if it never had a row, give its table, \.read_all\(\)"
        ) as caught:
            FIT.predict(rows)
        assert caught.value.argument == "X"
    else:
        assert FIT.predict(rows).shape == (n_rows,)
    assert FIT.predict(reader(table).read_all()).shape == (n_rows,)


def test_other_streams_may_be_empty() -> None:
    """They begin anew with every reading, so an empty one is an empty table."""

    class Stream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return TABLE.slice(0, 0).__arrow_c_stream__(requested_schema)

    assert FIT.predict(Stream()).shape == (0,)


def test_blocks_that_are_read_readers_are_refused() -> None:
    rows = reader(TABLE)
    rows.read_all()
    with pytest.raises(sb.SourceError, match="a block must be a table, or a reader with rows"):
        sb.fit(MODEL, lambda: iter([rows]), QUICK)
    with pytest.raises(sb.SourceError, match="no rows"):
        sb.fit(MODEL, lambda: rows, QUICK)


@pytest.mark.parametrize("is_read", [False, True])
def test_iterators_are_no_rows(is_read: bool) -> None:
    rows = iter([TABLE])
    if is_read:
        list(rows)
    for call in (FIT.predict, FIT.update, FIT.evaluate, lambda data: sb.fit(MODEL, data)):
        with pytest.raises(sb.InvalidType):
            call(rows)
