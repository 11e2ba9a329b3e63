"""Sweeps of `BlockedGibbs` and `Slice` beside passes of `fit`, and effective draws beside `CollapsedGibbs`.

Rows are drawn around K centres, and all chains and fits start from the clusters that they were drawn from. The toy data
are those of `benches/samplers.py`: E[K] = 13.62 +- 0.02 and E[log joint] = -1589.3 +- 0.3 in long runs of another
program. For the velocities of 82 galaxies (Roeder 1990) the published posterior of K under this model is 0.09, 0.19,
0.23, 0.20 and 0.13 for K = 5 to 9.

    python benches/conditional.py [folder with nrmm/toy.npz and classic/galaxy.csv]
"""

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head
from samplers import model_of

REPEATS = 5


def rows_of(n: int, d: int, k: int, spread: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return rows around k centres, `spread` standard deviations from their mean, and their clusters."""
    rng = np.random.default_rng(0)
    centres, labels = spread * rng.normal(size=(k, d)), rng.integers(k, size=n)
    return centres[labels] + rng.normal(size=(n, d)), labels


def between(run: Any) -> float:
    """Return the least seconds between two calls of a callback, of which `run` makes several."""
    times: list[float] = []
    run([lambda _: times.append(time.perf_counter())])
    return float(np.diff(times).min())


def speed(n: int, d: int, k: int, spread: float, threads: int) -> None:
    """Print seconds a pass and a sweep."""
    rows, labels = rows_of(n, d, k, spread)
    likelihood = sb.Gaussian(mean=np.zeros(d), mean_precision=0.1, dof=d + 2, scale=np.eye(d))
    finite = sb.Mixture(likelihood=likelihood, process=sb.FiniteDirichlet(k, concentration=float(k)))
    stick = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(1.0))
    kept = {"max_passes": REPEATS + 1, "tol": 0.0, "moves": ()}
    passes = {
        "pass of Full, dense": sb.Full(sparsity=None, margin=None, **kept),
        "pass of Full, L = 1, no margin, no bounds": sb.Full(sparsity=1, margin=None, bounds_memory=0, **kept),
    }
    sweeps = {
        "sweep of BlockedGibbs, FiniteDirichlet": (finite, sb.BlockedGibbs()),
        "sweep of BlockedGibbs, DirichletProcess": (stick, sb.BlockedGibbs(truncation=k)),
        "sweep of Slice, DirichletProcess": (stick, sb.Slice()),
    }
    print(f"{n} x {d}, K = {k}, spread {spread:g}, threads={threads}")
    options: dict[str, Any] = {"init": labels, "threads": threads, "progress": False}
    for name, algorithm in passes.items():
        seconds = between(lambda f, one=algorithm: sb.fit(finite, rows, one, callbacks=f, **options))
        print(f"  {name:45} {seconds:8.4f} s", flush=True)
    for name, (model, sampler) in sweeps.items():
        run = {"draws": REPEATS + 1, "warmup": 1, "chains": 1, **options}
        seconds = between(lambda f, m=model, s=sampler, r=run: sb.sample(m, rows, s, callbacks=f, **r))
        print(f"  {name:45} {seconds:8.4f} s", flush=True)


def agreement(rows: NDArray[np.float64]) -> None:
    """Print expectations and effective draws on the toy data."""
    print(f"toy, {rows.shape[0]} x {rows.shape[1]}, four chains, threads=1")
    runs = {"CollapsedGibbs": (sb.CollapsedGibbs(), 3000), "BlockedGibbs": (sb.BlockedGibbs(), 20_000)}
    for name, (sampler, draws) in (runs | {"Slice": (sb.Slice(), 20_000)}).items():
        trace = sb.sample(model_of(rows), rows, sampler, draws=draws, warmup=draws // 4, seed=1, threads=1)
        shown = [f"  {name:15} {trace.seconds.sum() / (4 * draws * 1.25) * 1e3:6.2f} ms a sweep"]
        for label, quantity in (("E[K]", "n_clusters"), ("E[log joint]", "log_joint")):
            values, ess = getattr(trace, quantity), trace.ess(quantity)
            rate = ess / trace.seconds.sum()
            shown.append(f"{label} = {values.mean():.2f} +- {values.std() / ess**0.5:.2f}, {rate:.1f} draws/s")
            shown.append(f"R-hat {trace.rhat(quantity):.3f}")
        print("; ".join(shown), flush=True)


def galaxies(velocities: NDArray[np.float64]) -> None:
    """Print the posterior of K for Escobar and West's model, with a fixed and a learned mean precision."""
    for precision in (0.01, sb.Gamma(0.5, 50.0)):
        likelihood = sb.Gaussian(mean=[20.0], mean_precision=precision, dof=4, scale=[[2.0]])
        model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(sb.Gamma(2.0, 4.0)))
        for sampler in (sb.CollapsedGibbs(), sb.BlockedGibbs(), sb.Slice()):
            trace = sb.sample(model, velocities, sampler, draws=20_000, warmup=2000, seed=1, threads=1)
            shares = [f"{k}: {(trace.n_clusters == k).mean():.3f}" for k in range(4, 11)]
            print(f"galaxies, {precision}, {type(sampler).__name__:15} P(K) {', '.join(shares)}", flush=True)


def main() -> None:
    """Print all figures."""
    default = Path(os.environ.get("STICKBREAK_DATA", Path(__file__).parents[2] / "shared" / "data"))
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    print(f"load before {os.getloadavg()[0]:.1f}")
    # As many components as clusters, so that the last tenth always has rows.
    warnings.simplefilter("ignore", sb.TruncationWarning)
    for spread in (3.0, 1.0):
        for threads in (1, 2):
            speed(1_000_000, 16, 50, spread, threads)
    for threads in (1, 2):
        speed(1_000_000, 2, 6, 3.0, threads)
    agreement(np.load(folder / "nrmm" / "toy.npz")["X"].astype(float))
    galaxies(np.loadtxt(folder / "classic" / "galaxy.csv", delimiter=",", skiprows=1, ndmin=2)[:, -1:])


if __name__ == "__main__":
    print_head()
    main()
