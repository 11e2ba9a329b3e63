"""Rows per second of every likelihood, beside the nearest estimator of scikit-learn, one thread each.

A pass computes every score, keeps L = 4 components a row and ends with the global step and the bound; an iteration of
scikit-learn's `BayesianGaussianMixture` is its E step, M step and bound, always in float64, with the fastest kernels
its BLAS has. scikit-learn has no mixtures of counts or flags, and none with a known covariance or zero means: beside
those stand its nearest ones, "tied" and "full". Both begin with the same labels. They take turns, and a time is the
median of the rounds, in CPU seconds.

"Of peak" is the time of the operations that cannot be spared at the FMA peak of one thread, as a share of the pass: for
each row and component D (D + 1) with full covariances, 4 D with variances, 2 D with a product of row and component (2
for each word of a sparse row), and as much again for the sums of the L components that are kept. With few operations a
score it is selection and memory that take the time, and the share is small.

python benches/likelihoods.py [--rows 200000] [--peak GFLOPS]
"""

import argparse
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import threadpoolctl
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head
from growth import peak
from scikit_learn import ROUNDS, SPARSITY, ScikitLearn, Stickbreak, free_the_blas, generate, measure
from stickbreak.model.likelihoods import Likelihood

D, K = 50, 50
VOCABULARY, WORDS = 10_000, 100
TYPES = ("float32", "float64")

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """A likelihood with data that it is for.

    `operations` is how many a row and component take that cannot be spared; `peer` names a covariance type.
    """

    name: str
    likelihood: Likelihood
    make: Callable[[int], tuple[Any, Labels]]
    operations: Callable[[Any], float]
    peer: str | None = None


def gaussian(n: int) -> tuple[NDArray[np.float64], Labels]:
    return generate(n, D, K)


def mixed_up(labels: Labels, rng: np.random.Generator) -> Labels:
    """A fifth of them wrong."""
    return np.where(rng.random(len(labels)) < 0.2, rng.integers(K, size=len(labels)), labels)


def counts(n: int) -> tuple[NDArray[np.float64], Labels]:
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=n)
    rates = rng.gamma(0.5, 4.0, size=(K, D))
    return rng.poisson(rates[labels]).astype(float), mixed_up(labels, rng)


def flags(n: int) -> tuple[NDArray[np.float64], Labels]:
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=n)
    return (rng.random((n, D)) < rng.random((K, D))[labels]).astype(float), mixed_up(labels, rng)


def codes(n: int) -> tuple[NDArray[np.float64], Labels]:
    """Five levels a column."""
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=n)
    ends = rng.dirichlet(np.full(5, 0.5), size=(K, D)).cumsum(2)[:, :, :-1]
    return (rng.random((n, D, 1)) > ends[labels]).sum(2).astype(float), mixed_up(labels, rng)


def mixed(n: int) -> tuple[NDArray[np.float64], Labels]:
    """Half of the columns real, a quarter counts and a quarter codes, of the same clusters."""
    (real, labels), (whole, _), (levels, _) = gaussian(n), counts(n), codes(n)
    return np.column_stack([real[:, : D // 2], whole[:, : D // 4], levels[:, : D - D // 2 - D // 4]]), labels


def documents(n: int) -> tuple[scipy.sparse.csr_array, Labels]:
    """Bags of 100 words; those that come twice share an entry."""
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(K, size=n))
    words = np.empty((n, WORDS), np.int64)
    for label in range(K):
        own = labels == label
        topic = rng.dirichlet(np.full(VOCABULARY, 0.05))
        words[own] = rng.choice(VOCABULARY, size=(np.count_nonzero(own), WORDS), p=topic)
    order = rng.permutation(n)
    starts = np.arange(0, n * WORDS + 1, WORDS)
    rows = scipy.sparse.csr_array((np.ones(n * WORDS), words[order].ravel(), starts), shape=(n, VOCABULARY))
    rows.sum_duplicates()
    return rows, mixed_up(labels[order], rng)


def dense(factor: int) -> Callable[[Any], float]:
    return lambda rows: factor * rows.shape[1]


# Columns of real numbers, counts and codes.
REAL, COUNTS, CODES = np.split(np.arange(D), [D // 2, D // 2 + D // 4])
BLOCKS = {
    tuple(REAL.tolist()): sb.DiagonalGaussian(),
    tuple(COUNTS.tolist()): sb.NegativeBinomial(),
    tuple(CODES.tolist()): sb.Categorical(),
}


def triangle(rows: Any) -> float:
    return rows.shape[1] * (rows.shape[1] + 1)


def of_words(rows: scipy.sparse.csr_array) -> float:
    return 2 * rows.nnz / rows.shape[0]


PROBLEMS = (
    Problem("Gaussian", sb.Gaussian(), gaussian, triangle, "full"),
    Problem("StudentT", sb.StudentT(), gaussian, triangle),
    Problem("ZeroMeanGaussian", sb.ZeroMeanGaussian(), gaussian, triangle, "full"),
    Problem("DiagonalGaussian", sb.DiagonalGaussian(), gaussian, dense(4), "diag"),
    Problem("SphericalGaussian", sb.SphericalGaussian(), gaussian, dense(2), "spherical"),
    Problem("SphericalGaussian, product", sb.SphericalGaussian(base="product"), gaussian, dense(2), "spherical"),
    Problem("KnownCovarianceGaussian", sb.KnownCovarianceGaussian(np.eye(D)), gaussian, dense(2), "tied"),
    Problem("Multinomial", sb.Multinomial(), counts, dense(2)),
    Problem("Multinomial, sparse rows", sb.Multinomial(), documents, of_words),
    Problem("Bernoulli", sb.Bernoulli(), flags, dense(2)),
    Problem("Categorical", sb.Categorical(), codes, dense(1)),
    Problem("Poisson", sb.Poisson(), counts, dense(2)),
    Problem("NegativeBinomial", sb.NegativeBinomial(), counts, dense(2)),
    Problem("Columns", sb.Columns(BLOCKS), mixed, dense(2)),
)


def report(problem: Problem, n: int, peaks: dict[str, float]) -> None:
    rows, labels = problem.make(n)
    tasks: dict[str, Callable[[], tuple[float, float]]] = {
        name: Stickbreak(rows.astype(name), labels, K, problem.likelihood) for name in TYPES
    }
    if problem.peer is not None:
        tasks["scikit-learn"] = ScikitLearn(rows, labels, K, problem.peer)
    with threadpoolctl.threadpool_limits(1):
        times = measure(tasks)
    seconds = {name: [cpu for _, cpu in pairs] for name, pairs in times.items()}
    line = f"{problem.name:<27}{rows.shape[1]:>6}"
    for name in TYPES:
        own = statistics.median(seconds[name])
        floor = n * (K + SPARSITY) * problem.operations(rows) / peaks[name]
        line += f"{n / own:>12,.0f} ({min(seconds[name]):.3f} to {max(seconds[name]):.3f} s){floor / own:>7.1%}"
    if problem.peer is None:
        line += "   scikit-learn has none"
    else:
        theirs = seconds["scikit-learn"]
        ratios = [statistics.median(np.divide(theirs, seconds[name]).tolist()) for name in TYPES]
        line += f"{n / statistics.median(theirs):>12,.0f} {problem.peer:<10}{ratios[0]:>6.1f}{ratios[1]:>6.1f}"
    print(line, flush=True)


def main() -> None:
    free_the_blas()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--peak", type=float, help="Gflop/s of one thread in float32; measured where it is left out")
    options = parser.parse_args()
    rate = peak() if options.peak is None else options.peak * 1e9
    peaks = {"float32": rate, "float64": rate / 2}
    print(
        f"n = {options.rows}, K = {K}, L = {SPARSITY}, every score computed, one thread, CPU time, medians of {ROUNDS} "
        f"rounds in turn;\nsparse rows: {WORDS} words of {VOCABULARY}; FMA peak {rate / 1e9:.1f} Gflop/s in float32, "
        f"half of it in float64; load before {os.getloadavg()[0]:.1f}\n\n"
        f"{'':<27}{'D':>6}{'float32: rows a second, range':>31} of peak{'float64: rows a second, range':>30} of peak"
        f"{'scikit-learn':>12} {'':<10}{'times as fast':>12}"
    )
    for problem in PROBLEMS:
        report(problem, options.rows, peaks)
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
