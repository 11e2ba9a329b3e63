"""Two threads against one: a pass at (n, D, K) = (100000, 64, 200), float32, L = 4.

Five pairs of fits take turns. A pair says something about the program only where the machine had two cores to give:
where the fit with two threads used at least 1.9 times as much CPU time as wall time.
"""

import os
import statistics
import time

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head
from stickbreak.result.history import Record

N, D, K = 100_000, 64, 200
PAIRS = 5
PASSES = 3
TARGET = 1.8
BUSY = 1.9


def generate() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows around K centres that overlap a little, and their labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=N)
    rows = rng.normal(size=(K, D))[labels] + rng.normal(size=(N, D))
    return rows.astype(np.float32), labels


def run(rows: NDArray[np.float32], labels: NDArray[np.int64], threads: int) -> tuple[float, float]:
    """Wall and CPU time of a pass, seconds; the first pass of the fit is not counted."""
    times: list[tuple[float, float]] = []

    def note(record: Record) -> None:
        times.append((record.seconds, time.process_time()))

    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    algorithm = sb.Full(sparsity=4, margin=None, bounds_memory=0, tol=0, max_passes=PASSES + 1)
    sb.fit(model, rows, algorithm, n_components=K, init=labels, threads=threads, progress=False, callbacks=[note])
    return (times[-1][0] - times[0][0]) / PASSES, (times[-1][1] - times[0][1]) / PASSES


def main() -> None:
    rows, labels = generate()
    print(f"(n, D, K) = ({N}, {D}, {K}), float32, L = 4; {PAIRS} pairs; load before {os.getloadavg()[0]:.1f}")
    print("one thread: wall, CPU   two threads: wall, CPU, CPU / wall   speed-up   CPU of two / CPU of one")
    speedups, shares = [], []
    for _ in range(PAIRS):
        (wall_1, cpu_1), (wall_2, cpu_2) = run(rows, labels, 1), run(rows, labels, 2)
        speedups.append(wall_1 / wall_2)
        shares.append(cpu_2 / wall_2)
        print(
            f"{wall_1:16.3f} {cpu_1:6.3f} {wall_2:19.3f} {cpu_2:6.3f} {shares[-1]:11.2f} "
            f"{speedups[-1]:10.2f} {cpu_2 / cpu_1:12.3f}"
        )
    valid = [speedup for speedup, share in zip(speedups, shares, strict=True) if share >= BUSY]
    if len(valid) < PAIRS:
        print(
            f"not measurable: {PAIRS - len(valid)} of {PAIRS} pairs had less than {BUSY} cores "
            f"(CPU time over wall time); load after {os.getloadavg()[0]:.1f}"
        )
        return
    speedup = statistics.median(valid)
    print(
        f"two threads are {speedup:.2f} times as fast as one ({min(valid):.2f} to {max(valid):.2f}; "
        f"target {TARGET}): {'reached' if speedup >= TARGET else 'NOT reached'}"
    )


if __name__ == "__main__":
    print_head()
    main()
