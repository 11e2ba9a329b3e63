"""`columns_for`: the likelihood of each column, what is refused, and the printed table; `split_zeros`."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import stickbreak as sb

N = 300
RNG = np.random.default_rng(0)
KIND = RNG.integers(3, size=N)
NORMAL = RNG.normal(size=N)
COUNTS = RNG.poisson(3.0, size=N)
ZEROS = np.where(RNG.random(N) < 0.5, 0.0, RNG.lognormal(5.0, size=N))


def with_nan(values: np.ndarray) -> np.ndarray:
    return np.where(np.arange(N) % 7 == 0, np.nan, values)


COLUMNS: dict[str, tuple[Any, type[Any]]] = {
    "reals": (NORMAL, sb.Gaussian),
    "rounded reals": (NORMAL.round(1), sb.Gaussian),
    "float32": (NORMAL.astype(np.float32), sb.Gaussian),
    "years": (RNG.integers(1950, 2020, size=N), sb.Gaussian),
    "prices": (RNG.lognormal(10.0, size=N).round(), sb.Gaussian),
    "negative integers": (RNG.integers(-50, 50, size=N), sb.Gaussian),
    "decimals": ([Decimal(f"{value:.2f}") for value in NORMAL], sb.Gaussian),
    "nullable floats": (pd.array([1.5, *NORMAL[1:]], dtype="Float64"), sb.Gaussian),
    "counts": (COUNTS, sb.NegativeBinomial),
    "few counts": (RNG.poisson(1.2, size=N), sb.NegativeBinomial),
    "counts of two clusters": (RNG.poisson(1.0 + 15.0 * (KIND > 0)), sb.NegativeBinomial),
    "counts with NaN": (with_nan(COUNTS), sb.NegativeBinomial),
    "nullable counts": (pd.array([None, *COUNTS[1:].tolist()], dtype="Int64"), sb.NegativeBinomial),
    "overdispersed": (RNG.negative_binomial(1, 0.05, size=N), sb.NegativeBinomial),
    "booleans": (KIND > 0, sb.Bernoulli),
    "booleans with None": ([None, *(KIND[1:] > 0).tolist()], sb.Bernoulli),
    "nullable booleans": (pd.array([None, *(KIND[1:] > 0).tolist()], dtype="boolean"), sb.Bernoulli),
    "zeros and ones": (KIND % 2, sb.Bernoulli),
    "zeros and ones with NaN": (with_nan(KIND % 2), sb.Bernoulli),
    "text": (np.array(["a", "b", "c"], dtype=object)[KIND], sb.Categorical),
    "text with None": ([None, *np.array(["a", "b", "c"])[KIND[1:]].tolist()], sb.Categorical),
    "two words": (np.where(KIND > 0, "yes", "no"), sb.Categorical),
    "string": (pd.array(np.where(KIND > 0, "yes", "no"), dtype="string"), sb.Categorical),
    "constant text": (["a"] * N, sb.Categorical),
    "categories": (pd.Categorical.from_codes(KIND, ["a", "b", "c", "d"]), sb.Categorical),
    "categories of numbers": (pd.Categorical(KIND * 10), sb.Categorical),
    "codes": (RNG.integers(6, size=N), sb.Categorical),
    "codes from one": (KIND + 1, sb.Categorical),
    "codes with NaN": (with_nan(KIND + 1), sb.Categorical),
    "few negative integers": (KIND - 1, sb.Categorical),
    "two numbers": (np.where(KIND > 0, 0.25, 0.75), sb.Categorical),
    "numbers of many rows": (RNG.integers(30, size=N) // 3 * 7, sb.Categorical),
}


@pytest.mark.filterwarnings("ignore::stickbreak.EmptyRowsWarning")
@pytest.mark.parametrize(("values", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_a_column(values: Any, expected: type[Any]) -> None:
    frame = pd.DataFrame({"c": values})
    found = sb.columns_for(frame, verbose=False)
    assert [type(part) for part in found.blocks.values()] == [expected]
    fit = sb.fit(sb.Mixture(likelihood=found), frame, sb.Full(max_passes=2), n_components=2, missing="marginalize")
    assert np.isfinite(fit.elbo)


REFUSED: dict[str, tuple[str, Any, str]] = {
    "row numbers": ("c", np.arange(N), "an id: whole numbers in order"),
    "from large to small": ("c", 1000 - 2 * np.arange(N), "an id: whole numbers in order"),
    "row numbers as floats": ("c", np.arange(N) * 1.0, "an id: whole numbers in order"),
    "permutation": ("c", RNG.permutation(N), "an id: consecutive whole numbers"),
    "phone numbers": ("c", RNG.permutation(N) * 1_234_567 + 10**9, "an id: whole numbers of 10 digits"),
    "huge": ("c", RNG.integers(2**62, 2**63, size=N), "an id: whole numbers of 19 digits"),
    "named id": ("customer_id", RNG.choice(10**6, size=N, replace=False), "an id: 300 different whole numbers"),
    "named Id": ("customerId", RNG.choice(10**6, size=N, replace=False), "an id: 300 different whole numbers"),
    "group id": ("ID", RNG.integers(100, size=N), "an id: .* different whole numbers"),
    "names": ("c", [f"n{row}" for row in range(N)], "an id: 300 different values"),
    "categories": ("c", pd.Categorical([f"n{row}" for row in range(N)]), "an id: 300 different categories"),
    "free text": ("c", ["it was a long day and " * 3 + str(row) for row in range(N)], "free text, such as 'it was"),
    "many words": ("c", [f"n{row // 2}" for row in range(N)], "text of 150 different values in 300 rows"),
    "too many words": ("c", [f"n{row % 90}" for row in range(N)], "text of 90 different values in 300 rows"),
    "numbers as text": ("c", [f"{value:.3f}" for value in NORMAL], "numbers as text"),
    "repeated numbers as text": ("age", RNG.integers(20, 50, size=N).astype(str), "numbers as text"),
    "numbers as text and a word": (
        "age",
        np.where(np.arange(N) == 7, "unknown", RNG.integers(20, 50, size=N).astype(str)),
        "numbers as text, such as '20', beside 'unknown'",
    ),
    "money": ("c", [f"${value:,}" for value in RNG.integers(1000, 10**6, size=N)], r"numbers as text, such as '\$"),
    "shares": ("c", [f"{value:.3f} %" for value in RNG.random(N)], "numbers as text"),
    "units": ("c", [f"{value:.2f} kg" for value in NORMAL], "numbers as text"),
    "postcodes": ("c", [f"0{row}" for row in range(1000, 1000 + N)], "an id: 300 different values"),
    "id of digits": ("user_id", [f"{row}" for row in range(1000, 1000 + N)], "an id: 300 different values"),
    "dates": ("c", pd.date_range("2020-01-01", periods=N), "dates or times"),
    "days": ("c", [datetime.date(2020, 1, 1)] * N, "dates or times"),
    "dates as text": ("c", ["2020-01-05", "2020-01-06 10:00"] * 150, "dates or times, as text"),
    "durations": ("c", pd.to_timedelta(np.arange(N), unit="s"), "dates or times"),
    "periods": ("c", pd.period_range("2020-01", periods=N), "dates or times"),
    "mixed": ("c", [1, "a"] * 150, "values of the types int and str"),
    "lists": ("c", [[1]] * N, "values of the types list"),
    "complex": ("c", np.ones(N) * 1j, "complex128"),
}


@pytest.mark.parametrize(("name", "values", "why"), REFUSED.values(), ids=REFUSED)
def test_a_refused_column(name: str, values: Any, why: str) -> None:
    frame = pd.DataFrame({"good": NORMAL, name: values})
    with pytest.raises(sb.InvalidArgument, match=rf"the column '{name}' \(.*{why}") as caught:
        sb.columns_for(frame)
    assert caught.value.argument == "data"
    assert f"leave them out: data.drop(columns=['{name}'])" in str(caught.value)


def test_all_refused_columns_are_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({f"{number}_{name}": values for number, (name, values, _) in enumerate(REFUSED.values())})
    with pytest.raises(sb.InvalidArgument) as caught:
        sb.columns_for(frame.assign(good=NORMAL))
    assert f"data.drop(columns={list(frame.columns)})" in str(caught.value).replace('"', "'")
    assert capsys.readouterr().out == ""
    assert sb.columns_for(frame.assign(good=NORMAL).drop(columns=list(frame.columns)), verbose=False)


def test_few_numbers_as_text_are_categories_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"grade": RNG.integers(1, 7, size=N).astype(str), "town": ["Ulm", "Bonn"] * (N // 2)})
    assert sb.columns_for(frame) == sb.Columns({"grade, town": sb.Categorical()})
    grade, town = capsys.readouterr().out.splitlines()[1:]
    assert grade.endswith("numbers as text; make numbers of them if they are amounts or counts")
    assert town.endswith(" text")


def test_few_rows_refuse_nothing() -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    assert sb.columns_for(frame, verbose=False) == sb.Columns({"id, name": sb.Categorical()})


def test_one_row() -> None:
    found = sb.columns_for(pd.DataFrame({"a": [1.5], "b": ["x"], "c": [True], "d": [3]}), verbose=False)
    assert found == sb.Columns({("a", "d"): sb.DiagonalGaussian(), "c": sb.Bernoulli(), "b": sb.Categorical()})


TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "categorical": lambda frame: pl.from_pandas(frame).with_columns(pl.col("c").cast(pl.Categorical)),
    "dictionary": lambda frame: pa.Table.from_pandas(frame.astype({"c": "category"}), preserve_index=False),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_are_read_alike(table: Callable[[pd.DataFrame], Any], capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"a": NORMAL, "b": with_nan(NORMAL), "c": np.where(KIND > 0, "x", None), "d": KIND > 0})
    frame["e"] = pd.array(with_nan(COUNTS), dtype="Int64")
    found = sb.columns_for(table(frame))
    assert str(found) == (
        "Columns({'a, b': Gaussian(), 'e': NegativeBinomial(), 'd': Bernoulli(), 'c': Categorical()})"
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["column", "holds", "likelihood", "why"]
    assert [line.split()[0] for line in lines[1:]] == list("abcde")
    starts = {line.index(part) for line, part in zip(lines[1:], ["Gau", "Gau", "Cat", "Ber", "Neg"], strict=True)}
    assert starts == {lines[0].index("likelihood")}
    assert "43 missing" in lines[2]


@pytest.mark.parametrize(
    ("n", "n_columns", "joint"), [(100, 10, True), (99, 10, False), (2000, 100, True), (2000, 101, False)]
)
def test_amounts_share_a_gaussian_if_there_are_enough_rows(n: int, n_columns: int, joint: bool) -> None:
    rows = np.random.default_rng(0).normal(size=(n, n_columns))
    found = sb.columns_for(rows, verbose=False)
    assert found == sb.Columns({tuple(range(n_columns)): sb.Gaussian() if joint else sb.DiagonalGaussian()})


def test_many_amounts_with_missing_values_are_apart() -> None:
    frame = pd.DataFrame({"a": NORMAL, "b": with_nan(NORMAL), "c": 2.0 * NORMAL**3, "d": with_nan(NORMAL[::-1])})
    found = sb.columns_for(frame, verbose=False)
    assert found == sb.Columns({"a, b, c, d": sb.Gaussian()})
    many = pd.DataFrame(np.random.default_rng(0).normal(size=(len(frame), 18))).rename(columns=lambda name: f"x{name}")
    apart = sb.columns_for(pd.concat([many, frame], axis=1), verbose=False)
    assert apart == sb.Columns({(*many, "a", "c"): sb.Gaussian(), "b, d": sb.DiagonalGaussian()})
    # Rows that lack all amounts need no likelihood of their own.
    quick: dict[str, Any] = {"algorithm": sb.Full(max_passes=2), "missing": "marginalize"}
    sb.fit(sb.Mixture(likelihood=found), frame, **quick)
    same = frame[["b"]].assign(d=with_nan(NORMAL**3))
    assert sb.columns_for(same, verbose=False) == sb.Columns({"b, d": sb.Gaussian()})
    with pytest.warns(sb.EmptyRowsWarning, match="43 rows"):
        sb.fit(sb.Mixture(likelihood=sb.columns_for(same, verbose=False)), same, **quick)


def test_rows_for_the_amounts_that_share_a_gaussian_are_enough() -> None:
    """Amounts that are apart anyway ask for no rows."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 24))
    rows[:, 5:][rng.random((60, 19)) < 0.2] = np.nan
    assert np.isnan(rows[:, 5:]).any(axis=0).all()
    found = sb.columns_for(rows, verbose=False)
    assert found == sb.Columns({tuple(range(5)): sb.Gaussian(), tuple(range(5, 24)): sb.DiagonalGaussian()})


def test_columns_that_say_nothing_stay() -> None:
    frame = pd.DataFrame({"a": NORMAL + 9 * KIND, "one": 1, "none": np.nan, "null": None, "true": True, "text": "t"})
    found = sb.columns_for(frame, verbose=False)
    model = sb.Mixture(likelihood=found)
    with pytest.warns(sb.SupportWarning, match="columns 'one', 'none', 'null' are constant or have no value"):
        fit = sb.fit(model, frame, sb.Full(max_passes=3), n_components=3, missing="marginalize")
    alone = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), frame[["a"]], sb.Full(max_passes=3), n_components=3)
    np.testing.assert_array_equal(fit.predict(frame), alone.predict(frame[["a"]]))


WRONG: dict[str, tuple[Any, type[sb.StickbreakError]]] = {
    "no columns": (pd.DataFrame(), sb.InvalidArgument),
    "no rows": (pd.DataFrame({"a": []}), sb.InvalidArgument),
    "an array without rows": (np.empty((0, 2)), sb.InvalidArgument),
    "two names": (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), sb.InvalidArgument),
    "levels of names": (
        pd.DataFrame(np.ones((3, 2)), columns=pd.MultiIndex.from_product([["a"], ["b", "c"]])),
        sb.InvalidType,
    ),
    "names and numbers": (pd.DataFrame(np.ones((3, 2)), columns=["a", 1]), sb.InvalidType),
    "a vector": (np.ones(3), sb.InvalidArgument),
    "a series": (pd.Series([1.0, 2.0]), sb.InvalidArgument),
    "text in an array": (np.array([["a", "b"]]), sb.InvalidType),
    "objects in an array": (np.array([["a", 1]], dtype=object), sb.InvalidType),
    "masked": (np.ma.masked_array(np.ones((3, 2)), mask=True), sb.InvalidType),
    "a path": ("rows.csv", sb.InvalidType),
    "None": (None, sb.InvalidType),
    "a lazy table": (pl.DataFrame({"a": [1]}).lazy(), sb.InvalidType),
    "sparse": (sparse.eye(3), sb.InvalidType),
}


@pytest.mark.parametrize(("data", "error"), WRONG.values(), ids=WRONG)
def test_other_data_are_refused(data: Any, error: type[sb.StickbreakError]) -> None:
    with pytest.raises(error) as caught:
        sb.columns_for(data, verbose=False)
    assert caught.value.argument == "data"


def test_verbose_is_a_flag() -> None:
    with pytest.raises(sb.InvalidType, match="verbose must be True or False"):
        sb.columns_for(NORMAL.reshape(-1, 1), verbose=1)


def test_arrays_have_codes_only() -> None:
    rows = np.stack([KIND, KIND - 1, COUNTS, KIND > 0], axis=1).astype(float)
    found = sb.columns_for(rows, verbose=False)
    assert found == sb.Columns(
        {(1,): sb.Gaussian(), (2,): sb.NegativeBinomial(), (3,): sb.Bernoulli(), (0,): sb.Categorical()}
    )
    sb.fit(sb.Mixture(likelihood=found), rows, sb.Full(max_passes=2), n_components=2)


def test_the_table_advises(capsys: pytest.CaptureFixture[str]) -> None:
    sb.columns_for(pd.DataFrame({"gain": ZEROS, "whole": ZEROS.round(), "price": np.exp(NORMAL), "n": COUNTS}))
    gain, whole, price, counts = capsys.readouterr().out.splitlines()[1:]
    assert "% are zero: split_zeros(data, ['gain'])" in gain
    assert "split_zeros(data, ['whole'])" in whole
    assert "skewed: consider its logarithm" in price
    assert "split_zeros" not in counts + price


@pytest.mark.parametrize(
    "table", [TABLES["pandas"], TABLES["polars"], TABLES["arrow"]], ids=["pandas", "polars", "arrow"]
)
def test_zeros_are_split(table: Callable[[pd.DataFrame], Any]) -> None:
    frame = pd.DataFrame({"a": KIND, "gain": ZEROS, "c": np.where(KIND > 0, "x", "y")})
    split = sb.split_zeros(table(frame), "gain")
    assert type(split) is type(table(frame))
    found = sb.columns_for(split, verbose=False)
    assert found == sb.Columns({"gain": sb.Gaussian(), "gain > 0": sb.Bernoulli(), "a, c": sb.Categorical()})
    fit = sb.fit(sb.Mixture(likelihood=found), split, sb.Full(max_passes=2), n_components=2, missing="marginalize")
    assert fit.column_names == ("a", "gain > 0", "gain", "c")
    shown = split if isinstance(split, pd.DataFrame) else split.to_pandas()
    np.testing.assert_array_equal(shown["gain > 0"], ZEROS > 0)
    np.testing.assert_array_equal(shown["gain"], np.where(ZEROS > 0, ZEROS, np.nan))


def test_missing_amounts_have_missing_flags() -> None:
    frame = pd.DataFrame({"b": [1.0, 2.0, 3.0], "gain": [0.0, np.nan, 2.0]}, index=[5, 6, 7])
    split = sb.split_zeros(frame, ["gain"])
    assert split.columns.tolist() == ["b", "gain > 0", "gain"]
    assert split.index.tolist() == [5, 6, 7]
    np.testing.assert_array_equal(split["gain > 0"], [0.0, np.nan, 1.0])
    assert frame["gain"].tolist()[0] == 0.0


SPLITS: dict[str, tuple[Any, Any, type[sb.StickbreakError], str]] = {
    "unknown": (pd.DataFrame({"gain": [1.0]}), "gian", sb.InvalidArgument, "did you mean 'gain'"),
    "twice": (pd.DataFrame({"gain": [1.0]}), ["gain", "gain"], sb.InvalidArgument, "'gain' twice"),
    "taken": (pd.DataFrame({"gain": [1.0], "gain > 0": [1]}), "gain", sb.InvalidArgument, "beside 'gain > 0'"),
    "negative": (pd.DataFrame({"gain": [1.0, -2.0]}), "gain", sb.InvalidArgument, "-2 in row 1"),
    "text": (pd.DataFrame({"gain": ["a"]}), "gain", sb.InvalidType, "'gain', of the dtype"),
    "a number": (pd.DataFrame({"gain": [1.0]}), 3, sb.InvalidType, "3 of type int"),
    "numbers": (pd.DataFrame({"gain": [1.0]}), [3], sb.InvalidType, "3 of type int"),
    "an array": (np.ones((2, 2)), "gain", sb.InvalidType, "a table of pandas, Polars or Arrow"),
    "no names": (pd.DataFrame([[1.0]]), "gain", sb.InvalidArgument, "'gain'"),
}


@pytest.mark.parametrize(("data", "columns", "error", "message"), SPLITS.values(), ids=SPLITS)
def test_what_cannot_be_split(data: Any, columns: Any, error: type[sb.StickbreakError], message: str) -> None:
    with pytest.raises(error, match=message):
        sb.split_zeros(data, columns)


def test_later_rows_may_lack_single_amounts_if_told() -> None:
    """A Gaussian imputes single values; of many amounts, each has a distribution of its own."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    holes = table.copy()
    holes.loc[3, "a"] = np.nan
    fit = sb.fit(
        sb.Mixture(likelihood=sb.columns_for(table, verbose=False)), table, missing="marginalize", progress=False
    )
    assert len(fit.predict(holes)) == 60
    for missing in ("error", "marginalize"):
        likelihood = sb.columns_for(holes, verbose=False, missing=missing)
        assert isinstance(likelihood.blocks[("a", "b")], sb.Gaussian)
    many = pd.DataFrame(rng.normal(size=(300, 21))).rename(columns=str)
    likelihood = sb.columns_for(many, verbose=False, missing="marginalize")
    assert isinstance(likelihood.blocks[tuple(many)], sb.DiagonalGaussian)


def test_amounts_with_holes_are_said_to_be_independent(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 21))).rename(columns=str)
    sb.columns_for(table)
    assert "independent" not in capsys.readouterr().out
    table.loc[3, "0"] = np.nan
    sb.columns_for(table)
    assert "independent within a cluster" not in capsys.readouterr().out
    table.loc[5, "1"] = np.nan
    sb.columns_for(table)
    assert "independent within a cluster" in capsys.readouterr().out
    # Fewer amounts have a Gaussian, which imputes.
    sb.columns_for(table[["0", "1", "2"]])
    assert "independent within a cluster" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (np.append(RNG.poisson(3.0, size=N - 1), 50_000), "whole numbers, some above 10,000"),
        (np.append(RNG.poisson(900.0, size=N - 1), 2_000_000), "whole numbers, some above 10,000"),
        (RNG.poisson(900.0, size=N), "whole numbers far from zero"),
        (RNG.poisson(90_000.0, size=N), "whole numbers far from zero"),
    ],
)
def test_a_large_count_does_not_put_the_others_far_from_zero(
    values: np.ndarray, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sb.columns_for(pd.DataFrame({"c": values}))
    assert why in capsys.readouterr().out
