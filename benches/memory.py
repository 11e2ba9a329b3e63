"""Peak memory of a fit to a memory-mapped file: 4 million rows of 16 float32 values, K = 100, L = 4, Memoized(20).

What counts is anonymous resident memory, k-means++ included, above that of an interpreter which has imported NumPy and
stickbreak. Pages of the mapped file are the kernel's to drop and do not count. Linux only.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import stickbreak as sb
from common.head import print_head

N, D, K = 4_000_000, 16, 100
BATCHES, PASSES = 20, 3
TARGET_MB = 400
INTERVAL = 0.002


def anonymous_mb() -> float:
    """Anonymous resident memory of this process, in units of 10^6 bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kilobytes = next(row.split()[1] for row in status.splitlines() if row.startswith("RssAnon:"))
    return int(kilobytes) * 1024 / 1e6


class Peak:
    """The largest value seen by a thread that looks all the time."""

    def __init__(self) -> None:
        self.megabytes = anonymous_mb()
        self.looks = 0

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        done = threading.Event()

        def look() -> None:
            while not done.wait(INTERVAL):
                self.megabytes = max(self.megabytes, anonymous_mb())
                self.looks += 1

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def write(path: Path) -> None:
    """Rows around K centres, a block at a time."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3, size=(K, D)).astype(np.float32)
    block = 100_000
    with path.open("wb") as file:
        for _ in range(N // block):
            rows = centres[rng.integers(K, size=block)] + rng.standard_normal((block, D), dtype=np.float32)
            rows.tofile(file)


def fit(path: Path) -> None:
    """What the process of its own does: prints the memory before, and the peak during the fit."""
    rows = np.memmap(path, dtype=np.float32, mode="r", shape=(N, D))
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    algorithm = sb.Memoized(batches=BATCHES, sparsity=4, tol=0, max_passes=PASSES)
    base = anonymous_mb()
    peak = Peak()
    started = time.perf_counter()
    with peak.watch():
        result = sb.fit(model, rows, algorithm, n_components=K, init="kmeans++", seed=0, progress=False)
    seconds = time.perf_counter() - started
    above = peak.megabytes - base
    print(f"interpreter, NumPy and stickbreak: {base:.1f} MB anonymous; peak of the fit: {peak.megabytes:.1f} MB")
    print(f"{PASSES} passes and k-means++ in {seconds:.1f} s, {peak.looks} looks, ELBO a row {result.elbo / N:.4f}")
    verdict = "reached" if above < TARGET_MB else "NOT reached"
    print(f"above the interpreter: {above:.1f} MB (target: less than {TARGET_MB}): {verdict}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.bin"
        write(path)
        size = path.stat().st_size / 1e6
        print(
            f"({N}, {D}) float32 in a file of {size:.0f} MB, K = {K}, L = 4, Memoized({BATCHES}), kmeans++, "
            f"{os.cpu_count()} cores",
            flush=True,
        )
        subprocess.run([sys.executable, __file__, str(path)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        fit(Path(sys.argv[1]))
    else:
        print_head()
        main()
