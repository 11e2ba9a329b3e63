"""Tables of packages that are not known by name keep the names of their columns, or are refused."""

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stickbreak as sb
from stickbreak.io import datafiles
from stickbreak.io.names import Table
from stickbreak.sklearn import BayesianMixture

ROWS = np.random.default_rng(0).normal([[-5.0, 0.0, 1.0], [5.0, 2.0, 30.0]], size=(40, 2, 3)).reshape(-1, 3)
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])
FIT = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), FRAME, sb.Full(max_passes=5), n_components=2)


class Interchange:
    """A table with the interchange protocol alone, as Modin and cuDF have it."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __dataframe__(self, **options: Any) -> Any:
        return self._frame.to_arrow().__dataframe__(**options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._frame.to_numpy()


class ArrowStream(Interchange):
    """A table with Arrow's stream and the names of its columns, as DuckDB's relations have."""

    columns = ("c", "a", "b")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.to_arrow().__arrow_c_stream__(requested_schema)


class Opaque:
    """A table that only has names and converts to an array, as a lazy one of Dask."""

    columns = ("c", "a", "b")
    shape = ROWS.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return ROWS[:, [2, 0, 1]]


class Named:
    """The same with its names in another attribute."""

    column_names = Opaque.columns
    shape = Opaque.shape
    __array__ = Opaque.__array__


class OnlyStream:
    """A table with nothing but Arrow's stream."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.to_arrow().__arrow_c_stream__(requested_schema)


REORDERED = pl.DataFrame(ROWS[:, [2, 0, 1]], schema=["c", "a", "b"])
TABLES = {
    "narwhals over pandas": narwhals.from_native(FRAME[["c", "a", "b"]]),
    "narwhals over Polars": narwhals.from_native(REORDERED),
    "interchange": Interchange(REORDERED),
    "Arrow stream": ArrowStream(REORDERED),
    "only Arrow stream": OnlyStream(REORDERED),
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_matched_by_name(name: str) -> None:
    found = FIT.log_predictive(TABLES[name])
    assert np.array_equal(found, FIT.log_predictive(FRAME))
    fit = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), TABLES[name], sb.Full(max_passes=5), n_components=2)
    assert fit.column_names == ("c", "a", "b")


def test_tables_without_an_interface_are_refused() -> None:
    with pytest.raises(sb.InvalidType, match="whose columns have names") as caught:
        FIT.predict(Opaque())
    assert caught.value.argument == "X"


def test_names_of_columns_in_another_attribute_are_seen_too() -> None:
    with pytest.raises(sb.InvalidType, match="whose columns have names"):
        FIT.predict(Named())


def test_the_estimator_refuses_tables_without_an_interface() -> None:
    estimator = BayesianMixture(likelihood=sb.DiagonalGaussian(), n_components=2, random_state=0).fit(FRAME)
    for call in (estimator.fit, estimator.predict, estimator.partial_fit, estimator.score):
        with pytest.raises(sb.InvalidType, match="whose columns have names") as caught:
            call(Opaque())
        assert caught.value.argument == "X"
    for table in TABLES.values():
        with pytest.raises(ValueError, match="feature names"):
            estimator.predict(table)
        assert estimator.fit(table).feature_names_in_.tolist() == ["c", "a", "b"]
        estimator.fit(FRAME)


def test_readers_of_batches_are_read_once() -> None:
    def reader() -> Any:
        return REORDERED.to_arrow().to_reader(max_chunksize=7)

    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    fit = sb.fit(model, reader(), sb.Full(max_passes=5), n_components=2)
    assert fit.column_names == ("c", "a", "b")
    assert fit.elbo == sb.fit(model, REORDERED, sb.Full(max_passes=5), n_components=2).elbo
    assert np.array_equal(FIT.predict(reader()), FIT.predict(FRAME))
    assert sb.sample(MODEL, reader(), draws=2, warmup=1, chains=1).column_names == ("c", "a", "b")
    assert BayesianMixture(n_components=2, random_state=0).fit(reader()).feature_names_in_.tolist() == ["c", "a", "b"]


def test_streams_of_single_columns_are_no_tables() -> None:
    class Column:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pl.Series("a", ROWS[:, 0]).__arrow_c_stream__(requested_schema)

    for call in (FIT.predict, lambda column: sb.fit(MODEL, column)):
        with pytest.raises(sb.InvalidType, match="that PyArrow cannot read"):
            call(Column())


def test_names_of_several_levels_are_refused() -> None:
    levels = pd.DataFrame(ROWS, columns=pd.MultiIndex.from_tuples([("x", "a"), ("x", "b"), ("y", "c")]))
    estimator = BayesianMixture(n_components=2, random_state=0).fit(ROWS)
    for call in (*READERS.values(), FIT.predict, FIT.combine(ROWS).predict, estimator.predict):
        with pytest.raises(sb.InvalidType, match=r"names of 2 levels; flatten them: (X|data)\.columns = "):
            call(levels)
    flat = levels.copy()
    flat.columns = ["_".join(map(str, names)) for names in levels.columns]
    assert sb.fit(MODEL, flat, sb.Full(max_passes=2), n_components=2).column_names == ("x_a", "x_b", "y_c")


def test_missing_columns_of_other_tables_are_named() -> None:
    with pytest.raises(sb.InvalidArgument, match="without 'b'"):
        FIT.predict(narwhals.from_native(FRAME[["c", "a"]]))


def test_a_column_is_no_table() -> None:
    for column in (FRAME["a"], pl.Series("a", ROWS[:, 0])):
        with pytest.raises(sb.InvalidArgument, match="of shape"):
            FIT.predict(column)


DAY = datetime.date(2024, 5, 1)
TIMES: dict[str, Any] = {
    "Date": DAY,
    "Datetime": datetime.datetime(2024, 5, 1, 12),
    "Datetime of a zone": datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC),
    "Duration": datetime.timedelta(hours=1),
    "Time": datetime.time(12),
}
MODEL = sb.Mixture(likelihood=sb.Gaussian())
READERS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda table: sb.fit(MODEL, table),
    "sample": lambda table: sb.sample(MODEL, table, draws=2, warmup=1, chains=1),
    "hierarchy": lambda table: sb.hierarchy(MODEL, table),
    "cross_validate": lambda table: sb.cross_validate(MODEL, table),
    "estimator": lambda table: BayesianMixture().fit(table),
}


def with_times(kind: str) -> pl.DataFrame:
    return pl.from_pandas(FRAME).with_columns(when=pl.Series([TIMES[kind]] * len(ROWS)))


@pytest.mark.parametrize("reader", READERS)
def test_dates_are_no_numbers(reader: str) -> None:
    with pytest.raises(sb.InvalidType, match="whose column 'when' has the dtype Date;") as caught:
        READERS[reader](with_times("Date"))
    assert caught.value.argument in ("data", "X")


@pytest.mark.parametrize("kind", TIMES)
def test_no_kind_of_time_is_a_number(kind: str) -> None:
    table = with_times(kind)
    for each in (table, table.select("when"), table.to_arrow(), narwhals.from_native(table), table.to_pandas()):
        with pytest.raises(sb.InvalidType, match="whose column 'when' has the dtype"):
            sb.fit(MODEL, each)
    with pytest.raises(sb.SourceError, match="whose column 'when' has the dtype"):
        sb.fit(MODEL, lambda: iter([table]), sb.Full())


def test_booleans_and_columns_without_values_are_read() -> None:
    table = pl.from_pandas(FRAME).with_columns(b=pl.Series([True, False] * 40), c=pl.lit(None))
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    with pytest.warns(sb.SupportWarning, match="column 'c' is constant or has no value"):
        fit = sb.fit(model, table, sb.Full(max_passes=2), n_components=2, missing="marginalize")
    assert fit.n_components == 2


# Dictionaries

QUICK = sb.Full(max_passes=3, tol=0)
DECLARED = ("small", "never", "medium", "large")
CODES = np.tile([0, 3, 2], 20)
WORDS = np.array(DECLARED, dtype=object)[CODES]


def dictionary(names: Sequence[Any], *, ordered: bool) -> pa.Table:
    """A table with the words in a dictionary of this order."""
    codes = pa.array([names.index(word) for word in WORDS])
    column = pa.DictionaryArray.from_arrays(codes, pa.array(names), ordered=ordered)
    return pa.table({"size": CODES.astype(float), "word": column})


def categories() -> pd.DataFrame:
    return pd.DataFrame({"size": CODES.astype(float), "word": pd.Categorical(WORDS, categories=DECLARED)})


DICTIONARIES: dict[str, tuple[Callable[[], pa.Table], tuple[str, ...]]] = {
    "ordered": (lambda: dictionary(DECLARED, ordered=True), DECLARED),
    "plain": (lambda: dictionary(DECLARED, ordered=False), ("large", "medium", "small")),
    "other plain": (lambda: dictionary(DECLARED[::-1], ordered=False), ("large", "medium", "small")),
    "of pandas": (lambda: pa.Table.from_pandas(categories()), DECLARED),
    "of Polars": (
        lambda: pl.DataFrame(
            {"size": CODES * 1.0, "word": WORDS}, schema_overrides={"word": pl.Enum(DECLARED)}
        ).to_arrow(),
        DECLARED,
    ),
}


@pytest.mark.parametrize("groups", [60, 7])
@pytest.mark.parametrize(("table", "expected"), DICTIONARIES.values(), ids=DICTIONARIES)
def test_dictionaries_declare_levels_if_they_have_an_order(
    table: Callable[[], pa.Table], expected: tuple[str, ...], groups: int, tmp_path: Path
) -> None:
    """The values of other dictionaries stand in the order of their first rows."""
    pq.write_table(table(), tmp_path / "rows.parquet", row_group_size=groups)
    model = sb.Mixture(likelihood=sb.Columns({"size": sb.Gaussian(), "word": sb.Categorical()}))
    for data in (table(), tmp_path / "rows.parquet"):
        fit = sb.fit(model, data, QUICK, n_components=2)
        assert fit.levels == {"word": expected}
    found = datafiles.read(tmp_path / "rows.parquet", words=datafiles.TextColumns(others="most"))
    again = sb.fit(model, Table(found.rows, found.names), QUICK, n_components=2)
    assert again.levels == {"word": expected}


@pytest.mark.parametrize("metadata", ["", "[]", "{}", '{"columns": 3}', '{"columns": [{"name": "word"}]}', "\x00"])
@pytest.mark.parametrize("names", [DECLARED, ("small", "never", "medium", "large", None), (*DECLARED, "large")])
def test_dictionaries_that_declare_no_levels(metadata: str, names: Sequence[Any]) -> None:
    """Notes that are not those of pandas, and values that are missing or repeated."""
    table = dictionary(names, ordered=names != DECLARED).replace_schema_metadata({"pandas": metadata})
    model = sb.Mixture(likelihood=sb.Columns({"size": sb.Gaussian(), "word": sb.Categorical()}))
    assert sb.fit(model, table, QUICK, n_components=2).levels == {"word": ("large", "medium", "small")}


def test_files_that_declare_different_levels_have_them_sorted(tmp_path: Path) -> None:
    model = sb.Mixture(likelihood=sb.Columns({"size": sb.Gaussian(), "word": sb.Categorical()}))
    for name, names in (("a", DECLARED), ("b", DECLARED[::-1])):
        pq.write_table(dictionary(names, ordered=True), tmp_path / f"{name}.parquet")
    fit = sb.fit(model, tmp_path, QUICK, n_components=2)
    assert fit.levels == {"word": ("large", "medium", "never", "small")}


def test_categories_stand_for_the_codes_of_a_fit_without_levels() -> None:
    """In tables of every kind that declares them, and for estimators."""
    likelihood = sb.Categorical()
    codes = pd.DataFrame({"word": CODES, "other": CODES})
    fit = sb.fit(sb.Mixture(likelihood=likelihood), codes, QUICK, n_components=2)
    estimator = BayesianMixture(likelihood=likelihood, random_state=0).fit(codes)
    frame = pd.DataFrame({"word": pd.Categorical(WORDS, categories=DECLARED), "other": CODES})
    words = pl.DataFrame({"word": WORDS, "other": CODES}, schema_overrides={"word": pl.Enum(DECLARED)})
    for table in (frame, pa.Table.from_pandas(frame), words, words.to_arrow()):
        np.testing.assert_array_equal(fit.predict_proba(table), fit.predict_proba(codes))
        np.testing.assert_array_equal(estimator.predict(table), estimator.predict(codes))
