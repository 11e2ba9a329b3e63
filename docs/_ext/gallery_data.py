"""Which pages of the gallery can be run: those whose data are in the folder `STICKBREAK_DATA`."""

from __future__ import annotations

import os
import re
from pathlib import Path

# A page that needs a file of the data folder has this line: `# needs: folder/file`.
NEEDS = re.compile(r"^# needs: (\S+)$", re.MULTILINE)


def find() -> None:
    """Set `STICKBREAK_DATA` to the folder beside the clone, unless it is set or there is none."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    if beside.is_dir():
        os.environ.setdefault("STICKBREAK_DATA", str(beside))


def missing(page: Path) -> list[str]:
    """Return the data files that a page needs and that are not there."""
    folder = os.environ.get("STICKBREAK_DATA")
    needed = NEEDS.findall(page.read_text(encoding="utf-8"))
    return [name for name in needed if not (folder and (Path(folder) / name).exists())]


def runnable(folder: Path) -> str:
    """Return a regular expression that matches the pages that can be run."""
    names = [re.escape(page.name) for page in sorted(folder.glob("plot_*.py")) if not missing(page)]
    return "(" + "|".join(names or ["$^"]) + ")"
