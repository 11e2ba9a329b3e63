"""Seconds of default fits, and of the labels after them, of wide sparse counts of which most columns have no value.

    python benches/wide.py

`uniform`: each value is in a random column. `groups`: the rows of five groups have words of their own among 2,000.
"""

import time
import warnings

import numpy as np
from scipy import sparse

import stickbreak as sb
from common.head import print_head

# Kind of rows, number of rows, columns and values of a row.
TABLES = [
    ("uniform", 10, 1_000_000, 60),
    ("groups", 1_000, 1_000_000, 60),
    ("groups", 2_000, 2**20, 100),
]
WORDS = 2_000


def generate(kind: str, n: int, d: int, values: int) -> sparse.csr_array:
    """Counts of at least one."""
    rng = np.random.default_rng(0)
    if kind == "uniform":
        columns = np.concatenate([rng.choice(d, values, replace=False) for _ in range(n)])
    else:
        shares = rng.dirichlet(np.full(WORDS, 0.05), size=5)[rng.integers(5, size=n)]
        words = np.concatenate([rng.choice(WORDS, values, p=share) for share in shares])
        columns = rng.choice(d, WORDS, replace=False)[words]
    table = sparse.csr_array((np.ones(n * values), (np.repeat(np.arange(n), values), columns)), shape=(n, d))
    table.sum_duplicates()
    return table


def main() -> None:
    """Time all tables under all likelihoods of sparse rows."""
    print_head()
    warnings.simplefilter("ignore", sb.Advice)
    print("rows     n      D        likelihood   fit, s  labels, s  components")
    for kind, n, d, values in TABLES:
        counts = generate(kind, n, d, values)
        for likelihood in (sb.Poisson(), sb.Bernoulli(), sb.Multinomial()):
            rows = counts.astype(bool).astype(float) if isinstance(likelihood, sb.Bernoulli) else counts
            started = time.perf_counter()
            fit = sb.fit(sb.Mixture(likelihood), rows, progress=False)
            fitted = time.perf_counter()
            fit.predict(rows)
            of_fit, of_labels = fitted - started, time.perf_counter() - fitted
            name = type(likelihood).__name__
            print(
                f"{kind:8} {n:<6} {d:<8} {name:12} {of_fit:6.2f}  {of_labels:9.2f}  {fit.n_components:10}", flush=True
            )


if __name__ == "__main__":
    main()
