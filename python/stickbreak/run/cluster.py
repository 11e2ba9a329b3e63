"""Fits on a Dask cluster: passes the requests of the core to workers, and their answers back."""

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.errors import InvalidArgument, SourceError, StickbreakError
from stickbreak.io.arrays import DenseRows, rows_without_values
from stickbreak.io.shards import ShardedData, ShardSource, is_collection, located, sharded
from stickbreak.run import tasks

# The word for a fit of shards in this process.
HERE = "here"
# Number of rows that advice looks at.
_FIRST_ROWS = 10_000
# Maximum size of a part that travels with every task, bytes. A larger one travels once to each worker.
_SMALL = 20_000
# Tasks for each worker that a request has at least, if there are as many shards.
_TASKS = 4
# How often a request is made before the fit gives up.
_ATTEMPTS = 4
# Seconds between two looks at whether to stop, and the number of these between two looks at whether there are workers.
_POLL, _POLLS_A_LOOK = 0.1, 50
# Seconds without any worker after which the fit gives up.
_PATIENCE = 300

# A part of a request, as the core has it: name, key and bytes.
Request = tuple[str, int, bytes]


def checked(client: Any) -> Any:
    """Return a client of a cluster that can run a fit.

    Raises
    ------
    InvalidType
        It is no client of dask.distributed.
    InvalidArgument
        It is closed, has no workers, or they have another version of this package, or not the instruction set that this
        process uses.
    """
    allowed = 'a dask.distributed.Client, "here", or None'
    has_all = all(hasattr(client, name) for name in ("submit", "gather", "scheduler_info", "run", "status"))
    if isinstance(client, type) or not has_all:
        raise checks.invalid_type("cluster", checks.describe(client), allowed)
    if client.status != "running":
        raise checks.invalid_argument("cluster", f"a client that is {client.status}", "a client that is running")
    if client.asynchronous:
        raise checks.invalid_argument("cluster", "an asynchronous client", "a client with asynchronous=False")
    if not client.scheduler_info(n_workers=-1)["workers"]:
        raise checks.invalid_argument("cluster", "a client without workers", "a client with at least one worker")
    try:
        found = client.run(tasks.about)
    except Exception as error:
        text = f"a client whose workers cannot import this package: {type(error).__name__}: {error}"
        raise checks.invalid_argument("cluster", text, "workers with this version of stickbreak") from error
    own = _core.__version__
    for worker, (version, _) in found.items():
        if version != own:
            text = f"a client whose worker {worker} has version {version}"
            raise checks.invalid_argument("cluster", text, f"workers with version {own}")
    used = _core.instructions_in_use()
    for worker, (_, sets) in found.items():
        if used not in sets:
            text = f"a client whose worker {worker} has the instruction sets {', '.join(sets)}"
            hint = f"sb.force_instructions({sets[-1]!r}) makes this process use one that the worker has"
            raise checks.invalid_argument("cluster", text, f"workers with {used}, which this process uses", hint)
    return client


@dataclass(frozen=True)
class Sharding:
    """Where the shards of collections go.

    Parameters
    ----------
    cluster : object
        The argument `cluster` of `fit`.
    shard_rows : int
        Maximum number of rows of a shard.
    threads : int, optional
        The number of threads of each visit.
    """

    cluster: object
    shard_rows: int
    threads: int | None

    def of(self, data: object) -> "Loaded | Cluster | None":
        """Return the shards of data; None for data without, which have no cluster.

        Raises
        ------
        InvalidType, InvalidArgument
            Data without shards with a cluster, or a cluster that cannot run a fit.
        """
        if self.cluster is None and not is_collection(data):
            return None
        is_here = self.cluster is None or (isinstance(self.cluster, str) and self.cluster == HERE)
        client = None if is_here else checked(self.cluster)
        compute = None if client is None else lambda delayed: client.compute(delayed).result()
        found = sharded(data, self.shard_rows, compute)
        if found is None:
            allowed = "an array or a data frame of dask, or the path of Parquet files"
            hint = "with cluster=None, other data are fitted in this process"
            raise checks.invalid_type("data", f"{checks.describe(data)} with a cluster", allowed, hint)
        return Loaded(found) if client is None else Cluster(client, found, self.threads)


class Loaded:
    """Shards that this process loads."""

    def __init__(self, data: ShardedData) -> None:
        self.data = data

    @property
    def for_core(self) -> ShardSource:
        """What the core reads."""
        return self.data.here()

    def located(self, error: InvalidArgument) -> InvalidArgument:
        """Return an error about a row of the last shard that names the row of its chunk."""
        piece = self.data.loader.piece
        return error if piece is None else located(error, piece)

    def rows_without_values(self) -> list[NDArray[np.bool_]]:
        """Return which rows are all NaN, for each shard."""
        loader = self.data.loader
        return [rows_without_values(loader.load(shard)) for shard in range(len(self.data.pieces))]

    def head(self) -> DenseRows:
        """Return the first rows."""
        return self.data.loader.load(0)[:_FIRST_ROWS]


class Cluster:
    """Passes requests of a fit to the workers of a cluster.

    Parameters
    ----------
    client : dask.distributed.Client
        The client.
    data : ShardedData
        The shards.
    threads : int, optional
        The number of threads of each visit; by default those of the worker.
    """

    def __init__(self, client: Any, data: ShardedData, threads: int | None) -> None:
        self._client, self.data = client, data
        self._tasks = [
            tasks.Task(shard, piece, data.dtype, data.n_columns, data.names, threads, _core.instructions_in_use())
            for shard, piece in enumerate(data.pieces)
        ]
        self._first: DenseRows | None = None
        self._weights: NDArray[np.float64] | None = None
        self._starts = [0, *itertools.accumulate(data.sizes)]
        # The weights of shards, where workers have them.
        self._sent: dict[int, Any] = {}
        # The addresses of the workers, and when they were asked for.
        self._workers: list[str] = []
        self._looked = -math.inf
        # The last part of each name, where workers have it.
        self._parts: dict[str, tuple[int, Any]] = {}
        # Requests, those that were made again, and bytes of parts and answers, so far.
        self.n_requests = self.n_repeated = self.n_bytes = 0

    @property
    def for_core(self) -> ShardSource:
        """What the core reads."""
        # Advice at the end of the fit must not depend on workers any more.
        self.head()
        return self.data.dtype, self.data.n_columns, self.data.sizes, True, self

    def head(self) -> DenseRows:
        """Return the first rows; they are read at the first call."""
        if self._first is None:

            def ask() -> list[Any]:
                chunk = self._chunks([0])[0]
                return [self._client.submit(tasks.head, self._tasks[0], chunk, _FIRST_ROWS, pure=False)]

            self._first = self._insist(ask, None)[0]
        return self._first

    def rows_without_values(self) -> list[NDArray[np.bool_]]:
        """Return which rows are all NaN, for each shard."""

        def ask() -> list[Any]:
            chunks = self._chunks(range(len(self._tasks)))
            submit = self._client.submit
            return [submit(tasks.empty, *each, pure=False) for each in zip(self._tasks, chunks, strict=True)]

        found: list[NDArray[np.bool_]] = self._insist(ask, None)
        return found

    def visit(self, shards: list[int], parts: list[Request], stop: _core.Stop | None) -> bytes:
        """Return the sum of the visits of shards."""

        def ask() -> Any:
            setup, plan, *others = [self._part(part) for part in parts]
            return self._sum(tasks.visit, shards, [setup, plan, *others], partial(tasks.add_visits, by=plan))

        answer: bytes = self._insist(ask, stop)
        return answer

    def read(self, reading: Request, stop: _core.Stop | None) -> bytes:
        """Return the sum of a reading over all shards."""

        def ask() -> Any:
            part = self._part(reading)
            return self._sum(tasks.read, range(len(self._tasks)), [part], partial(tasks.add_sums, by=part))

        answer: bytes = self._insist(ask, stop)
        return answer

    def pick(self, rows: list[tuple[int, list[int]]], stop: _core.Stop | None) -> list[bytes]:
        """Return copies of rows of shards."""

        def ask() -> list[Any]:
            shards = [shard for shard, _ in rows]
            chunks, weights = self._chunks(shards), self._weights_of(shards)
            return [
                self._client.submit(tasks.pick, self._tasks[shard], chunk, own, list(each), pure=False)
                for (shard, each), chunk, own in zip(rows, chunks, weights, strict=True)
            ]

        answers: list[bytes] = self._insist(ask, stop)
        return answers

    def _chunks(self, shards: Sequence[int]) -> list[Any]:
        """Return the chunks of shards: row groups, or futures, which workers forget after their last use."""
        numbers = [self._tasks[shard].piece.chunk for shard in shards]
        if not self.data.is_delayed:
            return [self.data.chunks[number] for number in numbers]
        wanted = sorted(set(numbers))
        futures = dict(zip(wanted, self._client.compute([self.data.chunks[number] for number in wanted]), strict=True))
        return [futures[number] for number in numbers]

    def _sum(self, work: Callable[..., bytes], shards: Sequence[int], parts: list[Any], add: "partial[bytes]") -> Any:
        """Return the future sum of what tasks return for shards.

        A task takes as many neighbours as leave some tasks to each worker, a power of two, so that they are a branch of
        the tree of all shards. Neighbours are at the same worker in every pass, because one that has visited a shard
        before is faster. Chunks of dask are one by one, where dask puts them.
        """
        known = [] if self.data.is_delayed else self._addresses()
        size = 1
        while known and len(shards) >= 2 * size * _TASKS * len(known):
            size *= 2
        submit, add_up, by = self._client.submit, add.func, add.keywords["by"]
        level, chunks = [], self._chunks(shards)
        for begin in range(0, len(shards), size):
            own = slice(begin, begin + size)
            worker = known[begin * len(known) // len(shards) :][:1]
            place = {"workers": worker, "allow_other_workers": True} if worker else {}
            group = [self._tasks[shard] for shard in shards[own]]
            weights = self._weights_of(shards[own])
            level.append(
                submit(tasks.summed, work, add_up, by, group, chunks[own], weights, *parts, pure=False, **place)
            )
        return tasks.tree_sum(level, lambda left, right: submit(add_up, left, right, by, pure=False))

    def weigh(self, weights: NDArray[np.float64]) -> None:
        """Give the rows these weights."""
        self._weights = weights

    def _weights_of(self, shards: Sequence[int]) -> list[Any]:
        """Return the weights of the rows of shards, which travel once."""
        if self._weights is None:
            return [None] * len(shards)
        for shard in shards:
            if shard not in self._sent:
                own = self._weights[self._starts[shard] : self._starts[shard + 1]]
                self._sent[shard] = self._held(own)
        return [self._sent[shard] for shard in shards]

    def _held(self, value: Any) -> Any:
        """Return a future of a value, which the scheduler keeps and sends again to workers that have lost it.

        Scattered values are lost with the last worker that has them, and tasks may wait for them for ever.
        """
        with warnings.catch_warnings():
            # Dask advises to scatter large values.
            warnings.simplefilter("ignore")
            return self._client.submit(tasks.itself, value, pure=False)

    def _addresses(self) -> list[str]:
        """Return the addresses of the workers, which are asked for from time to time."""
        if monotonic() - self._looked > _POLLS_A_LOOK * _POLL:
            self._workers = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
            self._looked = monotonic()
        return self._workers

    def _part(self, request: Request) -> Any:
        """Return a part of a request as an argument of tasks."""
        name, key, data = request
        known = self._parts.get(name)
        if known is not None and known[0] == key:
            return known[1]
        self.n_bytes += len(data)
        part: Any = tasks.Part(key, data)
        if len(data) > _SMALL:
            part = self._held(part)
        self._parts[name] = (key, part)
        return part

    def _insist(self, ask: Callable[[], Any], stop: _core.Stop | None) -> Any:
        """Return the answer to a request, which is made again if a part of it was lost."""
        from distributed.scheduler import KilledWorker

        for attempt in range(_ATTEMPTS):
            self.n_requests += 1
            self.n_repeated += attempt > 0
            try:
                answer = self._wait(ask(), stop)
                self.n_bytes += len(answer) if isinstance(answer, bytes) else sum(map(len, answer))
                return answer
            except KilledWorker as error:
                raise SourceError(f"a task ended the workers that ran it, one after another: {error}") from error
            except (StickbreakError, KeyboardInterrupt):
                raise
            except Exception as error:  # what dask raises for lost workers changes between its versions
                self._parts.clear()
                self._sent.clear()
                self._looked = -math.inf
                if attempt == _ATTEMPTS - 1 or self._client.status != "running":
                    raise SourceError(f"the cluster lost the request: {type(error).__name__}: {error}") from error
        raise AssertionError("unreachable")

    def _wait(self, futures: Any, stop: _core.Stop | None) -> Any:
        """Wait for futures, and look from time to time whether to stop.

        Raises
        ------
        SourceError
            There is no worker for a long time.
        """
        from distributed import TimeoutError as NotYet

        waiting = futures if isinstance(futures, list) else [futures]
        found, n_polls = [], 0
        last = monotonic()
        try:
            for future in waiting:
                is_waiting = True
                while is_waiting:
                    if stop is not None and stop.is_set():
                        raise KeyboardInterrupt
                    n_polls += 1
                    if n_polls % _POLLS_A_LOOK == 0 and self._client.scheduler_info(n_workers=-1)["workers"]:
                        last = monotonic()
                    if monotonic() - last > _PATIENCE:
                        raise SourceError(f"the cluster has had no worker for {_PATIENCE} seconds")
                    with contextlib.suppress(NotYet):
                        found.append(future.result(timeout=_POLL))
                        is_waiting = False
        except BaseException:
            with contextlib.suppress(Exception):
                self._client.cancel(waiting, force=True)
            raise
        for future in waiting:
            future.release()
        return found if isinstance(futures, list) else found[0]
