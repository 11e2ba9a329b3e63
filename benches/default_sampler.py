"""Which sampler mixes best from the default starts: effective draws a CPU second, by data set.

Each run is `sb.sample(model, data, sampler)` with the usual number of chains, from their different starts. What is
reported is the least number of effective draws of the log joint, the number of clusters and the size of the largest
one for each CPU second (the fit included), the largest R-hat of the three, and the mean number of clusters and the mean
log joint of each chain. One thread.

    python benches/default_sampler.py [DATA SET ...] [--draws 1000] [--output FILE]
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import stickbreak as sb
from common.clusters import data_folder
from common.head import print_head
from samplers import model_of

SAMPLERS = {
    "gibbs": sb.CollapsedGibbs(),
    "restricted": sb.SplitMerge(proposal="restricted"),
    "sequential": sb.SplitMerge(proposal="sequential"),
    "tree-guided": sb.TreeGuided(),
    "blocked": sb.BlockedGibbs(),
    "slice": sb.Slice(),
}
Problem = tuple[sb.Mixture, Any]


def _toy() -> Problem:
    rows = np.load(data_folder() / "nrmm" / "toy.npz")["X"].astype(float)
    return model_of(rows), rows


def _ten_thousand() -> Problem:
    rows = np.load(data_folder() / "nrmm" / "10k.npz")["X"].astype(float)
    return model_of(rows), rows


def _galaxy() -> Problem:
    rows = pd.read_csv(data_folder() / "classic" / "galaxy.csv").to_numpy(float)[:, -1:]
    return sb.Mixture(likelihood=sb.Gaussian()), rows


def clusters(n: int, d: int, k: int, apart: float) -> Problem:
    """Normal clusters of equal size, whose centres are about that many standard deviations apart."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(k, d))
    centres *= apart / np.sqrt(2.0 * d)
    return sb.Mixture(likelihood=sb.Gaussian()), rng.normal(centres[np.arange(n) % k])


def _codes() -> Problem:
    """Codes of the size of the soybean table: 47 rows in four groups, 35 columns."""
    rng = np.random.default_rng(1)
    levels = rng.integers(2, 5, size=35)
    usual = rng.integers(0, levels, size=(4, 35))
    noise = rng.random((47, 35)) < 0.2
    rows = np.where(noise, rng.integers(0, levels, size=(47, 35)), usual[np.arange(47) % 4])
    return sb.Mixture(likelihood=sb.Categorical()), rows.astype(float)


def _counts() -> Problem:
    rng = np.random.default_rng(2)
    rates = rng.gamma(1.0, 4.0, size=(6, 12))
    return sb.Mixture(likelihood=sb.Poisson()), rng.poisson(rates[np.arange(600) % 6]).astype(float)


def _mixed() -> Problem:
    rng = np.random.default_rng(3)
    kinds = np.arange(500) % 5
    numbers = rng.normal(3.0 * rng.normal(size=(5, 3))[kinds])
    codes = np.where(
        rng.random((500, 3)) < 0.3, rng.integers(0, 4, size=(500, 3)), rng.integers(0, 4, size=(5, 3))[kinds]
    )
    likelihood = sb.Columns({(0, 1, 2): sb.Gaussian(), (3, 4, 5): sb.Categorical()})
    return sb.Mixture(likelihood=likelihood), np.column_stack([numbers, codes])


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "toy 1,300 x 2": _toy,
    "galaxy 82 x 1": _galaxy,
    "codes 47 x 35": _codes,
    "200 x 10, 5 clusters 4 sd apart": lambda: clusters(200, 10, 5, 4.0),
    "200 x 10, 4 clusters 50 sd apart": lambda: clusters(200, 10, 4, 50.0),
    "1,000 x 50, 8 clusters 8 sd apart": lambda: clusters(1000, 50, 8, 8.0),
    "counts 600 x 12": _counts,
    "mixed 500 x 6": _mixed,
    "10k 10,000 x 6": _ten_thousand,
}


def judged(problem: Problem, sampler: Any, draws: int) -> dict[str, Any]:
    """Run the chains and return what they are worth."""
    model, rows = problem
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trace = sb.sample(model, rows, sampler, draws=draws, warmup=draws // 2, threads=1, progress=False)
        except (sb.NotSupported, sb.NumericalError) as error:
            return {"error": type(error).__name__}
    seconds = time.process_time() - before
    names = ("log_joint", "n_clusters", "largest_cluster")
    ess = [trace.ess(name) for name in names]
    return {
        "seconds": seconds,
        "ess": min((value for value in ess if not np.isnan(value)), default=float(trace.log_joint.size)),
        "rhat": max(trace.rhat(name) for name in names),
        "n_clusters": trace.n_clusters.mean(axis=1).tolist(),
        "log_joint": trace.log_joint.mean(axis=1).tolist(),
    }


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", metavar="DATA SET", help="default: all")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    print_head()
    found: dict[str, dict[str, Any]] = {}
    print("| data | sampler | CPU s | effective draws a second | R-hat | mean clusters by chain | log joint by chain |")
    print("|---|---|--:|--:|--:|---|---|")
    for name in options.problems or PROBLEMS:
        problem = PROBLEMS[name]()
        # A sweep of 10,000 rows takes long.
        draws = options.draws if len(problem[1]) < 5000 else options.draws // 10
        for kind, sampler in SAMPLERS.items():
            one = found.setdefault(name, {})[kind] = judged(problem, sampler, draws)
            if "error" in one:
                print(f"| {name} | {kind} | | {one['error']} | | | |", flush=True)
                continue
            clusters, joint = (", ".join(f"{value:.1f}" for value in one[key]) for key in ("n_clusters", "log_joint"))
            rate = one["ess"] / one["seconds"]
            print(
                f"| {name} | {kind} | {one['seconds']:.1f} | {rate:.1f} | {one['rhat']:.3f} | {clusters} | {joint} |",
                flush=True,
            )
    if options.output is not None:
        options.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
