"""The digits of Hughes and Sudderth (2013), section 4.2: births, merges and deletes from K = 1 against fixed K.

60,000 training images of MNIST on 50 principal components (`digits.py`); dof = D + 2, scale 0.1 I, mean precision 1e-4,
mean 0, concentration 1. Loss is -ELBO / (n D), so lower is better. Alignment is the share of images that have the most
frequent digit of their component. All runs keep L = 4 components an image and make all passes (tol = 0); the paper
makes 200. The seeds are 0, 1, ... and were fixed before any was run. Figures are median and range.

births        MO-BM: Memoized with Birth(), Merge(), Delete() from K = 1, 20 and 100 batches
starts        Full, and Memoized with 20 and 100 batches, K = 100, from k-means++ and from random rows, without moves
stochastic    the same starts, steps of the paper's lengths (t + delay)^-decay; the bound is known at the end only,
              after one more pass over all rows, which flatters these runs
vdp           the split search of accelerated VDP (Kurihara and others), from K = 1, Full with Split(), Merge(), at most
              one split a pass
larger        where more than 80 components appear: births as in the paper, more fresh parts, more rows to make them
              of, other prior scales (a bound under another scale is that of another model), moves from K = 150;
              three seeds at most
scikit-learn  BayesianGaussianMixture, K = 100, 100 iterations from k-means, float64, scored by our bound of its
              responsibilities; as many threads as its BLAS takes
figures       from what the other parts kept; needs Matplotlib

python benches/papers/memoized_mnist.py [--parts births starts ...] [--seeds 5] [--starts 10] [--passes 25]
    [--split-passes 150] [--threads 2]
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

import stickbreak as sb
from digit_runs import Run, clusters, keep, kept, loss, members, number, run, spread, threads_and_load
from digits import DIMENSION, SCALE, Digits, load, model
from figures import can_draw, folder, print_head

WIDTH = 4
N_COMPONENTS = 100
BATCHES = (20, 100)
INITS = ("kmeans++", "random")
STEPS = {"SO a": (10.0, 0.5), "SO b": (100.0, 0.5), "SO c": (10.0, 0.9)}
MOVES = (sb.Birth(), sb.Merge(), sb.Delete())
# Losses and when they are to be reached: passes, seconds.
GOALS = {0.454: (5, 5), 0.441: (25, 20)}
LEAST_ALIGNMENT = 0.82
LARGEST_DIFFERENCE = 0.6
SKLEARN_ITERATIONS = 100
# Birth, prior scale, and K to begin with.
LARGER = {
    "adoption='pass'": (sb.Birth(adoption="pass"), SCALE, 1),
    "fresh=20": (sb.Birth(fresh=20), SCALE, 1),
    "max_subsample=20000": (sb.Birth(max_subsample=20_000), SCALE, 1),
    "both": (sb.Birth(fresh=20, max_subsample=20_000), SCALE, 1),
    **{f"scale {scale:g}": (sb.Birth(), scale, 1) for scale in (0.02, 0.05, 0.2, 0.5)},
    "from K = 150": (sb.Birth(), SCALE, 150),
}
LARGE = 80


@dataclass(frozen=True)
class Settings:
    seeds: int
    starts: int
    passes: int
    split_passes: int
    threads: int


def memoized(n_batches: int, passes: int, moves: tuple[sb.run.moves.Move, ...] = ()) -> sb.Memoized:
    return sb.Memoized(n_batches, sparsity=WIDTH, moves=moves, max_passes=passes, tol=0)


def stochastic(n: int, n_batches: int, name: str, passes: int) -> sb.Stochastic:
    delay, decay = STEPS[name]
    with warnings.catch_warnings():
        # A decay of 0.5 is warned of, but is what the paper has.
        warnings.simplefilter("ignore", sb.StepSizeWarning)
        return sb.Stochastic(-(-n // n_batches), delay, decay, sparsity=WIDTH, max_passes=passes)


def births(digits: Digits, settings: Settings) -> Iterator[Run]:
    best: tuple[float, sb.Fit] | None = None
    for n_batches in BATCHES:
        for seed in range(settings.seeds):
            algorithm = memoized(n_batches, settings.passes, MOVES)
            name = f"MO-BM, {n_batches} batches"
            own, found = run(digits, name, algorithm, model(), seed=seed, threads=settings.threads)
            if best is None or own.loss < best[0]:
                best = own.loss, found
            yield own
    assert best is not None
    keep_clusters(digits, best[1], settings.threads)


def starts(digits: Digits, settings: Settings) -> Iterator[Run]:
    algorithms = {"Full": sb.Full(sparsity=WIDTH, max_passes=settings.passes, tol=0)}
    algorithms |= {f"MO, {n_batches} batches": memoized(n_batches, settings.passes) for n_batches in BATCHES}
    yield from from_starts(digits, settings, algorithms)


def stochastic_starts(digits: Digits, settings: Settings) -> Iterator[Run]:
    n = len(digits.rows)
    algorithms = {
        f"{name}, {n_batches} batches": stochastic(n, n_batches, name, settings.passes)
        for name in STEPS
        for n_batches in BATCHES
    }
    yield from from_starts(digits, settings, algorithms)


def from_starts(
    digits: Digits, settings: Settings, algorithms: dict[str, sb.Full | sb.Memoized | sb.Stochastic]
) -> Iterator[Run]:
    for init in INITS:
        for name, algorithm in algorithms.items():
            for seed in range(settings.starts):
                yield run(
                    digits,
                    f"{name}, {init}",
                    algorithm,
                    model(),
                    seed=seed,
                    threads=settings.threads,
                    n_components=min(N_COMPONENTS, len(digits.rows)),
                    init=init,
                )[0]


def vdp(digits: Digits, settings: Settings) -> Iterator[Run]:
    algorithm = sb.Full(sparsity=WIDTH, moves=(sb.Split(), sb.Merge()), max_passes=settings.split_passes, tol=0)
    for seed in range(settings.seeds):
        yield run(digits, "VDP", algorithm, model(), seed=seed, threads=settings.threads)[0]


def larger(digits: Digits, settings: Settings) -> Iterator[Run]:
    for name, (birth, scale, k) in LARGER.items():
        algorithm = memoized(BATCHES[0], settings.passes, (birth, sb.Merge(), sb.Delete()))
        for seed in range(min(3, settings.seeds)):
            threads = settings.threads
            yield run(digits, name, algorithm, model(scale), seed=seed, threads=threads, n_components=k)[0]


def scikit_learn(digits: Digits, settings: Settings) -> Iterator[Run]:
    if find_spec("sklearn") is None:
        print("left out: scikit-learn is not installed")
        return
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    rows = digits.rows.astype(np.float64)
    mixture = BayesianGaussianMixture(
        n_components=min(N_COMPONENTS, len(rows)),
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=1.0,
        mean_prior=np.zeros(DIMENSION),
        mean_precision_prior=1e-4,
        degrees_of_freedom_prior=DIMENSION + 2,
        covariance_prior=SCALE * np.eye(DIMENSION),
        reg_covar=0.0,
        max_iter=SKLEARN_ITERATIONS,
        tol=0.0,
        random_state=0,
    )
    begun, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(rows)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    shares = mixture.predict_proba(rows)
    scored = sb.fit(model(), rows, sb.Full(max_passes=0, sparsity=None), init=shares, progress=False)
    yield Run(
        name="scikit-learn",
        seed=0,
        passes=[SKLEARN_ITERATIONS],
        losses=[loss(digits, scored.elbo)],
        seconds=[round(seconds, 3)],
        cpu=round(cpu, 2),
        components=[scored.n_components],
        evaluated_share=1.0,
        **clusters(digits, scored, settings.threads),
    )


PARTS: dict[str, Callable[[Digits, Settings], Iterator[Run]]] = {
    "births": births,
    "starts": starts,
    "stochastic": stochastic_starts,
    "vdp": vdp,
    "larger": larger,
    "scikit-learn": scikit_learn,
}


def report(runs: list[Run]) -> None:
    """By name: median and range."""
    head = "".join(f"{f's below {goal}':>22}" for goal in GOALS)
    print(
        f"  {'':<30}{'runs':>5}{'loss after 5 passes':>26}{'at the end':>26}{'K':>16}{'K in use':>16}"
        f"{'alignment':>23}{'CPU s':>20}{head}"
    )
    for name, own in by_name(runs).items():
        early = [one.loss_after(5) for one in own]
        print(
            f"  {name:<30}{len(own):>5}{'' if np.isnan(early).any() else spread(early, 4):>26}"
            f"{spread([one.loss for one in own], 4):>26}{spread([one.components[-1] for one in own], 0):>16}"
            f"{spread([one.effective for one in own], 0):>16}{spread([one.alignment for one in own], 3):>23}"
            f"{spread([one.cpu for one in own], 1):>20}"
            + "".join(f"{spread([one.until(goal) for one in own], 1):>22}" for goal in GOALS),
            flush=True,
        )


def by_name(runs: list[Run]) -> dict[str, list[Run]]:
    return {name: [one for one in runs if one.name == name] for name in dict.fromkeys(one.name for one in runs)}


def print_traces(runs: list[Run]) -> None:
    for one in runs:
        if len(one.losses) > 1:
            print(
                f"  {one.name}, seed {one.seed}: loss "
                + " ".join(f"{value:.4f}" for value in one.losses)
                + "; K "
                + " ".join(map(str, one.components))
                + "; seconds "
                + " ".join(f"{value:.1f}" for value in one.seconds)
            )


def where_larger(runs: list[Run]) -> None:
    for name, own in by_name(runs).items():
        after = [[number for number, k in zip(one.passes, one.components, strict=True) if k > LARGE] for one in own]
        print(f"  {name}: K > {LARGE} after passes " + "; ".join(" ".join(map(str, some)) or "none" for some in after))


def against_goals(runs: list[Run], passes: int) -> None:
    """What is asked of MO-BM, and what there is; `runs` are those of all parts that were kept."""
    own = [one for one in runs if one.name.startswith("MO-BM")]
    if not own:
        return
    print("\nMO-BM, worst of all runs, against what is asked")
    for goal, (within, seconds) in GOALS.items():
        slowest = max(one.until(goal) or float("inf") for one in own)
        worst = max(one.loss_after(within) for one in own)
        print(f"  below {goal} within {within} passes: {worst:.4f}; within {seconds} s: {number(slowest, 1)}")
    print(f"  alignment of at least {LEAST_ALIGNMENT}: {min(one.alignment for one in own):.3f}")
    grouped = list(by_name(own).values())
    if len(grouped) == len(BATCHES):
        few, many = ([one.loss for one in group] for group in grouped)
        middle = 100 * (np.median(many) / np.median(few) - 1)
        pairs = [100 * (b / a - 1) for a, b in zip(few, many, strict=True)]
        print(
            f"  ELBO of {BATCHES[1]} batches below that of {BATCHES[0]}, within {LARGEST_DIFFERENCE} %: medians "
            f"{middle:+.2f} %, by seed {' '.join(f'{pair:+.2f}' for pair in pairs)} %"
        )
    smart = [one.loss for one in runs if one.name.endswith("kmeans++") and not one.name.startswith("SO")]
    if smart:
        print(
            f"  below the best of {len(smart)} k-means++ starts without moves, {min(smart):.4f}: worst "
            f"{max(one.loss for one in own):.4f} after {passes} passes"
        )


CLUSTERS = "memoized_mnist_clusters"


def keep_clusters(digits: Digits, best: sb.Fit, threads: int) -> None:
    """Means as images, and how many images of each digit: for the text, and for the figures."""
    table = members(digits, best, threads)
    print("  best run: images of each component, and its three most frequent digits in percent")
    told = []
    for row in table[np.argsort(-table.sum(axis=1), kind="stable")]:
        shares = 100 * row / max(row.sum(), 1)
        top = "  ".join(f"{digit}: {shares[digit]:>3.0f}" for digit in np.argsort(-shares, kind="stable")[:3])
        told.append(f"{row.sum():>6.0f} = {top}")
    for begin in range(0, len(told), 3):
        print("    " + "     ".join(told[begin : begin + 3]))
    images = digits.images(best.components["mean"]).astype(np.float16)
    np.savez_compressed(folder() / f"{CLUSTERS}.npz", images=images, members=table)


def file_of(part: str) -> str:
    return f"memoized_mnist_{part.replace('-', '_')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, "figures"], default=[*PARTS, "figures"])
    parser.add_argument("--seeds", type=int, default=5, help="of the runs from K = 1")
    parser.add_argument("--starts", type=int, default=10, help="of each kind with K = 100")
    parser.add_argument("--passes", type=int, default=25)
    parser.add_argument("--split-passes", type=int, default=150)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    settings = Settings(options.seeds, options.starts, options.passes, options.split_passes, options.threads)
    try:
        digits = load()
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return
    print(
        f"stickbreak {sb.__version__}: {len(digits.rows)} images, D = {DIMENSION}, float32, L = {WIDTH}, "
        f"{settings.passes} passes; {threads_and_load(settings.threads)}; seconds are wall seconds since the fit began"
    )
    for part, runs_of in PARTS.items():
        if part not in options.parts:
            continue
        print(f"\n{part}; {threads_and_load(settings.threads)}", flush=True)
        runs: list[Run] = []
        for one in runs_of(digits, settings):
            runs.append(one)
            # What is done stays, if the rest is cut off.
            keep(file_of(part), runs)
            print(
                f"  {one.name}, seed {one.seed}: {one.loss:.4f}, K {one.components[-1]}, {one.seconds[-1]:.1f} s",
                flush=True,
            )
        report(runs)
        if part in ("births", "vdp", "larger"):
            print_traces(runs)
        if part == "larger":
            where_larger(runs)
    everything = {part: kept(file_of(part)) for part in PARTS}
    against_goals([one for runs in everything.values() for one in runs], settings.passes)
    print(f"\n{threads_and_load(settings.threads)}")
    if "figures" in options.parts and can_draw():
        from memoized_mnist_figures import draw

        draw(everything, folder() / f"{CLUSTERS}.npz")


if __name__ == "__main__":
    print_head()
    main()
