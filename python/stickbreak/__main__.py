"""Entry point of `python -m stickbreak`, the command line."""

import sys

from stickbreak.cli import main

if __name__ == "__main__":
    sys.exit(main())
