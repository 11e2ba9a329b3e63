"""One `Gaussian` for all amounts of a table, or independent ones: clusters and held-out density of default fits.

    python benches/columns_for.py

Generated tables have four clusters, amounts of one correlation within clusters, and a `Categorical`, a
`NegativeBinomial` and a `Bernoulli` column. Real tables are those of scikit-learn; of each the first two columns are
cut at their quartiles into categories, and the classes of diabetes are thirds of the target. Two thirds of the rows are
fitted with the default call. Figures are means of three splits (for generated tables, of three tables): components, the
adjusted Rand index of held-out rows, and their log density in nats a row. One thread.
"""

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.head import print_head

SPLITS = 3
CLUSTERS = 4
LEVELS = 4
# Numbers of amounts, their correlation within clusters, and numbers of rows that are fitted.
GENERATED = (
    (2, 0.9, 400),
    (3, 0.8, 600),
    (8, 0.0, 600),
    (8, 0.0, 133),
    (10, 0.0, 60),
    (10, 0.0, 100),
    (20, 0.0, 200),
    (20, 0.5, 133),
    (30, 0.0, 200),
    (30, 0.0, 300),
    (30, 0.5, 200),
    (60, 0.0, 200),
    (60, 0.0, 600),
)
Array = np.ndarray


def generated(d: int, correlation: float, n: int, seed: int) -> tuple[Array, Array, sb.Columns, sb.Columns]:
    """Rows, their clusters, and the two likelihoods."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLUSTERS, size=n)
    # The distance of centres does not depend on the number of columns.
    centres = rng.normal(0.0, 3.0, (CLUSTERS, d)) * (2.0 / d) ** 0.5
    factor = np.linalg.cholesky(np.eye(d) + correlation * (np.ones((d, d)) - np.eye(d)))
    amounts = centres[labels] + rng.normal(size=(n, d)) @ factor.T
    levels = rng.dirichlet(np.ones(LEVELS), size=CLUSTERS).cumsum(axis=1)[:, :-1]
    codes = (rng.random((n, 1)) > levels[labels]).sum(axis=1)
    counts = rng.poisson(rng.gamma(2.0, 3.0, CLUSTERS)[labels] * rng.gamma(2.0, 0.5, n))
    flags = rng.random(n) < rng.random(CLUSTERS)[labels]
    rows = np.column_stack([amounts, codes, counts, flags.astype(float)])
    others = {(d,): sb.Categorical(levels=LEVELS), (d + 1,): sb.NegativeBinomial(), (d + 2,): sb.Bernoulli()}
    return rows, labels, *both(tuple(range(d)), others)


def real(name: str) -> tuple[Array, Array, sb.Columns, sb.Columns]:
    """Rows of a table of scikit-learn, their classes, and the two likelihoods."""
    table = getattr(datasets, f"load_{name}")()
    rows, labels = table.data.astype(float), table.target
    if name == "diabetes":
        labels = np.searchsorted(np.quantile(labels, [1 / 3, 2 / 3]), labels)
    for column in (0, 1):
        rows[:, column] = np.searchsorted(np.quantile(rows[:, column], [0.25, 0.5, 0.75]), rows[:, column])
    return rows, labels, *both(tuple(range(2, rows.shape[1])), {(0, 1): sb.Categorical(levels=LEVELS)})


def both(amounts: tuple[int, ...], others: dict[tuple[int, ...], object]) -> tuple[sb.Columns, sb.Columns]:
    """The blocks with one Gaussian, and with independent ones."""
    return tuple(sb.Columns({amounts: kind(), **others}) for kind in (sb.Gaussian, sb.DiagonalGaussian))


def problems() -> Iterator[tuple[str, list[tuple[Array, Array, sb.Columns, sb.Columns]]]]:
    """Names, and a table for each split."""
    for d, correlation, n in GENERATED:
        name = f"{d} {f'of correlation {correlation:g}' if correlation else 'independent'}, {n} rows"
        yield name, [generated(d, correlation, n * 3 // 2, seed) for seed in range(SPLITS)]
    for name in ("wine", "iris", "breast_cancer", "diabetes"):
        table = real(name)
        title = f"{name}, {table[0].shape[1] - 2} amounts, {len(table[0]) * 2 // 3} rows"
        yield title, [table] * SPLITS


def judged(rows: Array, labels: Array, likelihood: sb.Columns, split: int) -> tuple[int, float, float]:
    """The components of a fit to two thirds of the rows, and what the others say of it."""
    order = np.random.default_rng(split).permutation(len(rows))
    held_out, train = order[: len(rows) // 3], order[len(rows) // 3 :]
    fit = sb.fit(sb.Mixture(likelihood), rows[train], threads=1, progress=False)
    ari = adjusted_rand_score(labels[held_out], fit.predict(rows[held_out], threads=1))
    return fit.n_occupied, ari, fit.log_predictive(rows[held_out], threads=1).mean()


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"stickbreak {sb.__version__}; K, adjusted Rand index and log density of held-out rows, {SPLITS} splits")
    print(f"{'amounts, rows that are fitted':<36}{'Gaussian':>10}{'':>8}{'':>10}   {'diagonal':>10}")
    for name, tables in problems():
        line = f"{name:<36}"
        for index in (2, 3):
            found = [judged(*table[:2], table[index], split) for split, table in enumerate(tables)]
            k, ari, density = np.mean(found, axis=0)
            line += f"{k:>10.1f}{ari:>8.2f}{density:>10.2f}   "
        print(line.rstrip(), flush=True)


if __name__ == "__main__":
    print_head()
    main()
