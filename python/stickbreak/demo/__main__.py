"""Entry point of `python -m stickbreak.demo`, the same as `stickbreak demo`."""

import sys

from stickbreak.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
