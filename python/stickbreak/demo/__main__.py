"""Fit a Dirichlet-process mixture to all patches of two photographs, and draw what it found."""

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import stickbreak as sb

# The packages of the extra "demo", by the names under which Python imports them.
_PACKAGES = {"sklearn": "scikit-learn", "matplotlib": "matplotlib", "PIL": "pillow"}
_INTERRUPTED = 130
_LEAST_HEIGHT = 16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit status."""
    options = _parse(arguments)
    if missing := [package for module, package in _PACKAGES.items() if importlib.util.find_spec(module) is None]:
        print(f'The demo needs {" and ".join(missing)}: pip install "stickbreak[demo]"', file=sys.stderr)
        return 1
    # Not before: it imports those packages.
    from stickbreak.demo import program

    try:
        program.run(options)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return _INTERRUPTED
    except (sb.StickbreakError, OSError) as error:
        print(f"The demo failed: {error}", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m stickbreak.demo",
        description=__doc__,
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER", help="where the files go (demo)")
    numbers = {
        "components": (50, "components to start from (50)"),
        "sparsity": (4, "components that a patch may belong to at the same time (4)"),
        "passes": (20, "passes over the data, at most (20)"),
        "seed": (0, "decides the order of the rows and of the batches (0)"),
        "threads": (None, "threads (one for every core)"),
    }
    for name, (default, text) in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=text)
    parser.add_argument(
        "--height", type=_height, metavar="PIXELS", help="take only the middle of each photograph, of this height"
    )
    parser.add_argument(
        "--held-out", action="store_true", help="then fit each photograph alone, and score the patches of the other"
    )
    return parser.parse_args(arguments)


def _height(text: str) -> int:
    pixels = int(text)
    if pixels < _LEAST_HEIGHT:
        raise argparse.ArgumentTypeError(f"{pixels} pixels are too few; at least {_LEAST_HEIGHT}")
    return pixels


if __name__ == "__main__":
    sys.exit(main())
