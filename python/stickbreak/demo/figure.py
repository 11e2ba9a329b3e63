"""The figure of the demo: the growth of the model, the clusters, and their positions in a photograph."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.offsetbox import AnchoredOffsetbox, DrawingArea, HPacker, TextArea
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from stickbreak.demo.patches import SIDE, Photograph, grid
from stickbreak.plot.canvas import COLOURS, FAINT, GREYS, INK
from stickbreak.result.fit import Fit
from stickbreak.result.history import Record

N_EIGENVECTORS = 6

# Positions as fractions of the figure's width and height.
_LEFT, _RIGHT = 0.045, 0.985
_UPPER = {"left": _LEFT, "right": _RIGHT, "top": 0.835, "bottom": 0.53, "wspace": 0.1, "width_ratios": (1, 2.15)}
_LOWER = {"left": _LEFT, "right": _RIGHT, "top": 0.45, "bottom": 0.045, "wspace": 0.03}
_STYLE: dict[Any, Any] = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 12,
}


@dataclass(frozen=True)
class Clusters:
    """The clusters that the figure shows separately, largest first, and the colour of every cluster."""

    largest: NDArray[np.int64]
    covariances: NDArray[np.float64]
    colours: list[str]


def clusters_of(fit: Fit) -> Clusters:
    """Choose the clusters to show, and colour them by contrast; small clusters share a few greys."""
    covariances = fit.components["scale"] / fit.components["dof"][:, None, None]
    contrast = np.trace(covariances, axis1=1, axis2=2)
    by_weight = np.argsort(-fit.weights, kind="stable")
    largest, small = by_weight[: len(COLOURS)], by_weight[len(COLOURS) :]
    colours = [""] * fit.n_components
    for group, palette in ((largest, COLOURS), (small, GREYS)):
        for place, k in enumerate(group[np.argsort(contrast[group], kind="stable")]):
            colours[k] = palette[place * len(palette) // len(group)]
    return Clusters(largest, covariances, colours)


def leading_eigenvectors(covariance: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the eigenvectors of the largest eigenvalues as patches, shape (count, 8, 8), largest first."""
    _, vectors = np.linalg.eigh(covariance)
    leading = vectors[:, ::-1][:, :count].T
    # Their sign is arbitrary. Makes the largest entry positive, so that runs look alike.
    largest = np.abs(leading).argmax(axis=1)[:, None]
    return np.asarray(leading * np.sign(np.take_along_axis(leading, largest, axis=1))).reshape(-1, SIDE, SIDE)


def side_by_side(
    photograph: Photograph, labels: NDArray[np.int64], colours: Sequence[str]
) -> tuple[Photograph, NDArray[np.float64]]:
    """Return the pixels at the centres of the patches, and the colours of the patches, in the same shape."""
    height, width = grid(photograph)
    middle = SIDE // 2
    painted = np.array([to_rgb(colour) for colour in colours])[labels].reshape(height, width, 3)
    return photograph[middle : middle + height, middle : middle + width], painted


def draw(path: Path, fit: Fit, n_rows: int, photograph: Photograph, labels: NDArray[np.int64]) -> None:
    """Draw a fit to `n_rows` patches; `labels` are the clusters of the patches of the photograph, in order."""
    clusters = clusters_of(fit)
    middles, painted = side_by_side(photograph, labels, clusters.colours)
    with rc_context(_STYLE):
        figure = Figure(figsize=(15, 11.4), facecolor="white")
        upper, lower = figure.add_gridspec(1, 2, **_UPPER), figure.add_gridspec(1, 2, **_LOWER)
        _write_headline(figure, fit, n_rows)
        _draw_growth(figure, upper[0], fit.history, n_rows)
        _draw_eigenvectors(figure, upper[1], fit, clusters)
        _draw_picture(figure.add_subplot(lower[0]), middles, "One of the photographs")
        map_axes = figure.add_subplot(lower[1])
        _draw_picture(map_axes, painted, "Each pixel: the cluster of the patch around it")
        _draw_legend(map_axes, fit, clusters)
        figure.savefig(path, dpi=150)


def _write_headline(figure: Figure, fit: Fit, n_rows: int) -> None:
    headline = f"{n_rows:,} image patches, {fit.n_occupied} clusters"
    figure.text(_LEFT, 0.975, headline, fontsize=23, fontweight="bold", va="top")
    what = f"Every {SIDE} × {SIDE} patch of two photographs, less its own mean"
    figure.text(
        _LEFT, 0.935, f"{what}, in a Dirichlet-process mixture of Gaussians", fontsize=13.5, color=FAINT, va="top"
    )


def _draw_growth(figure: Figure, place: SubplotSpec, history: Sequence[Record], n_rows: int) -> None:
    """Draw the bound and the number of clusters by pass, one above the other."""
    halves = place.subgridspec(2, 1, hspace=0.42)
    bound = figure.add_subplot(halves[0])
    number = figure.add_subplot(halves[1], sharex=bound)
    _write_title(bound, "How it grew", "evidence lower bound in nats a patch")
    _write_title(number, "", "number of clusters")
    passes = [record.index + 1 for record in history]
    for axes, values in (
        (bound, [record.elbo / n_rows for record in history]),
        (number, [record.n_components for record in history]),
    ):
        axes.plot(passes, values, color=INK, linewidth=1.8, marker="o", markersize=5)
        if not passes:
            axes.text(0.5, 0.5, "no complete pass", transform=axes.transAxes, ha="center", va="center", color=FAINT)
            axes.set_yticks([])
        axes.grid(axis="y", color="#E4E4E4")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    number.set_ylim(bottom=0)
    step = max(1, round(len(passes) / 5))
    number.set_xticks(sorted({*passes[:1], *passes[step - 1 :: step]}))
    number.set_xlabel("pass over the data")
    bound.tick_params(axis="x", labelbottom=False)


def _draw_eigenvectors(figure: Figure, place: SubplotSpec, fit: Fit, clusters: Clusters) -> None:
    """Draw two columns of clusters, one line each: its colour, its weight, and its leading eigenvectors as patches."""
    frame = figure.add_subplot(place)
    frame.set_axis_off()
    what = f"their weights, and the {N_EIGENVECTORS} leading eigenvectors of their covariances"
    _write_title(frame, "The largest clusters", what)
    n_lines = (len(COLOURS) + 1) // 2
    table = place.subgridspec(n_lines, 2, wspace=0.08, hspace=0.14)
    ratios = (1.6, *[1] * N_EIGENVECTORS)
    for index, k in enumerate(clusters.largest):
        line = table[index % n_lines, index // n_lines].subgridspec(1, len(ratios), width_ratios=ratios, wspace=0.08)
        label = figure.add_subplot(line[0])
        label.set_axis_off()
        label.add_patch(Rectangle((0, 0.02), 0.15, 0.96, facecolor=clusters.colours[k]))
        label.text(0.88, 0.5, f"{fit.weights[k]:.1%}", ha="right", va="center", fontsize=13)
        for column, vector in enumerate(leading_eigenvectors(clusters.covariances[k], N_EIGENVECTORS), start=1):
            axes = figure.add_subplot(line[column])
            limit = np.abs(vector).max()
            axes.imshow(vector, cmap="gray", vmin=-limit, vmax=limit)
            axes.set_axis_off()


def _draw_picture(axes: Axes, picture: NDArray[Any], title: str) -> None:
    _write_title(axes, title)
    axes.imshow(picture, interpolation="nearest")
    axes.set_anchor("W")
    axes.set_axis_off()


def _draw_legend(axes: Axes, fit: Fit, clusters: Clusters) -> None:
    """Explain the colours below the picture; both groups of clusters are sorted from flat to rugged."""
    parts: list[Artist] = [_words("flat"), _swatches(COLOURS, clusters), _words("rugged")]
    n_small = fit.n_occupied - len(clusters.largest)
    if n_small > 0:
        parts += [_words(f"      the {n_small} smaller clusters"), _swatches(GREYS, clusters)]
    row = HPacker(children=parts, align="center", pad=0, sep=6)
    axes.add_artist(
        AnchoredOffsetbox(
            "upper left", child=row, pad=0, frameon=False, bbox_to_anchor=(0, -0.025), bbox_transform=axes.transAxes
        )
    )


def _words(text: str) -> TextArea:
    return TextArea(text, textprops={"fontsize": 12})


def _swatches(palette: Sequence[str], clusters: Clusters) -> DrawingArea:
    used = [colour for colour in palette if colour in clusters.colours]
    squares = [Rectangle((17 * place, 0), 15, 15, facecolor=colour) for place, colour in enumerate(used)]
    area = DrawingArea(17 * len(squares), 15)
    for square in squares:
        area.add_artist(square)
    return area


def _write_title(axes: Axes, title: str, subtitle: str = "") -> None:
    """Write above the axes, at their left edge."""
    place: dict[str, Any] = {"xy": (0, 1), "xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(title, xytext=(0, 26 if subtitle else 8), fontsize=15, fontweight="bold", **place)
    axes.annotate(subtitle, xytext=(0, 8), fontsize=12, color=FAINT, **place)
