"""How the time of a pass grows with n, D, K and L: one axis at a time, float32, one thread, CPU time.

Three lines each: every score computed; with all that spares work (a margin of 20 nats, and memory for bounds); and the
dense floor, the time of the useful operations at the FMA peak of this machine: n K D (D + 1) for scores and
n L D (D + 1) for sums. A time is the median of three passes after the first. The bench `peak` measures the peak.
`of peak` is the floor as a share of the first line, `share` what share of all scores the last pass with a margin
computed.

python benches/growth.py [--figure FILE]
"""

import argparse
import os
import re
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head

ROOT = Path(__file__).resolve().parents[1]
PASSES = 3
# Typical distance of two centres, in units of the spread: as many columns as there may be, some rows have two owners.
DISTANCE = 6.0
BLOCK = 100_000


@dataclass(frozen=True)
class Sizes:
    """Sizes of one measurement."""

    n: int = 100_000
    d: int = 32
    k: int = 100
    width: int = 4

    def operations(self) -> int:
        return self.n * (self.k + self.width) * self.d * (self.d + 1)


CENTRE = Sizes()
# So many rows fit into memory with few columns.
ROWS = Sizes(d=8, k=50)
AXES = {
    "n": [replace(ROWS, n=n) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)],
    "K": [replace(CENTRE, k=k) for k in (10, 20, 50, 100, 200, 500, 1000, 2000)],
    "D": [replace(CENTRE, d=d) for d in (2, 4, 8, 16, 32, 64, 128, 256)],
    "L": [replace(CENTRE, width=width) for width in (1, 2, 4, 8, 16, 32)],
}
EVERY, SPARED, FLOOR = "every score computed", "margin and bounds", "dense floor"
SETTINGS = {EVERY: (None, 0), SPARED: (20.0, 2**30)}


@dataclass(frozen=True)
class Times:
    """Seconds of a pass by line, and the share of scores that the margin left."""

    seconds: dict[str, float]
    share: float


def peak() -> float:
    """Operations per second of one thread in float32."""
    command = ["cargo", "bench", "--quiet", "--package", "stickbreak-benches", "--bench", "peak"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found = re.search(r"float32: ([\d.]+) Gflop/s", done.stdout)
    if found is None:
        raise RuntimeError(f"no peak in {done.stdout!r}")
    return float(found.group(1)) * 1e9


def generate(sizes: Sizes) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows around K centres that overlap a little, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=DISTANCE / np.sqrt(2 * sizes.d), size=(sizes.k, sizes.d)).astype(np.float32)
    spread = rng.uniform(0.5, 1.5, size=(sizes.k, sizes.d)).astype(np.float32)
    labels = rng.integers(sizes.k, size=sizes.n)
    rows = np.empty((sizes.n, sizes.d), np.float32)
    for begin in range(0, sizes.n, BLOCK):
        part = labels[begin : begin + BLOCK]
        noise = rng.standard_normal((len(part), sizes.d), dtype=np.float32)
        rows[begin : begin + BLOCK] = centres[part] + spread[part] * noise
    wrong = rng.random(sizes.n) < 0.2
    return rows, np.where(wrong, rng.integers(sizes.k, size=sizes.n), labels)


def run(rows: NDArray[np.float32], labels: NDArray[np.int64], sizes: Sizes, setting: str) -> tuple[float, float]:
    """CPU seconds of a pass, and the share of scores that the last one computed."""
    times: list[float] = []
    margin, memory = SETTINGS[setting]
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    algorithm = sb.Full(sparsity=sizes.width, margin=margin, bounds_memory=memory, tol=0, max_passes=PASSES + 1)
    fit = sb.fit(
        model,
        rows,
        algorithm,
        n_components=sizes.k,
        init=labels,
        threads=1,
        progress=False,
        callbacks=[lambda _: times.append(time.process_time())],
    )
    return statistics.median(np.diff(times).tolist()), fit.history[-1].evaluated_share


def measure(axis: list[Sizes], rate: float) -> Iterator[tuple[Sizes, Times]]:
    """One point after the other, each printed as soon as it is there."""
    for sizes in axis:
        rows, labels = generate(sizes)
        (every, _), (spared, share) = (run(rows, labels, sizes, setting) for setting in SETTINGS)
        times = Times({EVERY: every, SPARED: spared, FLOOR: sizes.operations() / rate}, share)
        print(
            f"{sizes.n:>9} {sizes.d:>4} {sizes.k:>5} {sizes.width:>3}"
            + "".join(f"{seconds:>23.4g}" for seconds in times.seconds.values())
            + f"{times.seconds[FLOOR] / every:>11.1%}{share:>9.3f}",
            flush=True,
        )
        yield sizes, times


def draw(measured: dict[str, list[tuple[Sizes, Times]]], file: Path) -> None:
    mpl.rcParams |= {"svg.hashsalt": "growth", "svg.fonttype": "none"}
    figure, panels = plt.subplots(2, 2, figsize=(8, 6.5), layout="constrained")
    fields = {"n": "n", "K": "k", "D": "d", "L": "width"}
    for panel, (axis, points) in zip(panels.flat, measured.items(), strict=True):
        x = [getattr(sizes, fields[axis]) for sizes, _ in points]
        for name, style in ((EVERY, "o-"), (SPARED, "s-"), (FLOOR, "k--")):
            panel.loglog(x, [times.seconds[name] for _, times in points], style, label=name, markersize=4)
        others = [f"{name} = {getattr(points[0][0], field):,}" for name, field in fields.items() if name != axis]
        panel.set(xlabel=axis, ylabel="CPU seconds a pass", title=", ".join(others))
        panel.grid(alpha=0.3)
    panels.flat[0].legend(loc="upper left")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = ROOT / os.environ.get("RESULTS", "target/bench-results")
    parser.add_argument("--figure", type=Path, default=folder / "growth.svg", help="where to draw it")
    options = parser.parse_args()
    rate = peak()
    print(f"FMA peak of one thread, float32: {rate / 1e9:.1f} Gflop/s; load before {os.getloadavg()[0]:.1f}")
    measured = {}
    for axis, points in AXES.items():
        head = "".join(f"{name:>23}" for name in (EVERY, SPARED, FLOOR))
        print(
            f"\nCPU seconds of a pass by {axis}\n{'n':>9} {'D':>4} {'K':>5} {'L':>3}{head}{'of peak':>11}{'share':>9}"
        )
        measured[axis] = list(measure(points, rate))
    draw(measured, options.figure)
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
