"""What each part gives on the digits of Hughes and Sudderth (2013): seconds until the bound is as good as that.

Data and model of `memoized_mnist.py`. Loss is -ELBO / (n D), lower is better. With a fixed K = 100 from k-means++, in
batches and with all rows in one: all responsibilities, then L = 4 of them, then without those more than 20 nats below
the best (margin), then with bounds in the place of scores that cannot matter (`bounds_memory` at its default, else 0).
From K = 1, with bounds: births, then deletes, then merges; and all of them with every score, sparse and dense. Medians
over seeds of wall seconds since the fit began, the start included; "never" is not within the passes.

python benches/papers/memoized_ablation.py [--seeds 3] [--passes 25] [--batches 20] [--threads 2]
"""

import argparse
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import stickbreak as sb
from digit_runs import Run, keep, number, run, spread, threads_and_load
from digits import DIMENSION, Digits, load, model
from figures import can_draw, print_head

N_COMPONENTS = 100
LEVELS = (0.5, 0.48, 0.465, 0.46, 0.454, 0.445, 0.441)
DENSE = {"sparsity": None}
SPARSE = {"sparsity": 4}
EVERY = {"margin": None, "bounds_memory": 0}
MARGIN = {"margin": 20.0, "bounds_memory": 0}
BOUNDS = {"margin": 20.0}


@dataclass(frozen=True)
class Variant:
    name: str
    options: dict[str, Any]
    moves: tuple[sb.run.moves.Move, ...] = ()
    one_batch: bool = False
    # With moves runs begin with one component.
    start: dict[str, Any] = field(default_factory=dict)

    def algorithm(self, n_batches: int, passes: int) -> sb.Memoized:
        shared = {"moves": self.moves, "max_passes": passes, "tol": 0}
        return sb.Memoized(1 if self.one_batch else n_batches, **self.options, **shared)


def variants(k: int = N_COMPONENTS) -> list[Variant]:
    fixed = {"n_components": k, "init": "kmeans++"}
    birth, delete, merge = sb.Birth(), sb.Delete(), sb.Merge()
    return [
        Variant("dense", DENSE | EVERY, start=fixed),
        Variant("sparse", SPARSE | EVERY, start=fixed),
        Variant("sparse, margin", SPARSE | MARGIN, start=fixed),
        Variant("sparse, bounds", SPARSE | BOUNDS, start=fixed),
        Variant("one batch, sparse", SPARSE | EVERY, one_batch=True, start=fixed),
        Variant("one batch, margin", SPARSE | MARGIN, one_batch=True, start=fixed),
        Variant("one batch, bounds", SPARSE | BOUNDS, one_batch=True, start=fixed),
        Variant("+ births", SPARSE | BOUNDS, (birth,)),
        Variant("+ deletes", SPARSE | BOUNDS, (birth, delete)),
        Variant("+ merges", SPARSE | BOUNDS, (birth, merge, delete)),
        Variant("all moves, every score", SPARSE | EVERY, (birth, merge, delete)),
        Variant("all moves, dense", DENSE | EVERY, (birth, merge, delete)),
    ]


def report(runs: list[Run]) -> None:
    print(f"  {runs[0].name:<24}" + "".join(f"{value:>9}" for value in cells(runs)), flush=True)


def cells(runs: list[Run]) -> list[str]:
    reached = [median([one.until(level) for one in runs]) for level in LEVELS]
    total = np.median([one.seconds[-1] for one in runs])
    share = np.mean([one.evaluated_share for one in runs])
    return [*reached, f"{total:.1f}", f"{share:.2f}", f"{np.median([one.components[-1] for one in runs]):.0f}"]


def median(seconds: list[float | None]) -> str:
    known = [np.inf if value is None else value for value in seconds]
    return number(float(np.median(known)), 1)


def draw(found: dict[str, list[Run]]) -> None:
    import matplotlib.pyplot as plt

    from figures import save

    figure, panel = plt.subplots(figsize=(8, 5), layout="constrained")
    for position, (name, runs) in enumerate(found.items()):
        for index, one in enumerate(runs):
            style = {"color": f"C{position % 10}", "linestyle": "-" if position < 10 else "--"}
            panel.plot(one.seconds, one.losses, **style, alpha=0.7, label=None if index else name)
    lowest = min(one.loss for runs in found.values() for one in runs)
    panel.set(xlabel="seconds", ylabel="-ELBO / (n D), nats", xscale="log", ylim=(lowest - 0.005, lowest + 0.1))
    panel.legend(fontsize=7)
    save(figure, "memoized_ablation")


def measure(digits: Digits, variant: Variant, n_batches: int, passes: int, seeds: int, threads: int) -> list[Run]:
    algorithm = variant.algorithm(n_batches, passes)
    return [
        run(digits, variant.name, algorithm, model(), seed=seed, threads=threads, **variant.start)[0]
        for seed in range(seeds)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=25)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    try:
        digits = load()
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return
    print(
        f"stickbreak {sb.__version__}: {len(digits.rows)} images, D = {DIMENSION}, float32, {options.batches} batches, "
        f"{options.passes} passes, {options.seeds} seeds; {threads_and_load(options.threads)}\n"
        "seconds until the loss is below each level, of all passes; share of scores computed; K at the end\n"
        f"  {'':<24}" + "".join(f"{name:>9}" for name in [*LEVELS, "all", "share", "K"]),
        flush=True,
    )
    found = {}
    for variant in variants():
        found[variant.name] = measure(digits, variant, options.batches, options.passes, options.seeds, options.threads)
        report(found[variant.name])
    print("\nloss at the end")
    for name, runs in found.items():
        print(f"  {name:<24}{spread([one.loss for one in runs], 4)}")
    keep("memoized_ablation", [one for runs in found.values() for one in runs])
    print(f"\n{threads_and_load(options.threads)}")
    if can_draw():
        draw(found)


if __name__ == "__main__":
    print_head()
    main()
