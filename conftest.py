"""Runs the examples of README.md and docs/ as tests, Python and shell, each page in a folder of its own."""

import doctest
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

collect_ignore = ["docs/conf.py", "docs/_build", "docs/_ext", "docs/api", "docs/auto_gallery", "docs/gallery"]


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    """Close the figures of an example: matplotlib warns of more than 20."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def enter_folder(namespace: dict[str, Any]) -> None:
    namespace["_before"] = os.getcwd()
    namespace["_folder"] = tempfile.TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def leave_folder(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()


FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_console(example: Example) -> None:
    """Run the lines that begin with `$ ` in a shell; what follows each is what it writes, stderr first."""
    for block in re.split(r"^\$ ", example.parsed, flags=re.MULTILINE)[1:]:
        command, _, expected = block.partition("\n")
        # The program of this very environment, installed or not.
        shell = f'stickbreak() {{ "{sys.executable}" -m stickbreak "$@"; }}; {command}'
        run = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
        found = run.stderr + run.stdout
        assert doctest.OutputChecker().check_output(expected, found, FLAGS), f"{command}\n{found}"


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=FLAGS)]
    + ([] if sys.platform == "win32" else [CodeBlockParser("console", run_console)]),
    patterns=["README.md", "docs/*.md"],
    setup=enter_folder,
    teardown=leave_folder,
).pytest()
