"""`import stickbreak` does not load packages that a user may not need."""

import subprocess
import sys

import pytest

HEAVY = ("scipy", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "tqdm", "click", "numpy.random", "hypothesis")


@pytest.mark.parametrize("module", ["stickbreak", "stickbreak.plot"])
def test_heavy_packages_are_not_loaded(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
