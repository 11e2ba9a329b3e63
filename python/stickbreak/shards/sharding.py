"""Where the shards of a collection go: to the workers of a cluster, or to this process."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.errors import InvalidArgument
from stickbreak.io.arrays import DenseRows, rows_without_values
from stickbreak.shards import tasks
from stickbreak.shards.cluster import FIRST_ROWS, Cluster
from stickbreak.shards.pieces import ShardedData, ShardSource, is_collection, located, sharded

# Maximum number of rows of a shard, unless the algorithm says otherwise.
SHARD_ROWS = 2**17
# The word for shards in this process.
HERE = "here"
# Seconds in which a cluster without workers may start one.
_START = 60


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
    try:
        if not _has_workers(client):
            found = f"a client that has no worker for {_START} seconds"
            raise checks.invalid_argument("cluster", found, "a client with at least one worker")
        found = client.run(tasks.about)
    except InvalidArgument:
        raise
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


def _has_workers(client: Any) -> bool:
    """Return whether a client has workers. If not, a task asks an adaptive cluster for one."""
    from distributed import TimeoutError as TooLong

    if client.scheduler_info(n_workers=-1)["workers"]:
        return True
    asked = client.submit(tasks.about, pure=False)
    try:
        asked.result(timeout=_START)
    except TooLong:
        return False
    finally:
        asked.cancel()
    return True


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
    argument : str
        What errors call the data.
    dtype : str, optional
        The type in which rows are read; by default that of the data.
    """

    cluster: object
    shard_rows: int
    threads: int | None
    argument: str = "data"
    dtype: str | None = None

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
        found = sharded(data, self.shard_rows, compute, self.argument)
        if found is None:
            allowed = "an array or a data frame of dask, or the path of Parquet files"
            hint = "with cluster=None, other data are fitted in this process"
            raise checks.invalid_type(self.argument, f"{checks.describe(data)} with a cluster", allowed, hint)
        found.dtype = self.dtype or found.dtype
        return Loaded(found) if client is None else Cluster(client, found, self.threads)


class Loaded:
    """Shards that this process loads."""

    def __init__(self, data: ShardedData) -> None:
        self.data = data
        self._first: DenseRows | None = None

    @property
    def for_core(self) -> ShardSource:
        """What the core reads."""
        # Advice at the end of the fit must not depend on the data any more.
        self.head()
        return self.data.here()

    def located(self, error: InvalidArgument) -> InvalidArgument:
        """Return an error about a row of the last shard that names the row of its chunk."""
        piece = self.data.loader.piece
        return error if piece is None or error.argument != self.data.argument else located(error, piece)

    def weigh(self, weights: NDArray[np.float64] | None) -> None:
        """Give the rows these weights, of which the core has those of each shard."""

    def rows_without_values(self) -> NDArray[np.bool_]:
        """Return which rows are all NaN."""
        loader = self.data.loader
        return np.concatenate([rows_without_values(loader.load(shard)) for shard in range(len(self.data.pieces))])

    def head(self) -> DenseRows:
        """Return the first rows; they are read at the first call."""
        if self._first is None:
            self._first = self.data.loader.load(0)[:FIRST_ROWS].copy()
        return self._first
