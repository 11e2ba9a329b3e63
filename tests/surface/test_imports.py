"""`import stickbreak` does not load packages that a user may not need."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("scipy", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "tqdm", "click", "numpy.random", "hypothesis")


@pytest.mark.parametrize("module", ["stickbreak", "stickbreak.plot"])
def test_heavy_packages_are_not_loaded(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


PRESSED = "import os, signal; os.kill(os.getpid(), signal.SIGINT); raise ImportError('Ctrl-C was lost')"
COMMANDS = {
    "module": ["-m", "stickbreak"],
    "demo": ["-m", "stickbreak.demo"],
    "script": ["stickbreak"],
    "other": ["-c", "import stickbreak"],
}


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
@pytest.mark.parametrize("how", COMMANDS)
def test_ctrl_c_while_a_command_imports_is_one_line(how: str, tmp_path: Path) -> None:
    """A NumPy that presses Ctrl-C stands for a slow import. Elsewhere Python tells of it as ever."""
    (tmp_path / "numpy.py").write_text(PRESSED)
    (tmp_path / "stickbreak").write_text("import stickbreak")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, *COMMANDS[how]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        # What runs in the background may have come to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if how == "other":
        assert run.stderr.endswith("KeyboardInterrupt\n")
    else:
        assert (run.returncode, run.stdout, run.stderr) == (130, "", "stickbreak: error: interrupted\n")
