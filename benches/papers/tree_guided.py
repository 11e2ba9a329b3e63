"""Lee & Choi 2015, figures 3 to 5, with shorter budgets: tree-guided sampling beside Gibbs and split-merge.

Toy data (1,300 rows, 13 clusters) under a Dirichlet process and a normalized generalized gamma process, 10,000 rows in
6 columns, and 1,500 NIPS documents (multinomial, Dirichlet 0.1), both under the latter; documents start from an
incremental hierarchy, rows on top of each other. Ten chains of each sampler: mean and standard deviation of the log
joint probability by seconds, effective draws of the number of clusters a second, and accepted proposals. Then, on the
toy data, numbers of global moves, depths of guided moves, guide and fresh trees and both kinds of evenness; and the
seconds to known scores, beside `fit`. One thread. Seconds are those of the processor, so that other work on the machine
counts little; `BUDGETS` has those of each chain. Behind the effective draws stand, by kind of proposal, the share that
was accepted and the mean log ratio of acceptance in nats.

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
from figures import can_draw, command, first_line, save
from stickbreak import _core

DATA = Path(os.environ.get("STICKBREAK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
# Seconds of each chain.
BUDGETS = {"toy": 10.0, "10k": 30.0, "nips": 120.0, "settings": 5.0}
CHAINS = 10
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
        "split-merge": sb.SplitMerge(proposal="restricted"),
        "split-merge, subset": sb.SplitMerge(subset=n // 10),
        "tree-guided, published": sb.TreeGuided(exact=False),
        "tree-guided, exact": sb.TreeGuided(),
    }


# A trace of one chain, and the seconds at which its draws came.
Chain = tuple[sb.Trace, np.ndarray]


def chain(model: sb.Mixture, rows: Any, sampler: Any, seconds: float, init: str = "one-on-top", seed: int = 0) -> Chain:
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
        # Ten traces of all labels would take gigabytes.
        keep_rows=[0],
    )
    return trace, np.array(times[: trace.log_joint.shape[1]])


def at(chain_of: Chain, seconds: np.ndarray) -> np.ndarray:
    """The log joint of a chain at these times; before its first draw, that of the first draw."""
    trace, times = chain_of
    return trace.log_joint[0][np.maximum(np.searchsorted(times, seconds, "right") - 1, 0)]


def line(name: str, chains: list[Chain], seconds: float) -> str:
    """The log joint at the marks of the budget, and effective draws a second of its second half."""
    joints = np.array([at(one, seconds * np.array(MARKS)) for one in chains])
    spreads = joints.std(axis=0, ddof=1) if len(chains) > 1 else np.full(len(MARKS), np.nan)
    rates, sizes = [], []
    for trace, times in chains:
        half = slice(len(times) // 2, None)
        numbers = np.ascontiguousarray(trace.n_clusters[:, half], dtype=float)
        sizes.append(numbers.mean())
        rates.append(_core.ess(numbers) / (times[-1] - times[half.start]) if len(times) > 8 else np.nan)
    accepted = []
    for kind in sorted(chains[0][0].acceptance):
        share = _mean([trace.acceptance.get(kind, np.nan) for trace, _ in chains])
        ratio = _mean([trace.log_ratio.get(kind, np.nan) for trace, _ in chains])
        accepted.append(f"{kind} {share:.3f}" + ("" if np.isnan(ratio) else f" {ratio:.1f}"))
    shown = " ".join(f"{mean:12.1f} ({spread:6.1f})" for mean, spread in zip(joints.mean(axis=0), spreads, strict=True))
    sweeps = np.mean([len(times) for _, times in chains])
    return f"{name:24s} {shown} {np.mean(sizes):8.2f} {_mean(rates):8.2f} {sweeps:7.0f}  {', '.join(accepted)}"


def _mean(values: list[float]) -> float:
    known = np.array(values)[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def head(title: str, seconds: float, chains: int, init: str) -> str:
    """The head of a table."""
    marks = " ".join(f"{f'{mark * seconds:.3g} s':>21s}" for mark in MARKS)
    columns = f"{'':24s} {marks} {'K':>8s} {'ESS K/s':>8s} {'sweeps':>7s}"
    return f"\n{title}, {chains} chain(s) of {seconds:g} s, init {init!r}, mean (standard deviation)\n{columns}"


def compare(name: str, process: Any, likelihood: Callable[[Any], Any], seconds: float, label: str) -> Iterator[str]:
    """All samplers on one data set, and a figure."""
    rows = rows_of(name)
    if rows is None:
        yield f"\n{name}: the data are not there"
        return
    model = sb.Mixture(likelihood=likelihood(rows), process=process)
    init = "ibhc" if name == "nips" else "one-on-top"
    yield head(f"{name}, {rows.shape[0]} rows, {label}", seconds, CHAINS, init)
    found: dict[str, np.ndarray] = {}
    grid = np.geomspace(MARKS[0] / 10, MARKS[-1], 200) * seconds
    for kind, sampler in samplers(rows.shape[0]).items():
        chains = [chain(model, rows, sampler, seconds, init, seed) for seed in range(CHAINS)]
        found[kind] = np.array([at(one, grid) for one in chains])
        yield line(kind, chains, seconds)
    if can_draw():
        draw(f"{name}_{label.split('(')[0].lower()}", grid, found)


def draw(name: str, seconds: np.ndarray, found: dict[str, np.ndarray]) -> None:
    """The mean log joint of each sampler by seconds, and the range of its chains."""
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for kind, joints in found.items():
        (drawn,) = panel.plot(seconds, joints.mean(axis=0), label=kind)
        panel.fill_between(seconds, joints.min(axis=0), joints.max(axis=0), color=drawn.get_color(), alpha=0.15)
    middle = np.median([joints[:, len(seconds) // 2] for joints in found.values()])
    highest = max(joints.max() for joints in found.values())
    panel.set(xlabel="CPU seconds", ylabel="log joint probability, nats", xscale="log")
    panel.set_ylim(middle - 2 * (highest - middle), highest + 0.1 * (highest - middle))
    panel.legend(title="mean and range of the chains")
    save(figure, f"tree_guided_{name}")


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
    yield head("settings of the exact sampler, toy, DirichletProcess(1)", seconds, 1, "one-on-top")
    for name, given in kinds.items():
        yield line(name, [chain(model, rows, sb.TreeGuided(**given), seconds)], seconds)


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
    lines = [first_line(), command(), f"load of the machine: {os.getloadavg()[0]:.1f}"]
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
