"""Sweeps a second of collapsed Gibbs and split-merge chains on the tree-guided paper's data, and where chains come to.

One thread. Figures are by CPU time, so that other work on the machine counts less. The reference values of the toy data
are those of long runs of the paper's own program: E[K] = 13.62 +- 0.02 and E[log joint] = -1589.3 +- 0.3.

    python benches/samplers.py [folder with toy.npz and 10k.npz]
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head

SAMPLERS = {
    "gibbs": sb.CollapsedGibbs(),
    "split-merge, restricted": sb.SplitMerge(proposal="restricted"),
    "split-merge, sequential": sb.SplitMerge(proposal="sequential"),
}


def model_of(rows: NDArray[np.float64]) -> sb.Mixture:
    """Return the paper's model: precision 0.1, dof D + 6, a scale of determinant 0.1, concentration 1."""
    d = rows.shape[1]
    covariance = np.cov(rows.T)
    scale = covariance / (10 * np.linalg.det(covariance)) ** (1 / d)
    likelihood = sb.Gaussian(mean=rows.mean(axis=0), mean_precision=0.1, dof=d + 6, scale=scale)
    return sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(1.0))


def timed(model: sb.Mixture, rows: NDArray[np.float64], sampler: object, sweeps: int, init: object) -> None:
    """Run one chain and print what it did."""
    warmup = sweeps // 4
    before = time.process_time()
    trace = sb.sample(
        model, rows, sampler, draws=sweeps - warmup, warmup=warmup, chains=1, seed=1, threads=1, init=init
    )
    seconds = (time.process_time() - before) / sweeps
    found = []
    for name, values in (("E[K]", trace.n_clusters), ("E[log joint]", trace.log_joint)):
        error = values.std() / np.sqrt(trace.ess("n_clusters" if name == "E[K]" else "log_joint"))
        found.append(f"{name} = {values.mean():.2f} +- {error:.2f}")
    print(f"  {1 / seconds:8.0f} sweeps a second, {1e3 * seconds:7.2f} ms each; {', '.join(found)}")


def main() -> None:
    """Print all figures."""
    default = Path(os.environ.get("STICKBREAK_DATA", Path(__file__).parents[2] / "shared" / "data")) / "nrmm"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    print(f"one thread; load before {os.getloadavg()[0]:.1f}")
    toy = np.load(folder / "toy.npz")["X"].astype(float)
    for name, sampler in SAMPLERS.items():
        print(f"toy, {toy.shape[0]} x {toy.shape[1]}, {name}")
        timed(model_of(toy), toy, sampler, 8000, "single")
    large = np.load(folder / "10k.npz")["X"].astype(float)
    fit = sb.fit(model_of(large), large, seed=0, threads=1)
    for name, sampler in SAMPLERS.items():
        print(f"10k, {large.shape[0]} x {large.shape[1]}, {name}, from a fit of {fit.n_components} components")
        timed(model_of(large), large, sampler, 200, fit)


if __name__ == "__main__":
    print_head()
    main()
