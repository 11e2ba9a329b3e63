"""The first line of an experiment's results, where its figures go, and whether there is Matplotlib to draw them."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from common.head import command as command
from common.head import first_line as first_line
from common.head import print_head as print_head

ROOT = Path(__file__).resolve().parents[2]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What figures call the methods whose names tables shorten.
NAMES = {
    "MO-BM": "memoized, births and merges",
    "MO": "memoized, K fixed",
    "Full": "full passes, K fixed",
    "SO a": "stochastic, delay 10, decay 0.5",
    "SO b": "stochastic, delay 100, decay 0.5",
    "SO c": "stochastic, delay 10, decay 0.9",
    "SO": "stochastic, K fixed",
    "VDP": "splits from K = 1 (Kurihara et al.)",
}


def spelled_out(name: str) -> str:
    """The name of a method, or of a run of it, in words: "MO, random" is "memoized, K fixed, random start"."""
    method, *rest = name.split(", ")
    starts = {"random": "random start", "kmeans++": "k-means++ start"}
    return ", ".join([NAMES.get(method, method), *(starts.get(word, word) for word in rest)])


def folder() -> Path:
    found = ROOT / os.environ.get("RESULTS", "target/bench-results") / "papers"
    found.mkdir(parents=True, exist_ok=True)
    return found


def can_draw() -> bool:
    can = find_spec("matplotlib") is not None
    if not can:
        print("no figures: Matplotlib is not installed", flush=True)
    return can


def save(figure: "Figure", name: str) -> None:
    """Write it as an SVG whose bytes depend on the figure only."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(folder() / f"{name}.svg", metadata={"Date": None})
    print(f"figure: {name}.svg", flush=True)
