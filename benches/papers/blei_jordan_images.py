"""The image analysis of Blei and Jordan (2006): which photographs belong together, by their coarse brightness.

Each photograph of BSDS500 is the means of its 8 x 8 cells. Components are spherical, mean and variance independent a
priori; the concentration has a Gamma(1, 1) prior. (The paper has photographs of the Associated Press in colour, which
cannot be had; the hyperparameters of its base measure are lost in the text at hand, so they are those that follow the
data.) The paper's truncation is 150, for 25 times as many photographs. Variational inference without births and merges
keeps about as many components as its start has, so the truncation is chosen by the bound of the nested kind: with the
last stick 1 every truncation has its own. Starts are sequential as in the paper, and by k-means++.

python benches/papers/blei_jordan_images.py [--permutations 20] [--photographs FILE]
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import gamma

import stickbreak as sb
from figures import print_head, save
from images import SIDE, grids, photographs

Array = NDArray[np.float64]
TRUNCATIONS = (2, 3, 5, 7, 10, 12, 15, 20, 30, 50, 150)
STARTS = ("sequential", "kmeans++")
PRIOR = sb.Gamma(1.0, 1.0)
N_SHOWN = 6
TEN = 10


def fit(rows: Array, n_components: int, init: str, permutations: int) -> sb.Fit:
    model = sb.Mixture(likelihood=sb.SphericalGaussian(base="product"), process=sb.DirichletProcess(PRIOR))
    algorithm = sb.Full(sparsity=None, margin=None, tol=1e-10, max_passes=1000)
    return sb.fit(
        model,
        rows,
        algorithm,
        n_components=n_components,
        init=init,
        n_init=permutations,
        threads=1,
        progress=False,
    )


def best_of(rows: Array, truncations: Sequence[int], permutations: int) -> sb.Fit:
    """The fit with the highest bound; all are printed."""
    print(
        f"\n{len(rows)} photographs as {SIDE} x {SIDE} means; of every truncation T and start the best of "
        f"{permutations}; bounds in nats\n{'T':>4}"
        + "".join(f"{f'{init}: bound':>20}{'occupied':>9}{'seconds':>8}" for init in STARTS)
    )
    found: list[sb.Fit] = []
    for n_components in truncations:
        line = f"{n_components:>4}"
        for init in STARTS:
            begun = time.process_time()
            found.append(fit(rows, n_components, init, permutations))
            line += f"{found[-1].elbo:20.2f}{found[-1].n_occupied:9}{time.process_time() - begun:8.1f}"
        print(line, flush=True)
    return max(found, key=lambda one: one.elbo)


def report(found: sb.Fit) -> None:
    likelihood, posterior, counts = found.model.likelihood, found.concentration, found.counts
    spread = posterior.shape**0.5 / posterior.rate
    print(
        f"\nThe best of all: T = {found.n_components}, bound {found.elbo:.4f} ({found.bound}), {len(found.history)} "
        f"passes, {found.stop_reason.value}\n"
        f"base measure: mean ~ N(mean of the photographs, I / {likelihood.mean_precision:.3g}), "
        f"1 / variance ~ Gamma({likelihood.shape:.3g}, {likelihood.rate:.3g})\n"
        f"components with an expected count of at least 0.5: {found.n_occupied}\n"
        "expected counts: " + " ".join(f"{count:.1f}" for count in counts[counts >= 0.05]) + "\n"
        f"concentration: prior Gamma({PRIOR.shape:g}, {PRIOR.rate:g}), mean {PRIOR.mean:g}; posterior "
        f"Gamma({posterior.shape:.4g}, {posterior.rate:.4g}), mean {posterior.mean:.3f}, standard deviation "
        f"{spread:.3f}"
    )


def draw_counts(found: sb.Fit) -> None:
    figure, (sizes, concentration) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    sizes.bar(np.arange(1, found.n_components + 1), found.counts)
    sizes.set(xlabel="component", ylabel="expected number of photographs")
    posterior = found.concentration
    x = np.linspace(0, posterior.mean + 5 * posterior.shape**0.5 / posterior.rate, 400)
    for who, style, label in ((PRIOR, "k--", "prior"), (posterior, "-", "posterior")):
        concentration.plot(x, gamma(who.shape, scale=1 / who.rate).pdf(x), style, label=label)
    concentration.set(xlabel="concentration", ylabel="density")
    concentration.legend()
    save(figure, "blei_jordan_images")


def most_probable(found: sb.Fit, rows: Array, component: int) -> NDArray[np.int64]:
    """The rows, at most ten, that most probably belong to it; of equally probable ones those nearest to its mean."""
    probability = found.predict_proba(rows)[:, component]
    distance = ((rows - found.components["mean"][component]) ** 2).sum(axis=1)
    order = np.lexsort((distance, -probability.round(9)))
    return order[probability[order] > 0.5][:TEN]


def members(found: sb.Fit, rows: Array, images: Sequence[Array]) -> Figure:
    """A line each for the largest components: the mean, then the ten most probable images."""
    largest = np.argsort(-found.counts)[: min(N_SHOWN, found.n_occupied)]
    figure, panels = plt.subplots(
        len(largest), TEN + 1, figsize=(TEN + 1, len(largest)), squeeze=False, layout="constrained"
    )
    for panel in panels.flat:
        panel.axis("off")
    for line, component in zip(panels, largest, strict=True):
        shown = [found.components["mean"][component].reshape(SIDE, SIDE)]
        shown += [images[row] for row in most_probable(found, rows, int(component))]
        for panel, image in zip(line, shown, strict=False):
            panel.imshow(image, cmap="gray", vmin=0, vmax=1, aspect="auto")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--permutations", type=int, default=20, help="starts of every fit")
    parser.add_argument("--photographs", type=Path, help="draw the photographs themselves here, instead of their cells")
    options = parser.parse_args()
    try:
        images = photographs("train") + photographs("val")
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return
    print(f"stickbreak {sb.__version__}, one thread; load before {os.getloadavg()[0]:.1f}")
    rows = grids(images)
    found = best_of(rows, TRUNCATIONS, options.permutations)
    report(found)
    draw_counts(found)
    save(members(found, rows, [row.reshape(SIDE, SIDE) for row in rows]), "blei_jordan_members")
    if options.photographs is not None:
        members(found, rows, [image[::4, ::4] / 255 for image in images]).savefig(options.photographs)
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
