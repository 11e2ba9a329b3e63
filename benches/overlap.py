"""A pass over clusters that overlap more and more, by what is kept of each row; one thread.

The default keeps at most 16 components a row, and none more than 20 nats below the best. Where more than 16 are that
near, they are selected. `margin=None` sorts all scores as they arrive; four components have a quarter of the sums.

python benches/overlap.py
"""

import warnings
from itertools import product

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head

SIZES = ((100_000, 8, 50), (60_000, 16, 100), (100_000, 2, 50), (100_000, 4, 120))
# Standard deviation of the centres, in those of the clusters.
SPREADS = (0.0, 0.3, 1.0, 3.0, 10.0)
KEPT: dict[str, dict[str, float | int | None]] = {"default": {}, "no margin": {"margin": None}, "four": {"sparsity": 4}}
ROUNDS, PASSES = 3, 6

Rows = NDArray[np.floating]


def generate(n: int, d: int, k: int, spread: float) -> tuple[Rows, NDArray[np.int64]]:
    """Return rows around k centres, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(0)
    labels = rng.integers(k, size=n)
    rows = spread * rng.normal(size=(k, d))[labels] + rng.normal(size=(n, d))
    return rows, np.where(rng.random(n) < 0.2, rng.integers(k, size=n), labels)


def pass_time(rows: Rows, labels: NDArray[np.int64], kept: dict[str, float | int | None]) -> float:
    """Milliseconds of a pass: the mean of all but the first two."""
    algorithm = sb.Full(moves=(), max_passes=PASSES, tol=0.0, **kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, algorithm, init=labels, threads=1, progress=False)
    return 1e3 * (fit.history[-1].seconds - fit.history[1].seconds) / (PASSES - 2)


def main() -> None:
    """Run the bench."""
    print_head()
    print(f"\nmilliseconds of a pass, the best of {ROUNDS} rounds in turns\n")
    print(f"{'n, D, K':>16} {'spread':>6} {'type':8}", *(f"{name:>10}" for name in KEPT), " default / no margin")
    for (n, d, k), spread, dtype in product(SIZES, SPREADS, ("float32", "float64")):
        rows, labels = generate(n, d, k, spread)
        rows = np.ascontiguousarray(rows, dtype)
        rounds = [[pass_time(rows, labels, kept) for kept in KEPT.values()] for _ in range(ROUNDS)]
        times = np.min(rounds, axis=0)
        size = f"{n}, {d}, {k}"
        print(
            f"{size:>16} {spread:6.1f} {dtype:8}", *(f"{time:10.1f}" for time in times), f"{times[0] / times[1]:10.2f}"
        )


if __name__ == "__main__":
    main()
