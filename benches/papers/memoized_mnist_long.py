"""The digits of Hughes and Sudderth (2013), section 4.2, for the 200 passes of the paper: loss and growth of K.

As `memoized_mnist.py`, with fewer seeds: births, merges and deletes from K = 1, and K = 100 from k-means++ and from
random rows without moves, each in 20 and 100 batches. Loss is -ELBO / (n D). All runs keep L = 4 components an image
and make all passes (tol = 0).

    python benches/papers/memoized_mnist_long.py [--seeds 3] [--passes 200] [--threads 2]
"""

import argparse

import stickbreak as sb
from digit_runs import Run, run, threads_and_load
from digits import DIMENSION, load, model
from figures import can_draw, print_head, save
from memoized_mnist import BATCHES, INITS, MOVES, N_COMPONENTS, WIDTH, memoized

MARKS = (1, 2, 5, 10, 25, 50, 100, 200)


def draw(runs: list[Run]) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    names = list(dict.fromkeys(one.name for one in runs))
    for one in runs:
        color, label = f"C{names.index(one.name)}", one.name if one.seed == 0 else None
        passes = range(1, len(one.losses) + 1)
        panels[0].semilogx(passes, one.losses, color=color, label=label, linewidth=1)
        panels[1].semilogx(passes, one.components, color=color, linewidth=1)
    panels[0].set(xlabel="pass", ylabel="loss", ylim=(0.43, 0.55))
    panels[0].legend(fontsize="x-small")
    panels[1].set(xlabel="pass", ylabel="K")
    save(figure, "memoized_mnist_long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    try:
        digits = load()
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return
    print(
        f"stickbreak {sb.__version__}: {len(digits.rows)} images, D = {DIMENSION}, float32, L = {WIDTH}; "
        f"{threads_and_load(options.threads)}; seconds are wall seconds"
    )
    marks = [mark for mark in MARKS if mark <= options.passes]
    print(f"loss and K after passes: {'':<26}" + "".join(f"{mark:>14}" for mark in marks) + "   seconds")
    runs: list[Run] = []

    def show(name: str, algorithm: sb.Memoized, n_components: int = 1, init: str = "kmeans++") -> None:
        for seed in range(options.seeds):
            start = {"n_components": n_components, "init": init}
            one, _ = run(digits, name, algorithm, model(), seed=seed, threads=options.threads, **start)
            runs.append(one)
            cells = "".join(f"{one.losses[mark - 1]:>9.4f} {one.components[mark - 1]:>4}" for mark in marks)
            print(f"  {name + f', seed {seed}':<49}{cells}{one.seconds[-1]:>10.1f}", flush=True)

    for n_batches in BATCHES:
        show(f"births, {n_batches} batches", memoized(n_batches, options.passes, MOVES))
    for init in INITS:
        for n_batches in BATCHES:
            algorithm = memoized(n_batches, options.passes)
            show(f"K = 100, {init}, {n_batches} batches", algorithm, N_COMPONENTS, init)
    if can_draw():
        draw(runs)


if __name__ == "__main__":
    print_head()
    main()
