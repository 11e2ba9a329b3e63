"""One pass of stickbreak against one iteration of scikit-learn's BayesianGaussianMixture, one thread each.

A pass is a local step that computes every score and keeps L = 4 components a row, its summary, the global step and the
bound. An iteration is scikit-learn's E step, M step and bound, always in float64, with the fastest kernels its BLAS has
for this machine. Both begin with the same responsibilities of the same data. They take turns, so that other load meets
both alike.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
import threadpoolctl
from numpy.typing import NDArray
from sklearn.mixture import BayesianGaussianMixture

import stickbreak as sb
from common.head import print_head
from stickbreak.model.likelihoods import Likelihood
from stickbreak.result.history import Record

# (n, D, K), and how many times as fast a pass is to be.
SIZES = {
    (60_000, 50, 100): {"float32": 25.0, "float64": 13.0},
    (100_000, 64, 200): {"float32": 25.0, "float64": 13.0},
    (1_000_000, 16, 50): {"float32": 25.0, "float64": 13.0},
    (1_000_000, 2, 20): {"float32": 25.0, "float64": 13.0},
    (100_000, 25, 25): {"float32": 20.0, "float64": 11.0},
}
ROUNDS = 5
SPARSITY = 4

Times = list[tuple[float, float]]


def free_the_blas() -> None:
    """Start again without what keeps OpenBLAS, which looks once, from its best kernels."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OPENBLAS_") or name.endswith("NUM_THREADS")
    }
    if len(kept) < len(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], kept)


def now() -> tuple[float, float]:
    """Wall time and CPU time of the process, seconds."""
    return time.perf_counter(), time.process_time()


def generate(n: int, d: int, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows around k centres that overlap a little, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(0)
    labels = rng.integers(k, size=n)
    spread = rng.uniform(0.5, 1.5, size=(k, d))
    rows = rng.normal(size=(k, d))[labels] + spread[labels] * rng.normal(size=(n, d))
    wrong = rng.random(n) < 0.2
    return rows, np.where(wrong, rng.integers(k, size=n), labels)


class ScikitLearn:
    """The iteration of scikit-learn's `fit`, one at a time."""

    def __init__(
        self, rows: NDArray[np.float64], labels: NDArray[np.int64], k: int, covariance_type: str = "full"
    ) -> None:
        self.rows = rows
        self.mixture = BayesianGaussianMixture(n_components=k, covariance_type=covariance_type)
        self.mixture._check_parameters(rows)
        responsibilities = np.zeros((len(rows), k))
        responsibilities[np.arange(len(rows)), labels] = 1.0
        self.mixture._initialize(rows, responsibilities)

    def __call__(self) -> tuple[float, float]:
        wall, cpu = now()
        log_normalizer, log_responsibilities = self.mixture._e_step(self.rows)
        self.mixture._m_step(self.rows, log_responsibilities)
        self.mixture._compute_lower_bound(log_responsibilities, log_normalizer)
        return now()[0] - wall, now()[1] - cpu


class Stickbreak:
    """The second pass of a fit: the first one also warms up what is used for the first time."""

    def __init__(self, rows: Any, labels: NDArray[np.int64], k: int, likelihood: Likelihood | None = None) -> None:
        self.rows, self.labels, self.k = rows, labels, k
        self.likelihood = sb.Gaussian() if likelihood is None else likelihood

    def __call__(self) -> tuple[float, float]:
        times: Times = []

        def note(record: Record) -> None:
            times.append((record.seconds, time.process_time()))

        model = sb.Mixture(likelihood=self.likelihood, process=sb.DirichletProcess())
        algorithm = sb.Full(sparsity=SPARSITY, margin=None, bounds_memory=0, tol=0, max_passes=2)
        sb.fit(
            model,
            self.rows,
            algorithm,
            n_components=self.k,
            init=self.labels,
            threads=1,
            progress=False,
            callbacks=[note],
        )
        return times[1][0] - times[0][0], times[1][1] - times[0][1]


def measure(tasks: dict[str, Callable[[], tuple[float, float]]]) -> dict[str, Times]:
    """Every task in turn, as often as there are rounds."""
    times: dict[str, Times] = {name: [] for name in tasks}
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            times[name].append(task())
    return times


def line(name: str, values: list[float]) -> str:
    return f"  {name:<22}{statistics.median(values):9.4f}{min(values):9.4f}{max(values):9.4f}"


def main() -> None:
    free_the_blas()
    blas = ", ".join(
        f"{library['internal_api']} {library['version']} ({library.get('architecture', 'unknown kernels')})"
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    )
    print(f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}, {blas}")
    print(f"{ROUNDS} rounds in turn; load before {os.getloadavg()[0]:.1f}")
    reached = True
    for (n, d, k), targets in SIZES.items():
        rows, labels = generate(n, d, k)
        tasks: dict[str, Callable[[], tuple[float, float]]] = {
            "scikit-learn": ScikitLearn(rows, labels, k),
            **{name: Stickbreak(rows.astype(name), labels, k) for name in targets},
        }
        with threadpoolctl.threadpool_limits(1):
            times = measure(tasks)
        print(f"\n(n, D, K) = ({n}, {d}, {k}), L = {SPARSITY}, seconds: median, least, most")
        for clock, index in (("wall", 0), ("CPU", 1)):
            by_task = {name: [pair[index] for pair in pairs] for name, pairs in times.items()}
            for name, values in by_task.items():
                print(line(f"{name}, {clock}", values))
            for name, target in targets.items():
                ratios = [a / b for a, b in zip(by_task["scikit-learn"], by_task[name], strict=True)]
                ratio = statistics.median(ratios)
                reached &= ratio >= target
                print(
                    f"  {name}: {ratio:.1f} times as fast by {clock} time "
                    f"({min(ratios):.1f} to {max(ratios):.1f}; target {target:g})"
                )
    print(f"\nload after {os.getloadavg()[0]:.1f}; targets {'reached' if reached else 'NOT reached'}")


if __name__ == "__main__":
    print_head()
    main()
