"""A pass over sparse counts beside SciPy's two products of the same table, and the memory that it takes.

The table has documents as rows and words as columns; word frequencies fall as 1 / rank, and each document mixes a few
of the groups' own words into them. A pass of the fit scores every document under K components and sums statistics.
SciPy does the same with `X @ A`, A dense (W, K), and with `r.T @ X`, r once dense (n, K) and once with as many
responsibilities a row as the fit keeps. All run in one process. A time is the median over passes, or over three
products, in wall-clock seconds and, in brackets, seconds of all cores.

Memory is the most that the process holds while it fits, less what it held before, as a share of the table's.

python benches/sparse_counts.py [--documents N] [--words W] [--length L] [--components K] [--batches B] [--threads T]
                                [--prior rule]
"""

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head

PASSES = 8
TOPICS = 200
OWN_WORDS = 300


def generate(documents: int, words: int, length: int) -> tuple[sp.csr_array, NDArray[np.int64]]:
    """Counts, and the group of each document."""
    rng = np.random.default_rng(0)
    common = 1.0 / np.arange(10, words + 10)
    common /= common.sum()
    edges = np.cumsum(common)
    own = rng.integers(words, size=(TOPICS, OWN_WORDS))
    labels = rng.integers(TOPICS, size=documents)
    tokens = rng.poisson(length, size=documents)
    rows = np.repeat(np.arange(documents, dtype=np.int32), tokens)
    columns = np.searchsorted(edges, rng.random(len(rows))).clip(max=words - 1).astype(np.int32)
    special = rng.random(len(rows)) < 0.3
    columns[special] = own[labels[rows[special]], rng.integers(OWN_WORDS, size=special.sum())]
    table = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(documents, words)).tocsr()
    table.sum_duplicates()
    return table, labels


def resident() -> int:
    """Bytes that the process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


class Peak:
    """The most memory that the process held inside a `with` block, beyond what it held before."""

    def __enter__(self) -> "Peak":
        self.before = self.most = resident()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self) -> None:
        while not self.ended.wait(0.005):
            self.most = max(self.most, resident())

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    @property
    def bytes(self) -> int:
        return self.most - self.before


@dataclass(frozen=True)
class Time:
    """Seconds of the clock, and of all cores."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s ({self.cpu:.2f} s)"

    def __add__(self, other: "Time") -> "Time":
        return Time(self.wall + other.wall, self.cpu + other.cpu)

    def over(self, other: "Time") -> str:
        return f"{self.wall / other.wall:.2f} ({self.cpu / other.cpu:.2f})"


def now() -> Time:
    return Time(time.perf_counter(), time.process_time())


def median(moments: list[Time]) -> Time:
    """The median time between moments."""
    steps = [(b.wall - a.wall, b.cpu - a.cpu) for a, b in pairwise(moments)]
    return Time(*(statistics.median(column) for column in zip(*steps, strict=True)))


def timed(work: Callable[[], object]) -> Time:
    moments = [now()]
    for _ in range(3):
        work()
        moments.append(now())
    return median(moments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--length", type=int, default=98)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--prior", choices=["rule"], help="the base measure stays, instead of being estimated")
    options = parser.parse_args()
    table, labels = generate(options.documents, options.words, options.length)
    size = table.data.nbytes + table.indices.nbytes + table.indptr.nbytes
    print(f"{table.shape[0]} documents, {table.shape[1]} words, {table.nnz} non-zeros, {size / 2**20:.0f} MiB")

    moments: list[Time] = []
    model = sb.Mixture(likelihood=sb.Multinomial(prior=options.prior), process=sb.DirichletProcess())
    algorithm = sb.Memoized(batches=options.batches, tol=0, max_passes=PASSES)
    with Peak() as peak:
        fit = sb.fit(
            model,
            table,
            algorithm,
            n_components=options.components,
            init=labels % options.components,
            threads=options.threads,
            progress=False,
            callbacks=[lambda _: moments.append(now())],
        )
    ours = median(moments)
    dense = np.random.default_rng(1).random((table.shape[1], fit.n_components))
    kept = fit.predict_proba(table, sparse=True)
    # The fit drops what is more than 20 nats below the best.
    kept.data[kept.data < np.exp(-20)] = 0.0
    kept.eliminate_zeros()
    shares = kept.toarray()
    scores, of_dense, of_kept = (
        timed(lambda: table @ dense),
        timed(lambda: shares.T @ table),
        timed(lambda: kept.T @ table),
    )
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"a pass in {options.batches} batches: {ours}")
    print(f"SciPy: X @ A {scores}, r.T @ X {of_dense} with r dense, {of_kept} with r sparse")
    print(f"ratio {ours.over(scores + of_dense)} with r dense, {ours.over(scores + of_kept)} with r sparse; target 1.5")
    print(f"memory of the fit: {peak.bytes / 2**20:.0f} MiB, {peak.bytes / size:.2f} times the table; target 1")
    print(f"K = {fit.n_components}, {kept.nnz / table.shape[0]:.2f} responsibilities a document")


if __name__ == "__main__":
    print_head()
    main()
