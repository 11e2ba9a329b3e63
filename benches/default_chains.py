"""Is what `sb.sample(model, data)` says right, or does it warn? Three questions, each with its own option.

- `--sets`: on twenty data sets, the mean number of clusters by default beside that of long chains from other starts, in
  standard errors of their difference (Monte Carlo), and what kinds of advice there were.
- `--alarms`: of fifty runs on six rows, whose posterior is enumerated, how many warn although they are right and have
  400 effective draws of each quantity.
- `--bias`: `until=sb.Until(...)` on 1,000 tables of six rows: how far the means of chains that stop are from the
  enumerated posterior, in standard deviations of it, beside those of as many draws as were asked for.

    python benches/default_chains.py [--sets] [--alarms] [--bias] [--output FILE]

One thread. Without an option, all three.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak as sb
from common.head import print_head
from default_sampler import PROBLEMS, Problem, clusters

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from oracles.partitions import GaussianMarginal, Posterior, dirichlet

QUANTITIES = ("log_joint", "n_clusters", "largest_cluster")


def _binary() -> Problem:
    rng = np.random.default_rng(4)
    often = rng.beta(0.5, 0.5, size=(4, 20))
    return sb.Mixture(likelihood=sb.Bernoulli()), (rng.random((200, 20)) < often[np.arange(200) % 4]).astype(float)


def _few_counts() -> Problem:
    rng = np.random.default_rng(5)
    rates = rng.gamma(1.0, 6.0, size=(3, 8))
    return sb.Mixture(likelihood=sb.NegativeBinomial()), rng.poisson(rates[np.arange(150) % 3]).astype(float)


SETS: dict[str, Callable[[], Problem]] = {
    "40 x 1, 2 clusters 3 sd apart": lambda: clusters(40, 1, 2, 3.0),
    "40 x 2, 3 clusters 5 sd apart": lambda: clusters(40, 2, 3, 5.0),
    "60 x 5, 4 clusters 20 sd apart": lambda: clusters(60, 5, 4, 20.0),
    "100 x 1, 3 clusters 6 sd apart": lambda: clusters(100, 1, 3, 6.0),
    "100 x 20, 5 clusters 10 sd apart": lambda: clusters(100, 20, 5, 10.0),
    "300 x 2, 5 clusters 6 sd apart": lambda: clusters(300, 2, 5, 6.0),
    "300 x 30, 3 clusters 3 sd apart": lambda: clusters(300, 30, 3, 3.0),
    "500 x 20, 6 clusters 20 sd apart": lambda: clusters(500, 20, 6, 20.0),
    "1,000 x 3, 5 clusters 4 sd apart": lambda: clusters(1000, 3, 5, 4.0),
    "2,000 x 2, 6 clusters 8 sd apart": lambda: clusters(2000, 2, 6, 8.0),
    "5,000 x 5, 5 clusters 10 sd apart": lambda: clusters(5000, 5, 5, 10.0),
    "binary 200 x 20": _binary,
    "counts 150 x 8": _few_counts,
    **{name: problem for name, problem in PROBLEMS.items() if not name.startswith(("10k", "toy"))},
}


def _quietly(*arguments: Any, **options: Any) -> sb.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sb.sample(*arguments, threads=1, progress=False, **options)


def _mean(trace: sb.Trace) -> tuple[float, float]:
    """Mean number of clusters, and its standard error."""
    values, ess = trace.n_clusters, trace.ess("n_clusters")
    return float(values.mean()), 0.0 if np.isnan(ess) else float(values.std() / np.sqrt(ess))


def of_sets() -> dict[str, Any]:
    """The number of clusters by default, and by long chains from other starts."""
    print("| data | s | clusters | long chains | difference, standard errors | advice |")
    print("|---|--:|--:|--:|--:|---|")
    found = {}
    for name, problem in SETS.items():
        model, rows = problem()
        began = time.process_time()
        trace = _quietly(model, rows)
        seconds = time.process_time() - began
        many = len(rows) > 3000
        others = {
            "init": ["one-on-top", "ibhc", "fit", "one-on-top"],
            "draws": 1500 if many else 4000,
            "warmup": 500 if many else 1000,
            "seed": 1,
        }
        reference = _quietly(model, rows, sb.SplitMerge(proposal="restricted"), **others)
        (mean, error), (long, long_error) = _mean(trace), _mean(reference)
        both = np.hypot(error, long_error)
        z = 0.0 if mean == long else (mean - long) / both if both else np.inf
        kinds = [advice.kind for advice in trace.advice()]
        of_long = [advice.kind for advice in reference.advice() if advice.kind in ("rhat", "stuck")]
        found[name] = {"mean": mean, "long": long, "z": z, "advice": kinds, "long advice": of_long}
        note = f" (long chains: {', '.join(of_long)})" if of_long else ""
        print(f"| {name} | {seconds:.1f} | {mean:.3f} | {long:.3f} | {z:.1f} | {', '.join(kinds)}{note} |", flush=True)
    silent = [name for name, one in found.items() if abs(one["z"]) > 4.0 and not one["advice"]]
    print(f"\nmore than 4 standard errors away without a warning: {len(silent)} of {len(found)} {silent}", flush=True)
    return found


def _small(seeds: range) -> Iterator[tuple[sb.Mixture, np.ndarray, Posterior]]:
    """Tables of six rows of one or two columns, with given parameters, and their posteriors."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        d, alpha, gap = int(rng.integers(1, 3)), float(rng.choice([0.5, 1.0, 2.0])), rng.uniform(0.0, 6.0)
        rows = rng.normal(gap * rng.integers(0, 2, size=(6, 1)), size=(6, d))
        base = sb.Gaussian(mean=np.full(d, gap / 2), mean_precision=0.1, dof=d + 2.0, scale=np.eye(d))
        marginal = GaussianMarginal(np.full(d, gap / 2), 0.1, d + 2.0, np.eye(d))
        model = sb.Mixture(likelihood=base, process=sb.DirichletProcess(alpha))
        yield model, rows, Posterior(marginal, dirichlet(alpha), rows)


def _exact(posterior: Posterior) -> tuple[float, float]:
    """Mean and standard deviation of the number of clusters."""
    numbers = np.array([max(labels) + 1.0 for labels in posterior.partitions])
    mean = float(posterior.probabilities @ numbers)
    return mean, float(np.sqrt(posterior.probabilities @ (numbers - mean) ** 2))


def of_alarms() -> dict[str, Any]:
    """How often runs warn that are right and long enough."""
    right, alarms = 0, []
    seed = 0
    while right < 50:
        ((model, rows, posterior),) = _small(range(seed, seed + 1))
        trace = _quietly(model, rows, seed=seed)
        (mean, error), (exact, _) = _mean(trace), _exact(posterior)
        is_long = all(not trace.ess(name) < 400.0 for name in QUANTITIES)
        if is_long and abs(mean - exact) < 4.0 * error + 1e-12:
            right += 1
            kinds = [advice.kind for advice in trace.advice()]
            alarms += [(seed, kinds)] if kinds else []
        seed += 1
    print(f"of 50 right runs ({seed} tried) {len(alarms)} warn: {alarms}", flush=True)
    return {"tried": seed, "alarms": alarms}


def of_bias() -> dict[str, Any]:
    """How far chains that stop when it is enough are from the truth."""
    found: dict[str, Any] = {}
    plans = {
        "until 400 effective draws": {"until": sb.Until(ess=400.0, rhat=1.01), "draws": 20_000},
        "until 100 effective draws": {"until": sb.Until(ess=100.0, rhat=1.05), "draws": 20_000},
        "1,000 draws": {"draws": 1000},
    }
    errors: dict[str, list[float]] = {name: [] for name in plans}
    lengths: dict[str, list[int]] = {name: [] for name in plans}
    for seed, (model, rows, posterior) in enumerate(_small(range(1000, 2000))):
        exact, deviation = _exact(posterior)
        for name, plan in plans.items():
            trace = _quietly(model, rows, warmup=100, seed=seed, init=["single", "singletons"] * 2, **plan)
            errors[name].append((float(trace.n_clusters.mean()) - exact) / deviation)
            lengths[name].append(trace.log_joint.shape[1])
    print(
        "| run | draws of a chain, median | bias, sd of the posterior | its standard error | root mean square error |"
    )
    print("|---|--:|--:|--:|--:|")
    for name, values in errors.items():
        z = np.array(values)
        found[name] = {
            "draws": float(np.median(lengths[name])),
            "bias": z.mean(),
            "error": z.std() / np.sqrt(len(z)),
            "rmse": np.sqrt((z**2).mean()),
        }
        one = found[name]
        print(
            f"| {name} | {one['draws']:.0f} | {one['bias']:.4f} | {one['error']:.4f} | {one['rmse']:.4f} |", flush=True
        )
    return found


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    questions = {"sets": of_sets, "alarms": of_alarms, "bias": of_bias}
    for name in questions:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    print_head()
    chosen = [name for name in questions if getattr(options, name)] or list(questions)
    found = {name: questions[name]() for name in chosen}
    if options.output is not None:
        options.output.write_text(json.dumps(found, indent=1, default=float))


if __name__ == "__main__":
    main()
