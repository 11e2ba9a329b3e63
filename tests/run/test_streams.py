"""Data read in blocks: a function that makes iterators, Parquet files, memory maps; the same bits as in memory."""

import itertools
import json
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import kinds
import stickbreak as sb
from cases import LIKELIHOODS, LikelihoodName, clustered_rows, make_case, visible_bits

N = 12_500
ROWS = clustered_rows(np.random.default_rng(0), N, 3, 5)
WEIGHTS = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], size=N)
MODEL = sb.Mixture(likelihood=sb.Gaussian())


def blocks(rows: np.ndarray, sizes: Sequence[int] = (700, 1, 3000, 64)) -> Callable[[], Iterator[np.ndarray]]:
    """Return a source of the rows in blocks of these sizes, repeated."""

    def read() -> Iterator[np.ndarray]:
        begin = turn = 0
        while begin < len(rows):
            size = sizes[turn % len(sizes)]
            yield rows[begin : begin + size]
            begin, turn = begin + size, turn + 1

    return read


def fit(data: Any, algorithm: Any = None, model: sb.Mixture = MODEL, **options: Any) -> sb.Fit:
    algorithm = sb.Memoized(batches=4, shuffle=False, max_passes=4, tol=0.0) if algorithm is None else algorithm
    return sb.fit(model, data, algorithm, **{"n_components": 6, "progress": False} | options)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("init", ["kmeans++", "random"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [900, N])
@pytest.mark.one_in(2)
def test_the_bits_are_those_in_memory(
    likelihood: LikelihoodName, init: str, dtype: type, weighted: bool, n: int
) -> None:
    """Uses fewer and more rows than k-means++ uses at once."""
    model = sb.Mixture(likelihood=sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian())
    rows = ROWS[:n].astype(dtype)
    options = {"model": model, "init": init, "sample_weight": WEIGHTS[:n] if weighted else None}
    streamed, whole = fit(blocks(rows), **options), fit(rows, **options)
    assert visible_bits(streamed, rows[:200]) == visible_bits(whole, rows[:200])
    assert streamed.model == whole.model or repr(streamed.model) == repr(whole.model)


@pytest.mark.parametrize("likelihood", kinds.LIKELIHOODS)
@pytest.mark.parametrize("process", ["nested", "tail", "finite"])
@pytest.mark.one_in(3)
def test_every_likelihood(likelihood: str, process: str) -> None:
    case = make_case(3, n=2500, dimension=4, likelihood=likelihood, process=process)
    rows = case.rows.astype(np.int32) if kinds.LIKELIHOODS[likelihood].domain != "real" else case.rows
    options = {"model": case.model, "n_components": 4}
    assert visible_bits(fit(blocks(rows), **options), case.rows) == visible_bits(fit(rows, **options), case.rows)


@pytest.mark.parametrize("likelihood", ["diagonal", "bernoulli", "poisson"])
def test_missing_values(likelihood: str) -> None:
    case = make_case(3, n=2500, dimension=4, likelihood=likelihood, process="nested", with_missing=True)
    rows = case.rows.copy()
    rows[[3, 700, 2499]] = np.nan
    options = {"model": case.model, "n_components": 4, "missing": "marginalize"}
    with pytest.warns(sb.EmptyRowsWarning, match="3 rows"):
        streamed = fit(blocks(rows), **options)
    with pytest.warns(sb.EmptyRowsWarning, match="3 rows"):
        whole = fit(rows, **options)
    assert visible_bits(streamed, case.rows) == visible_bits(whole, case.rows)
    with pytest.raises(sb.InvalidArgument, match="sample_weight"):
        fit(blocks(rows), sample_weight=np.ones(2400), **options)


@pytest.mark.parametrize(
    "algorithm",
    [
        sb.Full(max_passes=3),
        sb.Memoized(shuffle=False, max_passes=3),
        sb.Memoized(batches=7, shuffle=False, sparsity=2, max_passes=3),
        sb.Stochastic(1000, shuffle=False, max_passes=2),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_every_schedule(algorithm: Any) -> None:
    assert visible_bits(fit(blocks(ROWS), algorithm), ROWS[:100]) == visible_bits(fit(ROWS, algorithm), ROWS[:100])


def test_every_start() -> None:
    rows = ROWS[:2000]
    labels = np.arange(2000) % 6
    responsibilities = np.random.default_rng(2).dirichlet(np.ones(6), size=2000)
    for init in (labels, responsibilities, fit(rows)):
        assert visible_bits(fit(blocks(rows), init=init), rows) == visible_bits(fit(rows, init=init), rows)


def test_restarts_threads_and_seeds() -> None:
    rows = ROWS[:3000]
    options = {"init": "random", "n_init": 3, "seed": 4}
    expected = visible_bits(fit(rows, **options), rows)
    assert visible_bits(fit(blocks(rows), threads=1, **options), rows) == expected
    assert visible_bits(fit(blocks(rows), threads=3, **options), rows) == expected


@pytest.mark.slow
def test_the_usual_algorithm_does_not_shuffle() -> None:
    rows = ROWS[:4000]
    usual = sb.Memoized(shuffle=False, moves=(sb.Birth(), sb.Merge(), sb.Delete()))
    for n_components in (None, 5):
        streamed = sb.fit(MODEL, blocks(rows), n_components=n_components, progress=False)
        whole = sb.fit(MODEL, rows, usual, n_components=n_components, progress=False)
        assert visible_bits(streamed, rows) == visible_bits(whole, rows)
        assert [record.moves for record in streamed.history] == [record.moves for record in whole.history]
    finite = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(truncation="stick"))
    assert sb.fit(finite, blocks(rows[:30]), progress=False).n_components == 30


def test_a_memory_map_is_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert visible_bits(fit(mapped), ROWS[:100]) == visible_bits(fit(ROWS), ROWS[:100])


def test_blocks_of_every_kind() -> None:
    """Tables, lists, empty blocks, views; the type is that of the first."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = ROWS[:900]

    def read() -> Iterator[Any]:
        yield rows[:100]
        yield pandas.DataFrame(rows[100:200])
        yield rows[200:200]
        yield polars.DataFrame(rows[200:300])
        yield rows[300:400].tolist()
        yield np.asfortranarray(rows[400:600])
        yield rows[600:900][::-1][::-1]

    assert visible_bits(fit(read), rows) == visible_bits(fit(rows), rows)

    def wider() -> Iterator[Any]:
        yield rows[:100]
        yield rows[100:].astype(np.float32)

    mixed = np.concatenate([rows[:100], rows[100:].astype(np.float32)])
    assert visible_bits(fit(wider), rows) == visible_bits(fit(mixed), rows)


def write(path: Path, rows: np.ndarray, **settings: Any) -> Path:
    table = pyarrow.table({f"x{column}": values for column, values in enumerate(rows.T)})
    parquet.write_table(table, path, **{"row_group_size": 1111} | settings)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parquet(tmp_path: Path, dtype: type) -> None:
    path = write(tmp_path / "rows.parquet", ROWS.astype(dtype))
    expected = visible_bits(fit(ROWS.astype(dtype)), ROWS[:100])
    assert visible_bits(fit(path), ROWS[:100]) == visible_bits(fit(str(path)), ROWS[:100]) == expected


def test_parquet_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    for column, message in [
        (pyarrow.array([1.0, None, 2.0]), r"row 1 .counted from 0., column 1 .'x'.: the value is missing"),
        (pyarrow.array([[1.0], [2.0], [3.0]]), "column 1 .'x'. holds values of type list"),
        (pyarrow.array(["a", "b", "c"]), "column 1 .'x'. holds values of type string"),
        (pyarrow.array([{"a": 1}, {"a": 2}, {"a": 3}]), "holds values of type struct"),
    ]:
        parquet.write_table(pyarrow.table({"x": column, "y": [1.0, 2.0, 3.0]}), path)
        with pytest.raises(sb.SourceError, match=message):
            fit(path, n_components=2)
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(sb.SourceError, match="damaged"):
        fit(path)
    with pytest.raises(sb.SourceError, match="no such file"):
        fit(tmp_path / "other.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(sb.NotSupported, match=r'pip install "stickbreak\[parquet\]"'):
        fit(path)


def failing(later: Callable[[], Iterator[Any]], good_readings: int) -> Callable[[], Iterator[Any]]:
    """Return the rows for some readings, then `later`. Moments take two readings, a start one or more."""
    begun = []

    def read() -> Iterator[Any]:
        begun.append(1)
        return blocks(ROWS)() if len(begun) <= good_readings else later()

    return read


def ends_early() -> Iterator[np.ndarray]:
    yield ROWS[:5000]


def goes_on() -> Iterator[np.ndarray]:
    yield ROWS
    yield ROWS[:10]


def changes_width() -> Iterator[np.ndarray]:
    yield ROWS[:5000]
    yield ROWS[5000:, :2]


def changes_type() -> Iterator[Any]:
    yield ROWS[:5000]
    yield ["text"]


def raises() -> Iterator[np.ndarray]:
    yield ROWS[:5000]
    raise OSError("the disk is gone")


LATER = [
    (ends_early, "ended after 5000 rows, but had 12500"),
    (goes_on, "more rows than at first, 12500"),
    (changes_width, "the block at row 5000 has 2 columns, the first one 3"),
    (changes_type, "at row 5000: a block must be"),
    (raises, "OSError: the disk is gone"),
]


@pytest.mark.parametrize(("later", "message"), LATER, ids=[later.__name__ for later, _ in LATER])
def test_a_source_that_fails_later_leaves_the_last_state(later: Callable[[], Iterator[Any]], message: str) -> None:
    # One reading tells type and width, two are for moments, one for far rows, one for those that k-means++ looks at.
    found = fit(failing(later, 7), sb.Memoized(batches=4, shuffle=False, max_passes=9, tol=0.0))
    assert found.stop_reason is sb.StopReason.SOURCE_ERROR
    assert isinstance(found.error, sb.SourceError)
    assert message in str(found.error)
    assert len(found.history) == 2
    assert found.elbo >= found.history[-1].elbo
    assert found.counts.sum() == pytest.approx(N)
    assert (np.diff(found.counts) <= 0).all()


@pytest.mark.parametrize("later", [later for later, _ in LATER], ids=[later.__name__ for later, _ in LATER])
@pytest.mark.parametrize("good_readings", [7, 8, 9, 10, 11, 12, 13])
@pytest.mark.one_in(4)
def test_a_source_that_fails_in_one_of_several_starts_ends_them_all(
    later: Callable[[], Iterator[Any]], good_readings: int
) -> None:
    """The source fails in the first pass of the first or second start, or later: the best state so far is kept."""
    algorithm = sb.Memoized(batches=4, shuffle=False, max_passes=3, tol=0.0)
    found = fit(failing(later, good_readings), algorithm, n_init=3)
    assert found.stop_reason is sb.StopReason.SOURCE_ERROR
    assert isinstance(found.error, sb.SourceError)
    assert found.counts.sum() == pytest.approx(N)


def test_several_starts_end_without_an_error() -> None:
    assert fit(blocks(ROWS), sb.Memoized(batches=4, shuffle=False, max_passes=3, tol=0.0), n_init=3).error is None


@pytest.mark.parametrize(("later", "message"), LATER, ids=[later.__name__ for later, _ in LATER])
@pytest.mark.parametrize("good_readings", [2, 3, 4])
def test_a_source_that_fails_before_a_pass_is_complete(
    later: Callable[[], Iterator[Any]], message: str, good_readings: int
) -> None:
    with pytest.raises(sb.SourceError):
        fit(failing(later, good_readings))


def test_a_source_that_fails_in_the_closing_pass_leaves_an_estimate() -> None:
    found = fit(failing(ends_early, 6), sb.Stochastic(2500, shuffle=False, max_passes=2))
    assert found.stop_reason is sb.StopReason.SOURCE_ERROR
    assert np.isnan(found.elbo)
    assert found.counts.sum() == pytest.approx(N)


def test_what_is_no_source() -> None:
    rows = ROWS[:900]
    broken = rows.copy()
    broken[700, 2] = np.nan
    generator = blocks(rows)()
    once = iter([rows])
    for data, kind, message in [
        (generator, sb.InvalidType, "give the function that makes it"),
        (lambda: 3, sb.InvalidType, "a function that returns 3"),
        (lambda: iter([]), sb.SourceError, "no rows"),
        (lambda: [rows[:0]], sb.SourceError, "no rows"),
        (lambda: [rows[0]], sb.SourceError, "a block must be"),
        (lambda: [rows.astype(np.float32), rows], sb.SourceError, "is of float64, the first one of float32"),
        (lambda: [rows[:1]], sb.InvalidArgument, "at least two rows"),
        (lambda: once, sb.SourceError, "begin anew"),
        (blocks(broken), sb.InvalidArgument, "NaN in row 700, column 2"),
        ("rows.npy", sb.InvalidArgument, "mmap_mode"),
        (lambda: 1 / 0, sb.SourceError, "ZeroDivisionError"),
    ]:
        with pytest.raises(kind, match=message):
            fit(data, n_components=None)


def test_a_source_that_begins_only_once_is_refused_with_missing_values_too() -> None:
    once = iter([ROWS[:900]])
    with pytest.raises(sb.SourceError, match="begin anew"):
        fit(lambda: once, model=sb.Mixture(sb.DiagonalGaussian()), missing="marginalize")


def test_arguments_that_do_not_fit_the_rows() -> None:
    rows = ROWS[:900]
    for options, kind, argument in [
        ({"sample_weight": np.ones(899)}, sb.InvalidArgument, "sample_weight"),
        ({"sample_weight": np.ones(901)}, sb.InvalidArgument, "sample_weight"),
        ({"init": np.zeros(899, dtype=int)}, sb.InvalidArgument, "init"),
        ({"init": np.full((901, 6), 1 / 6)}, sb.InvalidArgument, "init"),
        ({"n_components": 901}, sb.InvalidArgument, "n_components"),
        ({"algorithm": sb.Memoized(batches=901, shuffle=False)}, sb.InvalidArgument, "batches"),
        ({"algorithm": sb.Stochastic(901, shuffle=False)}, sb.InvalidArgument, "batch_size"),
        ({"algorithm": sb.Memoized(batches=2)}, sb.InvalidArgument, "shuffle"),
        ({"algorithm": sb.Stochastic(100)}, sb.InvalidArgument, "shuffle"),
    ]:
        with pytest.raises(kind) as caught:
            fit(blocks(rows), **options)
        assert caught.value.argument == argument
    with pytest.raises(sb.NotSupported, match="sequential"):
        fit(blocks(rows), init="sequential")


def test_a_checkpoint_goes_on(tmp_path: Path) -> None:
    """Also from memory to blocks: the data are the same to the bit."""
    checkpoint = sb.Checkpoint(tmp_path / "state", every_seconds=0)
    algorithm = sb.Memoized(batches=4, shuffle=False, max_passes=2, tol=0.0)
    fit(ROWS, algorithm, checkpoint=checkpoint)
    longer = fit(blocks(ROWS), checkpoint=checkpoint)
    assert visible_bits(longer, ROWS[:100]) == visible_bits(fit(ROWS), ROWS[:100])
    changed = ROWS.copy()
    changed[-1, -1] += 1.0
    with pytest.raises(sb.CheckpointError, match="data"):
        fit(blocks(changed), checkpoint=checkpoint)


MEMORY = """
import json, sys
import numpy as np
import stickbreak as sb

n, d, size = int(sys.argv[1]), 16, 10_000
model = sb.Mixture(likelihood=sb.Gaussian())

def read():
    rng = np.random.default_rng(0)
    for _ in range(n // size):
        yield rng.standard_normal((size, d))

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024

most = 0
def watch(_):
    global most
    most = max(most, anonymous())

def watched():
    for block in read():
        watch(None)
        yield block

settings = dict(n_components=4, threads=2, progress=False, callbacks=[watch])
sb.fit(model, np.random.default_rng(0).standard_normal((size, d)), sb.Memoized(batches=1, max_passes=2), **settings)
most, baseline = 0, anonymous()
sb.fit(model, watched, sb.Memoized(batches=n // size, shuffle=False, max_passes=2), **settings)
print(json.dumps(most - baseline))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_data() -> None:
    """A batch is 1.28 MB here and the data 26 and 51 MB. What grows is eight bytes a row, for its last component, and
    a summary a batch, together some 8.5 bytes a row, or 1.7 MB."""
    grown = []
    for n in (200_000, 400_000):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(MEMORY), str(n)], capture_output=True, text=True, check=True
        )
        grown.append(json.loads(run.stdout))
    assert grown[1] - grown[0] < 10e6, grown
    assert grown[1] < 40e6, grown


def later(rows: np.ndarray, others: np.ndarray, reading: int) -> Callable[[], Iterator[np.ndarray]]:
    """Return a source with `others` from a reading on; the first reading is that of the first block."""
    begun = itertools.count()
    return lambda: iter(np.array_split(others if next(begun) >= reading else rows, 4))


@pytest.mark.filterwarnings("ignore::stickbreak.EmptyRowsWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_empty_rows", [False, True])
@pytest.mark.parametrize("number", [70, 110])
def test_another_number_of_rows_after_the_count_of_empty_ones(
    number: int, with_empty_rows: bool, weighted: bool
) -> None:
    rows = np.random.default_rng(0).normal(size=(110, 3))
    if with_empty_rows:
        rows[::9] = np.nan
    weights = np.ones(90) if weighted else None
    source = later(rows[:90], rows[:number], 2)
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    with pytest.raises(sb.SourceError, match="90 rows at first"):
        sb.fit(model, source, n_components=2, missing="marginalize", sample_weight=weights, progress=False)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.DiagonalGaussian(), sb.Poisson()])
def test_values_that_turn_wrong_in_an_early_reading(likelihood: Any, wrong: float) -> None:
    """Wrong values in any early reading are an error that names the data and the position."""
    rows = np.random.default_rng(0).poisson(3.0, size=(90, 3)).astype(float)
    others = rows.copy()
    others[50, 1] = wrong
    algorithm = sb.Memoized(batches=3, shuffle=False, max_passes=1)
    model, ended = sb.Mixture(likelihood=likelihood), []
    for reading in range(2, 6):
        try:
            fit = sb.fit(model, later(rows, others, reading), algorithm, n_components=2, progress=False)
            ended.append(str(fit.error))
        except sb.SourceError as error:
            ended.append(str(error))
    words = r"data must be .*in row 50, column 1; every reading must bring the same rows"
    # Fits of this likelihood may not make the last reading.
    assert all(re.search(words, text) for text in ended[:2])
    assert all(text == "None" or re.search(words, text) for text in ended[2:])


@pytest.mark.parametrize("algorithm", [sb.Memoized(batches=4, shuffle=False), sb.Full()])
def test_a_source_that_brings_other_values_is_a_source_error(algorithm: Any) -> None:
    """Every reading after the first three has another last row of the third batch."""
    begun = itertools.count()

    def read() -> Iterator[np.ndarray]:
        rows = ROWS.copy()
        if (reading := next(begun)) > 6:
            rows[N // 2 + 100, 1] += 1e-9 * reading
        return iter(np.array_split(rows, 7))

    changed = fit(read, algorithm, n_components=3)
    assert changed.stop_reason is sb.StopReason.SOURCE_ERROR
    assert len(changed.history) > 0
    batch = 2 if isinstance(algorithm, sb.Memoized) else 0
    assert changed.error is not None
    assert f"at batch {batch}: it has other values than when it was read first" in str(changed.error)
    assert np.isclose(changed.elbo, changed.history[-1].elbo, rtol=1e-3)


@pytest.mark.parametrize("row", [0, 1500, 2999])
@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.DiagonalGaussian(), sb.Gaussian(prior="rule")])
def test_other_values_in_one_reading_are_seen_whichever_it_is(likelihood: Any, row: int) -> None:
    """The first reading is that of the first block, the next ones are for moments and for the start."""
    rows = ROWS[:3000]
    others = rows.copy()
    others[row, 1] += 1e-9
    algorithm = sb.Memoized(batches=3, shuffle=False, max_passes=2, tol=0.0)

    def outcome(reading: int) -> str:
        begun = itertools.count()

        def read() -> Iterator[np.ndarray]:
            served = others if next(begun) == reading else rows
            return iter(np.array_split(served, 3))

        try:
            changed = sb.fit(sb.Mixture(likelihood), read, algorithm, n_components=3, progress=False)
        except sb.SourceError as error:
            return str(error)
        return str(changed.error)

    begun = itertools.count()
    sb.fit(
        sb.Mixture(likelihood),
        lambda: (next(begun), iter([rows]))[1],
        algorithm,
        n_components=3,
        progress=False,
    )
    n_readings = next(begun)
    assert n_readings >= 5
    # Of the first reading nothing but the first block is kept.
    for reading in range(0 if row == 0 else 1, n_readings):
        assert "other values than when" in outcome(reading), reading
    assert outcome(n_readings) == "None"


def test_rows_that_lose_all_values_before_moments_are_taken_are_seen() -> None:
    rows = ROWS[:900].copy()
    rows[70] = np.nan
    later_rows = rows.copy()
    later_rows[700] = np.nan
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    with pytest.warns(sb.EmptyRowsWarning), pytest.raises(sb.SourceError, match="other values than when"):
        fit(later(rows, later_rows, 2), model=model, missing="marginalize")


def test_a_source_of_random_values_never_converges() -> None:
    rng = np.random.default_rng(0)

    def read() -> Iterator[np.ndarray]:
        return iter(rng.normal(size=(5, 1000, 3)))

    try:
        changed = fit(read, sb.Memoized(batches=2, shuffle=False), n_components=3)
    except sb.SourceError as error:
        assert "other values than when" in str(error)  # noqa: PT017
    else:
        assert changed.stop_reason is sb.StopReason.SOURCE_ERROR


def test_missing_values_and_signed_zeros_are_no_change() -> None:
    begun = itertools.count()
    rows = ROWS.copy()
    rows[5, 1] = np.nan
    rows[:, 0] = np.round(rows[:, 0])

    def read() -> Iterator[np.ndarray]:
        sign = -1.0 if next(begun) % 2 else 1.0
        block = np.where(rows == 0.0, sign * 0.0, rows)
        block[5, 1] = sign * np.nan
        return iter([block])

    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    assert fit(read, model=model, missing="marginalize").stop_reason is sb.StopReason.MAX_PASSES


def test_a_thread_of_each_reading_calls_the_function() -> None:
    """It may keep what belongs to its thread, as connections to databases do."""
    readings: list[list[int]] = []

    def source() -> Iterator[np.ndarray]:
        begun = [threading.get_ident()]
        readings.append(begun)

        def read() -> Iterator[np.ndarray]:
            for block in blocks(ROWS)():
                begun.append(threading.get_ident())
                yield block

        return read()

    fit(source)
    assert len(readings) > 4
    assert all(len(set(threads)) == 1 for threads in readings)
    # All but the first, which only looks at the type.
    assert threading.get_ident() not in {thread for threads in readings[1:] for thread in threads}


@pytest.mark.parametrize("init", ["random", "kmeans++"])
def test_a_reading_ends_in_its_thread_before_another_begins(init: str) -> None:
    """Also one that is given up: otherwise a lock or a connection of the function would be released elsewhere."""
    events: list[tuple[str, int]] = []
    lock = threading.RLock()

    def read() -> Iterator[np.ndarray]:
        with lock:
            events.append(("begin", threading.get_ident()))
            try:
                yield from blocks(ROWS[:900])()
            finally:
                events.append(("end", threading.get_ident()))

    fit(read, sb.Memoized(batches=3, shuffle=False, max_passes=2, tol=0.0), init=init, n_init=2)
    assert [kind for kind, _ in events] == ["begin", "end"] * (len(events) // 2)
    assert all(one == other for (_, one), (_, other) in zip(events[::2], events[1::2], strict=True))


def test_an_error_keeps_nothing_of_its_reading_alive() -> None:
    """The frames of an exception hold the variables of the function."""
    ended: list[int] = []
    here = threading.get_ident()

    class Connection:
        def __del__(self) -> None:
            ended.append(threading.get_ident())

    calls = itertools.count()

    def read() -> Iterator[np.ndarray]:
        connection = Connection()
        fails = next(calls) == 8
        for block in blocks(ROWS[:900])():
            yield block
            if fails:
                raise OSError("gone", connection is None)

    found = fit(read, sb.Memoized(batches=3, shuffle=False, max_passes=9, tol=0.0))
    assert found.stop_reason is sb.StopReason.SOURCE_ERROR
    # All but the first reading, which looks at the first block, have a thread of their own.
    assert len(ended) == next(calls)
    assert ended.count(here) <= 1


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("is_iterable", [False, True])
def test_a_refused_first_block_ends_its_reading(keeps: bool, is_iterable: bool) -> None:
    """While the error is alive, and also if the source keeps its generator: a lock must be free for the next try."""
    lock, kept = threading.RLock(), []

    def read() -> Iterator[np.ndarray]:
        with lock:
            yield np.array([["text"]])

    def source() -> Iterator[np.ndarray]:
        found = read()
        kept.extend([found] if keeps else [])
        return found

    class Rows:
        def __iter__(self) -> Iterator[np.ndarray]:
            return source()

    with pytest.raises(sb.SourceError) as raised:
        fit(Rows if is_iterable else source)
    free = threading.Thread(target=lambda: kept.append(lock.acquire(timeout=5.0)))
    free.start()
    free.join()
    assert kept[-1] is True
    assert raised.value is not None


def test_an_interrupt_while_the_first_reading_is_closed_is_raised() -> None:
    def read() -> Iterator[np.ndarray]:
        try:
            yield from blocks(ROWS)()
        finally:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(read)


def test_a_class_of_iterators_is_a_function() -> None:
    class Rows:
        def __init__(self) -> None:
            self.blocks = blocks(ROWS)()

        def __iter__(self) -> "Rows":
            return self

        def __next__(self) -> np.ndarray:
            return next(self.blocks)

    assert fit(Rows).elbo == fit(blocks(ROWS)).elbo


def test_an_error_without_a_text_has_its_name() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    def read() -> Iterator[np.ndarray]:
        raise Silent
        yield ROWS

    with pytest.raises(sb.SourceError, match="failed: Silent"):
        fit(read)


@pytest.mark.parametrize("far", [None, 1e4, 1e6])
@pytest.mark.parametrize("n_components", [None, 3])
def test_rearrangements_and_far_rows_are_as_in_memory(far: float | None, n_components: int | None) -> None:
    """Components that overlap, and a row that hides the spread of all others."""
    rows = np.random.default_rng(2).standard_t(4, size=(900, 2))
    rows[:400] += 2.5
    if far is not None:
        rows[700] = far
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    algorithm = sb.Memoized(batches=1, shuffle=False)
    found = [sb.fit(model, data, algorithm, n_components=n_components) for data in (rows, blocks(rows))]
    assert found[0].elbo == found[1].elbo
    np.testing.assert_array_equal(found[0].predict(rows), found[1].predict(rows))
