"""Default fits of clusters and tables with outliers, with and without a background.

    python benches/background.py

Ten normal clusters of `benches/tails.py` with 1 or 5 % of the rows replaced by uniform ones: components, agreement
without the uniform rows, and how many of the uniform and of the other rows have the label -1. Then tables of
scikit-learn (of breast cancer the first ten columns, of diabetes all but the flag) and six clusters with correlated
columns, whole and with 3 % of the rows replaced by uniform ones or with one value moved by 5 to 15 standard deviations.
Then 1,000 rows of four clusters, six of
which are moved by 0.5 to 2 times a distance in any direction, and six in one column: components, and how many of
the three kinds of rows have the label -1. Three seeds. One thread.
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
from tails import Array, clusters

SEEDS = 3
SIZES = (800, 8000, 40_000)
COLUMNS = (1, 2, 4, 8)
SHARES = (0.01, 0.05)
REPLACED = 0.03
FAR = 6


def fitted(rows: Array, background: sb.Background | None, seed: int, likelihood: object = None) -> sb.Fit:
    """A default fit."""
    model = sb.Mixture(sb.Gaussian() if likelihood is None else likelihood, background=background)
    return sb.fit(model, rows, seed=seed, threads=1, progress=False)


def of_clusters() -> Iterator[str]:
    """Lines of the table of clusters."""
    for n in SIZES:
        for d in COLUMNS:
            for share in SHARES:
                parts = []
                for background in (None, sb.Background()):
                    found = []
                    for seed in range(SEEDS):
                        rows, labels = clusters(seed, d, np.inf, share, n)
                        start = time.process_time()
                        fit = fitted(rows, background, seed)
                        seconds = time.process_time() - start
                        own, inside = fit.predict(rows), labels >= 0
                        agreement = adjusted_rand_score(labels[inside], own[inside])
                        outside = np.mean(own[~inside] == -1)
                        found.append((fit.n_occupied, agreement, outside, np.mean(own[inside] == -1), seconds))
                    counts, agreement, outside, wrong, seconds = zip(*found, strict=True)
                    shown = " ".join(f"{count:2d}" for count in counts)
                    means = [statistics.mean(each) for each in (agreement, outside, wrong, seconds)]
                    parts.append(f"{shown}  {means[0]:5.3f} {means[1]:6.1%} {means[2]:7.3%} {means[3]:6.2f}")
                yield f"{n:6d} D = {d} {share:3.0%}   {'   |   '.join(parts)}"


def correlated() -> Array:
    """Six clusters with correlated columns."""
    rng = np.random.default_rng(5)
    factors, centres, labels = rng.normal(size=(6, 4, 4)), rng.normal(0, 8, (6, 4)), rng.integers(6, size=600)
    return centres[labels] + np.einsum("nij,nj->ni", factors[labels], rng.normal(size=(600, 4)))


def with_replaced(rows: Array, kind: str, seed: int) -> tuple[Array, Array]:
    """The table with outliers, and which rows they are."""
    rng = np.random.default_rng(seed)
    out = rng.choice(len(rows), max(2, int(REPLACED * len(rows))), replace=False)
    changed, is_out = rows.copy(), np.zeros(len(rows), bool)
    is_out[out] = True
    if kind == "uniform":
        changed[out] = rng.uniform(rows.min(0), rows.max(0), (len(out), rows.shape[1]))
    else:
        columns = rng.integers(rows.shape[1], size=len(out))
        times = rng.choice([-1, 1], len(out)) * rng.uniform(5, 15, len(out))
        changed[out, columns] += times * rows.std(0)[columns]
    return changed, is_out


def of_tables() -> Iterator[str]:
    """Lines of the table of tables."""
    tables = {
        "iris": datasets.load_iris().data,
        "wine": datasets.load_wine().data,
        "breast cancer": datasets.load_breast_cancer().data[:, :10],
        "diabetes": np.delete(datasets.load_diabetes().data, 1, 1),
        "six clusters": correlated(),
    }
    for name, rows in tables.items():
        for kind in ("uniform", "moved"):
            found = []
            for seed in range(SEEDS):
                changed, is_out = with_replaced(rows, kind, seed)
                plain, fit = (fitted(changed, own, seed) for own in (None, sb.Background()))
                behind = fit.predict(changed) == -1
                found.append((plain.n_occupied, fit.n_occupied, behind[is_out].sum(), behind[~is_out].sum()))
            without, own, outside, wrong = zip(*found, strict=True)
            counts = f"{sum(outside)} of {SEEDS * is_out.sum()}"
            yield f"{name:14} {kind:8} {without!s:12} {own!s:12} {counts:10} {sum(wrong)}"
        for likelihood in (sb.Gaussian(), sb.DiagonalGaussian(), sb.StudentT()):
            plain, fit = (fitted(rows, own, 0, likelihood) for own in (None, sb.Background()))
            behind = (fit.predict(rows) == -1).sum()
            counts, gain = f"{plain.n_occupied:2d} {fit.n_occupied:2d}", fit.objective - plain.objective
            yield f"{name:14} whole, {type(likelihood).__name__:17} {counts}   {behind} of {len(rows)} {gain:8.1f}"


def of_far_rows() -> Iterator[str]:
    """Lines of the table of rows far away."""
    for d in (2, 4, 8):
        for far in (30.0, 300.0, 1e4):
            shown = []
            for seed in range(SEEDS):
                rng = np.random.default_rng(seed)
                rows = rng.normal(size=(1000, d)) + rng.normal(0, 4, (4, d))[rng.integers(4, size=1000)]
                directions = rng.normal(size=(FAR, d))
                lengths = far * rng.uniform(0.5, 2, (FAR, 1))
                rows[:FAR] += directions / np.linalg.norm(directions, axis=1)[:, None] * lengths
                rows[FAR : 2 * FAR, 0] += far * rng.choice([-1, 1], FAR) * rng.uniform(0.5, 2, FAR)
                fit = fitted(rows, sb.Background(), seed)
                behind = fit.predict(rows) == -1
                counts = [behind[:FAR].sum(), behind[FAR : 2 * FAR].sum(), behind[2 * FAR :].sum()]
                shown.append(f"{fit.n_occupied:2d} ({counts[0]}, {counts[1]}, {counts[2]})")
            yield f"D = {d} {far:7g}   {'   '.join(shown)}"


def main() -> None:
    print_head()
    warnings.simplefilter("ignore")
    columns = f"K of {SEEDS} seeds, agreement, uniform rows labelled -1, other rows labelled -1, CPU s"
    print(f"clusters: without a background | with one, each {columns}")
    for line in of_clusters():
        print(line, flush=True)
    print("\ntables: K without and with a background, replaced rows labelled -1, other rows labelled -1;")
    print("whole: K without and with a background, rows labelled -1, nats that the objective gains")
    for line in of_tables():
        print(line, flush=True)
    print("\nrows far away: K of 3 seeds, and rows labelled -1: moved in any direction, in one column, not moved")
    for line in of_far_rows():
        print(line, flush=True)


if __name__ == "__main__":
    main()
