"""Default fits of counts under likelihoods that let them vary more or less: K, agreement, held-out density, seconds.

    python benches/counts.py

`clusters`: 20 clusters in 20 columns whose rates vary from row to row by a gamma variable of mean 1 and this variance
(0: Poisson counts). `cells`: six types of cells with 200 or 500 genes, 30 % of which differ between types, dispersion
2, all of one library size, or of sizes whose logarithms have a standard deviation of 0.5. For these, `total` is
`NegativeBinomial(exposure="total")`, and `size` has the true sizes. Documents: the 60 most frequent words. A fifth of
the rows is held out. Their density is in nats a row; that of `Multinomial` and of `total` is given the totals of rows,
so it compares with no other. One thread, CPU seconds.
"""

import gzip
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.head import print_head

DATA = Path(os.environ.get("STICKBREAK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LIKELIHOODS = (sb.Multinomial, sb.Poisson, sb.NegativeBinomial)
WORDS = 60
MOST_DOCUMENTS = 1_500
# Under Poisson, larger tables of cells break into hundreds of clusters, which takes many minutes.
MOST_VALUES = 2_000_000
Array = np.ndarray


def clusters(n: int, d: int, k: int, variance: float) -> tuple[Array, Array]:
    """Counts of k clusters."""
    rng = np.random.default_rng(0)
    rates, labels = rng.gamma(1.0, 5.0, (k, d)), rng.integers(k, size=n)
    means = rates[labels]
    if variance > 0.0:
        means = means * rng.gamma(1.0 / variance, variance, means.shape)
    return rng.poisson(means).astype(float), labels


def cells(n: int, genes: int, spread: float = 0.0) -> tuple[Array, Array, Array]:
    """Counts of genes in cells of six types, the types, and the library sizes."""
    rng = np.random.default_rng(0)
    base, differs = rng.gamma(0.5, 4.0, genes), rng.random((6, genes)) < 0.3
    rates = base * np.exp(rng.normal(size=(6, genes)) * differs)
    labels = rng.integers(6, size=n)
    sizes = np.exp(spread * np.random.default_rng(1).normal(size=n))
    means = sizes[:, None] * rates[labels] * rng.gamma(2.0, 0.5, (n, genes))
    return rng.poisson(means).astype(float), labels, sizes


def documents(name: str) -> Array | None:
    """The most frequent words of documents; None where the data are not there."""
    path = DATA / name / f"docword.{name}.txt.gz"
    if not path.exists():
        return None
    with gzip.open(path, "rt") as file:
        n, columns, _ = (int(next(file)) for _ in range(3))
        entries = np.loadtxt(file, dtype=np.int64)
    table = sparse.csr_array((entries[:, 2].astype(float), (entries[:, 0] - 1, entries[:, 1] - 1)), shape=(n, columns))
    frequent = np.argsort(-table.sum(axis=0))[:WORDS]
    rows = table[:, frequent].toarray()
    return rows[rows.sum(axis=1) > 0][:MOST_DOCUMENTS]


def problems() -> Iterator[tuple[str, Array, Array | None, Array | None]]:
    """Names, rows, clusters if they are known, and sizes of rows if they differ."""
    for variance in (0.0, 0.3, 1.0):
        yield f"clusters, variance {variance:g}", *clusters(2_500, 20, 20, variance), None
    yield "clusters, variance 0, 50,000 rows", *clusters(50_000, 20, 20, 0.0), None
    yield "cells, 400 x 200", *cells(500, 200)[:2], None
    yield "cells, 5,000 x 500", *cells(6_250, 500)[:2], None
    yield "cells of all sizes, 400 x 200", *cells(500, 200, 0.5)
    yield "cells of all sizes, 5,000 x 500", *cells(6_250, 500, 0.5)
    for name in ("nips", "kos", "ap"):
        rows = documents(name)
        if rows is not None:
            yield f"{name}, {WORDS} words", rows, None, None


def likelihoods(rows: Array, sizes: Array | None) -> Iterator[tuple[str, object, Array | None]]:
    """Names and likelihoods for rows, and the exposures of these."""
    for kind in LIKELIHOODS:
        if rows.size <= MOST_VALUES or (kind is not sb.Poisson and sizes is None):
            yield kind.__name__, kind(), None
    if sizes is not None:
        yield "total", sb.NegativeBinomial(exposure="total"), None
        yield "size", sb.NegativeBinomial(), sizes


def main() -> None:
    print(f"stickbreak {sb.__version__}, one thread; load before {os.getloadavg()[0]:.1f}")
    print(f"{'':<36}{'':<18}{'K':>6}{'ARI':>8}{'held-out':>10}{'objective':>14}{'s':>8}   median dispersion")
    warnings.simplefilter("ignore")
    for name, rows, labels, sizes in problems():
        held_out = np.random.default_rng(1).random(len(rows)) < 0.2
        for what, likelihood, exposures in likelihoods(rows, sizes):
            test, train = (
                {} if exposures is None else {"exposure": exposures[held_out == part]} for part in (True, False)
            )
            begun = time.process_time()
            fit = sb.fit(sb.Mixture(likelihood), rows[~held_out], seed=0, threads=1, progress=False, **train)
            seconds = time.process_time() - begun
            score = f"{fit.log_predictive(rows[held_out], threads=1, **test).mean():.2f}"
            found = fit.predict(rows[~held_out], **train)
            own = "" if labels is None else f"{adjusted_rand_score(labels[~held_out], found):.3f}"
            dispersion = getattr(fit.model.likelihood, "dispersion", None)
            more = "" if dispersion is None else f"{np.median(dispersion):.3g}"
            print(
                f"{name:<36}{what:<18}{fit.n_occupied:>6}{own:>8}{score:>10}{fit.objective:>14.1f}"
                f"{seconds:>8.1f}   {more}",
                flush=True,
            )


if __name__ == "__main__":
    print_head()
    main()
