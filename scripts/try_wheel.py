"""Installs a wheel into a new environment and runs the tests there, with the repository out of sight.

    python scripts/try_wheel.py FOLDER [TESTS AND OTHER ARGUMENTS OF PYTEST ...]

`make test-wheel` runs it for the tests that see most of a wheel; without arguments all tests run. The folder holds one
wheel for this machine. Tests, README.md and the pages of docs/ are copied into a temporary folder, the package is not;
tests of the repository itself (tests/repository) stay behind.
"""

from __future__ import annotations

import email.parser
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Of the scripts the tests use the campaigns of mutated files.
COPIED = ("pyproject.toml", "conftest.py", "README.md", "tests", "docs", "scripts")
LEFT_BEHIND = shutil.ignore_patterns("repository", "rust", "_build", "conf.py", "__pycache__")
ALL = ("tests", "docs", "README.md", "--pyargs", "stickbreak")
# Variables through which another installation could be found instead of the wheel.
CLEARED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


def only_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"{folder}: there should be one wheel, but there are {len(wheels)}")
    return wheels[0].resolve()


def extras(wheel: Path) -> list[str]:
    """The extras that the wheel offers; the tests need them all."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.BytesParser().parsebytes(archive.read(name)).get_all("Provides-Extra", [])


def new_environment(folder: Path, wheel: Path) -> Path:
    """Make an environment with the wheel and what its tests need; return its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    group = f"{ROOT / 'pyproject.toml'}:test"
    subprocess.run([*pip, f"{wheel}[{','.join(extras(wheel))}]", "--group", group], check=True)
    return python


def copy_tests(folder: Path) -> None:
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_BEHIND)
        else:
            shutil.copy(source, folder / name)


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    wheel = only_wheel(Path(sys.argv[1]))
    environment = {name: value for name, value in os.environ.items() if name not in CLEARED}
    with tempfile.TemporaryDirectory(prefix="stickbreak-wheel-") as temporary:
        place = Path(temporary).resolve()
        print(f"Installing {wheel.name} and what its tests need into a new environment", flush=True)
        python = new_environment(place / "environment", wheel)
        copy_tests(place / "work")
        where = "import stickbreak; print(stickbreak.__file__)"
        found = subprocess.run(
            [str(python), "-c", where], cwd=place / "work", env=environment, check=True, capture_output=True, text=True
        )
        if not Path(found.stdout.strip()).resolve().is_relative_to(place / "environment"):
            sys.exit(f"the tests would see another package than the wheel: {found.stdout}")
        tests = [str(python), "-m", "pytest", *(sys.argv[2:] or ALL)]
        return subprocess.run(tests, cwd=place / "work", env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
