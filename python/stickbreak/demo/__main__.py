"""`python -m stickbreak.demo`: fits a mixture to more than half a million image patches, and draws what it found."""

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import stickbreak as sb

if TYPE_CHECKING:
    from stickbreak.demo.patches import Patches, Photograph

# Where a package has another name in Python than on the package index.
_PACKAGES = {"sklearn": "scikit-learn", "matplotlib": "matplotlib", "PIL": "pillow"}
_INTERRUPTED = 130


@dataclass(frozen=True)
class Settings:
    """What the command line decides."""

    out: Path
    n_components: int
    sparsity: int
    max_passes: int
    seed: int
    threads: int | None
    crop: int | None
    held_out: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit status."""
    settings = _parse(arguments)
    if missing := [package for module, package in _PACKAGES.items() if importlib.util.find_spec(module) is None]:
        print(f'The demo needs {" and ".join(missing)}: pip install "stickbreak[demo]"', file=sys.stderr)
        return 1
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
        _run(settings)
    except KeyboardInterrupt:
        print("Interrupted; nothing more is written.", file=sys.stderr)
        return _INTERRUPTED
    except (sb.StickbreakError, OSError) as error:
        print(f"The demo failed: {error}", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(prog="python -m stickbreak.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER", help="where to write (demo)")
    parser.add_argument("--components", dest="n_components", type=int, default=50, metavar="K", help="components (50)")
    parser.add_argument("--sparsity", type=int, default=4, metavar="L", help="components a patch may belong to (4)")
    parser.add_argument("--passes", dest="max_passes", type=int, default=20, metavar="N", help="passes at most (20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="decides the order of the batches (0)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="threads (all cores)")
    parser.add_argument("--crop", type=int, metavar="PIXELS", help="only a square from the middle of each photograph")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="also fit each photograph alone, and score the patches of the other one",
    )
    return Settings(**vars(parser.parse_args(arguments)))


def _run(settings: Settings) -> None:
    from stickbreak.demo import figure, patches

    photographs = [patches.load_photograph(name, settings.crop) for name in patches.PHOTOGRAPHS]
    parts = [patches.patches(photograph) for photograph in photographs]
    rows = np.concatenate(parts)
    print(f"{len(rows):,} patches of {' and '.join(patches.PHOTOGRAPHS)}, {rows.shape[1]} values each")
    ...
