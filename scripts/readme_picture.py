"""Draws the picture of docs/index.md: rows, the number of clusters by pass, and the clusters.

python scripts/readme_picture.py    # writes docs/images/clusters.png
"""

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import stickbreak as sb

N_ROWS, N_CLUSTERS = 20_000, 12
BLUE, INK = "#398DA2", "#222222"


def main() -> None:
    """Generate rows, fit them and save the picture."""
    rng = np.random.default_rng(3)
    centres = rng.uniform(-10, 10, size=(N_CLUSTERS, 2))
    spreads = rng.normal(scale=0.7, size=(N_CLUSTERS, 2, 2)) + 0.6 * np.eye(2)
    labels = rng.choice(N_CLUSTERS, size=N_ROWS, p=rng.dirichlet(np.full(N_CLUSTERS, 3.0)))
    rows = centres[labels] + np.einsum("nij,nj->ni", spreads[labels], rng.normal(size=(N_ROWS, 2)))
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, progress=False)

    figure = Figure(figsize=(10, 3.4), dpi=110, layout="constrained")
    before, course, after = figure.subplots(1, 3)
    for axes in (before, after):
        axes.scatter(*rows.T, s=1, color=INK if axes is before else "#B4B4B4", alpha=0.25, linewidths=0)
        axes.set(xticks=[], yticks=[], aspect="equal")
    before.set_title(f"{N_ROWS:,} rows")
    n_components = [record.n_components for record in fit.history]
    course.step(range(1, len(n_components) + 1), n_components, where="mid", color=BLUE)
    course.set(title="components by pass", xlabel="pass", ylim=(0, None))
    course.spines[["top", "right"]].set_visible(False)
    after.set_title(f"{fit.n_occupied} clusters found")
    components = fit.components
    for mean, covariance in zip(
        components["mean"], components["scale"] / components["dof"][:, None, None], strict=True
    ):
        lengths, axes_of_ellipse = np.linalg.eigh(covariance)
        angle = math.degrees(math.atan2(axes_of_ellipse[1, 1], axes_of_ellipse[0, 1]))
        width, height = 4 * np.sqrt(lengths[::-1])
        after.add_patch(Ellipse(mean, width, height, angle=angle, fill=False, color=BLUE, linewidth=1.5))
    path = Path(__file__).parents[1] / "docs" / "images" / "clusters.png"
    figure.savefig(path)
    print(f"{path.name}: {N_CLUSTERS} clusters made, {fit.n_occupied} found")


if __name__ == "__main__":
    main()
