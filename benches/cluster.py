"""Fits on a Dask cluster beside fits in one process: bits, seconds, bytes and requests, and what limits them.

    python benches/cluster.py [--jobs bits passes scaling memory many killed] [--rows 100000000]

Workers are processes of this machine with one thread each. CPU seconds are those of all processes, without the start
of the cluster. The model: a pass of n rows computes n phi K D^2 / (W R) seconds, and sends B visits of 4 K D^2 bytes
over `a` hops one after another. So compute over messages is n phi beta / (4 a B W R), with phi the share of pairs that
was evaluated, beta bytes/s, W workers, and R flop/s of a worker. Both sides are measured here: compute is that of one
process over W, and messages are what remains.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import stickbreak as sb
from common.head import print_head
from stickbreak.shards import cluster, sharding

MOVES = (sb.Birth(), sb.Merge(), sb.Delete())


def clusters(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """float32 rows of k clusters."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(k).normal(scale=4.0, size=(k, d)).astype(np.float32)
    return centres[rng.integers(k, size=n)] + rng.standard_normal((n, d), dtype=np.float32)


def written(folder: Path, n: int, d: int, k: int, n_files: int) -> Path:
    """A folder of Parquet files of these rows, with row groups of 2^17 rows."""
    place = folder / f"{n}x{d}"
    place.mkdir()
    for number in range(n_files):
        rows = clusters(n * (number + 1) // n_files - n * number // n_files, d, k, number)
        table = pa.table({f"x{column}": rows[:, column] for column in range(d)})
        pq.write_table(table, place / f"{number:04}.parquet", row_group_size=2**17, compression="NONE")
    return place


@contextmanager
def running(n_workers: int, *, is_profiled: bool = False) -> Iterator[Any]:
    """A client of workers with one thread each, without dask's profiler unless asked for."""
    import dask
    from dask.distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with (
        dask.config.set({"distributed.worker.profile.enabled": is_profiled}),
        LocalCluster(n_workers=n_workers, **settings) as workers,
        Client(workers) as client,
    ):
        client.run(warm)
        yield client


def warm() -> None:
    """Import what tasks need, which is a part of the start."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import stickbreak.shards.tasks  # noqa: F401


def family() -> list[psutil.Process]:
    """This process and all that it started."""
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def cpu() -> float:
    """CPU seconds of all processes."""
    return sum(sum(each.cpu_times()[:2]) for each in family())


class Memory:
    """The most memory of this process and of any worker, bytes."""

    def __init__(self) -> None:
        self.driver = self.worker = 0

    def __call__(self, _: sb.Record) -> None:
        own, *others = (each.memory_info().rss for each in family())
        self.driver, self.worker = max(self.driver, own), max(self.worker, *others, 0)


def counted(data: Any, client: Any, **options: Any) -> tuple[sb.Fit, cluster.Cluster]:
    """A fit on a cluster, and what passed its requests on."""
    made: list[cluster.Cluster] = []
    of = sharding.Sharding.of

    def kept(self: Any, data: Any) -> Any:
        made.append(of(self, data))
        return made[-1]

    sharding.Sharding.of = kept  # type: ignore[method-assign]
    try:
        return fitted(data, cluster=client, **options), made[0]
    finally:
        sharding.Sharding.of = of  # type: ignore[method-assign]


def fitted(data: Any, *, likelihood: Any = None, k: int | None = None, callbacks: Any = (), **options: Any) -> sb.Fit:
    """A fit with births, or from k components without."""
    moves, passes = (MOVES, 30) if k is None else ((), options.pop("passes", 5))
    where = {"cluster": options.pop("cluster", "here")}
    algorithm = sb.Memoized(moves=moves, max_passes=passes, tol=1e-6 if k is None else 0.0, **options)
    model = sb.Mixture(likelihood=likelihood or sb.Gaussian())
    return sb.fit(model, data, algorithm, n_components=k, threads=1, progress=False, callbacks=callbacks, **where)


def same(one: sb.Fit, other: sb.Fit) -> bool:
    """Whether all numbers are the same."""
    keys = one.components.keys()
    return one.elbo == other.elbo and all((one.components[key] == other.components[key]).all() for key in keys)


def said(*words: str) -> None:
    """Print a line at once."""
    print(*words, flush=True)


def seconds_of_pass(found: sb.Fit) -> float:
    """Seconds of a pass after the first."""
    return (found.history[-1].seconds - found.history[0].seconds) / (len(found.history) - 1)


def bits(folder: Path) -> None:
    """1, 2 and 4 workers and one process, with births."""
    place = written(folder, 1_000_000, 8, 12, 4)
    here = fitted(place, batches=4)
    said(f"bits, 1,000,000 x 8 with births: {here.n_components} components, {len(here.history)} passes")
    for n_workers in (1, 2, 4):
        with running(n_workers) as client:
            word = "the same" if same(here, fitted(place, cluster=client, batches=4)) else "OTHER"
        said(f"  {n_workers} workers: {word} bits")


def passes(folder: Path) -> None:
    """Seconds, bytes and requests of a pass, and the number of rows where compute and messages take equally long."""
    n, n_workers = 2**19, 2
    said(f"a pass of {n:,} rows in one batch on {n_workers} workers: K, D, seconds, MB, requests;")
    said("  seconds of the same in one process over the workers; what messages add; rows where both are equal")
    for d in (16, 64):
        place = written(folder, n, d, 50, 2)
        for k in (100, 1000):
            for likelihood in (sb.Gaussian(), sb.DiagonalGaussian()):
                settings: dict[str, Any] = {"likelihood": likelihood, "k": k, "passes": 3}
                with running(n_workers) as client:
                    found, asked = counted(place, client, **settings)
                seconds, compute = seconds_of_pass(found), seconds_of_pass(fitted(place, **settings)) / n_workers
                messages = max(seconds - compute, 1e-9)
                sent = f"{asked.n_bytes / 3e6:9.1f} {asked.n_requests / 3:5.1f}"
                shares = f"{compute:7.2f} {messages:7.2f} {n * messages / compute:12,.0f}"
                said(f"  {k:5} {d:3} {type(likelihood).__name__:17} {seconds:7.2f} {sent} {shares}")


def scaling(folder: Path) -> None:
    """Two workers against one, and one against no cluster: medians of rounds, since seconds vary by a tenth."""
    n, d, k = 5_000_000, 32, 200
    place = written(folder, n, d, k, 8)
    fits: list[sb.Fit] = []

    def timed(n_workers: int, *, is_profiled: bool = False) -> np.ndarray:
        """Seconds, seconds of a pass, and CPU seconds of all processes."""
        with running(n_workers, is_profiled=is_profiled) if n_workers else nullcontext("here") as where:
            begun, before = time.monotonic(), cpu()
            fits.append(fitted(place, k=k, cluster=where, passes=4))
            return np.array([time.monotonic() - begun, seconds_of_pass(fits[-1]), cpu() - before])

    rounds = np.array([[timed(0), timed(1), timed(2), timed(2, is_profiled=True)] for _ in range(3)])
    said(f"{n:,} x {d}, K = {k}: seconds, seconds of a pass, CPU seconds, in three rounds")
    for column, name in enumerate(("no workers", "1 worker", "2 workers", "2, profiled")):
        shown = ";  ".join(f"{wall:5.1f} {one:5.2f} {used:5.1f}" for wall, one, used in rounds[:, column])
        said(f"  {name:11}  {shown}")
    wall, one, _ = np.median(rounds[:, 1] / rounds[:, 2], axis=0)
    said(f"  two workers against one: {wall:.2f} times, a pass {one:.2f} times")
    profiled = np.median(rounds[:, 3, 1] / rounds[:, 2, 1])
    said(f"  with dask's profiler, which is on by default, a pass on two takes {profiled:.2f} times as long")
    said(f"  one worker against none: {np.median(rounds[:, 1, 2] / rounds[:, 0, 2]):.2f} times the CPU seconds")
    with running(1):
        begun, before = time.monotonic(), cpu()
        time.sleep(20.0)
        share = (cpu() - before) / (time.monotonic() - begun)
    said(f"  of these, without work: {share:.3f} CPU seconds a second")
    said(f"  the same bits: {all(same(fits[0], other) for other in fits[1:])}")


def memory(folder: Path, n: int) -> None:
    """Many rows in fixed memory."""
    place = written(folder, n, 16, 20, max(1, n // 5_000_000))
    with running(2) as client:
        seen = Memory()
        found = fitted(place, k=20, cluster=client, passes=2, callbacks=[seen])
    size = sum(file.stat().st_size for file in place.iterdir())
    said(
        f"{n:,} x 16, {size / 1e9:.1f} GB: {found.history[-1].seconds:.0f} s for {len(found.history)} passes, "
        f"driver {seen.driver / 1e9:.2f} GB, worker {seen.worker / 1e9:.2f} GB"
    )


def restored(client: Any, n_workers: int) -> None:
    """Wait until there are as many workers. Dask gives some up that died, and is told to start others."""
    while len(client.scheduler_info(n_workers=-1)["workers"]) < n_workers:
        try:
            client.wait_for_workers(n_workers, timeout=20)
        except TimeoutError:
            client.cluster.scale(0)
            client.cluster.scale(n_workers)


def repeated(block: np.ndarray) -> np.ndarray:
    """As many rows as the block has: a million standard normal ones over and over."""
    some = np.random.default_rng(0).standard_normal((2**20, 1), dtype=np.float32)
    return np.tile(some, (len(block) // len(some), 1))


def many(folder: Path) -> None:
    """More rows than 32 bits count, made by dask; the last 1000 have a cluster of their own."""
    import dask.array as da

    n, size = 2**32 + 2**24, 2**24
    rows = da.zeros((n, 1), chunks=(size, -1), dtype=np.float32).map_blocks(repeated, dtype=np.float32)
    far = da.from_array(np.random.default_rng(0).normal(1000.0, size=(1000, 1)).astype(np.float32))
    with running(2) as client:
        seen = Memory()
        found = fitted(
            da.concatenate([rows, far]),
            likelihood=sb.DiagonalGaussian(),
            k=2,
            cluster=client,
            passes=2,
            shard_rows=size,
            callbacks=[seen],
        )
    said(
        f"{n + 1000:,} x 1 from dask: {found.history[-1].seconds:.0f} s for {len(found.history)} passes, counts "
        f"{found.counts}, driver {seen.driver / 1e9:.2f} GB, worker {seen.worker / 1e9:.2f} GB"
    )


def killed(folder: Path) -> None:
    """A worker killed in each of 20 passes."""
    place = written(folder, 1_000_000, 8, 12, 4)
    expected = fitted(place, k=12, passes=20, batches=4)
    with running(2) as client:

        def kill(record: sb.Record) -> None:
            # A worker starts more slowly than a pass is made.
            restored(client, 2)
            # One that dies while it starts is given up.
            time.sleep(1.0)
            pids = list(client.run(os.getpid).values())
            # In the middle of the next pass.
            threading.Timer(0.1, os.kill, (pids[record.index % len(pids)], signal.SIGKILL)).start()

        found, asked = counted(place, client, k=12, passes=20, batches=4, callbacks=[kill])
    word = "the same" if same(expected, found) else "OTHER"
    end = f"{found.stop_reason.value}{f': {found.error}' if found.error else ''}"
    again = f"{asked.n_repeated} requests made again, beside the tasks that Dask made again"
    said(f"a worker killed in each of {len(found.history)} passes ({end}): {word} bits, {again}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", nargs="+", default=["bits", "passes", "scaling", "memory", "many", "killed"])
    parser.add_argument("--rows", type=int, default=100_000_000)
    options = parser.parse_args()
    print_head()
    jobs = {"bits": bits, "passes": passes, "scaling": scaling, "many": many, "killed": killed}
    for job in options.jobs:
        with tempfile.TemporaryDirectory() as folder:
            if job == "memory":
                memory(Path(folder), options.rows)
            else:
                jobs[job](Path(folder))


if __name__ == "__main__":
    sys.exit(main())
