"""What workers of a cluster do for a fit. They keep nothing on which a result depends."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core
from stickbreak.errors import InvalidArgument
from stickbreak.io.arrays import rows_without_values
from stickbreak.io.names import Names
from stickbreak.io.shards import Piece, located

T = TypeVar("T")
# Those of the rows of a shard.
Weights: TypeAlias = NDArray[np.float64] | None
# Fits whose components a worker remembers, the latest last.
_MOST_FITS = 4
_WORKERS: OrderedDict[tuple[str, int], _core.ShardWorker] = OrderedDict()
_LOCK = Lock()


@dataclass(frozen=True)
class Part:
    """A part of a request; equal keys mean equal bytes."""

    key: int
    data: bytes


@dataclass(frozen=True)
class Task:
    """A shard, and how its rows are read."""

    shard: int
    piece: Piece
    dtype: str
    n_columns: int
    names: Names | None
    threads: int | None
    # The instruction set of the process that fits.
    instructions: str

    def rows(self, chunk: Any) -> Any:
        """Return the rows of the shard, given its chunk; the process then has the instruction set of the task."""
        if _core.instructions_in_use() != self.instructions:
            _core.force_instructions(self.instructions)
        return self.piece.rows(chunk, self.dtype, self.n_columns, self.names)


def _threads(task: Task) -> int | None:
    """Return the number of threads of a task: by default those of the worker that runs it."""
    if task.threads is not None:
        return task.threads
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return None


def about() -> tuple[str, tuple[str, ...]]:
    """Return the version of this process, and the instruction sets that it has."""
    return _core.__version__, tuple(_core.instruction_sets())


def itself(value: T) -> T:
    """Return a value."""
    return value


def visit(task: Task, chunk: Any, weights: Weights, setup: Part, *parts: Part) -> bytes:
    """Return the visit of a shard; the parts are plan, globals and head."""
    worker = _worker(task.dtype, setup)
    requests = [(part.key, part.data) for part in parts]
    return worker.visit(task.shard, task.rows(chunk), weights, requests, _threads(task))


def _worker(dtype: str, setup: Part) -> _core.ShardWorker:
    with _LOCK:
        known = _WORKERS.pop((dtype, setup.key), None)
        worker = _core.ShardWorker.of_setup(dtype, setup.data) if known is None else known
        _WORKERS[dtype, setup.key] = worker
        while len(_WORKERS) > _MOST_FITS:
            _WORKERS.popitem(last=False)
        return worker


def read(task: Task, chunk: Any, weights: Weights, reading: Part) -> bytes:
    """Return the sums of a reading over a shard."""
    try:
        return _core.read_shard(task.rows(chunk), weights, reading.data, _threads(task))
    except InvalidArgument as error:
        # The core counts rows from the first one of the shard.
        raise located(error, task.piece) from None


def pick(task: Task, chunk: Any, weights: Weights, rows: list[int]) -> bytes:
    """Return copies of rows of a shard."""
    return _core.pick_rows(task.rows(chunk), weights, np.asarray(rows, dtype=np.uint32))


def empty(task: Task, chunk: Any) -> Any:
    """Return which rows of a shard are all NaN."""
    return rows_without_values(task.rows(chunk))


def head(task: Task, chunk: Any, n: int) -> Any:
    """Return the first rows of a shard."""
    return task.rows(chunk)[:n]


def summed(
    work: Callable[..., bytes],
    add: Callable[[bytes, bytes, Part], bytes],
    by: Part,
    tasks: list[Task],
    chunks: list[Any],
    weights: list[Weights],
    *parts: Part,
) -> bytes:
    """Return the sum of what `work` returns for shards that are a branch of the tree."""
    level = [work(*each, *parts) for each in zip(tasks, chunks, weights, strict=True)]
    return tree_sum(level, lambda left, right: add(left, right, by))


def tree_sum(level: list[T], add: Callable[[T, T], T]) -> T:
    """Add up neighbours, level by level; what is left over goes up as it is."""
    while len(level) > 1:
        pairs = [level[place : place + 2] for place in range(0, len(level), 2)]
        level = [add(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return level[0]


def add_visits(left: bytes, right: bytes, by: Part) -> bytes:
    """Return the sum of two neighbours in the tree of visits under a plan."""
    return _core.add_visits(by.data, left, right)


def add_sums(left: bytes, right: bytes, by: Part) -> bytes:
    """Return the sum of two neighbours in the tree of a reading."""
    return _core.add_sums(by.data, left, right)
