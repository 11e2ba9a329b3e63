"""A pass of the default beside an iteration of k-means by FAISS: the same rows, clusters and thread; float32.

An iteration of k-means knows neither covariances nor responsibilities: it needs 2 D operations a pair for scores, a
pass at least D (D + 3). `by operations` is that ratio: what a pass would take at the speed of FAISS. FAISS is no
requirement of the project: `pip install faiss-cpu`.

python benches/beside_faiss.py
"""

import time

import faiss  # type: ignore[import-not-found, unused-ignore]
import numpy as np

from common.head import print_head
from overlap import Rows, generate, pass_time

SIZES = ((100_000, 8, 50), (20_000, 16, 50), (20_000, 32, 50), (10_000, 64, 100))
# Standard deviation of the centres, in those of the clusters.
SPREADS = (0.3, 1.0, 3.0, 10.0)
ROUNDS, ITERATIONS = 5, 10


def k_means_time(rows: Rows, k: int) -> float:
    """Milliseconds of an iteration: the time of eleven less that of one, over ten."""

    def seconds(iterations: int) -> float:
        k_means = faiss.Kmeans(rows.shape[1], k, niter=iterations, seed=0, max_points_per_centroid=len(rows))
        started = time.perf_counter()
        k_means.train(rows)
        return time.perf_counter() - started

    return 1e3 * (seconds(1 + ITERATIONS) - seconds(1)) / ITERATIONS


def main() -> None:
    """Run the bench."""
    print_head()
    faiss.omp_set_num_threads(1)
    print(f"FAISS {faiss.__version__}; milliseconds, the best of {ROUNDS} rounds in turns\n")
    print(f"{'n, D, K':>16} {'spread':>6} {'pass':>8} {'k-means':>8} {'ratio':>6} {'by operations':>14}")
    for n, d, k in SIZES:
        for spread in SPREADS:
            rows, labels = generate(n, d, k, spread)
            rows = np.ascontiguousarray(rows, np.float32)
            rounds = [(pass_time(rows, labels, {}), k_means_time(rows, k)) for _ in range(ROUNDS)]
            ours, theirs = np.min(rounds, axis=0)
            size, operations = f"{n}, {d}, {k}", (d + 3) / 2
            print(f"{size:>16} {spread:6.1f} {ours:8.2f} {theirs:8.2f} {ours / theirs:6.1f} {operations:14.1f}")


if __name__ == "__main__":
    main()
