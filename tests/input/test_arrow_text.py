"""Text of Arrow in every layout is text; columns of other values are refused by name, never an error of PyArrow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak.io import cells
from stickbreak.sklearn import BayesianMixture

KIND = np.arange(60) % 3
SIZE = np.random.default_rng(0).normal(4.0 * KIND)
LEVELS = ["north", "south", "a rather long word that no view holds inline"]
WORDS = [LEVELS[kind] for kind in KIND]
MODEL = sb.Mixture(likelihood=sb.Columns({"size": sb.Gaussian(), "word": sb.Categorical()}))
QUICK = sb.Full(max_passes=2, tol=0)


def text(words: list[str]) -> pa.Table:
    return pa.table({"size": SIZE, "word": words})


EXPECTED = sb.fit(MODEL, text(WORDS), QUICK, n_components=2)
TEXT = {"string": pa.string(), "large": pa.large_string(), "view": pa.string_view()}
OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "binary": (pa.binary(), [b"u", b"v", b"w"]),
    "large binary": (pa.large_binary(), [b"u", b"v", b"w"]),
    "binary view": (pa.binary_view(), [b"u", b"v", b"w"]),
    "list": (pa.list_(pa.int8()), [[1], [2], [3]]),
    "struct": (pa.struct([("x", pa.int8())]), [{"x": 1}, {"x": 2}, {"x": 3}]),
}


def dictionary(values: Any, *, ordered: bool = False) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(KIND.astype(np.int8)), values, ordered=ordered)


def chunked(column: Any) -> pa.ChunkedArray:
    return pa.chunked_array([column.slice(0, 7), column.slice(7)])


FORMS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda kind: pa.array(WORDS, kind),
    "dictionary": lambda kind: dictionary(pa.array(LEVELS, kind)),
    "ordered dictionary": lambda kind: dictionary(pa.array(sorted(LEVELS), kind), ordered=True),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TEXT)
def test_text_in_every_layout_is_read(form: str, kind: str) -> None:
    column = FORMS[form](TEXT[kind])
    words = column.to_pylist()
    expected = sb.fit(MODEL, text(words), QUICK, n_components=2)
    for each in (column, chunked(column)):
        table = pa.table({"size": SIZE, "word": each})
        for data in (table, table.to_reader(), lambda table=table: iter([table])):
            fit = sb.fit(MODEL, data, QUICK, n_components=2)
            assert fit.levels == {"word": tuple(sorted(LEVELS))}
            assert fit.elbo == expected.elbo
        np.testing.assert_array_equal(EXPECTED.predict_proba(table), EXPECTED.predict_proba(text(words)))
        assert set(sb.columns_for(table, verbose=False).blocks) == {("size",), ("word",)}
    found = BayesianMixture(likelihood="auto", n_components=2, random_state=0).fit(table)
    assert found.fit_.levels == {"word": tuple(sorted(LEVELS))}


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(sorted(LEVELS)), pl.String])
def test_columns_of_polars_are_read_through_narwhals_and_files(dtype: Any, tmp_path: Path) -> None:
    frame = pl.DataFrame({"size": SIZE, "word": pl.Series(WORDS).cast(dtype)})
    frame.write_parquet(tmp_path / "rows.parquet")
    assert sb.fit(MODEL, tmp_path / "rows.parquet", QUICK, n_components=2).levels == EXPECTED.levels
    table = narwhals.from_native(frame)
    np.testing.assert_array_equal(EXPECTED.predict_proba(table), EXPECTED.predict_proba(frame))
    fit = sb.fit(MODEL, table, QUICK, n_components=2)
    assert fit.levels == EXPECTED.levels
    assert fit.elbo == EXPECTED.elbo


@pytest.mark.parametrize("kind", TEXT)
def test_text_of_arrow_in_pandas_is_read(kind: str) -> None:
    for column in (pa.array(WORDS, TEXT[kind]), dictionary(pa.array(LEVELS, TEXT[kind]))):
        frame = pd.DataFrame({"size": SIZE, "word": pd.arrays.ArrowExtensionArray(column)})
        np.testing.assert_array_equal(EXPECTED.predict_proba(frame), EXPECTED.predict_proba(text(WORDS)))


@pytest.mark.parametrize("name", OTHERS)
def test_columns_of_other_values_are_refused_by_name(name: str) -> None:
    kind, values = OTHERS[name]
    plain = pa.array([values[each] for each in KIND], kind)
    calls = (
        lambda table: sb.fit(MODEL, table),
        EXPECTED.predict,
        lambda table: sb.fit(sb.Mixture(likelihood=sb.Categorical()), table),
        lambda table: sb.columns_for(table, verbose=False),
        BayesianMixture(likelihood="auto").fit,
    )
    for column in (plain, dictionary(pa.array(values, kind)), chunked(plain)):
        table = pa.table({"size": SIZE, "word": column})
        for call in calls:
            with pytest.raises(sb.StickbreakError, match="'word'"):
                call(table)
    if name in ("list", "struct"):
        table = pa.table({"size": SIZE, "word": dictionary(pa.array(values, kind), ordered=True)})
        with pytest.raises(sb.InvalidType, match="'word'"):
            sb.fit(MODEL, table)


@given(
    parts=st.lists(
        st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b", "a long word beside short ones"]))), max_size=3
    ),
    kind=st.sampled_from(sorted(TEXT)),
)
def test_dictionaries_are_decoded_chunk_by_chunk(parts: list[list[str | None]], kind: str) -> None:
    """Each chunk has a dictionary of its own; missing values are missing."""
    plain = [pa.array(part, pa.string()).dictionary_encode() for part in parts]
    chunks = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(TEXT[kind])) for part in plain]
    column = pa.chunked_array(chunks, pa.dictionary(pa.int32(), TEXT[kind]))
    found = cells.column(pa.table({"c": column}), 0)
    words = [word for part in parts for word in part]
    if any(word is not None for word in words):
        assert found.kind == "words"
        assert found.values.tolist() == words
    else:
        assert np.isnan(found.values).tolist() == [True] * len(words)
