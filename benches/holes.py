"""Amounts with holes: imputation by `Gaussian` beside filled means and independent columns, and the cost of patterns.

    python benches/holes.py

Generated tables of 2,000 rows have six clusters in eight columns of correlation 0.6; real ones are those of
scikit-learn, standardised (of breast cancer the first ten columns). 30 % of the values are removed at random, and a
third of the rows is held out. `filled means`: a `Gaussian` of the table whose holes have the means of their columns.
Figures are means of three splits: components, the adjusted Rand index, the log density of the present values of
held-out rows in nats a row, the root mean squared error of imputed values in standard deviations, and CPU seconds. Then
CPU seconds of a pass over 20,000 rows of ten columns under 20 components, by the number of patterns of holes. One
thread.
"""

import statistics
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.head import print_head

SPLITS, SHARE = 3, 0.3
K, ROWS, COLUMNS, PASSES = 20, 20_000, 10, 4
PATTERNS = (0, 1, 10, 100, 1000)
Array = np.ndarray


def generated(seed: int) -> tuple[Array, Array]:
    """Rows of six clusters with correlated columns, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(6, size=3000)
    factor = np.linalg.cholesky(0.4 * np.eye(8) + 0.6)
    return rng.normal(0, 2, (6, 8))[labels] + rng.normal(size=(3000, 8)) @ factor.T, labels


def real(name: str) -> tuple[Array, Array]:
    """Standardised rows of a table of scikit-learn, and their classes."""
    table = getattr(datasets, f"load_{name}")()
    rows = table.data[:, :10]
    return (rows - rows.mean(0)) / rows.std(0), table.target


def densities(fit: sb.Fit, rows: Array) -> float:
    """Mean log density of the present values of rows."""
    total = 0.0
    for pattern in np.unique(~np.isnan(rows), axis=0):
        same = rows[(~np.isnan(rows) == pattern).all(1)][:, pattern]
        total += fit.marginal(np.flatnonzero(pattern).tolist()).log_density(same).sum()
    return total / len(rows)


def compared(rows: Array, labels: Array, seed: int) -> Iterator[tuple[str, tuple[float, ...]]]:
    """What each way finds."""
    rng = np.random.default_rng(seed)
    holes = np.where(rng.random(rows.shape) < SHARE, np.nan, rows)
    holes[np.isnan(holes).all(1), 0] = rows[np.isnan(holes).all(1), 0]
    order = rng.permutation(len(rows))
    train, test = order[: 2 * len(rows) // 3], order[2 * len(rows) // 3 :]
    means = np.nanmean(holes[train], axis=0)
    filled = np.where(np.isnan(holes), means, holes)
    ways = {
        "imputation": (sb.Gaussian(), holes, "marginalize"),
        "filled means": (sb.Gaussian(), filled, "error"),
        "independent": (sb.DiagonalGaussian(), holes, "marginalize"),
        "complete": (sb.Gaussian(), rows, "error"),
    }
    for name, (likelihood, table, missing) in ways.items():
        start = time.process_time()
        fit = sb.fit(sb.Mixture(likelihood), table[train], missing=missing, threads=1, progress=False)
        seconds = time.process_time() - start
        agreement = adjusted_rand_score(labels[test], fit.predict(table[test]))
        gone = np.isnan(holes[test])
        guesses = fit.impute(holes[test]) if missing == "marginalize" else np.where(gone, means, holes[test])
        error = np.sqrt(((guesses - rows[test])[gone] ** 2).mean()) / rows.std()
        yield name, (fit.n_occupied, agreement, densities(fit, holes[test]), error, seconds)


def tables() -> Iterator[str]:
    """Lines of the table of ways."""
    for name in ("generated", "iris", "wine", "breast_cancer"):
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(SPLITS):
            rows, labels = generated(seed) if name == "generated" else real(name)
            for way, figures in compared(rows, labels, seed):
                found.setdefault(way, []).append(figures)
        for way, splits in found.items():
            k, agreement, density, error, seconds = (statistics.mean(each) for each in zip(*splits, strict=True))
            shown = "   -" if way == "complete" else f"{error:4.2f}"
            yield f"{name:14} {way:13} {k:5.1f} {agreement:6.2f} {density:9.3f} {shown} {seconds:7.2f}"


def passes() -> Iterator[str]:
    """Lines of the table of patterns."""
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=ROWS)
    rows = rng.normal(0, 2, (K, COLUMNS))[labels] + rng.normal(size=(ROWS, COLUMNS))
    for n in PATTERNS:
        patterns = rng.random((max(n, 1), COLUMNS)) < (SHARE if n else 0.0)
        patterns[patterns.all(1), 0] = False
        holes = np.where(patterns[rng.integers(len(patterns), size=ROWS)], np.nan, rows)
        taken = []
        for made in (1, 1 + PASSES):
            algorithm = sb.Full(moves=(), max_passes=made, tol=0.0)
            start = time.process_time()
            sb.fit(
                sb.Mixture(sb.Gaussian()),
                holes,
                algorithm,
                n_components=K,
                init=labels,
                missing="marginalize" if n else "error",
                threads=1,
                progress=False,
            )
            taken.append(time.process_time() - start)
        yield f"{len(np.unique(patterns, axis=0)) if n else 0:5d} patterns   {(taken[1] - taken[0]) / PASSES:7.3f}"


def main() -> None:
    print_head()
    warnings.simplefilter("ignore")
    print("data           way               K    ARI  held out error   CPU s")
    for line in tables():
        print(line, flush=True)
    print("\npass, 20,000 rows, D = 10, K = 20: CPU seconds")
    for line in passes():
        print(line, flush=True)


if __name__ == "__main__":
    main()
