"""`python -m stickbreak.demo` is `stickbreak demo`."""

import sys

from stickbreak.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
