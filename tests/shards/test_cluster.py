"""Fits of collections: in this process, and on a Dask cluster, with the same bits."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed.client import FutureCancelledError

import stickbreak as sb
from cases import visible_bits
from clients import Client, Elsewhere, Future
from stickbreak import _core
from stickbreak.shards import cluster, sharding, tasks
from stickbreak.shards.pieces import RowGroup, sharded

MODEL = sb.Mixture(likelihood=sb.Gaussian())
MOVES = (sb.Birth(), sb.Merge(), sb.Delete())
N = 3000


def rows(n: int = N, dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(rng.normal(scale=8.0, size=(4, 3))[np.arange(n) % 4]).astype(dtype)


X = rows()


def fit(data: Any, *, shard_rows: int = 200, batches: int = 3, moves: Any = MOVES, **options: Any) -> sb.Fit:
    algorithm = sb.Memoized(batches=batches, shard_rows=shard_rows, moves=moves, max_passes=40)
    return sb.fit(MODEL, data, algorithm, **{"threads": 1, "progress": False} | options)


def same(one: sb.Fit, other: sb.Fit) -> bool:
    return visible_bits(one, X[:200]) == visible_bits(other, X[:200])


def as_array(chunk: int = 700) -> Any:
    return da.from_array(X, chunks=(chunk, -1))


def test_a_fit_of_a_collection_finds_what_a_fit_of_its_rows_finds() -> None:
    found = fit(as_array())
    assert found.n_components == 4
    assert found.elbo == pytest.approx(fit(X).elbo, rel=1e-6)


@pytest.mark.parametrize("loses", [lambda _: False, lambda number: number % 5 == 0, lambda _: True])
def test_workers_give_the_bits_of_one_process(loses: Callable[[int], bool]) -> None:
    assert same(fit(as_array(), cluster=Client(loses=loses)), fit(as_array()))


def test_processes_give_the_bits_of_one() -> None:
    weights = np.random.default_rng(1).uniform(size=N)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        there = fit(as_array(), cluster=Elsewhere(pool), sample_weight=weights)
    assert same(there, fit(as_array(), sample_weight=weights))


@pytest.mark.parametrize("chunk", [1500, 400])
def test_components_that_overlap_are_rearranged(chunk: int) -> None:
    """As those of rows in memory are, of which one chunk has the bits."""
    rng = np.random.default_rng(0)
    overlapping = rng.normal(rng.normal(scale=2.0, size=(8, 2))[rng.integers(8, size=1500)])
    data, algorithm = da.from_array(overlapping, chunks=(chunk, -1)), sb.Memoized(batches=1, moves=MOVES)
    memory = sb.fit(MODEL, overlapping, algorithm, progress=False)
    there, here = (sb.fit(MODEL, data, algorithm, cluster=where, progress=False) for where in (Client(), "here"))
    assert visible_bits(there, overlapping) == visible_bits(here, overlapping)
    assert here.elbo == pytest.approx(memory.elbo, rel=1e-9)
    assert (visible_bits(here, overlapping) == visible_bits(memory, overlapping)) == (chunk == 1500)


def test_work_after_the_last_pass_reads_the_rows_once_or_twice() -> None:
    """All of it needs copies of rows, in whatever order it looks at them."""
    read: list[int] = []
    before: dict[int, int] = {}

    def noted(block: np.ndarray) -> np.ndarray:
        read.append(len(block))
        return block

    def stream() -> Iterator[np.ndarray]:
        for begin in range(0, N, 700):
            yield noted(X[begin : begin + 700])

    # A block at a time.
    collection = as_array().map_blocks(noted, dtype=float, meta=np.empty((0, 0)))
    for data in (collection, stream):
        read.clear()
        before.clear()
        # Long work after a pass shows the record of the pass again, how often depends on the machine.
        sb.fit(MODEL, data, progress=False, callbacks=[lambda record: before.setdefault(record.index, sum(read)) < 0])
        assert N <= sum(read) - before[max(before)] <= 2 * N


@pytest.mark.slow
def test_the_start_from_a_tree_is_that_of_rows_in_memory() -> None:
    """Of more rows than a tree has, some are fetched."""
    rng = np.random.default_rng(0)
    places = np.stack(np.meshgrid(np.arange(14), np.arange(14)), -1).reshape(-1, 2) * 6.0
    grid = rng.normal(places[rng.integers(196, size=21_000)])
    algorithm = sb.Memoized(batches=1, moves=MOVES, max_passes=60, shuffle=False)
    memory = sb.fit(MODEL, grid, algorithm, progress=False)
    for data in (da.from_array(grid, chunks=(21_000, -1)), lambda: iter([grid])):
        assert visible_bits(sb.fit(MODEL, data, algorithm, progress=False), grid) == visible_bits(memory, grid)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [25_000, 100_000])
def test_bits_are_the_same_with_many_components(chunk: int) -> None:
    """Then fewer rows of each are copied for births than their sample has."""
    rng = np.random.default_rng(0)
    many = rng.normal(rng.uniform(-100.0, 100.0, (100, 2))[rng.integers(100, size=100_000)])
    data = da.from_array(many, chunks=(chunk, -1))
    algorithm = sb.Memoized(batches=1, moves=MOVES, max_passes=4, shard_rows=30_000)
    there, here = (sb.fit(MODEL, data, algorithm, cluster=where, progress=False) for where in (Client(), "here"))
    assert here.n_components > 80
    assert visible_bits(there, many[:200]) == visible_bits(here, many[:200])


@pytest.mark.parametrize("chunk", [1, 2])
def test_bits_depend_on_shards_alone(chunk: int) -> None:
    """Chunks that are cut at the same rows are the same shards."""
    assert same(fit(as_array(600 * chunk)), fit(as_array(600)))


def test_every_kind_of_collection_has_the_same_bits(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet", row_group_size=600)
    plain: dict[str, Any] = {"moves": (), "n_components": 5}
    files = fit(tmp_path / "rows.parquet", cluster="here", **plain)
    table = fit(dd.from_pandas(frame, chunksize=600), **plain)
    assert files.column_names == table.column_names == ("a", "b", "c")
    arrays = fit(as_array(600), **plain)
    for other in (files, table, fit(tmp_path, cluster="here", **plain), fit(tmp_path, cluster=Client(), **plain)):
        np.testing.assert_array_equal(other.weights, arrays.weights)
        assert other.elbo == arrays.elbo
    # A task takes several shards.
    many = [fit(tmp_path, cluster=where, shard_rows=20, **plain) for where in ("here", Client())]
    assert same(*many)


def test_float32_stays() -> None:
    data = da.from_array(X.astype(np.float32), chunks=(700, -1))
    there = fit(data, cluster=Client())
    assert same(there, fit(data))
    assert not same(there, fit(as_array()))


def test_a_checkpoint_of_a_cluster_goes_on_in_one_process(tmp_path: Path) -> None:
    place = sb.Checkpoint(tmp_path / "checkpoint", every_seconds=0)
    stopped = iter([False, True])
    fit(as_array(), cluster=Client(), checkpoint=place, callbacks=[lambda _: next(stopped)])
    assert same(fit(as_array(), checkpoint=place), fit(as_array()))


def test_missing_values_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(2)
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    holes[700:705] = np.nan
    data = da.from_array(holes, chunks=(700, -1))
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    algorithm = sb.Memoized(batches=3, shard_rows=200, max_passes=5)
    chosen: dict[str, Any] = {"n_components": 4, "missing": "marginalize", "progress": False}
    with pytest.warns(sb.EmptyRowsWarning):
        found = [sb.fit(model, data, algorithm, cluster=where, **chosen) for where in (Client(), None)]
    assert found[0].elbo == found[1].elbo
    assert found[0].counts.sum() == pytest.approx(N - np.isnan(holes).all(axis=1).sum())


@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_weights_travel_with_their_rows(init: str) -> None:
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], size=N)
    chosen: dict[str, Any] = {"sample_weight": weights, "init": init, "moves": (), "n_components": 5}
    there, here = fit(as_array(), cluster=Client(), **chosen), fit(as_array(), **chosen)
    assert same(there, here)
    assert there.counts.sum() == pytest.approx(weights.sum())
    grown = [fit(as_array(), sample_weight=weights, cluster=where) for where in (Client(), None)]
    assert same(*grown)
    assert grown[0].n_components == 4


def test_several_starts_and_a_fit_to_start_from() -> None:
    first = fit(as_array(), moves=(), n_components=4)
    for options in ({"n_init": 3, "n_components": 4}, {"init": first}, {"init": "random", "n_components": 6}):
        chosen: dict[str, Any] = {"moves": (), **options}
        assert same(fit(as_array(), cluster=Client(), **chosen), fit(as_array(), **chosen))


def test_batches_follow_from_the_number_of_rows() -> None:
    seen: list[int] = []

    class Counting(Client):
        def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            if function is tasks.visit:
                seen.extend(task.shard for task in arguments[0])
            return super().submit(function, *arguments, **options)

    algorithm = sb.Memoized(max_passes=1, shard_rows=1000)
    found = sb.fit(MODEL, as_array(), algorithm, n_components=4, cluster=Counting())
    assert [record.n_batches for record in found.history] == [1]
    assert {record.n_batches for record in fit(as_array()).history} == {3}
    # One batch, of all shards in order: chunks of 700 rows are not cut.
    assert seen == list(range(5))


def test_shards_are_cut_at_the_number_of_rows() -> None:
    found = sharded(da.from_array(X, chunks=((1000, 0, 2000), -1)), 600)
    assert found is not None
    assert found.sizes == [600, 400, 600, 600, 600, 200]
    assert {piece.name for piece in found.pieces} == {"chunk 0", "chunk 2"}


class Placed(Client):
    """Two workers; it notes the shards of each visit, and counts the tasks that read."""

    def __init__(self) -> None:
        super().__init__()
        self.branches: list[list[int]] = []
        self.n_reading = 0

    def scheduler_info(self, n_workers: int = -1) -> dict[str, Any]:
        return {"workers": {"one": {}, "two": {}}}

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if function is tasks.visit:
            self.branches.append([task.shard for task in arguments[0]])
        self.n_reading += function in (tasks.head, tasks.pick, tasks.read, tasks.visit)
        return super().submit(function, *arguments, **options)


@pytest.mark.parametrize("chunk", [3000, 1100, 700])
def test_a_task_takes_a_branch_of_one_chunk(chunk: int) -> None:
    client, one = Placed(), {"batches": 1, "shard_rows": 50, "moves": (), "n_components": 4}
    assert same(fit(as_array(chunk), cluster=client, **one), fit(as_array(chunk), **one))
    n_shards, per_chunk = 0, []
    for begin in range(0, N, chunk):
        n_own = -(-(min(begin + chunk, N) - begin) // 50)
        per_chunk += [begin // chunk] * n_own
        n_shards += n_own
    first = client.branches[: next(k for k, branch in enumerate(client.branches) if n_shards - 1 in branch) + 1]
    assert [shard for branch in first for shard in branch] == list(range(n_shards))
    for branch in first:
        assert branch[0] % len(branch) == 0
        assert len(branch) in (1, 2, 4)
        assert len({per_chunk[shard] for shard in branch}) == 1
    assert any(len(branch) == 4 for branch in first)


def test_shards_of_a_row_group_read_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table(dict(zip("abc", X.T, strict=True))), tmp_path / "rows.parquet")
    n_reads, read = [0], RowGroup.read

    def counted(group: RowGroup) -> Any:
        n_reads[0] += 1
        return read(group)

    monkeypatch.setattr(RowGroup, "read", counted)
    client = Placed()
    fit(tmp_path / "rows.parquet", cluster=client, batches=1, shard_rows=50, moves=(), n_components=4)
    assert n_reads[0] == client.n_reading


def bad_value() -> Any:
    spoilt = X.copy()
    spoilt[1500, 1] = np.nan
    return da.from_array(spoilt, chunks=(700, -1))


BAD = [
    (lambda: fit(X, cluster=Client()), sb.InvalidType, "data"),
    (lambda: fit(as_array(), cluster="there"), sb.InvalidType, "cluster"),
    (lambda: fit(da.from_array(X, chunks=(700, 2))), sb.InvalidArgument, "data"),
    (lambda: fit(da.from_array(X[:, 0], chunks=700)), sb.InvalidArgument, "data"),
    (lambda: fit(as_array()[as_array()[:, 0] > 0]), sb.InvalidArgument, "data"),
    (lambda: fit(da.from_array(X.astype(str), chunks=(700, -1))), sb.InvalidArgument, "data"),
    (lambda: fit(da.from_array(X[:0], chunks=(700, -1))), sb.InvalidArgument, "data"),
    (
        lambda: fit(dd.from_pandas(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}), npartitions=1)),
        sb.InvalidArgument,
        "data",
    ),
    (lambda: fit(as_array(), batches=50), sb.InvalidArgument, "batches"),
    (lambda: fit(as_array()[:, :0], cluster=Client()), sb.InvalidArgument, "data"),
    (lambda: fit(da.ma.masked_greater(as_array(), 5.0)), sb.InvalidArgument, "data"),
    (lambda: fit(dd.from_pandas(pd.DataFrame(X, columns=["a", "a", "b"]), npartitions=2)), sb.InvalidArgument, "data"),
    (lambda: fit(as_array(), cluster=Client), sb.InvalidType, "cluster"),
    (lambda: sb.force_instructions(3), sb.InvalidType, "instructions"),
    (lambda: fit(as_array(), sample_weight=np.ones(5)), sb.InvalidArgument, "sample_weight"),
    (lambda: fit(as_array(), labels=np.zeros(N, int)), sb.NotSupported, "labels"),
    (lambda: fit(as_array(), init=np.zeros(N, int)), sb.NotSupported, "init"),
    (lambda: fit(as_array(), init=np.ones((N, 1))), sb.NotSupported, "init"),
    (lambda: fit(as_array(), init="sequential", n_components=2), sb.NotSupported, "init"),
    (lambda: sb.fit(MODEL, as_array(), sb.Stochastic(100), n_components=2), sb.NotSupported, "algorithm"),
    (lambda: sb.fit(MODEL, as_array(), sb.Full(units=sb.KdTree()), n_components=2), sb.NotSupported, "units"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_names_its_argument(number: int) -> None:
    call, kind, argument = BAD[number]
    with pytest.raises(kind) as raised:
        call()
    assert raised.value.argument == argument


@pytest.mark.parametrize("client", [None, Client()])
def test_a_bad_value_is_named_with_its_chunk(client: Any) -> None:
    with pytest.raises(sb.InvalidArgument, match="NaN in row 100 of chunk 2, column 1") as raised:
        fit(bad_value(), cluster=client)
    assert raised.value.argument == "data"


@pytest.mark.parametrize("client", [None, Client()])
def test_partitions_have_the_columns_of_all(client: Any) -> None:
    import dask

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    first, rest = dask.delayed(frame.iloc[:1500]), frame.iloc[1500:]

    def of(second: Any) -> Any:
        return dd.from_delayed([first, dask.delayed(second)], meta=frame.iloc[:0], verify_meta=False)

    plain: dict[str, Any] = {"moves": (), "n_components": 4, "cluster": client}
    expected = fit(of(rest), **plain)
    assert same(fit(of(rest[["b", "c", "a"]]), **plain), expected)
    with pytest.raises(sb.SourceError, match="partition 1 has the columns"):
        fit(of(rest.rename(columns={"a": "z"})), **plain)


@pytest.mark.parametrize("client", [None, Client()])
def test_failing_and_wrong_chunks_are_errors_of_the_source(client: Any) -> None:
    def fails(block: np.ndarray) -> np.ndarray:
        return block / (1 // 0)

    def doubled(block: np.ndarray) -> np.ndarray:
        return np.concatenate([block, block])

    for function, text in ((fails, "ZeroDivisionError"), (doubled, "has 1400 rows, not 700")):
        with pytest.raises(sb.SourceError, match=text):
            fit(as_array().map_blocks(function, dtype=float, meta=np.empty((0, 0))), cluster=client)


def test_workers_of_another_version_are_refused() -> None:
    class Old(Client):
        def run(self, function: Callable[[], Any]) -> dict[str, Any]:
            return {"one": function(), "other": ("0.0.1", function()[1])}

    with pytest.raises(sb.InvalidArgument, match=r"other has version 0\.0\.1"):
        fit(as_array(), cluster=Old())


def test_workers_without_the_instruction_set_are_refused() -> None:
    class Narrow(Client):
        def run(self, function: Callable[[], Any]) -> dict[str, Any]:
            return {"one": function(), "other": (_core.__version__, ("narrow",))}

    with pytest.raises(sb.InvalidArgument, match="worker other has the instruction sets narrow"):
        fit(as_array(), cluster=Narrow())


@pytest.mark.parametrize("comes", [True, False])
def test_a_cluster_without_workers_is_asked_for_one(comes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import TimeoutError as NotYet

    class Waiting(Future):
        def result(self, timeout: float | None = None) -> Any:
            raise NotYet

    class Adaptive(Client):
        has_worker = False

        def scheduler_info(self, n_workers: int = -1) -> dict[str, Any]:
            return {"workers": {"here": {}} if self.has_worker else {}}

        def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            self.has_worker = comes
            return super().submit(function, *arguments, **options) if comes else Waiting()

    monkeypatch.setattr(sharding, "_START", 0.2)
    if comes:
        assert same(fit(as_array(), cluster=Adaptive()), fit(as_array()))
    else:
        with pytest.raises(sb.InvalidArgument, match=r"no worker for 0\.2 seconds"):
            fit(as_array(), cluster=Adaptive())


def test_workers_take_the_instruction_set_of_the_fit() -> None:
    class Other(Client):
        def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            sb.force_instructions("portable")
            try:
                return super().submit(function, *arguments, **options)
            finally:
                sb.force_instructions(None)

    assert same(fit(as_array(), cluster=Other()), fit(as_array()))


def test_chunks_that_fail_later_end_the_fit_at_a_batch() -> None:
    passes: list[int] = []

    def gone(block: np.ndarray) -> np.ndarray:
        if passes:
            raise OSError("gone")
        return block

    data = as_array().map_blocks(gone, dtype=float, meta=np.empty((0, 0)))
    found = fit(data, callbacks=[lambda record: passes.append(record.index)])
    assert found.stop_reason is sb.StopReason.SOURCE_ERROR
    assert "failed at batch" in str(found.error)
    assert "OSError: gone" in str(found.error)


@pytest.mark.parametrize("moves", [(), MOVES])
def test_weighted_rows_of_one_chunk_have_the_bits_of_the_table(moves: Any) -> None:
    """Also where sums of weights are rounded."""
    weights = np.random.default_rng(0).uniform(0.2, 1.0, N)
    options: dict[str, Any] = {"batches": 1, "moves": moves, "sample_weight": weights, "shard_rows": 2**17}
    assert same(fit(as_array(N), **options), fit(X, **options))


def test_changed_data_end_the_fit() -> None:
    changing = X.copy()

    def block(block_info: Any = None) -> np.ndarray:
        begin, end = block_info[None]["array-location"][0]
        return changing[begin:end].copy()

    data = da.map_blocks(block, chunks=as_array().chunks, dtype=float, meta=np.empty((0, 0)))

    def change(_: sb.Record) -> None:
        changing[5, 0] += 1.0

    for client in (None, Client()):
        changing[:] = X
        found = fit(data, cluster=client, callbacks=[change])
        assert found.stop_reason is sb.StopReason.SOURCE_ERROR
        assert "other values" in str(found.error)


@contextlib.contextmanager
def running(n_workers: int) -> Iterator[Any]:
    from dask.distributed import Client as DaskClient
    from dask.distributed import LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as workers,
        DaskClient(workers) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_local_cluster_has_the_same_bits_and_survives_its_workers() -> None:
    """Each pass kills a worker, which the cluster starts again."""
    expected = fit(as_array())
    with running(2) as client:
        assert same(fit(as_array(), cluster=client), expected)
        weights = np.random.default_rng(1).uniform(size=N)
        there, here = (fit(as_array(), sample_weight=weights, cluster=where) for where in (client, "here"))
        assert same(there, here)
        there, here = (expected.update(as_array(), sample_weight=weights, cluster=where) for where in (client, "here"))
        assert same(there, here)

        def kill(record: sb.Record) -> None:
            if record.index < 5:
                pids = list(client.run(os.getpid).values())
                os.kill(pids[record.index % len(pids)], signal.SIGKILL)

        assert same(fit(as_array(), cluster=client, callbacks=[kill]), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_bad_clients_are_refused() -> None:
    with running(1) as client:
        checked = sharding.checked(client)
        assert checked is client
    with pytest.raises(sb.InvalidArgument, match="closed") as raised:
        fit(as_array(), cluster=client)
    assert raised.value.argument == "cluster"


KILLED = """
import os, signal, sys
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
import stickbreak as sb

def kill(record):
    if record.index == 2:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    rows, place = np.load(sys.argv[1]), sb.Checkpoint(sys.argv[2], every_seconds=0)
    algorithm = sb.Memoized(batches=3, shard_rows=200, moves=(sb.Birth(), sb.Merge(), sb.Delete()), max_passes=40)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers, Client(workers) as client:
        data = da.from_array(rows, chunks=(700, -1))
        model = sb.Mixture(likelihood=sb.Gaussian())
        sb.fit(model, data, algorithm, cluster=client, checkpoint=place, callbacks=[kill], progress=False)
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "driver.py").write_text(KILLED)
    place = tmp_path / "checkpoint"
    command = [sys.executable, "driver.py", "rows.npy", "checkpoint"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert place.exists()
    assert same(fit(as_array(), checkpoint=sb.Checkpoint(place, every_seconds=0)), fit(as_array()))


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_part_is_sent_again(lost: int) -> None:
    """Scattered data are lost with their worker; so are the tasks that depend on them."""
    from distributed.client import FutureCancelledError

    class Losing(Client):
        def __init__(self) -> None:
            super().__init__()
            self.left = lost

        def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            if function is tasks.visit and self.left:
                self.left -= 1
                return Future(error=FutureCancelledError("visit", "lost dependencies"))
            return super().submit(function, *arguments, **options)

    assert same(fit(as_array(), cluster=Losing()), fit(as_array()))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FutureCancelledError("visit", "scheduler-restart"), "the cluster lost the request"),
        (FutureCancelledError("visit", "lost dependencies"), "the cluster lost rows that it cannot compute again"),
        (OSError("gone"), "the rows cannot be computed on a worker: OSError: gone"),
    ],
)
def test_a_request_that_always_fails_ends_the_fit(error: Exception, text: str) -> None:
    passes: list[int] = []

    class Losing(Client):
        def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            if function is tasks.visit and passes:
                return Future(error=error)
            return super().submit(function, *arguments, **options)

    found = fit(as_array(), cluster=Losing(), callbacks=[lambda record: passes.append(record.index)])
    assert found.stop_reason is sb.StopReason.SOURCE_ERROR
    assert "failed at batch" in str(found.error)
    assert text in str(found.error)


def test_tasks_that_wait_for_a_lost_worker_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask never gives them to another worker if for a moment there is none."""
    from distributed import TimeoutError as NotYet

    class Waiting(Future):
        key, status = "visit", "lost"

        def result(self, timeout: float | None = None) -> Any:
            raise NotYet

    class Forgetting(Client):
        address, n_looks = "lost", 0

        def scheduler_info(self, n_workers: int = -1) -> dict[str, Any]:
            return {"workers": {self.address: {}}}

        def processing(self) -> dict[str, Any]:
            self.n_looks += 1
            return {self.address: ()}

        def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            if any(isinstance(each, Waiting) for each in arguments):
                return Waiting()
            if (function is tasks.visit and self.address == "lost") or self.n_looks == 1:
                self.address = "another"
                return Waiting()
            return super().submit(function, *arguments, **options)

    monkeypatch.setattr(cluster, "_POLL", 0.01)
    monkeypatch.setattr(cluster, "_POLLS_A_LOOK", 1)
    pq.write_table(pa.table(dict(zip("abc", X.T, strict=True))), tmp_path / "rows.parquet")
    chosen: dict[str, Any] = {"moves": (), "n_components": 4, "batches": 1}
    client = Forgetting()
    there = fit(tmp_path / "rows.parquet", cluster=client, **chosen)
    assert client.n_looks == 2
    assert same(there, fit(tmp_path / "rows.parquet", cluster="here", **chosen))


def test_a_cluster_without_workers_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import TimeoutError as NotYet

    class Waiting(Future):
        def result(self, timeout: float | None = None) -> Any:
            raise NotYet

    class Gone(Client):
        def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            if function is tasks.visit and passes:
                self.scheduler_info = lambda n_workers=-1: {"workers": {}}  # type: ignore[method-assign]
                return Waiting()
            if any(isinstance(each, Waiting) for each in arguments):
                return Waiting()
            return super().submit(function, *arguments, **options)

    passes: list[int] = []
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    found = fit(as_array(), cluster=Gone(), callbacks=[lambda record: passes.append(record.index)])
    assert found.stop_reason is sb.StopReason.SOURCE_ERROR
    assert "no worker" in str(found.error)
