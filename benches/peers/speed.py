"""stickbreak beside bnpy's dense memoized schedule: a pass, and the way to the bound at which bnpy converges.

Both have one thread, the same rows, prior, labels and number of batches, which is bnpy's own default. bnpy is told to
make its first pass with the components of the start (`doFullPassBeforeMstep=1`), which it otherwise forgets after one
batch. Seconds are CPU seconds; see README.md for the rest.

python benches/peers/speed.py --bnpy FOLDER/bin/python --json benches/results/peers-speed.json
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import contenders
import whole_run
from contenders import Contender
from problems import Problem, start
from scoring import Posterior, elbo

BATCHES = 10
# Passes of bnpy of which the first does not count; passes of ours with all that spares work, of which all count.
PEER_PASSES, PASSES = 5, 30
# How soon ours is to be at the bound of bnpy, and when it is given up.
SOONER, MOST_PASSES = 30.0, 500
# Also told: the first pass within this many nats a row of that bound.
NEAR = 1e-3


@dataclass(frozen=True)
class Setting:
    """One of ours, and how many times as fast as bnpy's its pass is to be."""

    name: str
    dtype: str
    passes: int
    target: float
    more: dict[str, Any]
    batches: int = BATCHES

    def contender(self, **more: Any) -> Contender:
        settings = {"scored": [], **self.more, **more}
        return Contender(self.name, "stickbreak", dtype=self.dtype, batches=self.batches, sparsity=4, more=settings)


SPARED = {"margin": 20.0, "bounds_memory": 2**30}
OURS = [
    Setting("stickbreak float64, every score", "float64", PEER_PASSES, 19.0, {"bounds_memory": 0}),
    Setting("stickbreak float32, margin 20", "float32", PASSES, 60.0, SPARED),
    # One batch is large enough for bounds.
    Setting("stickbreak float32, margin 20, one batch", "float32", PASSES, 60.0, SPARED, batches=1),
]


def problem_of(name: str) -> Problem:
    """The rows of `whole_run.py`, of the patches 100,000 drawn ones, and labels of k-means in decreasing size."""
    if name == "digits":
        rows = whole_run.digits().astype(np.float64)
        return Problem(name, rows, rows[:0], start(rows, 100), 100, scale=0.1)
    every = whole_run.patches()
    chosen = np.random.default_rng(0).choice(len(every), 100_000, replace=False)
    rows = every[np.sort(chosen)].astype(np.float64)
    return Problem(name, rows, rows[:0], start(rows, 200), 200, scale=1e-3, mean_precision=None)


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


class Runs:
    """Runs of one problem, each in a process of its own; what they wrote is kept."""

    def __init__(self, problem: Problem, folder: Path) -> None:
        self.problem, self.folder = problem, folder / problem.name
        problem.write(self.folder)
        self.results: list[dict[str, Any]] = []

    def run(self, contender: Contender, passes: int) -> dict[str, Any]:
        before, folder = load(), self.folder / str(len(self.results))
        result = contender.run(self.folder, folder, passes) | {"name": contender.name, "folder": folder}
        print(f"  {contender.name}: {len(result['own_elbo'])} passes, {before} to {load()[5:]}", flush=True)
        self.results.append(result)
        return result

    def nats(self, value: float) -> str:
        return f"{value / len(self.problem.train):.6f}"

    def scores(self, result: dict[str, Any]) -> dict[int, float]:
        """What the scorer makes of the posteriors, by pass."""
        paths = {index: result["folder"] / f"pass_{index:04d}.npz" for index in result["checkpoints"]}
        return {
            index: elbo(self.problem.train, Posterior.load(path), self.problem.prior) for index, path in paths.items()
        }


def compare_passes(runs: Runs, peer: Contender) -> None:
    peer = replace(peer, more={"keep_start": True, "scored": []})
    theirs = runs.run(peer, PEER_PASSES)
    ours = [(setting, runs.run(setting.contender(), setting.passes)) for setting in OURS]
    a_pass = float(np.median(np.diff(theirs["cpu_seconds"])))
    print(f"  a pass of {peer.name}: {a_pass:.3g} s (median, without the first)")
    if peer.environment:
        untold = runs.run(replace(peer, name=f"{peer.name}, kernels not told", environment={}), 3)
        print(f"  a pass of it with the kernels that it chooses: {np.diff(untold['cpu_seconds']).min():.3g} s")
    for setting, result in ours:
        times = np.diff([0.0, *result["cpu_seconds"]])
        if setting.passes == PASSES:
            value, how = times.mean(), f"mean of {PASSES} from the labels; last ten {times[-10:].mean():.3g}"
        else:
            value, how = np.median(times[1:]), "median, without the first"
        print(
            f"  a pass of {setting.name}: {value:.3g} s ({how}), {a_pass / value:.1f} times as fast "
            f"(target {setting.target:g})"
        )


def first(result: dict[str, Any], target: float) -> int | None:
    """The first pass whose bound is at least `target`."""
    reached = np.flatnonzero(np.array(result["own_elbo"]) >= target)
    return int(reached[0]) + 1 if len(reached) else None


def reach(result: dict[str, Any], target: float) -> tuple[float, str]:
    """CPU seconds until then, and how to say it."""
    at = first(result, target)
    if at is None:
        return np.inf, f"not in {len(result['own_elbo'])} passes, {result['cpu_seconds'][-1]:.3g} s"
    return result["cpu_seconds"][at - 1], f"pass {at}, {result['cpu_seconds'][at - 1]:.3g} s"


def compare_bounds(runs: Runs, peer: Contender, laps: int) -> None:
    theirs = runs.run(replace(peer, more={"keep_start": True, "until_converged": True}), laps)
    bounds, passes = theirs["own_elbo"], len(theirs["own_elbo"])
    target, near = max(bounds), max(bounds) - NEAR * len(runs.problem.train)
    print(f"  {peer.name} {'converged' if passes < laps else 'did NOT converge'}: its bound, and the scorer's")
    for index, value in runs.scores(theirs).items():
        seconds = theirs["cpu_seconds"][index - 1]
        print(f"    pass {index:>4} {seconds:>8.1f} s {runs.nats(bounds[index - 1]):>12} {runs.nats(value):>12}")
    print(f"  its highest bound, {runs.nats(target)} nats a row: {reach(theirs, target)[1]}")
    print(f"  within {NEAR:g} nats a row of it: {reach(theirs, near)[1]}", flush=True)
    for setting in OURS:
        result = runs.run(setting.contender(target=target), MOST_PASSES)
        print(f"    pass, s, nats a row: {', '.join(steps(runs, result))}")
        ((_, scored),) = runs.scores(result).items()
        print(f"    at the end, by the scorer: {runs.nats(scored)}")
        for what, value in (("that bound", target), (f"within {NEAR:g}", near)):
            seconds, how = reach(result, value)
            ratio = reach(theirs, value)[0] / seconds
            print(f"    {what}: {how}; {ratio:.1f} times sooner (target {SOONER:g})", flush=True)


def steps(runs: Runs, result: dict[str, Any]) -> Iterator[str]:
    """Some passes of a run."""
    count = len(result["own_elbo"])
    for index in sorted({*range(1, 9), *range(10, count, 10), count}):
        if index <= count:
            yield f"{index} {result['cpu_seconds'][index - 1]:.2f} {runs.nats(result['own_elbo'][index - 1])}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bnpy", metavar="PYTHON", default=os.environ.get("BNPY_PYTHON"), help="interpreter with bnpy")
    parser.add_argument("--laps", type=int, default=250, help="the most passes that bnpy has to converge; 0: leave out")
    parser.add_argument("--without", nargs="+", default=[], choices=["digits", "patches"], help="passes to leave out")
    parser.add_argument("--json", type=Path, help="where to write all seconds and bounds")
    return parser.parse_args()


def main() -> None:
    options = parse()
    entrants, message = contenders.bnpy(options.bnpy, BATCHES)
    print(f"{message}; one thread each, {BATCHES} batches, L = 4, CPU seconds; {load()}")
    peers = [entrant for entrant in entrants if entrant.batches == BATCHES and entrant.sparsity is None]
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("digits", "patches") if peers else ():
            if name in options.without and not (name == "digits" and options.laps):
                continue
            try:
                runs = Runs(problem_of(name), Path(folder))
            except FileNotFoundError as error:
                print(f"{name} left out: {error}")
                continue
            problem = runs.problem
            print(f"\n{name}: (n, D, K) = ({len(problem.train)}, {problem.dimension}, {problem.n_components})")
            if name not in options.without:
                compare_passes(runs, peers[0])
            if name == "digits" and options.laps:
                compare_bounds(runs, peers[0], options.laps)
            measured.append({"name": name, "prior": problem.numbers, "runs": runs.results})
    print(f"\n{load()}")
    if options.json is not None:
        written = {"head": contenders.first_line(), "command": contenders.command(), "data": measured}
        options.json.write_text(json.dumps(written, indent=1, default=lambda path: path.name) + "\n")


if __name__ == "__main__":
    contenders.print_head()
    main()
