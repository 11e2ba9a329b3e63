"""The same numbers in other clothes: order, strides, byte order, memory maps, other types, tables."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stickbreak as sb
from cases import visible_bits

MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
ALGORITHM = sb.Memoized(batches=3, sparsity=2, max_passes=3, tol=0.0)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Small integers: every type below holds them exactly."""
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
    """How the rows lie in memory is nobody's business: the same bits."""
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
    assert bits(rows.astype(dtype), rows) == bits(rows, rows)


def test_unsigned_and_boolean_numbers_become_float64(rows: np.ndarray) -> None:
    shifted = np.abs(rows)
    for dtype in [np.uint8, np.uint16, np.uint64]:
        assert bits(shifted.astype(dtype), shifted) == bits(shifted, shifted)
    flags = rows > 0
    assert bits(flags, flags.astype(float)) == bits(flags.astype(float), flags.astype(float))


def test_half_becomes_single(rows: np.ndarray) -> None:
    single = rows.astype(np.float32)
    assert bits(rows.astype(np.float16), single) == bits(single, single)


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


def test_pandas_with_a_missing_value(rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows).astype("Int64")
    frame.iloc[3, 1] = pandas.NA
    with pytest.raises(sb.InvalidArgument) as caught:
        bits(frame, rows)
    assert caught.value.argument == "X"


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
