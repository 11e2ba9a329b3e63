"""Where the figures of the papers' experiments go."""

import os
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]


def save(figure: Figure, name: str) -> None:
    """Write it as an SVG whose bytes depend on the figure only."""
    folder = ROOT / os.environ.get("RESULTS", "target/bench-results") / "papers"
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    print(f"figure: {name}.svg", flush=True)
