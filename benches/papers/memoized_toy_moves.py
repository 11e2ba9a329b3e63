"""The number of components of the toy data of Hughes and Sudderth (2013), section 4.1: births and merges from K = 1.

The data are those of `edges.py`, with 8 true components. MO-BM begins with one component, with births, merges and
deletes at their defaults, and ends when a pass gains less than 1e-6 nats a row. A component is matched with the true
one whose covariance is nearest in the Frobenius norm, relative to the norm of the true one; the match is one-to-one if
every true one is the match of one component.

GreedyMerge, the paper's ablation: memoized passes from the random starts with K = 25 (100 batches, dense), and after
each pass ten proposals to merge two components drawn at random. A proposal is accepted if the bound of one batch rises:
the evidence lower bound of the rows of the batch under components and weights that are those of all data
(`Fit.evaluate`). The control draws proposals in the same way and judges them by the bound of all rows. Both are made
here of public pieces, since the package judges merges by all rows only; every state is the optimum for a table of all
responsibilities, which stands in the place of the memo.

python benches/papers/memoized_toy_moves.py [--rows 100000] [--seeds 10] [--passes 30] [--batches 10 100] [--threads 2]
    [--greedy-starts 5] [--greedy-passes 10]
"""

import argparse
import os
import time
from dataclasses import dataclass, field

import numpy as np

import stickbreak as sb
from edges import N_TRUE, SIDE, Array, Patches, best_possible, generate, model
from figures import can_draw, print_head

MOVES = (sb.Birth(), sb.Merge(), sb.Delete())
N_COMPONENTS = 25
N_BATCHES = 100
N_PROPOSALS = 10
# The largest relative error of a covariance that is asked for.
ASKED = 0.15
JUDGES = ("one batch", "all rows")


@dataclass(frozen=True)
class Run:
    """MO-BM with one seed: numbers of components and bounds a row by pass, and how it ended."""

    components: list[int]
    bounds: list[float]
    seconds: float
    one_to_one: bool
    # Relative Frobenius errors of the components to the true ones that are nearest.
    errors: Array

    @property
    def right(self) -> bool:
        return self.one_to_one and bool(self.errors.max() < ASKED)


def run(patches: Patches, n_batches: int, passes: int, seed: int, threads: int) -> Run:
    begun = time.perf_counter()
    algorithm = sb.Memoized(n_batches, moves=MOVES, max_passes=passes)
    found = sb.fit(model(), patches.rows, algorithm, seed=seed, threads=threads, progress=False)
    seconds = time.perf_counter() - begun
    nearest, errors = match(found.point_estimates["covariance"], patches.covariances)
    return Run(
        components=[record.n_components for record in found.history],
        bounds=[record.elbo / len(patches.rows) for record in found.history],
        seconds=seconds,
        one_to_one=sorted(nearest) == list(range(N_TRUE)),
        errors=errors,
    )


def match(found: Array, true: Array) -> tuple[list[int], Array]:
    """Which true covariance is nearest to each found one, and how near."""
    distances = np.linalg.norm(found[:, None] - true, axis=(2, 3)) / np.linalg.norm(true, axis=(1, 2))
    return distances.argmin(axis=1).tolist(), distances.min(axis=1)


def report(runs: dict[int, list[Run]], ideal: float) -> None:
    print(
        f"\nMO-BM from K = 1: K after each pass; a match of one component with one true one; largest relative "
        f"Frobenius error;\nbound a row less that from the true labels ({ideal:.6f}); wall seconds"
    )
    for n_batches, own in runs.items():
        for seed, one in enumerate(own):
            print(
                f"  {n_batches:>3} batches, seed {seed}: one-to-one: {'yes' if one.one_to_one else 'no':<4}"
                f"{one.errors.max():7.4f} {one.bounds[-1] - ideal:+.1e} {one.seconds:6.1f} s   K: "
                + " ".join(map(str, one.components))
            )
        print(
            f"  {n_batches:>3} batches: {sum(one.right for one in own)} of {len(own)} end with {N_TRUE} components, "
            f"one-to-one, errors below {ASKED}; seconds: {spread([one.seconds for one in own])}; passes: "
            f"{spread([len(one.components) for one in own], 0)}",
            flush=True,
        )


def spread(values: list[float] | list[int], digits: int = 1) -> str:
    """Median and range."""
    return f"{np.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


@dataclass
class Merging:
    """Passes with merges from one random start: what there was after the merges of each."""

    components: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    accepted: int = 0
    # Accepted merges that lowered the bound of all rows.
    ruinous: int = 0


def state(patches: Patches, shares: Array, threads: int) -> sb.Fit:
    """The best components and weights for these responsibilities of all rows."""
    still = sb.Full(max_passes=0, sparsity=None)
    return sb.fit(model(), patches.rows, still, init=shares, threads=threads, progress=False)


def joined(shares: Array, a: int, b: int) -> Array:
    """What the responsibilities are when components a and b are one."""
    both = np.delete(shares, b, axis=1)
    both[:, a - (a > b)] += shares[:, b]
    return both


def merging(patches: Patches, judge: str, passes: int, seed: int, threads: int) -> Merging:
    rng = np.random.default_rng(seed)
    n = len(patches.rows)
    batches = np.array_split(rng.permutation(n), N_BATCHES)
    a_pass = sb.Memoized(N_BATCHES, sparsity=None, max_passes=1, tol=0)
    start = {"n_components": N_COMPONENTS, "init": "random", "seed": seed}
    own = Merging()
    for index in range(passes):
        found = sb.fit(model(), patches.rows, a_pass, threads=threads, progress=False, **start)
        shares = found.predict_proba(patches.rows, threads=threads)
        batch = patches.rows[batches[index % N_BATCHES]]
        current = state(patches, shares, threads)
        for _ in range(N_PROPOSALS):
            if current.n_components == 1:
                break
            a, b = rng.choice(current.n_components, 2, replace=False)
            proposed_shares = joined(shares, a, b)
            proposed = state(patches, proposed_shares, threads)
            change = proposed.elbo - current.elbo
            if judge == "one batch":
                accept = proposed.evaluate(batch, threads=threads) > current.evaluate(batch, threads=threads)
            else:
                accept = change > 0
            if accept:
                own.accepted += 1
                own.ruinous += change < 0
                shares, current = proposed_shares, proposed
        own.components.append(current.n_components)
        own.bounds.append(current.elbo / n)
        start = {"init": shares, "seed": seed + index + 1}
    return own


def report_merging(runs: dict[str, list[Merging]]) -> None:
    print(
        f"\nMerges from random starts with K = {N_COMPONENTS}, {N_PROPOSALS} proposals a pass, judged by one batch "
        "(GreedyMerge) or by all rows:\nmerges accepted, those of them that lower the bound of all rows; bound a row "
        "at last; K after each pass"
    )
    for judge, own in runs.items():
        for index, one in enumerate(own):
            print(
                f"  {judge:>9}, start {index}: {one.accepted:>3}{one.ruinous:>4}{one.bounds[-1]:11.4f}   K: "
                + " ".join(map(str, one.components))
            )


def draw(runs: dict[int, list[Run]], merges: dict[str, list[Merging]], ideal: float) -> None:
    import matplotlib.pyplot as plt

    from figures import save

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    everything: dict[str, list[Run] | list[Merging]] = {
        **{f"MO-BM, {n_batches} batches": own for n_batches, own in runs.items()},
        **{f"merges judged by {judge}": own for judge, own in merges.items()},
    }
    for number, (name, own) in enumerate(everything.items()):
        for index, one in enumerate(own):
            passes = np.arange(1, len(one.components) + 1)
            style = {"color": f"C{number}", "alpha": 0.6, "linewidth": 0.9, "label": None if index else name}
            panels[0].plot(passes, one.components, **style)
            panels[1].plot(passes, one.bounds, **style)
    panels[0].axhline(N_TRUE, color="k", linestyle="--", linewidth=0.8)
    panels[1].axhline(ideal, color="k", linestyle="--", linewidth=0.8)
    panels[0].set(xlabel="passes through the data", ylabel="K")
    panels[1].set(xlabel="passes through the data", ylabel="ELBO a row, nats")
    panels[0].legend()
    save(figure, "memoized_toy_moves")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--greedy-starts", type=int, default=5)
    parser.add_argument("--greedy-passes", type=int, default=10)
    options = parser.parse_args()
    patches = generate(options.rows)
    ideal = best_possible(patches).elbo / options.rows
    print(
        f"stickbreak {sb.__version__}: {options.rows} patches of {SIDE} x {SIDE}, {N_TRUE} true components, "
        f"at most {options.passes} passes, float64; {MOVES}; {options.threads} threads, load before "
        f"{os.getloadavg()[0]:.1f}",
        flush=True,
    )
    runs = {
        n_batches: [run(patches, n_batches, options.passes, seed, options.threads) for seed in range(options.seeds)]
        for n_batches in options.batches
    }
    report(runs, ideal)
    merges = {
        judge: [
            merging(patches, judge, options.greedy_passes, seed, options.threads)
            for seed in range(options.greedy_starts)
        ]
        for judge in JUDGES
    }
    report_merging(merges)
    print(f"\nload after {os.getloadavg()[0]:.1f}")
    if can_draw():
        draw(runs, merges, ideal)


if __name__ == "__main__":
    print_head()
    main()
