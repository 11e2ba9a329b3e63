"""What merges add to a pass, at K = 200, 400, 800 and 3000: 30,000 rows of 16 columns, one thread, CPU time.

There are two starts for each K. "matched" has one component for each of K clusters, so there is nothing to merge.
"twins" has two for each of K / 2 clusters, so half of the components go. The first pass, whose time includes the start,
ranks pairs and carries out most merges. `later` is the mean of five passes after it. The last lines are a start by
k-means++ with 810 components for 400 clusters, for two passes.

python benches/merges.py [K ...]
"""

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head

N, D, PASSES = 30_000, 16, 6
SIZES = (200, 400, 800, 3000)
# Typical distance of two centres, in units of the spread.
DISTANCE = 8.0
WIDE_CLUSTERS, WIDE_K = 400, 810
Array = NDArray[np.float64]
Labels = NDArray[np.int64]


def clusters(n_clusters: int) -> tuple[Array, Labels]:
    """Gaussian clusters of unit covariance, and their labels."""
    rng = np.random.default_rng(n_clusters)
    means = DISTANCE / np.sqrt(2 * D) * rng.normal(size=(n_clusters, D))
    labels = np.arange(N) % n_clusters
    return means[labels] + rng.normal(size=(N, D)), labels


def fitted(rows: Array, moves: tuple[Any, ...], n_passes: int, **options: Any) -> tuple[sb.Fit, list[float]]:
    """A fit, and the CPU seconds of each pass."""
    marks = [time.process_time()]
    algorithm = sb.Full(max_passes=n_passes, tol=0.0, moves=moves)
    fit = sb.fit(
        sb.Mixture(sb.Gaussian()),
        rows,
        algorithm,
        seed=0,
        threads=1,
        progress=False,
        callbacks=[lambda _: marks.append(time.process_time())],
        **options,
    )
    return fit, [float(seconds) for seconds in np.diff(marks)]


def compare(name: str, k: int, rows: Array, n_passes: int, **options: Any) -> None:
    """Print the seconds of passes without and with merges."""
    for moves in ((), (sb.Merge(),)):
        fit, (first, *later) = fitted(rows, moves, n_passes, **options)
        accepted = sum(report.accepted for record in fit.history for report in record.moves)
        word = "with" if moves else "without"
        print(
            f"{k:>5}  {name:<8} {word:<8} {first:>8.3f} {np.mean(later):>8.3f} {accepted:>8} {fit.n_components:>6} "
            f"{fit.elbo:>14.1f}",
            flush=True,
        )


def main() -> None:
    print_head()
    print(
        f"\n{'K':>5}  {'start':<8} {'merges':<8} {'first':>8} {'later':>8} {'accepted':>8} {'K then':>6} {'bound':>14}"
    )
    for k in [int(word) for word in sys.argv[1:]] or SIZES:
        rows, labels = clusters(k)
        compare("matched", k, rows, PASSES, init=labels)
        rows, labels = clusters(k // 2)
        twins = labels + k // 2 * (np.arange(N) // (k // 2) % 2)
        compare("twins", k, rows, PASSES, init=twins)
    if len(sys.argv) == 1:
        rows, _ = clusters(WIDE_CLUSTERS)
        compare("wide", WIDE_K, rows, 2, n_components=WIDE_K)


if __name__ == "__main__":
    main()
