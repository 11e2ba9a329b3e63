"""The same numbers in other forms: order, strides, byte order, memory maps, other types, tables."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stickbreak as sb
from cases import visible_bits
from stickbreak.io import arrays
from stickbreak.sklearn import BayesianMixture

MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
ALGORITHM = sb.Memoized(batches=3, sparsity=2, max_passes=3, tol=0.0)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Return small integers, which every type below represents exactly."""
    rng = np.random.default_rng(0)
    return (rng.integers(-9, 10, (2500, 3)) + rng.choice([-20, 20], (2500, 1))).astype(np.float64)


def bits(rows: object, reference: np.ndarray) -> dict[str, bytes]:
    fit = sb.fit(MODEL, rows, ALGORITHM, n_components=3, progress=False)
    return visible_bits(fit, reference)


def negative_strides(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows[::-1, ::-1])[::-1, ::-1]


def wide_strides(rows: np.ndarray) -> np.ndarray:
    wide = np.zeros((2 * rows.shape[0], 3 * rows.shape[1]), rows.dtype)
    wide[::2, ::3] = rows
    return wide[::2, ::3]


def unaligned(rows: np.ndarray) -> np.ndarray:
    buffer = np.zeros(rows.nbytes + 1, np.uint8)
    view = buffer[1:].view(rows.dtype).reshape(rows.shape)
    view[:] = rows
    return view


def read_only(rows: np.ndarray) -> np.ndarray:
    copy = rows.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fortran": np.asfortranarray,
    "transposed": lambda rows: np.ascontiguousarray(rows.T).T,
    "negative_strides": negative_strides,
    "wide_strides": wide_strides,
    "broadcast": lambda rows: np.broadcast_to(rows, rows.shape),
    "read_only": read_only,
    "unaligned": unaligned,
    "big_endian": lambda rows: rows.astype(rows.dtype.newbyteorder(">")),
    "little_endian": lambda rows: rows.astype(rows.dtype.newbyteorder("<")),
    "subclass": lambda rows: rows.view(type("Rows", (np.ndarray,), {})),
    "unmasked": np.ma.MaskedArray,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layout(rows: np.ndarray, dtype: type, layout: Callable[[np.ndarray], np.ndarray]) -> None:
    """The memory layout of rows changes no bit."""
    reference = rows.astype(dtype)
    assert bits(layout(reference), reference) == bits(reference, reference)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layout_of_what_is_predicted(rows: np.ndarray, layout: Callable[[np.ndarray], np.ndarray]) -> None:
    fit = sb.fit(MODEL, rows, ALGORITHM, n_components=3, progress=False)
    np.testing.assert_array_equal(fit.log_predictive(layout(rows)), fit.log_predictive(rows))
    np.testing.assert_array_equal(fit.predict(layout(rows)), fit.predict(rows))
    np.testing.assert_array_equal(fit.predict_proba(layout(rows)), fit.predict_proba(rows))
    assert fit.evaluate(layout(rows)) == fit.evaluate(rows)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.longdouble])
def test_other_numbers_become_float64(rows: np.ndarray, dtype: type) -> None:
    with pytest.warns(sb.ConversionWarning, match="converted to float64"):
        found = bits(rows.astype(dtype), rows)
    assert found == bits(rows, rows)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64, np.bool_])
def test_unsigned_and_boolean_numbers_become_float64(rows: np.ndarray, dtype: type) -> None:
    given = (np.abs(rows) % 7).astype(dtype)
    with pytest.warns(sb.ConversionWarning, match="converted to float64"):
        found = bits(given, given.astype(float))
    assert found == bits(given.astype(float), given.astype(float))


def test_half_becomes_single(rows: np.ndarray) -> None:
    single = rows.astype(np.float32)
    with pytest.warns(sb.ConversionWarning, match="float16 is converted to float32"):
        found = bits(rows.astype(np.float16), single)
    assert found == bits(single, single)


@pytest.mark.parametrize(("value", "rounds"), [(2**53, False), (2**53 + 1, True), (-(2**53) - 1, True)])
def test_integers_that_are_rounded_are_told(value: int, rounds: bool) -> None:
    rows = np.array([[value], [3], [8]])
    with pytest.warns(sb.ConversionWarning) as caught:
        arrays.rows(rows)
    assert ("rounds those above 2^53" in str(caught[0].message)) is rounds


def test_conversions_are_said_once() -> None:
    """With default filters, each kind of conversion warns once per process, for any caller; lists do not warn."""
    script = """
import numpy as np, stickbreak as sb
rows = np.random.default_rng(0).integers(-50, 50, size=(40, 2))
model = sb.Mixture(likelihood=sb.Gaussian())
for _ in range(3):
    fit = sb.fit(model, rows, sb.Full(max_passes=1), n_components=2)
fit.predict(rows)
fit.log_predictive(rows.astype(np.uint8))
fit.predict(rows.astype(np.float16))
fit.evaluate(rows.astype(np.float16), sample_weight=np.ones(40, int))
fit.predict(rows.astype(">f8"))
fit.predict(rows.tolist())
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    said = [line for line in found.stderr.splitlines() if "ConversionWarning:" in line]
    assert [("integers" in line, "float16" in line) for line in said] == [(True, False), (False, True)]


def test_lists(rows: np.ndarray) -> None:
    assert bits(rows.tolist(), rows) == bits(rows, rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_map(rows: np.ndarray, dtype: type, order: str, tmp_path: Path) -> None:
    path, reference = tmp_path / "rows.npy", rows.astype(dtype)
    np.save(path, np.asarray(reference, order=order))
    mapped = np.load(path, mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert bits(mapped, reference) == bits(reference, reference)


def test_pandas(rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["a", "b", "c"])
    assert bits(frame, rows) == bits(rows, rows)
    mixed = frame.astype({"a": "int64", "b": "float32"})
    assert bits(mixed, rows) == bits(rows, rows)
    nullable = frame.astype("Int64")
    assert bits(nullable, rows) == bits(rows, rows)
    weights = pandas.Series(np.ones(len(rows)))
    labels = pandas.Series(np.arange(len(rows)) % 3)
    fit = sb.fit(MODEL, frame, ALGORITHM, init=labels, sample_weight=weights, progress=False)
    other = sb.fit(MODEL, rows, ALGORITHM, init=labels.to_numpy(), sample_weight=np.ones(len(rows)), progress=False)
    assert fit.elbo == other.elbo


@pytest.mark.parametrize("kind", ["text", "category", "datetime64", "boolean", "object"])
@pytest.mark.parametrize("argument", ["data", "labels", "sample_weight", "init", "X", "partial_labels"])
def test_a_pandas_column_without_numbers_is_refused(rows: np.ndarray, argument: str, kind: str) -> None:
    """The message names the argument and the type of the column."""
    pandas = pytest.importorskip("pandas")
    words = pandas.Series(["a", "b"] * (len(rows) // 2))
    column = {
        "text": words,
        "category": words.astype("category"),
        "datetime64": pandas.Series(pandas.date_range("2020", periods=len(rows))),
        "boolean": pandas.Series([True, None] * (len(rows) // 2), dtype="boolean"),
        "object": pandas.Series([1, None] * (len(rows) // 2), dtype=object),
    }[kind]
    calls: dict[str, Callable[[], object]] = {
        "data": lambda: sb.fit(MODEL, column, progress=False),
        "X": lambda: sb.fit(MODEL, rows, ALGORITHM, n_components=3, progress=False).predict(column),
        "partial_labels": lambda: BayesianMixture().fit(rows, partial_labels=column),
    }
    call = calls.get(argument, lambda: sb.fit(MODEL, rows, ALGORITHM, progress=False, **{argument: column}))
    with pytest.raises(sb.InvalidType) as caught:
        call()
    assert caught.value.argument == argument
    assert f"Series with values of dtype {column.dtype}" in str(caught.value)


def test_what_stands_for_a_missing_value_is_said(rows: np.ndarray) -> None:
    lacking = rows.astype(object)
    lacking[3, 1] = None
    with pytest.raises(sb.InvalidType, match="; write NaN where a value is missing"):
        sb.fit(MODEL, lacking, progress=False)
    with pytest.raises(sb.InvalidType, match="; write NaN where a value is missing"):
        sb.fit(MODEL, lacking.tolist(), progress=False)
    labels = [None, *range(len(rows) - 1)]
    with pytest.raises(sb.InvalidType, match="; write -1 where a value is missing"):
        sb.fit(MODEL, rows, labels=labels, progress=False)
    lacking[3, 1] = "three"
    with pytest.raises(sb.InvalidType) as caught:
        sb.fit(MODEL, lacking, progress=False)
    assert "NaN" not in str(caught.value)


@pytest.mark.parametrize(("package", "fill"), [("pandas", "fillna"), ("polars", "fill_null")])
def test_missing_labels_of_a_column_are_minus_one(rows: np.ndarray, package: str, fill: str) -> None:
    library = pytest.importorskip(package)
    kind = {"dtype": "Int64"} if package == "pandas" else {}
    labels = library.Series([None, *(np.arange(1, len(rows)) % 2).tolist()], **kind)
    with pytest.raises(sb.InvalidType, match=rf"Series with missing values; write -1 .* labels\.{fill}\(-1\)"):
        sb.fit(MODEL, rows, labels=labels, progress=False)
    fit = sb.fit(MODEL, rows, ALGORITHM, labels=getattr(labels, fill)(-1), progress=False)
    assert set(fit.classes) >= {0, 1}


def test_pandas_with_a_missing_value(rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows).astype("Int64")
    frame.iloc[3, 1] = pandas.NA
    with pytest.raises(sb.InvalidArgument) as caught:
        bits(frame, rows)
    assert caught.value.argument == "data"


def test_polars(rows: np.ndarray) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    assert bits(frame, rows) == bits(rows, rows)
    mixed = frame.with_columns(polars.col("a").cast(polars.Int64), polars.col("b").cast(polars.Float32))
    assert bits(mixed, rows) == bits(rows, rows)
    single = frame.cast(polars.Float32)
    assert bits(single, rows.astype(np.float32)) == bits(rows.astype(np.float32), rows.astype(np.float32))
    with pytest.warns(sb.ConversionWarning, match="integers"):
        found = bits(frame.cast(polars.Int32), rows)
    assert found == bits(rows, rows)
    weights, labels = polars.Series(np.ones(len(rows))), polars.Series(np.arange(len(rows)) % 3)
    fit = sb.fit(MODEL, frame, ALGORITHM, init=labels, sample_weight=weights, progress=False)
    other = sb.fit(MODEL, rows, ALGORITHM, init=labels.to_numpy(), sample_weight=np.ones(len(rows)), progress=False)
    assert fit.elbo == other.elbo
    np.testing.assert_array_equal(fit.predict(frame), fit.predict(rows))


def test_what_is_wrong_with_a_polars_table_is_said(rows: np.ndarray) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    missing = frame.with_columns(polars.when(polars.col("b") > 25).then(None).otherwise(polars.col("b")).alias("b"))
    row = int((rows[:, 1] > 25).argmax())
    for wrong, kind, words in [
        (missing, sb.InvalidArgument, f"row {row}, column 'b'"),
        (frame.with_columns(c=polars.lit("x")), sb.InvalidType, "DataFrame"),
        (frame.lazy(), sb.InvalidType, "collect"),
        (frame.select([]), sb.InvalidArgument, "column"),
        (frame["a"], sb.InvalidArgument, "to_frame"),
    ]:
        with pytest.raises(kind) as caught:
            bits(wrong, rows)
        assert caught.value.argument == "data"
        assert words in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, ">f8"])
def test_weights_in_other_types(rows: np.ndarray, dtype: object) -> None:
    weights = np.random.default_rng(1).integers(1, 4, len(rows)).astype(float)
    options = {"n_components": 3, "progress": False}
    expected = sb.fit(MODEL, rows, ALGORITHM, sample_weight=weights, **options)
    for given in [weights.astype(dtype), weights.astype(dtype)[::-1][::-1], weights.astype(dtype).tolist()]:
        assert sb.fit(MODEL, rows, ALGORITHM, sample_weight=given, **options).elbo == expected.elbo


def test_data_are_left_alone(rows: np.ndarray) -> None:
    given, weights, start = rows.copy(), np.full(len(rows), 2.0), np.full((len(rows), 3), 1 / 3)
    copies = given.copy(), weights.copy(), start.copy()
    fit = sb.fit(MODEL, given, ALGORITHM, sample_weight=weights, init=start, progress=False)
    before = fit.log_predictive(rows)
    for array, copy in zip((given, weights, start), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    given[:] = 0.0  # a fit does not hold on to the data
    np.testing.assert_array_equal(fit.log_predictive(rows), before)


def test_hyper_parameters_are_copied() -> None:
    scale = np.eye(2)
    likelihood = sb.Gaussian(scale=scale)
    scale[:] = 0.0
    np.testing.assert_array_equal(likelihood.scale, np.eye(2))


@pytest.mark.parametrize("ending", ["", ".parquet"])
def test_names_that_are_too_long_for_a_file_are_refused(ending: str) -> None:
    with pytest.raises((sb.InvalidArgument, sb.SourceError), match=r"there is no such file|path of a \.parquet file"):
        sb.fit(sb.Mixture(likelihood=sb.Gaussian()), "x" * 5000 + ending)
