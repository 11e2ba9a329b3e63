"""Where the results of the papers' experiments go, and whether there is Matplotlib to draw figures."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]


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
