"""Does the default call find regular structures, whitened clusters, and clusters beside far outliers.

Each structure is fitted from several seeds under full, diagonal and spherical covariances, and again from its labels.
What is reported is by how many nats the objective of the default call is below that of the labels, and CPU seconds.
One thread each, one process for every core.

python benches/search.py [STRUCTURE ...] [--seeds 5] [--output FILE]
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import command, first_line, print_head

Rows = NDArray[np.float64]
Made = tuple[Rows, NDArray[np.int64]]
LIKELIHOODS = {"full": sb.Gaussian, "diagonal": sb.DiagonalGaussian, "spherical": sb.SphericalGaussian}
# The objective counts as that of the labels within this many nats.
SAME = 2.0


def clusters(centres: Rows, n: int, deviation: float, seed: int) -> Made:
    """Return `n` rows around each centre, in random order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(centres)), n))
    return centres[labels] + deviation * rng.normal(size=(len(labels), centres.shape[1])), labels


def grid(*sides: int) -> Rows:
    """Return centres at a distance of 4 from their neighbours."""
    centres: Rows = 4.0 * np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), axis=-1)
    return centres.reshape(-1, len(sides))


def line(n: int, columns: int, step: float) -> Rows:
    """Return centres along the first column."""
    return np.arange(n)[:, None] * step * np.eye(columns)[0]


def circle(n: int, step: float) -> Rows:
    """Return centres on a circle."""
    angles = 2.0 * np.pi * np.arange(n) / n
    return step / (2.0 * np.sin(np.pi / n)) * np.column_stack([np.cos(angles), np.sin(angles)])


def around(centres: Rows, others: Rows) -> Rows:
    """Return all of `others` around each centre."""
    sums: Rows = centres[:, None] + others
    return sums.reshape(-1, centres.shape[1])


def squares(levels: int) -> Rows:
    """Return centres at the corners of squares, at the corners of squares four times as wide, and so on."""
    corners = 6.0 * np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    centres = corners
    for level in range(1, levels):
        centres = around(4.0**level * corners, centres)
    return centres


def whitened(columns: int, n: int, seed: int, k: int = 2) -> Made:
    """Return clusters eight standard deviations apart, the first and each other one along a column of its own, whitened
    and rotated.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    centres = 8.0 * np.vstack([np.zeros(columns), np.eye(columns)])
    rows = rng.normal(size=(n, columns)) + centres[labels]
    left, _, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    return np.sqrt(n) * left @ np.linalg.qr(rng.normal(size=(columns, columns)))[0], labels


def outliers(distance: float, seed: int, n: int = 10, columns: int = 2, k: int = 2) -> Made:
    """Return clusters eight standard deviations apart along the first column and a few rows far away."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k + 1), [1000 // k] * k + [n])
    centres = np.vstack([line(k, columns, 8.0), np.full(columns, distance)])
    return centres[labels] + rng.normal(size=(len(labels), columns)), labels


STRUCTURES: dict[str, Callable[[int], Made]] = {
    "10 in one column": lambda seed: clusters(line(10, 1, 7.0), 40, 1.0, seed),
    "40 in one column": lambda seed: clusters(line(40, 1, 7.0), 40, 1.0, seed),
    "line of 8": lambda seed: clusters(line(8, 2, 6.0), 30, 1.0, seed),
    "line of 16": lambda seed: clusters(line(16, 2, 6.0), 30, 1.0, seed),
    "grid 5 x 8": lambda seed: clusters(grid(5, 8), 25, 0.5, seed),
    "grid 7 x 7": lambda seed: clusters(grid(7, 7), 25, 0.5, seed),
    "narrow grid 7 x 7": lambda seed: clusters(grid(7, 7), 25, 0.25, seed),
    "grid 10 x 10": lambda seed: clusters(grid(10, 10), 25, 0.5, seed),
    "grid 20 x 20": lambda seed: clusters(grid(20, 20), 25, 0.5, seed),
    "grid 30 x 30": lambda seed: clusters(grid(30, 30), 25, 0.5, seed),
    "grid 4 x 4 x 4": lambda seed: clusters(grid(4, 4, 4), 20, 2.0 / 3.0, seed),
    "circle of 64": lambda seed: clusters(circle(64, 6.0), 30, 1.0, seed),
    "five circles of 8": lambda seed: clusters(around(circle(5, 40.0), circle(8, 6.0)), 25, 1.0, seed),
    "squares, 16": lambda seed: clusters(squares(2), 25, 1.0, seed),
    "squares, 64": lambda seed: clusters(squares(3), 25, 1.0, seed),
    "ten whitened 20": lambda seed: whitened(20, 3000, seed, k=10),
    "whitened 30, 1000": lambda seed: whitened(30, 1000, seed),
    "whitened 30, 2000": lambda seed: whitened(30, 2000, seed),
    "whitened 30, 3000": lambda seed: whitened(30, 3000, seed),
    "whitened 50, 3000": lambda seed: whitened(50, 3000, seed),
    "whitened 100, 5000": lambda seed: whitened(100, 5000, seed),
    "outliers 1e4": lambda seed: outliers(1e4, seed),
    "outliers 1e6": lambda seed: outliers(1e6, seed),
    "outliers 1e7": lambda seed: outliers(1e7, seed),
    "outliers 1e9": lambda seed: outliers(1e9, seed),
    "3 outliers 1e6": lambda seed: outliers(1e6, seed, n=3),
    "30, 8 columns, 1e6": lambda seed: outliers(1e6, seed, n=30, columns=8),
    "30, 8 columns, 1e9": lambda seed: outliers(1e9, seed, n=30, columns=8),
    "30, 7 clusters, 1e6": lambda seed: outliers(1e6, seed, n=30, k=7),
    "30, 7 in 8, 1e6": lambda seed: outliers(1e6, seed, n=30, columns=8, k=7),
}


def run(task: tuple[str, str, int]) -> dict[str, Any]:
    """Fit one structure from one component and from its labels."""
    name, covariance, seed = task
    rows, labels = STRUCTURES[name](seed)
    model = sb.Mixture(LIKELIHOODS[covariance]())
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sb.fit(model, rows, seed=seed, threads=1, progress=False)
        seconds = time.process_time() - begun
        told = sb.fit(model, rows, seed=seed, threads=1, progress=False, init=labels)
    below = told.history[-1].objective - found.history[-1].objective
    return {
        "structure": name,
        "covariance": covariance,
        "seed": seed,
        "below": below,
        "k": int(found.n_occupied),
        "seconds": seconds,
    }


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("structures", nargs="*", metavar="STRUCTURE", help="default: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed")
    parser.add_argument("--output", metavar="FILE", help="where to write all figures as JSON")
    options = parser.parse_args()
    names = options.structures or list(STRUCTURES)
    # Whitened columns are no longer independent under other covariances.
    covariances = {name: list(LIKELIHOODS)[: 1 if "whitened" in name else None] for name in names}
    seeds = range(options.first, options.first + options.seeds)
    tasks = [(name, covariance, seed) for name in names for covariance in covariances[name] for seed in seeds]
    print_head()
    print(f"\n{'structure':20} {'covariance':10} found  nats below the labels, by seed; CPU seconds of a fit")
    results = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(run, tasks):
            results.append(result)
            if result["seed"] == seeds[-1]:
                last = results[-options.seeds :]
                below = [one["below"] for one in last]
                number = f"{sum(nats <= SAME for nats in below)}/{len(below)}"
                seconds = np.mean([one["seconds"] for one in last])
                gaps = " ".join(f"{nats:8.1f}" for nats in below)
                print(
                    f"{result['structure']:20} {result['covariance']:10} {number:5}  {gaps}; {seconds:.2f}", flush=True
                )
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"head": first_line(), "command": command(), "results": results}, file)


if __name__ == "__main__":
    main()
