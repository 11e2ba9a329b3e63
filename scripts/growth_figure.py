"""Draws docs/images/growth.svg: the bound and the number of components by pass in the example of its page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import stickbreak as sb

ROOT = Path(__file__).resolve().parent.parent
INK, FAINT = "#222222", "#6B6B6B"


def example() -> sb.Fit:
    """The fit of docs/number-of-clusters.md."""
    rng = np.random.default_rng(0)
    corners = 12.0 * np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(25, 2)
    sizes = np.geomspace(100, 3000, 25).round().astype(int)
    rows = rng.normal(np.repeat(corners, sizes, axis=0))
    return sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, progress=False)


def draw(fit: sb.Fit, path: Path) -> None:
    """Two panels over the same passes."""
    passes = [record.index + 1 for record in fit.history]
    panels = (
        ("evidence lower bound, nats a row", [record.elbo / fit.counts.sum() for record in fit.history]),
        ("number of components", [record.n_components for record in fit.history]),
    )
    # Letters stay letters, and nothing in the file changes but with the numbers.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "growth", "text.color": INK, "font.size": 11}):
        figure = Figure(figsize=(9, 3), layout="constrained")
        for axes, (title, values) in zip(figure.subplots(1, 2), panels, strict=True):
            axes.plot(passes, values, color=INK, linewidth=1.8, marker="o", markersize=5)
            axes.set_title(title, loc="left", fontsize=11, color=FAINT)
            axes.set_xlabel("pass over the data")
            axes.set_xticks(passes)
            axes.grid(axis="y", color="#E4E4E4")
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.tick_params(axis="y", length=0)
            axes.margins(y=0.1)
            if values is panels[1][1]:
                axes.set_ylim(bottom=0)
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(example(), ROOT / "docs" / "images" / "growth.svg")
