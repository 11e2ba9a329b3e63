"""Default fits over rows, with a kd-tree, and with `units="auto"`: components, CPU seconds, bound; one thread.

Rows of ten clusters by columns and separation c (well apart at 2, touching below 1), cells of `gvhd_pos` drawn again
with a normal error of a fifth of a standard deviation, and the images of MNIST in 50 components. "nodes" is the largest
number of nodes that stood for rows, and "gap" how much higher the bound of the same components over rows is than that
of a fit that ends on nodes, in nats a row.

    python benches/kd_trees.py [--rows 100000 600000]
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import stickbreak as sb
from common.clusters import data_folder
from common.head import print_head

sys.path.insert(1, str(Path(__file__).resolve().parent / "papers"))
from accelerated_vdp import gaussians

# Columns and separation.
SETS = ((2, 2.0), (2, 0.5), (3, 0.6), (4, 0.7), (8, 2.0), (8, 0.5), (16, 2.0), (64, 2.0))
LARGEST = 2e7
CELLS = 200_000
MOVES = (sb.Birth(), sb.Merge(), sb.Delete())


def timed(rows: np.ndarray, units: sb.KdTree | str | None) -> tuple[sb.Fit, float]:
    """A fit and its CPU seconds."""
    model = sb.Mixture(likelihood=sb.Gaussian())
    begun = time.process_time()
    fit = sb.fit(model, rows, sb.Full(units=units, moves=MOVES, max_passes=60), threads=1, progress=False)
    return fit, time.process_time() - begun


def show(name: str, rows: np.ndarray) -> None:
    """One line."""
    n = len(rows)
    (flat, of_rows), (refined, of_tree) = timed(rows, None), timed(rows, sb.KdTree())
    chosen, of_auto = timed(rows, "auto")
    nodes, of_nodes = timed(rows, sb.KdTree(refine=False))
    most = max((record.n_units for record in nodes.history if record.n_units < n), default=n)
    gap = (nodes.evaluate(rows, threads=1) - nodes.elbo) / n
    chose = "tree" if chosen.history[0].n_units < n else "rows"
    fits = [(flat, of_rows), (refined, of_tree), (chosen, of_auto), (nodes, of_nodes)]
    times = " ".join(f"{fit.n_components:4d} {seconds:7.2f}" for fit, seconds in fits)
    lower = (refined.elbo - flat.elbo) / n
    print(f"{name:>10} {n:8d} {times} {chose:>5} {most:7d} {gap:9.5f} {lower:+10.5f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 600_000])
    options = parser.parse_args()
    print_head()
    warnings.simplefilter("ignore", sb.ConvergenceWarning)
    columns = " ".join(f"{name:>12}" for name in ("rows: K, s", "tree, rows", "auto", "nodes"))
    print(f"\n{'D, c':>10} {'n':>8} {columns} {'chose':>5} {'nodes':>7} {'gap':>9} {'tree-rows':>10}")
    for d, separation in SETS:
        for n in options.rows:
            if n * d <= LARGEST:
                show(f"{d}, {separation:g}", gaussians(n, d, separation)[0])
    try:
        import digits

        events = np.load(data_folder() / "gvhd_pos" / "gvhd_pos.npz")["X"].astype(float)
        rng = np.random.default_rng(0)
        errors = 0.2 * events.std(axis=0) * rng.standard_normal((CELLS, events.shape[1]))
        show("cells", events[rng.integers(len(events), size=CELLS)] + errors)
        show("digits", digits.load().rows)
    except FileNotFoundError as error:
        print(f"real data left out: {error}")


if __name__ == "__main__":
    main()
