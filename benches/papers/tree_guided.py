"""Lee & Choi 2015, figures 3 to 5, with shorter budgets: tree-guided sampling beside Gibbs and split-merge.

Toy data (1,300 rows, 13 clusters) under a Dirichlet process and a normalized generalized gamma process, 10,000 rows in
6 columns, and 1,500 NIPS documents (multinomial, Dirichlet 0.1), both under the latter. For each sampler: the log joint
probability against seconds, effective draws of the number of clusters a second, and accepted proposals. Then, on the
toy data, numbers of global moves, depths of guided moves, guide and fresh trees and both kinds of evenness; and the
seconds to known scores from the one-on-top start, beside `fit`. One thread. Seconds are those of the processor, so that
other work on the machine counts little; `BUDGETS` has those of each chain. Behind the effective draws stand, by kind of
proposal, the share that was accepted and the mean log ratio of acceptance in nats.

    python benches/papers/tree_guided.py [--parts toy 10k nips settings scores] [--scale 1.0] [--output FILE]
"""

import argparse
import gzip
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import stickbreak as sb
from figures import first_line

DATA = Path(os.environ.get("STICKBREAK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
# Seconds of each chain.
BUDGETS = {"toy": 10.0, "10k": 30.0, "nips": 60.0, "settings": 5.0}
MARKS = (0.03, 0.1, 0.3, 1.0)
NGGP = sb.NormalizedGeneralizedGamma(sb.Gamma(1.0, 1.0), sb.Beta(1.5, 1.5))
# The best log joint that anyone has reported of the toy data, and a score of the 10,000 rows.
GOALS = {"toy": -1577.57, "10k": -73513.5}


def gaussian(rows: np.ndarray) -> sb.Gaussian:
    """The base measure of the paper."""
    covariance, d = np.cov(rows.T), rows.shape[1]
    scale = covariance / (10 * np.linalg.det(covariance)) ** (1 / d)
    return sb.Gaussian(mean=rows.mean(axis=0), mean_precision=0.1, dof=d + 6.0, scale=scale)


def rows_of(name: str) -> Any:
    """The rows of a data set; None where it is not there."""
    if name == "nips":
        path = DATA / "nips" / "docword.nips.txt.gz"
        if not path.exists():
            return None
        with gzip.open(path, "rt") as file:
            n, columns, _ = (int(next(file)) for _ in range(3))
            entries = np.loadtxt(file, dtype=np.int64)
        table = (entries[:, 2].astype(float), (entries[:, 0] - 1, entries[:, 1] - 1))
        return sparse.csr_array(table, shape=(n, columns))
    path = DATA / "nrmm" / f"{name}.npz"
    return np.load(path)["X"].astype(float) if path.exists() else None


def samplers(n: int) -> dict[str, sb.CollapsedGibbs | sb.SplitMerge | sb.TreeGuided]:
    """What is compared; subsets are a tenth of the rows."""
    return {
        "gibbs": sb.CollapsedGibbs(),
        "gibbs, subset": sb.CollapsedGibbs(subset=n // 10),
        "split-merge": sb.SplitMerge(),
        "split-merge, subset": sb.SplitMerge(subset=n // 10),
        "tree-guided, published": sb.TreeGuided(exact=False),
        "tree-guided, exact": sb.TreeGuided(),
    }


def chain(model: sb.Mixture, rows: Any, sampler: Any, seconds: float, init: str = "one-on-top", seed: int = 0) -> Any:
    """Draws of one chain within a budget, with the seconds at which they came, preparation included."""
    times: list[float] = []
    began = time.process_time()

    def late(_: sb.Draw) -> bool:
        times.append(time.process_time() - began)
        return times[-1] > seconds

    trace = sb.sample(
        model,
        rows,
        sampler,
        draws=200_000 if rows.shape[0] < 5000 else 4000,
        warmup=0,
        chains=1,
        init=init,
        seed=seed,
        threads=1,
        progress=False,
        callbacks=[late],
    )
    return trace, np.array(times[: trace.log_joint.shape[1]])


def line(name: str, trace: sb.Trace, times: np.ndarray, seconds: float) -> str:
    """The log joint at the marks of the budget, and effective draws a second of its second half."""
    joint = trace.log_joint[0]
    marks = [joint[max(0, np.searchsorted(times, mark * seconds, "right") - 1)] for mark in MARKS]
    half = slice(len(joint) // 2, None)
    kept = sb.Trace(_cut(trace, half), trace._state, trace.model, trace._rows)
    rate = kept.ess("n_clusters") / (times[-1] - times[half.start]) if len(joint) > 8 else float("nan")
    accepted = ", ".join(
        f"{kind} {share:.3f}" + ("" if np.isnan(trace.log_ratio[kind]) else f" {trace.log_ratio[kind]:.1f}")
        for kind, share in sorted(trace.acceptance.items())
    )
    shown = " ".join(f"{mark:12.1f}" for mark in marks)
    return f"{name:24s} {shown} {kept.n_clusters.mean():8.2f} {rate:8.2f} {len(joint):7d}  {accepted}"


def _cut(trace: sb.Trace, part: slice) -> Any:
    chains = trace._chains
    return type(chains)(
        partitions=chains.partitions[:, part],
        log_joint=chains.log_joint[:, part],
        n_clusters=chains.n_clusters[:, part],
        hyperparameters={},
        seconds=chains.seconds,
        proposals=chains.proposals,
        exact=chains.exact,
    )


def head(title: str, seconds: float) -> str:
    """The head of a table."""
    marks = " ".join(f"{f'{mark * seconds:.3g} s':>12s}" for mark in MARKS)
    columns = f"{'':24s} {marks} {'K':>8s} {'ESS K/s':>8s} {'sweeps':>7s}"
    return f"\n{title}, {seconds:g} s a chain, from the one-on-top start\n{columns}"


def compare(name: str, process: Any, likelihood: Callable[[Any], Any], seconds: float, label: str) -> Iterator[str]:
    """All samplers on one data set."""
    rows = rows_of(name)
    if rows is None:
        yield f"\n{name}: the data are not there"
        return
    model = sb.Mixture(likelihood=likelihood(rows), process=process)
    yield head(f"{name}, {rows.shape[0]} rows, {label}", seconds)
    for kind, sampler in samplers(rows.shape[0]).items():
        yield line(kind, *chain(model, rows, sampler, seconds), seconds)


def settings(seconds: float) -> Iterator[str]:
    """Settings of the exact sampler on the toy data."""
    rows = rows_of("toy")
    if rows is None:
        return
    model = sb.Mixture(likelihood=gaussian(rows), process=sb.DirichletProcess(1.0))
    kinds = {f"global_moves={moves}": {"global_moves": moves} for moves in (1, 5, 20, 60, 200)}
    kinds |= {f"guided, depth={depth}": {"local": "guided", "depth": depth, "subset": 100} for depth in (1, 2, 4)}
    for trees in ("guide", "fresh"):
        for evenness in ("max", "max/n"):
            kinds[f"{trees}, {evenness}"] = {"trees": trees, "evenness": evenness}
    kinds |= {f"scans={scans}": {"scans": scans} for scans in (0, 1, 3)}
    yield head("settings of the exact sampler, toy, DirichletProcess(1)", seconds)
    for name, given in kinds.items():
        yield line(name, *chain(model, rows, sb.TreeGuided(**given), seconds), seconds)


def scores(scale: float) -> Iterator[str]:
    """CPU seconds to known scores, start included, beside those of a fit."""
    for name, moves, most, seeds in (("toy", 20, 10.0, 10), ("10k", 60, 20.0, 3)):
        rows = rows_of(name)
        if rows is None:
            continue
        model = sb.Mixture(likelihood=gaussian(rows), process=sb.DirichletProcess(1.0))
        goal, found = GOALS[name], []
        for seed in range(seeds):
            best: list[float] = []

            def reached(draw: sb.Draw, goal: float = goal, best: list[float] = best) -> bool:
                best.append(draw.log_joint)
                return draw.log_joint >= goal - 0.005

            began = time.process_time()
            sb.sample(
                model,
                rows,
                sb.TreeGuided(global_moves=moves),
                draws=100_000 if name == "toy" else 2000,
                warmup=0,
                chains=1,
                init="one-on-top",
                seed=seed,
                threads=1,
                progress=False,
                callbacks=[reached],
                max_seconds=most * scale,
            )
            found.append(time.process_time() - began if max(best) >= goal - 0.005 else np.inf)
        shown = " ".join(f"{seconds:.2f}" for seconds in found)
        yield f"\n{name}: {goal} with global_moves={moves} after a median of {np.median(found):.2f} s of CPU ({shown})"
        began = time.process_time()
        fit = sb.fit(model, rows, seed=0, threads=1, progress=False)
        spent = time.process_time() - began
        start = sb.sample(
            model, rows, sb.CollapsedGibbs(subset=1), draws=1, warmup=0, chains=1, init=fit, progress=False
        )
        yield f"{name}: fit {start.log_joint[0, 0]:.2f} after {spent:.2f} s of CPU"
        began = time.process_time()
        sb.hierarchy(model, rows, "incremental", threads=1)
        yield f"{name}: an incremental hierarchy takes {time.process_time() - began:.2f} s of CPU"


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["toy", "10k", "nips", "settings", "scores"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all budgets")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    budget = {name: seconds * options.scale for name, seconds in BUDGETS.items()}
    words = sb.Multinomial(pseudo_counts=0.1)
    jobs: dict[str, list[Iterator[str]]] = {
        "toy": [
            compare("toy", sb.DirichletProcess(1.0), gaussian, budget["toy"], "DirichletProcess(1)"),
            compare("toy", NGGP, gaussian, budget["toy"], "NGGP"),
        ],
        "10k": [compare("10k", NGGP, gaussian, budget["10k"], "NGGP")],
        "nips": [compare("nips", NGGP, lambda _: words, budget["nips"], "NGGP")],
        "settings": [settings(budget["settings"])],
        "scores": [scores(options.scale)],
    }
    lines = [first_line(), f"load of the machine: {os.getloadavg()[0]:.1f}"]
    print("\n".join(lines), flush=True)
    for part in options.parts:
        for job in jobs[part]:
            for text in job:
                lines.append(text)
                print(text, flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
