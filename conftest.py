"""Runs the Python examples of README.md and docs/ as tests, each page in a folder of its own."""

import doctest
import os
import tempfile
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

collect_ignore = ["docs/conf.py"]


def enter_folder(namespace: dict[str, Any]) -> None:
    namespace["_before"] = os.getcwd()
    namespace["_folder"] = tempfile.TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def leave_folder(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)],
    patterns=["README.md", "docs/*.md"],
    setup=enter_folder,
    teardown=leave_folder,
).pytest()
