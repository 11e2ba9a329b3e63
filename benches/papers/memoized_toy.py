"""The toy experiment of Hughes and Sudderth (2013), section 4.1: which schedules leave poor local optima.

100,000 patches of 5 x 5 pixels from 8 zero-mean Gaussians, those of `edges.py`. `memoized_toy_moves.py` has the runs
that find the number of components.

Every schedule starts from the same ten random starts (25 random rows), dense, and makes 30 passes; 100 batches but for
Full. Stochastic steps have the lengths (t + delay)^-decay of the paper. A stochastic run does not know its bound: each
point of its traces is a run of its own that ends there, with one more pass over all rows under the components as they
are; so it is what the run would be worth if it ended there, and flatters it by one global step on all data.

python benches/papers/memoized_toy.py [--rows 100000] [--starts 10] [--passes 30]
"""

import argparse
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from edges import N_TRUE, SIDE, Array, Patches, best_possible, generate, model
from figures import print_head, save, spelled_out

N_COMPONENTS = 25
N_BATCHES = 100
STEPS = {"SO a": (10.0, 0.5), "SO b": (100.0, 0.5), "SO c": (10.0, 0.9)}
FULL, MEMOIZED = "Full", "MO"
# Passes after which stochastic runs are looked at.
LOOKS = (1, 2, 3, 5, 8, 12, 20, 30)
# A true component is found where a covariance is nearer to its own than this share of its norm, with at least half of
# its weight.
NEAR = 0.2
LARGE = 0.01
COLOURS = {FULL: "C0", MEMOIZED: "C1", "SO a": "C2", "SO b": "C3", "SO c": "C4"}


def algorithm(name: str, n: int, passes: int) -> sb.Full | sb.Memoized | sb.Stochastic:
    shared = {"sparsity": None, "max_passes": passes}
    if name == FULL:
        return sb.Full(tol=0, **shared)
    if name == MEMOIZED:
        return sb.Memoized(N_BATCHES, tol=0, **shared)
    delay, decay = STEPS[name]
    with warnings.catch_warnings():
        # A decay of 0.5 is warned of, but is what the paper has.
        warnings.simplefilter("ignore", sb.StepSizeWarning)
        return sb.Stochastic(n // N_BATCHES, delay, decay, **shared)


def fit(patches: Patches, name: str, passes: int, seed: int) -> sb.Fit:
    return sb.fit(
        model(),
        patches.rows,
        algorithm(name, len(patches.rows), passes),
        n_components=N_COMPONENTS,
        init="random",
        seed=seed,
        progress=False,
    )


@dataclass
class Run:
    """One start under one schedule: bounds a row by pass, and how it ended."""

    passes: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    large: int = 0
    rand_index: float = 0.0
    # The component that has most in common with each true one, its weight, and whether it is that one.
    components: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    recovered: list[bool] = field(default_factory=list)
    covariances: Array = field(default_factory=lambda: np.empty(0))

    @property
    def n_recovered(self) -> int:
        return sum(self.recovered)


def run(patches: Patches, name: str, passes: int, seed: int) -> Run:
    begun = time.process_time()
    found = fit(patches, name, passes, seed)
    n = len(patches.rows)
    own = Run(seconds=time.process_time() - begun, large=int(np.count_nonzero(found.weights >= LARGE)))
    if name in STEPS:
        own.passes = [look for look in LOOKS if look < passes]
        own.bounds = [fit(patches, name, look, seed).elbo / n for look in own.passes]
        own.passes.append(passes)
        own.bounds.append(found.elbo / n)
    else:
        own.passes = [record.index + 1 for record in found.history]
        own.bounds = [record.elbo / n for record in found.history]
    compare(own, found, patches)
    return own


def compare(own: Run, found: sb.Fit, patches: Patches) -> None:
    """Match components with the true ones by the rows that they have in common."""
    labels = found.predict(patches.rows)
    own.rand_index = float(adjusted_rand_score(patches.labels, labels))
    common = np.zeros((N_TRUE, found.n_components))
    np.add.at(common, (patches.labels, labels), 1.0)
    matched = linear_sum_assignment(-common)[1]
    own.components = matched.tolist()
    own.weights = found.weights[matched].tolist()
    own.covariances = found.point_estimates["covariance"][matched]
    distances = np.linalg.norm(own.covariances - patches.covariances, axis=(1, 2))
    near = distances < NEAR * np.linalg.norm(patches.covariances, axis=(1, 2))
    own.recovered = (near & (found.weights[matched] > 0.5 / N_TRUE)).tolist()


def report(runs: dict[str, list[Run]], ideal: float) -> None:
    print(
        f"\nELBO a row after the last pass; components with a weight of at least {LARGE}; true components found, of "
        f"{N_TRUE};\nadjusted Rand index; CPU seconds of a run\n"
        f"{'':<6}{'mean':>10}{'worst':>10}{'best':>10}{'below ideal':>13}{'large':>10}{'found':>7}{'all found':>11}"
        f"{'Rand':>7}{'seconds':>9}"
    )
    for name, own in runs.items():
        final = [one.bounds[-1] for one in own]
        complete = sum(one.n_recovered == N_TRUE for one in own)
        print(
            f"{name:<6}{np.mean(final):10.4f}{min(final):10.4f}{max(final):10.4f}{ideal - np.mean(final):13.4f}"
            f"{np.mean([one.large for one in own]):10.1f}{np.mean([one.n_recovered for one in own]):7.1f}"
            f"{f'{complete} of {len(own)}':>11}{np.mean([one.rand_index for one in own]):7.3f}"
            f"{np.mean([one.seconds for one in own]):9.1f}"
        )


def print_traces(runs: dict[str, list[Run]]) -> None:
    for name, own in runs.items():
        print(f"\n{name}: ELBO a row after passes " + " ".join(map(str, own[0].passes)))
        for index, one in enumerate(own):
            print(f"  start {index}: " + " ".join(f"{bound:.4f}" for bound in one.bounds))
        print("  mean:    " + " ".join(f"{bound:.4f}" for bound in np.mean([one.bounds for one in own], axis=0)))


def draw_traces(runs: dict[str, list[Run]], ideal: float) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for panel, names in zip(panels, ((FULL, MEMOIZED), tuple(STEPS)), strict=True):
        for name in names:
            own = runs[name]
            for one in own:
                panel.plot(one.passes, one.bounds, color=COLOURS[name], alpha=0.25, linewidth=0.8)
            mean = np.mean([one.bounds for one in own], axis=0)
            panel.plot(own[0].passes, mean, color=COLOURS[name], label=spelled_out(name))
        panel.axhline(ideal, color="k", linestyle="--", linewidth=0.8, label="from the true labels")
        panel.set(xlabel="passes through the data")
        panel.legend(loc="lower right")
    lowest = min(one.bounds[-1] for own in runs.values() for one in own)
    panels[0].set(ylabel="ELBO a row, nats", ylim=(lowest - (ideal - lowest), ideal + 0.1 * (ideal - lowest)))
    save(figure, "memoized_toy")


def chosen(runs: dict[str, list[Run]]) -> dict[str, Run]:
    """The runs whose covariances are drawn."""

    def last(one: Run) -> float:
        return one.bounds[-1]

    return {
        "best MO": max(runs[MEMOIZED], key=last),
        "worst MO": min(runs[MEMOIZED], key=last),
        "worst Full": min(runs[FULL], key=last),
        "best SO b": max(runs["SO b"], key=last),
    }


def draw_covariances(patches: Patches, runs: dict[str, Run]) -> None:
    """The true covariances, and below each the one found for it; a cross where it is another."""
    figure, panels = plt.subplots(2 + len(runs), N_TRUE, figsize=(N_TRUE, 2.4 + 1.2 * len(runs)), layout="constrained")
    limit = np.abs(patches.covariances).max()

    def show(line: Sequence[plt.Axes], name: str, images: Sequence[Array], titles: Sequence[str]) -> None:
        for panel, image, title in zip(line, images, titles, strict=True):
            panel.imshow(image, cmap="gray", vmin=-limit, vmax=limit)
            panel.set(xticks=[], yticks=[])
            panel.set_title(title, fontsize=8)
        line[0].set_ylabel(name, fontsize=8)

    examples = [patches.rows[np.flatnonzero(patches.labels == label)[0]].reshape(SIDE, SIDE) for label in range(N_TRUE)]
    show(panels[0], "a patch", examples, [""] * N_TRUE)
    show(panels[1], "true", patches.covariances, [f"{1 / N_TRUE:.3f}"] * N_TRUE)
    for line, (name, own) in zip(panels[2:], runs.items(), strict=True):
        titles = [
            f"{weight:.3f}" if found else f"{weight:.3f} ×"
            for weight, found in zip(own.weights, own.recovered, strict=True)
        ]
        show(line, name, own.covariances, titles)
    save(figure, "memoized_toy_covariances")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--passes", type=int, default=30)
    options = parser.parse_args()
    patches = generate(options.rows)
    ideal = best_possible(patches)
    bound = ideal.elbo / options.rows
    print(
        f"stickbreak {sb.__version__}: {options.rows} patches of {SIDE} x {SIDE}, {N_TRUE} true components, "
        f"K = {N_COMPONENTS}, {options.starts} random starts, {N_BATCHES} batches, dense, float64; "
        f"load before {os.getloadavg()[0]:.1f}\n"
        f"schedules (delay, decay): {STEPS}\n"
        f"from the true labels, K = {N_TRUE}: ELBO a row {bound:.4f}, adjusted Rand index "
        f"{adjusted_rand_score(patches.labels, ideal.predict(patches.rows)):.3f}",
        flush=True,
    )
    runs: dict[str, list[Run]] = {}
    for name in (FULL, MEMOIZED, *STEPS):
        begun = time.perf_counter()
        runs[name] = [run(patches, name, options.passes, seed) for seed in range(options.starts)]
        print(f"{name}: {options.starts} starts in {time.perf_counter() - begun:.0f} s", flush=True)
    report(runs, bound)
    print_traces(runs)
    draw_traces(runs, bound)
    draw_covariances(patches, chosen(runs))
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
