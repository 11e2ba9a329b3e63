"""Draws the pictures of docs/index.md and docs/number-of-clusters.md by `stickbreak.plot`.

python scripts/pictures.py    # writes docs/images/clusters.png and docs/images/growth.svg
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import stickbreak as sb

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
MODEL = sb.Mixture(likelihood=sb.Gaussian())


def clusters(path: Path) -> None:
    """Draw rows, the number of components by pass, and the clusters found."""
    rng = np.random.default_rng(3)
    centres = rng.uniform(-10, 10, size=(12, 2))
    spreads = rng.normal(scale=0.7, size=(12, 2, 2)) + 0.6 * np.eye(2)
    labels = rng.choice(12, size=20_000, p=rng.dirichlet(np.full(12, 3.0)))
    rows = centres[labels] + np.einsum("nij,nj->ni", spreads[labels], rng.normal(size=(20_000, 2)))
    fit = sb.fit(MODEL, rows, progress=False)

    figure = Figure(figsize=(10, 3.4), dpi=110, layout="constrained")
    before, course, after = figure.subplots(1, 3)
    before.scatter(*rows.T, s=1, color="black", alpha=0.25, linewidths=0)
    before.set_title(f"{len(rows):,} rows")
    sb.plot.n_components(fit, ax=course).set_title("components by pass")
    legend = sb.plot.clusters(fit, rows, ax=after).get_legend()
    if legend is not None:
        legend.remove()
    after.set_title(f"{fit.n_occupied} clusters found")
    for axes in (before, after):
        axes.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    figure.savefig(path)


def growth(path: Path) -> None:
    """Draw the bound and the number of components by pass in the example of docs/number-of-clusters.md."""
    corners = 12.0 * np.array([[x, y] for y in range(5) for x in range(5)])
    sizes = np.geomspace(100, 1000, 25).round().astype(int)
    fit = sb.fit(MODEL, np.random.default_rng(0).normal(np.repeat(corners, sizes, axis=0)), progress=False)
    # Letters stay letters, and nothing in the file changes but with the numbers.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "growth"}):
        figure = Figure(figsize=(9, 3), layout="constrained")
        left, right = figure.subplots(1, 2)
        sb.plot.bound(fit, ax=left)
        sb.plot.n_components(fit, ax=right)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    clusters(FOLDER / "clusters.png")
    growth(FOLDER / "growth.svg")
