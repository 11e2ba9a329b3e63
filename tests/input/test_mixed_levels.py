"""Levels of several types in one column, and integers that float64 rounds, are matched by value as all others are."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak.io import cells, levels
from stickbreak.io.cells import Level
from stickbreak.result.tables import with_levels
from stickbreak.sklearn import BayesianMixture

KIND = np.arange(60) % 2
SIZE = np.random.default_rng(0).normal(6.0 * KIND)
MIXED: dict[str, tuple[Any, ...]] = {
    "number and text": (1, "a"),
    "number and the same number as text": (1, "1"),
    "flag and text": (True, "x"),
    "fraction and text": ("x", 1.5),
    "flag and fraction": (True, 0.5),
    "large numbers": (2**60, 2**60 + 1),
    "large number and text": ("a", 2**60 + 1),
    "huge number and text": ("a", 10**400),
}


def table(found: tuple[Any, ...]) -> pd.DataFrame:
    """A table whose column `c` declares these categories, which are the only way to such levels."""
    return pd.DataFrame({"size": SIZE, "c": pd.Categorical.from_codes(KIND, pd.Index(found, dtype=object))})


def fitted(found: tuple[Any, ...], part: Any = None) -> sb.Fit:
    blocks = {"size": sb.Gaussian(), "c": sb.Categorical() if part is None else part}
    model = sb.Mixture(likelihood=sb.Columns(blocks))
    options = {"n_components": 2, "missing": "marginalize", "progress": False}
    return sb.fit(model, table(found), sb.Full(max_passes=2, tol=0), **options)


@pytest.mark.parametrize("part", [sb.Categorical(), sb.Bernoulli()])
@pytest.mark.parametrize("found", MIXED.values(), ids=MIXED)
def test_tables_of_the_fit_are_read_again(found: tuple[Any, ...], part: Any, tmp_path: Path) -> None:
    fitted(found, part).save(tmp_path / "m.safetensors")
    fit = sb.load(tmp_path / "m.safetensors")
    assert isinstance(fit, sb.Fit)
    assert fit.levels == {"c": found}
    expected = fit.predict_proba(table(found))
    shown = fit.as_table(np.column_stack([SIZE, KIND]))
    np.testing.assert_array_equal(fit.predict_proba(shown), expected)
    # Polars keeps values of several types as objects.
    words = pl.DataFrame({"c": pl.Series(shown["c"].tolist(), dtype=pl.Object), "size": SIZE})
    np.testing.assert_array_equal(fit.predict_proba(words), expected)
    drawn = fit.as_table(fit.sample(20, seed=0))
    assert fit.update(drawn).counts.sum() == pytest.approx(80.0)
    density = fit.marginal(["c", "size"])
    assert np.isfinite(density.log_density(density.as_table(density.sample(20)))).all()
    shown.loc[3, "c"] = None
    np.testing.assert_array_equal(fit.predict_proba(shown)[[2, 4]], expected[[2, 4]])


@pytest.mark.parametrize("name", MIXED)
def test_a_new_value_among_them_is_named(name: str) -> None:
    found = MIXED[name]
    fit = fitted(found)
    for value in ("new", 7, 2**60 + 2):
        shown = table(found).astype({"c": object})
        shown.loc[5, "c"] = value
        with pytest.raises(sb.InvalidArgument, match=f"but it is {value!r} in row 5, column 'c'"):
            fit.predict(shown)


def test_large_numbers_are_not_rounded() -> None:
    """Their float64 would be that of another level."""
    codes = pd.Categorical.from_codes(KIND, pd.Index([2**60, 2**60 + 1]))
    fit = fitted((2**60, 2**60 + 1))
    expected = fit.predict_proba(table((2**60, 2**60 + 1)))
    numbers = [2**60 + kind for kind in KIND.tolist()]
    for column in (codes, np.array(numbers), pd.array(numbers, dtype="Int64"), np.array(numbers, dtype=np.uint64)):
        np.testing.assert_array_equal(fit.predict_proba(pd.DataFrame({"size": SIZE, "c": column})), expected)
    np.testing.assert_array_equal(fit.predict_proba(pl.DataFrame({"size": SIZE, "c": numbers})), expected)
    np.testing.assert_array_equal(fit.predict_proba(pa.table({"size": SIZE, "c": numbers})), expected)


def test_the_estimator_reads_them_too() -> None:
    found = BayesianMixture(likelihood="auto", random_state=0).fit(table((1, "a")))
    shown = found.fit_.as_table(np.column_stack([SIZE, KIND]))
    np.testing.assert_array_equal(found.predict(shown), found.labels_)


def test_columns_of_several_types_have_no_levels_of_their_own() -> None:
    mixed = pd.DataFrame({"size": SIZE, "c": [(1, "a")[kind] for kind in KIND]})
    model = sb.Mixture(likelihood=sb.Columns({"size": sb.Gaussian(), "c": sb.Categorical()}))
    with pytest.raises(sb.InvalidType, match="with values of the types int and str"):
        sb.fit(model, mixed)


VALUES = st.one_of(st.text("a1 .", max_size=3), st.integers(), st.booleans(), st.floats(allow_nan=False))
LEVELS = st.lists(VALUES.map(cells.level), min_size=1, max_size=6, unique=True)


@given(known=LEVELS, data=st.data())
def test_what_as_table_writes_is_read(known: list[Level], data: Any) -> None:
    codes = data.draw(st.lists(st.one_of(st.integers(0, len(known) - 1), st.none()), min_size=1, max_size=9))
    rows = np.array([[np.nan if code is None else code] for code in codes], dtype=float)
    of_column: levels.Levels = (tuple(known),)
    shown = with_levels(rows, ("c",), [0], of_column)
    for each in (shown, pl.DataFrame({"c": pl.Series(shown["c"].tolist(), dtype=pl.Object)})):
        found = levels.coded(each, "X", levels.OfLevels(of_column), ("c",), of_column)
        np.testing.assert_array_equal(found.data, rows)
