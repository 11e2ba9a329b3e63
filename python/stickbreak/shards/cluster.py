"""Fits on a Dask cluster: passes the requests of the core to workers, and their answers back."""

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core
from stickbreak.errors import InvalidArgument, SourceError, StickbreakError
from stickbreak.io.arrays import DenseRows
from stickbreak.shards import tasks
from stickbreak.shards.pieces import ShardedData, ShardSource

# Number of rows that advice looks at.
FIRST_ROWS = 10_000
# Maximum size of a part that travels with every task, bytes. A larger one travels once to each worker.
_SMALL = 20_000
# Tasks for each worker that a request has at least, if there are as many shards.
_TASKS = 4
# How often a request is made before the fit gives up.
_ATTEMPTS = 4
# Seconds between two looks at whether to stop, and the number of these between two looks at whether there are workers.
_POLL, _POLLS_A_LOOK = 0.25, 20
# Seconds without any worker after which the fit gives up.
_PATIENCE = 300

# A part of a request, as the core has it: name, key and bytes.
Request = tuple[str, int, bytes]


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
        self._threads = threads
        self._first: DenseRows | None = None
        self._weights: NDArray[np.float64] | None = None
        self._starts = [0, *itertools.accumulate(data.sizes)]
        # The weights of shards, where workers have them.
        self._sent: dict[int, Any] = {}
        # The addresses of the workers, and when they were asked for.
        self._workers: list[str] = []
        self._looked = -math.inf
        # The tasks of the request by the worker at which they were put.
        self._placed: dict[str, list[Any]] = {}
        # The last part of each name, where workers have it.
        self._parts: dict[str, tuple[int, Any]] = {}
        # Requests, those that were made again, and bytes of parts and answers, so far.
        self.n_requests = self.n_repeated = self.n_bytes = 0

    @cached_property
    def _tasks(self) -> list[tasks.Task]:
        data, instructions = self.data, _core.instructions_in_use()
        return [
            tasks.Task(shard, piece, data.dtype, data.n_columns, data.columns, self._threads, instructions)
            for shard, piece in enumerate(data.pieces)
        ]

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
                return [self._client.submit(tasks.head, self._tasks[0], chunk, FIRST_ROWS, pure=False)]

            self._first = self._insist(ask, None)[0]
        return self._first

    def located(self, error: InvalidArgument) -> InvalidArgument:
        """Return an error about a row, which names the row of its chunk already."""
        return error

    def rows_without_values(self) -> NDArray[np.bool_]:
        """Return which rows are all NaN."""

        def ask() -> list[Any]:
            chunks = self._chunks(range(len(self._tasks)))
            submit = self._client.submit
            return [submit(tasks.empty, *each, pure=False) for each in zip(self._tasks, chunks, strict=True)]

        return np.concatenate(self._insist(ask, None))

    def visit(self, shards: list[int], parts: list[Request], stop: _core.Stop | None) -> bytes:
        """Return the sum of the visits of shards."""

        def ask() -> Any:
            setup, plan, *others = [self._part(part) for part in parts]
            return self._sum(tasks.visit, shards, [setup, plan, *others], tasks.add_visits, plan)

        answer: bytes = self._insist(ask, stop)
        return answer

    def read(self, reading: Request, stop: _core.Stop | None) -> bytes:
        """Return the sum of a reading over all shards."""

        def ask() -> Any:
            part = self._part(reading)
            return self._sum(tasks.read, range(len(self._tasks)), [part], tasks.add_sums, part)

        answer: bytes = self._insist(ask, stop)
        return answer

    def pick(self, rows: list[tuple[int, list[int]]], stop: _core.Stop | None) -> list[bytes]:
        """Return copies of rows of shards."""
        shards, lists = [shard for shard, _ in rows], [list(each) for _, each in rows]

        def ask() -> list[Any]:
            return [future for _, future in self._submitted(tasks.pick, shards, lambda own: [lists[own]])]

        answers: list[list[bytes]] = self._insist(ask, stop)
        return list(itertools.chain.from_iterable(answers))

    def _chunks(self, shards: Sequence[int]) -> list[Any]:
        """Return the chunks of shards: row groups, or futures, which workers forget after their last use."""
        numbers = [self._tasks[shard].piece.chunk for shard in shards]
        if not self.data.is_delayed:
            return [self.data.chunks[number] for number in numbers]
        wanted = sorted(set(numbers))
        futures = dict(zip(wanted, self._client.compute([self.data.chunks[number] for number in wanted]), strict=True))
        return [futures[number] for number in numbers]

    def _sum(
        self, work: Callable[..., bytes], shards: Sequence[int], parts: list[Any], add: Callable[..., bytes], by: Any
    ) -> Any:
        """Return the future sum of what tasks return for shards; `add` adds up two of these, `by` a part."""
        submit = self._client.submit
        branches = self._submitted(work, shards, lambda _: parts)
        return tasks.tree_sum(branches, lambda left, right: submit(add, left, right, by, pure=False))

    def _submitted(
        self, work: Callable[..., Any], shards: Sequence[int], others: Callable[[slice], list[Any]]
    ) -> Iterator[tuple[int, Any]]:
        """Yield levels and futures of tasks that do work for branches of shards; `others` are further arguments.

        Neighbours of Parquet files are at the same worker in every pass, because one that has visited a shard before is
        faster. Dask decides where its chunks are.
        """
        known, chunks = self._addresses(), self._chunks(shards)
        for level, own in self._branches(shards, max(1, _TASKS * len(known))):
            worker = [] if self.data.is_delayed else known[own.start * len(known) // len(shards) :][:1]
            place = {"workers": worker, "allow_other_workers": True} if worker else {}
            group, weights = [self._tasks[shard] for shard in shards[own]], self._weights_of(shards[own])
            future = self._client.submit(work, group, chunks[own], weights, *others(own), pure=False, **place)
            if worker:
                self._placed.setdefault(worker[0], []).append(future)
            yield level, future

    def _branches(self, shards: Sequence[int], least: int) -> Iterator[tuple[int, slice]]:
        """Yield what tasks take of shards: branches of their tree, each with its level.

        They are as large as leaves `least` tasks, and of a single chunk of dask, which need not be at two workers then.
        """
        most = max(1, len(shards) // least).bit_length() - 1
        begin = 0
        for _, run in itertools.groupby(shards, lambda shard: self.data.is_delayed and self.data.pieces[shard].chunk):
            end = begin + len(list(run))
            while begin < end:
                level = min(most, (end - begin).bit_length() - 1)
                # A branch of 2^level shards begins at a multiple of 2^level.
                while begin % (1 << level):
                    level -= 1
                yield level, slice(begin, begin + (1 << level))
                begin += 1 << level

    def weigh(self, weights: NDArray[np.float64] | None) -> None:
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
            self._placed.clear()
            try:
                answer = self._wait(ask(), stop)
                self.n_bytes += _size(answer)
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
                    raise SourceError(f"{self._what(error)}: {type(error).__name__}: {error}") from error
        raise AssertionError("unreachable")

    def _what(self, error: Exception) -> str:
        """Return what an error of dask, of the data, or of this class means."""
        if self._client.status != "running":
            return "the client has been closed"
        if "lost dependencies" in str(error):
            return "the cluster lost rows that it cannot compute again"
        is_of_cluster = isinstance(error, ConnectionError) or type(error).__module__.startswith("distributed")
        return "the cluster lost the request" if is_of_cluster else "the rows cannot be computed on a worker"

    def _is_stuck(self, known: Container[str]) -> bool:
        """Return whether tasks that were put at lost workers wait although no worker is at them.

        Dask forgets tasks that it cannot give to any worker at all for a moment, if they were put somewhere.
        """
        lost = [future for address, futures in self._placed.items() if address not in known for future in futures]
        waiting = {future.key for future in lost if future.status in ("pending", "lost")}
        return bool(waiting) and waiting.isdisjoint(*self._client.processing().values())

    def _wait(self, futures: Any, stop: _core.Stop | None) -> Any:
        """Wait for futures, and look from time to time whether to stop.

        Raises
        ------
        SourceError
            There is no worker for a long time.
        ConnectionError
            Tasks wait for a worker that is lost.
        """
        from distributed import TimeoutError as NotYet

        waiting = futures if isinstance(futures, list) else [futures]
        found, n_polls, n_stuck, n_alone = [], 0, 0, 0
        last = monotonic()
        try:
            for future in waiting:
                is_waiting = True
                while is_waiting:
                    if stop is not None and stop.is_set():
                        raise KeyboardInterrupt
                    n_polls += 1
                    if n_polls % _POLLS_A_LOOK == 0:
                        known = self._client.scheduler_info(n_workers=-1)["workers"]
                        last = monotonic() if known else last
                        n_alone = 0 if known else n_alone + 1
                        if n_alone == 2:
                            warnings.warn(f"the cluster has no worker; waiting up to {_PATIENCE} seconds", stacklevel=1)
                        n_stuck = n_stuck + 1 if self._is_stuck(known) else 0
                        if n_stuck == 2:
                            raise ConnectionError("its tasks wait for a worker that is lost")
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


def _size(answer: Any) -> int:
    """Return the number of bytes of an answer."""
    return sum(map(_size, answer)) if isinstance(answer, list) else memoryview(answer).nbytes
