"""The command line, `stickbreak` or `python -m stickbreak`."""

from collections.abc import Sequence

from stickbreak.cli.commands import program

__all__ = ["main", "program"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the arguments of the process, and return the exit code."""
    return program.main(arguments, "stickbreak", standalone_mode=False)
