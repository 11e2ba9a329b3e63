"""Figures of `memoized_mnist.py`, from the runs that it kept."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from digit_runs import Run
from figures import save

# How the paper groups its runs, by what their names begin with.
FAMILIES = {
    "MO-BM": ("C3", "o"),
    "MO,": ("C1", "s"),
    "Full": ("C0", "D"),
    "SO a": ("C2", "v"),
    "SO b": ("C4", "^"),
    "SO c": ("C5", "<"),
    "VDP": ("C6", "P"),
    "scikit-learn": ("k", "*"),
}
COLUMNS = 12


def draw(runs: dict[str, list[Run]], clusters: Path) -> None:
    """`runs` by part; `clusters` holds means and members of the best run."""
    of_this_model = [one for part, own in runs.items() if part != "larger" for one in own]
    draw_traces(of_this_model)
    draw_final(of_this_model)
    draw_alignment(of_this_model)
    if clusters.is_file():
        with np.load(clusters, allow_pickle=False) as file:
            draw_clusters(file["images"].astype(np.float64), file["members"])


def family(run: Run) -> str:
    return next(family for family in FAMILIES if run.name.startswith(family))


def label(family: str) -> str:
    return family.rstrip(",")


def draw_traces(runs: Sequence[Run]) -> None:
    """Loss by pass and by seconds, K by pass; k-means++ starts only of those with a fixed K."""
    figure, panels = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    named = set()
    for one in runs:
        if len(one.losses) < 2 or one.name.endswith("random"):
            continue
        own = family(one)
        colour = FAMILIES[own][0]
        style = {"color": colour, "alpha": 0.6, "linewidth": 0.9, "label": None if own in named else label(own)}
        named.add(own)
        panels[0].plot(one.passes, one.losses, **style)
        panels[1].plot(one.seconds, one.losses, **style)
        panels[2].plot(one.passes, one.components, **style)
    lowest = min((one.loss for one in runs), default=0.0)
    for panel in panels[:2]:
        panel.set(ylabel="-ELBO / (n D), nats", ylim=(lowest - 0.005, lowest + 0.06))
    panels[0].set(xlabel="passes", xscale="log")
    panels[1].set(xlabel="seconds", xscale="log")
    panels[2].set(xlabel="passes", ylabel="K", xscale="log")
    panels[2].legend()
    save(figure, "memoized_mnist")


def draw_final(runs: Sequence[Run]) -> None:
    """Every run at its end, by method; random starts have a scale of their own, as in the paper."""
    figure, panels = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    for panel, init, other in zip(panels, ("kmeans++", "random"), ("random", "kmeans++"), strict=True):
        shown = [one for one in runs if not one.name.endswith(other)]
        names = list(dict.fromkeys(one.name.removesuffix(f", {init}") for one in shown))
        for one in shown:
            at = names.index(one.name.removesuffix(f", {init}"))
            colour, marker = FAMILIES[family(one)]
            panel.plot(at, one.loss, marker, color=colour, alpha=0.5, markersize=5)
        panel.set(title=f"fixed K from {init}", ylabel="-ELBO / (n D) at the end, nats")
        panel.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    save(figure, "memoized_mnist_final")


def draw_alignment(runs: Sequence[Run]) -> None:
    figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
    named = set()
    for one in runs:
        if one.name.endswith("random"):
            continue
        own = family(one)
        colour, marker = FAMILIES[own]
        name = None if own in named else label(own)
        named.add(own)
        panel.plot(one.effective, one.alignment, marker, color=colour, alpha=0.5, label=name, linestyle="none")
    panel.set(xlabel="components in use", ylabel="images with the digit of their component")
    panel.legend()
    save(figure, "memoized_mnist_alignment")


def draw_clusters(images: np.ndarray, members: np.ndarray) -> None:
    """Means, by falling count, with their digit and the share of it."""
    lines = -(-len(images) // COLUMNS)
    figure, panels = plt.subplots(lines, COLUMNS, figsize=(COLUMNS, 1.25 * lines), squeeze=False, layout="constrained")
    order = np.argsort(-members.sum(axis=1), kind="stable")
    for panel in panels.flat:
        panel.set_axis_off()
    for panel, k in zip(panels.flat, order, strict=False):
        mean(panel, images[k], members[k])
    save(figure, "memoized_mnist_means")


def mean(panel: Axes, image: np.ndarray, members: np.ndarray) -> None:
    panel.imshow(image, cmap="gray", vmin=0, vmax=1)
    share = members.max() / max(members.sum(), 1)
    panel.set_title(f"{members.argmax()}: {100 * share:.0f} %", fontsize=7)
