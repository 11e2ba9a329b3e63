"""Figures of `memoized_mnist.py`, from the runs that it kept."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter

from digit_runs import Run
from figures import save, spelled_out
from stickbreak.plot.canvas import GREYS, INK, colour

# How the paper groups its runs: colour and marker of each method.
FAMILIES = {
    "MO-BM": (colour(0), "o"),
    "MO": (colour(1), "s"),
    "Full": (colour(2), "D"),
    "SO a": (colour(3), "v"),
    "SO b": (colour(4), "^"),
    "SO c": (colour(6), "<"),
    "VDP": (colour(7), "P"),
    "scikit-learn": (INK, "*"),
}
LOSS = "loss: -ELBO / (n D), nats"
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
    return run.name.split(", ")[0]


def plain(axis: Axis) -> None:
    """Let a logarithmic axis have plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def draw_traces(runs: Sequence[Run]) -> None:
    """Loss by pass and by seconds, K by pass; of methods with a fixed K the k-means++ starts."""
    figure, panels = plt.subplots(1, 3, figsize=(14, 5), layout="constrained")
    shown = [one for one in runs if len(one.losses) > 1 and not one.name.endswith("random")]
    by_family: dict[str, list[Run]] = {}
    for one in shown:
        by_family.setdefault(family(one), []).append(one)
    for name, own in by_family.items():
        middle = sorted(own, key=lambda one: one.loss)[len(own) // 2]
        for one in own:
            bold = one is middle
            style = {"color": FAMILIES[name][0], "alpha": 1.0 if bold else 0.25, "linewidth": 2.4 if bold else 0.7}
            title = f"{spelled_out(name)} ({len(own)} runs)" if bold else None
            panels[0].plot(one.passes, one.losses, **style, label=title)
            panels[1].plot(one.seconds, one.losses, **style)
            panels[2].plot(one.passes, one.components, **style)
    lowest = min((one.loss for one in runs), default=0.0)
    for panel in panels[:2]:
        panel.set(ylabel=LOSS, ylim=(lowest - 0.005, lowest + 0.06))
    panels[0].set(xlabel="passes", xscale="log")
    panels[1].set(xlabel="seconds", xscale="log", xlim=(0.5, None))
    panels[2].set(xlabel="passes", ylabel="components", xscale="log", ylim=(0, None))
    for panel in panels:
        plain(panel.xaxis)
    figure.legend(loc="outside lower center", ncols=4, title="thick: the median run of each method")
    save(figure, "memoized_mnist")


def draw_final(runs: Sequence[Run]) -> None:
    """Every run at its end, a line for each method; random starts have a scale of their own, as in the paper."""
    figure, panels = plt.subplots(1, 2, figsize=(13, 5), sharey=True, layout="constrained")
    inits = {"kmeans++": "k-means++", "random": "random rows"}
    for panel, (init, start) in zip(panels, inits.items(), strict=True):
        shown = [one for one in runs if not one.name.endswith(tuple(inits)) or one.name.endswith(init)]
        names = list(dict.fromkeys(one.name.removesuffix(f", {init}") for one in shown))
        for one in shown:
            at = names.index(one.name.removesuffix(f", {init}"))
            paint, marker = FAMILIES[family(one)]
            panel.plot(one.loss, at, marker, color=paint, alpha=0.6, markersize=7)
        panel.set(title=f"methods of fixed K start from {start}", xlabel=f"{LOSS}, at the end")
        panel.set_yticks(range(len(names)), [spelled_out(name) for name in names])
        panel.grid(axis="y", color=GREYS[-1])
    panels[0].invert_yaxis()
    save(figure, "memoized_mnist_final")


def draw_alignment(runs: Sequence[Run]) -> None:
    """A panel for each method, all others grey in it: many of them end at the same number of components."""
    shown = [one for one in runs if not one.name.endswith("random")]
    figure, panels = plt.subplots(2, 4, figsize=(14, 6), sharex=True, sharey=True, layout="constrained")
    for panel, (name, (paint, marker)) in zip(panels.flat, FAMILIES.items(), strict=True):
        for own in (False, True):
            some = [one for one in shown if (family(one) == name) == own]
            style = {"color": paint, "markersize": 8, "alpha": 0.7} if own else {"color": GREYS[1], "markersize": 3}
            at = [one.effective for one in some], [one.alignment for one in some]
            panel.plot(*at, marker if own else "o", linestyle="none", **style)
        panel.set_title(spelled_out(name), fontsize=10)
    figure.supxlabel("components in use")
    figure.supylabel("share of images with the digit of their component")
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
