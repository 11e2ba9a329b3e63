"""The mixtures of Hughes and Sudderth (2016), sections 3 and 4: what it costs and gives to keep L components a row.

Patches of 8 x 8 pixels, four apart, of the 200 training photographs of BSDS500, each less its mean: a random choice of
all 1,880,200. Zero-mean Gaussians, finite Dirichlet prior of total mass 1 (the paper's is lost in the text at hand),
all runs from the same random rows. Scored are 20,000 patches of the validation photographs: "plug-in" is the log
density at point estimates of weights and covariances (scale / dof), as the paper has it; "predictive" the posterior
predictive one.

Every score is computed (no margin, no bounds), as in the paper, but in one line that has all that spares work. Every
point is a run of its own that ends after so many passes; a stochastic one ends with one more pass, which its seconds
include. Seconds are CPU seconds of one thread without the start. float32.

Parts of a pass over 36,000 patches: "sums" is the time of a local step with its summary less that of one without;
"global" is extrapolated from passes over a tenth of the rows; "scores and selection" is the rest. The distance of
sparse responsibilities from dense ones is the total variation, half the sum of absolute differences.

python benches/papers/sparse_mixtures.py [--components 200 800] [--rows 1880200 60000] [--passes 8]
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from figures import print_head, save
from images import patches, photographs

Array = NDArray[np.float64]
Rows = NDArray[np.float32]
WIDTHS = (1, 2, 4, 8, 16)
HELD_OUT = 20_000
TIMED = 36_000
N_BATCHES = 20
DELAY, DECAY = 10.0, 0.9
LOOKS = (1, 2, 4, 8, 16, 32)
ROUNDS = 3
# Who is within so many nats a patch of the dense run's last score is said to have reached it.
NEAR = 0.1
EVERY = {"margin": None, "bounds_memory": 0}
SPARED = {"margin": 20.0, "bounds_memory": 2**30}
SCHEDULES = ("memoized", "stochastic")
DISTANCES = (1e-6, 1e-3, 1e-2, 0.1, 0.5)


@dataclass(frozen=True)
class Setting:
    """How many components a row keeps (None is all), and whether work is spared."""

    width: int | None
    spared: bool = False

    @property
    def name(self) -> str:
        name = "dense" if self.width is None else f"L = {self.width}"
        return f"{name}, margin" if self.spared else name

    @property
    def options(self) -> dict[str, object]:
        return {"sparsity": self.width, **(SPARED if self.spared else EVERY)}


def settings(k: int) -> list[Setting]:
    return [*(Setting(width) for width in WIDTHS if width < k), Setting(None), Setting(min(8, k), spared=True)]


@dataclass
class Point:
    """A run that ends after so many passes: its CPU seconds and the scores of the held-out rows."""

    passes: int
    seconds: float
    plug_in: Array
    predictive: Array


Curves = dict[str, list[Point]]


def model_of(k: int) -> sb.Mixture:
    return sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.FiniteDirichlet(n_components=k))


def fit(rows: Rows, k: int, algorithm: sb.Full | sb.Memoized | sb.Stochastic, init: str | sb.Fit) -> sb.Fit:
    return sb.fit(model_of(k), rows, algorithm, n_components=k, init=init, seed=0, threads=1, progress=False)


def algorithm_of(schedule: str, n: int, setting: Setting, passes: int) -> sb.Memoized | sb.Stochastic:
    if schedule == "memoized":
        return sb.Memoized(N_BATCHES, max_passes=passes, tol=0, **setting.options)
    return sb.Stochastic(-(-n // N_BATCHES), DELAY, DECAY, max_passes=passes, **setting.options)


def timed(task: Callable[[], object]) -> float:
    begun = time.process_time()
    task()
    return time.process_time() - begun


def median_of(task: Callable[[], object]) -> float:
    return statistics.median(timed(task) for _ in range(ROUNDS))


def curve(
    rows: Rows, held_out: Rows, start: sb.Fit, schedule: str, setting: Setting, passes: int
) -> tuple[list[Point], sb.Fit]:
    """A point for each number of passes up to `passes`, and the last fit."""
    points = []
    for look in [*(look for look in LOOKS if look < passes), passes]:
        algorithm = algorithm_of(schedule, len(rows), setting, look)
        begun = time.process_time()
        found = fit(rows, start.n_components, algorithm, start)
        seconds = time.process_time() - begun
        scores = (found.log_predictive(held_out, plug_in=plug_in, threads=1) for plug_in in (True, False))
        points.append(Point(look, seconds, *scores))
    return points, found


def curves(rows: Rows, held_out: Rows, start: sb.Fit, schedule: str, passes: int) -> tuple[Curves, sb.Fit]:
    """By setting, each printed as soon as it is there; and the last dense fit."""
    print(f"\n{schedule}: after passes the CPU seconds, and nats a held-out patch: plug-in (predictive)", flush=True)
    found: Curves = {}
    dense = start
    for setting in settings(start.n_components):
        found[setting.name], fitted = curve(rows, held_out, start, schedule, setting, passes)
        if setting == Setting(None):
            dense = fitted
        print(
            f"  {setting.name:<15}"
            + "   ".join(
                f"{point.passes}: {point.seconds:.1f} s {point.plug_in.mean():.3f} ({point.predictive.mean():.3f})"
                for point in found[setting.name]
            ),
            flush=True,
        )
    return found, dense


def compare(found: Curves) -> None:
    """Against the dense run: its last score, and the time to come near it."""
    dense = found[Setting(None).name]
    goal = dense[-1].plug_in.mean() - NEAR
    until_dense = reached(dense, goal)
    print(
        f"  against dense, plug-in, after the last pass (standard error of the difference); seconds until within {NEAR}"
        " nats of\n  dense's last score, and how many times sooner; seconds a pass, and how many times as fast"
    )
    for name, points in found.items():
        difference = points[-1].plug_in - dense[-1].plug_in
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        until = reached(points, goal)
        sooner = "never" if until is None else f"{until:.1f} s, {until_dense / until:.2f}"
        a_pass, of_dense = (own[-1].seconds / own[-1].passes for own in (points, dense))
        print(
            f"  {name:<15}{difference.mean():+9.3f} ({error:.3f}){sooner:>18}{a_pass:9.3f} s, {of_dense / a_pass:.2f}"
        )


def reached(points: Sequence[Point], goal: float) -> float | None:
    """CPU seconds at the first point that is as good as that."""
    return next((point.seconds for point in points if point.plug_in.mean() >= goal), None)


@dataclass(frozen=True)
class Parts:
    """CPU seconds of the parts of a pass."""

    scores: float
    sums: float
    global_step: float


def a_pass(rows: Rows, start: sb.Fit, setting: Setting) -> float:
    """Seconds of the second pass of a full schedule."""
    times: list[float] = []
    algorithm = sb.Full(max_passes=2, tol=0, **setting.options)
    note = [lambda _: times.append(time.process_time())]
    sb.fit(start.model, rows, algorithm, init=start, threads=1, progress=False, callbacks=note)
    return times[1] - times[0]


def parts_of(rows: Rows, start: sb.Fit, setting: Setting) -> Parts:
    few = rows[:: len(rows) // max(len(rows) // 10, start.n_components)]
    whole, part = (statistics.median(a_pass(some, start, setting) for _ in range(ROUNDS)) for some in (rows, few))
    share = len(few) / len(rows)
    global_step = max(0.0, (part - share * whole) / (1 - share))
    state, width = start._state, setting.width
    with_sums = median_of(lambda: state.summary(rows, None, width, pair_gaps=False, threads=1))
    without = median_of(lambda: state.responsibilities(rows, width, False, 1))
    sums = max(0.0, with_sums - without)
    return Parts(whole - sums - global_step, sums, global_step)


def report_parts(rows: Rows, start: sb.Fit) -> dict[str, Parts]:
    k = start.n_components
    begins = {init: median_of(lambda init=init: fit(rows, k, sb.Full(max_passes=0), init)) for init in INITS}
    print(
        f"\nParts of a pass, K = {k}, {len(rows)} patches, CPU seconds; starts: "
        + ", ".join(f"{init} {seconds:.2f} s" for init, seconds in begins.items())
        + f"\n  {'':<10}{'scores and selection':>22}{'sums':>9}{'global step':>13}{'pass':>9}"
    )
    found = {}
    for setting in settings(k)[:-1]:
        own = found[setting.name] = parts_of(rows, start, setting)
        total = own.scores + own.sums + own.global_step
        print(f"  {setting.name:<10}{own.scores:22.3f}{own.sums:9.3f}{own.global_step:13.3f}{total:9.3f}", flush=True)
    return found


INITS = ("random", "kmeans++")


def distances(rows: Rows, dense: sb.Fit, width: int) -> Array:
    """Total variation distance of the sparse responsibilities of each row from the dense ones."""
    algorithm = sb.Full(sparsity=width, max_passes=0)
    # The model with its prior filled in: that of other rows would be another.
    sparse = sb.fit(dense.model, rows, algorithm, init=dense, threads=1, progress=False)
    found = []
    for begin in range(0, len(rows), 4000):
        part = rows[begin : begin + 4000]
        gaps = dense.predict_proba(part, threads=1) - sparse.predict_proba(part, sparse=True, threads=1).toarray()
        found.append(np.abs(gaps).sum(axis=1) / 2)
    return np.concatenate(found)


def report_distances(rows: Rows, dense: sb.Fit) -> dict[str, Array]:
    head = "".join(f"{f'<= {limit:g}':>10}" for limit in DISTANCES)
    print(
        f"\nDistance to dense responsibilities, K = {dense.n_components}, {len(rows)} patches: mean, median, 99th "
        f"percentile, share of patches\n  {'':<10}{'mean':>10}{'median':>10}{'99 %':>10}{head}"
    )
    found = {}
    for setting in settings(dense.n_components)[:-2]:
        assert setting.width is not None
        own = found[setting.name] = distances(rows, dense, setting.width)
        middle, high = np.quantile(own, [0.5, 0.99])
        shares = "".join(f"{np.mean(own <= limit):10.3f}" for limit in DISTANCES)
        print(f"  {setting.name:<10}{own.mean():10.2e}{middle:10.2e}{high:10.2e}{shares}", flush=True)
    return found


def draw_curves(found: dict[int, dict[str, Curves]]) -> None:
    figure, panels = plt.subplots(
        len(found), len(SCHEDULES), figsize=(10, 3.8 * len(found)), squeeze=False, sharey="row", layout="constrained"
    )
    for line, (k, by_schedule) in zip(panels, found.items(), strict=True):
        for panel, (schedule, own) in zip(line, by_schedule.items(), strict=True):
            for name, points in own.items():
                seconds = [point.seconds for point in points]
                style = "k--" if name == "dense" else "o-"
                panel.semilogx(seconds, [point.plug_in.mean() for point in points], style, label=name, markersize=4)
            panel.set(title=f"K = {k}, {schedule}", xlabel="CPU seconds, one thread")
        line[0].set(ylabel="nats a held-out patch, plug-in")
    panels[0, 0].legend(loc="lower right")
    save(figure, "sparse_mixtures")


def draw_parts(parts: dict[int, dict[str, Parts]], gaps: dict[int, dict[str, Array]]) -> None:
    figure, panels = plt.subplots(2, len(parts), figsize=(5 * len(parts), 7), squeeze=False, layout="constrained")
    for column, k in zip(panels.T, parts, strict=True):
        names = list(parts[k])
        bottom = np.zeros(len(names))
        for field, label in (("scores", "scores and selection"), ("sums", "sums"), ("global_step", "global step")):
            values = np.array([getattr(own, field) for own in parts[k].values()])
            column[0].bar(names, values, bottom=bottom, label=label)
            bottom += values
        column[0].set(title=f"K = {k}", ylabel=f"CPU seconds a pass of {TIMED:,} patches")
        for name, values in gaps[k].items():
            # A few hundred points draw the curve as well as all rows would.
            levels = np.linspace(0, 1, 301)
            column[1].plot(np.quantile(values, levels), levels, label=name)
        column[1].set(xlabel="total variation distance to dense", ylabel="share of patches", ylim=(0, 1.01))
    panels[0, 0].legend()
    panels[1, 0].legend(loc="lower right")
    save(figure, "sparse_mixtures_parts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--components", type=int, nargs="+", default=[200, 800])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_880_200, 60_000], help="for each K")
    parser.add_argument("--passes", type=int, default=8)
    options = parser.parse_args()
    try:
        train, validation = photographs("train"), photographs("val")
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return
    print(f"stickbreak {sb.__version__}, one thread; load before {os.getloadavg()[0]:.1f}")
    held_out = patches(validation, HELD_OUT, seed=1)
    found, parts, gaps = {}, {}, {}
    for k, n in zip(options.components, options.rows, strict=True):
        rows = patches(train, n)
        print(
            f"\nK = {k}: {len(rows)} patches to fit, {len(held_out)} to score; {N_BATCHES} batches; steps of "
            f"(t + {DELAY:g})^-{DECAY:g}; random start",
            flush=True,
        )
        start = fit(rows, k, sb.Full(max_passes=0), "random")
        found[k] = {}
        for schedule in SCHEDULES:
            found[k][schedule], dense = curves(rows, held_out, start, schedule, options.passes)
            compare(found[k][schedule])
            if schedule == "memoized":
                timed_rows = rows[:: max(1, len(rows) // TIMED)][:TIMED]
                parts[k], gaps[k] = report_parts(timed_rows, dense), report_distances(timed_rows, dense)
    draw_curves(found)
    draw_parts(parts, gaps)
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
