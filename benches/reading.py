"""Seconds and memory of what a fit does before its first pass: reading, moments, rounding steps, the first update.

The call is `sb.fit(sb.Mixture(sb.Gaussian()), X, sb.Full(max_passes=0), init=np.zeros(n, int))`. Each table is read in
float64 and float32, on one and two threads. A first call, which is not timed, gives the peak of anonymous memory above
that of the data. Seconds are medians of five further calls. Linux only.

    cp -r python /tmp/before-python
    python benches/reading.py [/tmp/before-python] [--cases WORD]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head
from memory import Peak, anonymous_mb

CALLS = 5
# Rows, columns, decimals of the values.
TABLES: dict[str, tuple[int, int, int | None]] = {
    "1,000,000 x 10": (1_000_000, 10, None),
    "1,000,000 x 10, hundredths": (1_000_000, 10, 2),
    "2,000,000 x 2": (2_000_000, 2, None),
    "100,000 x 100": (100_000, 100, None),
}
TYPES = ("float64", "float32")
THREADS = (1, 2)


def generate(n: int, d: int, decimals: int | None, dtype: str) -> NDArray[Any]:
    """Normal values."""
    rows = np.random.default_rng(0).normal(size=(n, d))
    return (rows if decimals is None else rows.round(decimals)).astype(dtype)


def read(rows: NDArray[Any], threads: int) -> tuple[float, float]:
    """Wall and CPU seconds of a call."""
    model, labels = sb.Mixture(sb.Gaussian()), np.zeros(len(rows), dtype=np.int64)
    wall, cpu = time.perf_counter(), time.process_time()
    sb.fit(model, rows, sb.Full(max_passes=0), init=labels, threads=threads, progress=False)
    return time.perf_counter() - wall, time.process_time() - cpu


def measured(table: str, dtype: str) -> dict[str, list[float]]:
    """Wall and CPU seconds, and megabytes above the data, by the number of threads."""
    rows = generate(*TABLES[table], dtype)
    found = {}
    for threads in THREADS:
        base, peak = anonymous_mb(), Peak()
        with peak.watch():
            read(rows, threads)
        times = [read(rows, threads) for _ in range(CALLS)]
        wall, cpu = (statistics.median(each) for each in zip(*times, strict=True))
        found[str(threads)] = [wall, cpu, peak.megabytes - base]
    return found


def of_build(folder: Path | None, table: str, dtype: str) -> dict[str, list[float]]:
    """What a process finds with the build in a folder, or with the one that is installed."""
    environment = dict(os.environ)
    if folder is not None:
        environment["PYTHONPATH"] = str(folder)
    command = [sys.executable, __file__, "--case", table, dtype]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?", type=Path, help="folder with the package of an earlier build")
    parser.add_argument("--cases", default="", metavar="WORD", help="only tables and types whose name has this word")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.case:
        print(json.dumps(measured(*options.case)))
        return
    print_head()
    builds = [("before", options.before), ("now", None)] if options.before else [("", None)]
    print(f"medians of {CALLS} calls; load before {os.getloadavg()[0]:.1f}\n")
    print(f"{'':48}" + "".join(f"{f'{title} wall, ms':>17}{'CPU, ms':>10}{'MB':>8}" for title, _ in builds))
    for table in TABLES:
        for dtype in TYPES:
            if options.cases not in f"{table} {dtype}":
                continue
            found = [of_build(folder, table, dtype) for _, folder in builds]
            for threads in map(str, THREADS):
                name = f"{table}, {dtype}, {threads} thread{'s' if threads != '1' else ''}"
                cells = [(1e3 * one[threads][0], 1e3 * one[threads][1], one[threads][2]) for one in found]
                print(f"{name:48}" + "".join(f"{w:17.1f}{c:10.1f}{m:8.1f}" for w, c, m in cells), flush=True)


if __name__ == "__main__":
    main()
