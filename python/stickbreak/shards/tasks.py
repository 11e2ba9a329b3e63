"""What workers of a cluster do for a fit. They keep nothing on which a result depends."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core
from stickbreak.errors import InvalidArgument
from stickbreak.io.arrays import rows_without_values
from stickbreak.io.names import Names
from stickbreak.shards.pieces import GivenShard, Piece, loaded, located

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
    columns: Names | None
    threads: int | None
    # The instruction set of the process that fits.
    instructions: str

    def rows(self, chunk: Any) -> Any:
        """Return the rows of the shard, given its chunk; the process then has the instruction set of the task."""
        if _core.instructions_in_use() != self.instructions:
            _core.force_instructions(self.instructions)
        return self.piece.rows(chunk, self.dtype, self.n_columns, self.columns)


class Branch:
    """Shards that a task reads one after another, for a sum a branch of the tree.

    Parameters
    ----------
    tasks : list of Task
        The shards.
    chunks : list
        The chunk of each.
    weights : list
        The weights of the rows of each, or None.
    """

    def __init__(self, tasks: list[Task], chunks: list[Any], weights: list[Weights]) -> None:
        self._shards = list(zip(tasks, chunks, weights, strict=True))
        # The last shard that was read.
        self.piece = tasks[0].piece

    def __iter__(self) -> Iterator[GivenShard]:
        """Yield number, rows and weights of each shard."""
        number, read = -1, None
        for task, chunk, weights in self._shards:
            # Shards of a row group follow each other, and it is read as a whole.
            if task.piece.chunk != number:
                number, read = task.piece.chunk, loaded(chunk)
            self.piece = task.piece
            # Arrays that travelled may begin anywhere.
            own = None if weights is None else np.require(weights, requirements=["C", "A"])
            yield task.shard, task.rows(read), own


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


def visit(tasks: list[Task], chunks: list[Any], weights: list[Weights], setup: Part, *parts: Part) -> bytes:
    """Return the sum of the visits of a branch; the parts are plan, globals and head."""
    worker = _worker(tasks[0].dtype, setup)
    requests = [(part.key, part.data) for part in parts]
    return worker.visit(iter(Branch(tasks, chunks, weights)), requests, _threads(tasks[0]))


def _worker(dtype: str, setup: Part) -> _core.ShardWorker:
    with _LOCK:
        known = _WORKERS.pop((dtype, setup.key), None)
        worker = _core.ShardWorker.of_setup(dtype, setup.data) if known is None else known
        _WORKERS[dtype, setup.key] = worker
        while len(_WORKERS) > _MOST_FITS:
            _WORKERS.popitem(last=False)
        return worker


def read(tasks: list[Task], chunks: list[Any], weights: list[Weights], reading: Part) -> bytes:
    """Return the sum of a reading over a branch."""
    branch = Branch(tasks, chunks, weights)
    try:
        return _core.read_shards(iter(branch), reading.data, _threads(tasks[0]))
    except InvalidArgument as error:
        # The core counts rows from the first one of the shard.
        raise located(error, branch.piece) from None


def pick(tasks: list[Task], chunks: list[Any], weights: list[Weights], rows: list[list[int]]) -> list[bytes]:
    """Return copies of rows of shards."""
    shards = zip(Branch(tasks, chunks, weights), rows, strict=True)
    return [_core.pick_rows(values, own, np.asarray(listed, dtype=np.uint32)) for (_, values, own), listed in shards]


def empty(task: Task, chunk: Any) -> Any:
    """Return which rows of a shard are all NaN."""
    return rows_without_values(task.rows(loaded(chunk)))


def head(task: Task, chunk: Any, n: int) -> Any:
    """Return the first rows of a shard."""
    return task.rows(loaded(chunk))[:n]


def tree_sum(branches: Iterable[tuple[int, T]], add: Callable[[T, T], T]) -> T:
    """Add up branches of a tree, given with their levels: neighbours first; what is left over goes up as it is."""
    # The sums of what came so far, of falling levels.
    partial: list[tuple[int, T]] = []
    for level, branch in branches:
        while partial and partial[-1][0] == level:
            level, branch = level + 1, add(partial.pop()[1], branch)
        partial.append((level, branch))
    total = partial.pop()[1]
    while partial:
        total = add(partial.pop()[1], total)
    return total


def add_visits(left: bytes, right: bytes, by: Part) -> bytes:
    """Return the sum of two neighbours in the tree of visits under a plan."""
    return _core.add_visits(by.data, left, right)


def add_sums(left: bytes, right: bytes, by: Part) -> bytes:
    """Return the sum of two neighbours in the tree of a reading."""
    return _core.add_sums(by.data, left, right)
