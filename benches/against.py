"""CPU seconds of this build beside those of an earlier one, in turns; one thread.

    git worktree add /tmp/before COMMIT
    (cd /tmp/before && make release && cp -r python /tmp/before-python)
    python benches/against.py /tmp/before-python

A case runs in a process of its own for each build, which prints the least of its repeats. Passes have fixed labels as
their start and no moves; fits are the default call.
"""

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import stickbreak as sb
from common.clusters import data_folder
from common.head import print_head
from overlap import generate, pass_time
from scaling import clusters, fit

HERE = Path(__file__).resolve()
ROUNDS = 3

Case = Callable[[], float]


def one_pass(n: int, d: int, k: int, spread: float, dtype: str) -> Case:
    """Seconds of a pass of the default over clusters that overlap the more, the smaller the spread is."""

    def seconds() -> float:
        rows, labels = generate(n, d, k, spread)
        rows = np.ascontiguousarray(rows, dtype)
        return min(pass_time(rows, labels, {}) for _ in range(3)) * 1e-3

    return seconds


def whole(name: str) -> Case:
    """CPU seconds of a whole fit."""

    def seconds() -> float:
        job, repeats = FITS[name]()
        times = []
        for _ in range(repeats):
            started = time.process_time()
            job(1)
            times.append(time.process_time() - started)
        return min(times)

    return seconds


def iris() -> np.ndarray:
    """Four columns of 150 flowers."""
    from sklearn.datasets import load_iris

    return np.asarray(load_iris().data)


def topics() -> Callable[[int], object]:
    """Ten passes over a corpus."""
    counts = sb.read_docword(data_folder() / "nips" / "docword.nips.txt.gz")
    model = sb.TopicModel(sb.LatentDirichlet(100, concentration=10.0), word_concentration=0.1)
    return fit(counts, sb.Memoized(max_passes=10, tol=0), model=model)


FITS: dict[str, Callable[[], tuple[Callable[[int], object], int]]] = {
    "fit, iris": lambda: (fit(iris()), 10),
    "fit, 1,000 x 2": lambda: (fit(clusters(1_000, 2, 10, 10.0)), 5),
    "fit, 3,000 x 2": lambda: (fit(clusters(3_000, 2, 20, 10.0)), 3),
    "fit, 200,000 x 8": lambda: (fit(clusters(200_000, 8, 30, 2.5)), 1),
    "fit, 3,000 x 256": lambda: (fit(clusters(3_000, 256, 15, 1.0)), 1),
    "fit, kd-tree, 300,000 x 2": lambda: (fit(clusters(300_000, 2, 20, 6.0), sb.Memoized(units=sb.KdTree())), 1),
    "ten passes, topics, NIPS": lambda: (topics(), 1),
}
PASSES = {
    f"pass, {n:,} x {d}, K = {k}, spread {spread:g}, {dtype}": one_pass(n, d, k, spread, dtype)
    for n, d, k in ((100_000, 2, 50), (100_000, 8, 50), (60_000, 16, 100), (30_000, 32, 100), (10_000, 64, 100))
    for spread in (1.0, 10.0)
    for dtype in ("float32", "float64")
}
CASES = {**PASSES, **{name: whole(name) for name in FITS}}


def of_build(folder: Path | None, name: str) -> float:
    """Seconds of a case under the build in a folder, or under the one that is installed."""
    path = [str(folder)] if folder else [value for value in [os.environ.get("PYTHONPATH")] if value]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(
        [sys.executable, str(HERE), "--case", name], env=environment, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?", type=Path, help="folder with the package of the earlier build")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.case:
        print(CASES[options.case]())
        return
    if options.before is None:
        parser.error("before: the folder of an earlier build is missing")
    print_head()
    print(f"milliseconds, the least of {ROUNDS} rounds in turns\n")
    print(f"{'':52} {'before':>10} {'now':>10} {'now / before':>13}")
    for name in CASES:
        rounds = [(of_build(options.before, name), of_build(None, name)) for _ in range(ROUNDS)]
        before, now = 1e3 * np.min(rounds, axis=0)
        print(f"{name:52} {before:10.2f} {now:10.2f} {now / before:13.2f}", flush=True)


if __name__ == "__main__":
    main()
