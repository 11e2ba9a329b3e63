"""Does the test suite see realistic mistakes? Injects them one at a time and says which test caught which.

A copy of the committed sources gets all mistakes of `ALL`, each behind a switch, and is built once. So no switch is in
what is released. For each mistake the tests that are known to see it run first, and all others only where these pass,
up to the first failure. All that runs must pass without a mistake. A mistake whose place has changed is an error here:
bring its text up to date.

python scripts/injected_bugs.py [NUMBER ...] [--folder FOLDER] [--core WORD ...] [--tests PATH ...]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from mistakes import BUGS, FILLED, SWITCH, Bug
from mistakes_of_background import OF_BACKGROUND
from mistakes_of_chains import OF_CHAINS
from mistakes_of_columns import OF_COLUMNS
from mistakes_of_fourth_reader import OF_FOURTH_READER
from mistakes_of_reader import OF_READER
from mistakes_of_repeats import OF_REPEATS
from mistakes_of_second_reader import OF_SECOND_READER
from mistakes_of_shards import OF_SHARDS
from mistakes_of_third_reader import OF_THIRD_READER
from mistakes_of_trust import OF_TRUST
from mistakes_of_unseen import OF_UNSEEN
from more_mistakes import MORE

ROOT = Path(__file__).resolve().parent.parent
ALL = (
    *BUGS,
    *MORE,
    *OF_COLUMNS,
    *OF_UNSEEN,
    *OF_BACKGROUND,
    *OF_SHARDS,
    *OF_REPEATS,
    *OF_TRUST,
    *OF_READER,
    *OF_SECOND_READER,
    *OF_CHAINS,
    *OF_THIRD_READER,
    *OF_FOURTH_READER,
)

MODULE = f"""//! Mistakes for `scripts/injected_bugs.py`.

/// Whether this mistake is switched on.
pub fn is(number: usize) -> bool {{
    static NUMBER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let read = || std::env::var("{SWITCH}").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    *NUMBER.get_or_init(read) == number
}}
"""


def with_mistakes(folder: Path) -> dict[str, str]:
    """Return the texts of the files of sources in `folder` that get mistakes, with all of them."""
    texts = {one.file: (folder / one.file).read_text(encoding="utf-8") for one in ALL}
    for one in ALL:
        if texts[one.file].count(one.find) != 1:
            raise SystemExit(f"bug {one.number}: its text does not stand once in {one.file}")
        texts[one.file] = texts[one.file].replace(one.find, one.replace)
    return texts


def make_copy(folder: Path) -> None:
    """Puts the committed sources, with all mistakes, into `folder`; what was built there stays."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    # tar leaves files that are newer than the commit looking old, so that cargo would not build them again.
    subprocess.run(["tar", "--extract", "--touch"], cwd=folder, check=True, input=archive)
    texts = with_mistakes(folder)
    texts["src/fit/update.rs"] += FILLED
    texts["src/lib.rs"] = (folder / "src/lib.rs").read_text(encoding="utf-8") + "\nmod injected;\n"
    texts["src/injected.rs"] = MODULE
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def run(command: list[str], folder: Path, number: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, SWITCH: str(number), "RAYON_NUM_THREADS": "1", "PYO3_BUILD_EXTENSION_MODULE": "1"}
    environment |= {"PYTHONPATH": str(folder / "python"), "PYO3_PYTHON": sys.executable}
    # A panic also counts: any failing test detects the mistake.
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def failure_of_core(folder: Path, number: int, some: list[str]) -> str | None:
    """The first test of the core that fails with a mistake; `some` are what `cargo test` runs, all for none."""
    core = run(["cargo", "test", "--package", "stickbreak", *some], folder, number)
    if core.returncode == 0:
        return None
    found = re.search(r"^test (\S+) \.\.\. FAILED", core.stdout, re.MULTILINE)
    return found.group(1) if found else core.stderr.strip().splitlines()[-1]


def failure_of_package(folder: Path, number: int, tests: list[str]) -> str | None:
    """The first test of the package that fails with a mistake."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "--numprocesses", "auto", "--dist", "loadfile", *tests]
    package = run(pytest, folder, number)
    if package.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", package.stdout, re.MULTILINE)
    return found.group(1) if found else package.stdout[-2000:]


@dataclass
class Tests:
    """The tests in a folder. Those that pass without a mistake are remembered."""

    folder: Path
    core: list[str]
    package: list[str]
    unchecked: bool
    passed: set[str] = field(default_factory=set)

    def first_failure(self, one: Bug) -> str | None:
        """Return the first test that fails with a mistake: first among the known tests, then among all."""
        return self._checked(one.seen, one.number) or self._checked("all", one.number)

    def _checked(self, which: str, number: int) -> str | None:
        if not self.unchecked and which not in self.passed:
            if failure := self._failure(which, 0):
                raise SystemExit(f"without a mistake: {failure}")
            self.passed.add(which)
        return self._failure(which, number)

    def _failure(self, which: str, number: int) -> str | None:
        if which.endswith(".py"):
            return failure_of_package(self.folder, number, [which])
        if which != "all":
            return failure_of_core(self.folder, number, ["--tests", "--", *which.split()])
        some = ["--lib", "--", *self.core] if self.core else []
        return failure_of_core(self.folder, number, some) or failure_of_package(self.folder, number, self.package)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", type=int, help="mistakes; default: all of them")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "injected-bugs", help="where the copy goes")
    parser.add_argument(
        "--core", nargs="+", default=[], metavar="WORD", help="the other unit tests of the core; default: all tests"
    )
    # What is asked of the repository needs its history, which the copy has not.
    usual = ["tests", "--ignore", "tests/repository"]
    parser.add_argument("--tests", nargs="+", default=usual, help="the other tests of the package")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a mistake first")
    options = parser.parse_args()
    make_copy(options.folder)
    built = run(["cargo", "build", "--package", "stickbreak-python"], options.folder)
    if built.returncode:
        raise SystemExit(built.stderr)
    library = options.folder / "target" / "debug" / "lib_core.so"
    (options.folder / "python" / "stickbreak" / "_core.abi3.so").write_bytes(library.read_bytes())
    tests = Tests(options.folder, options.core, options.tests, options.unchecked)
    missed = 0
    for one in ALL:
        if options.numbers and one.number not in options.numbers:
            continue
        begun = time.monotonic()
        failure = tests.first_failure(one)
        missed += failure is None
        print(f"{one.number:3} {one.what}: {failure or 'NOT SEEN'} ({time.monotonic() - begun:.0f} s)", flush=True)
    raise SystemExit(f"{missed} not seen" if missed else 0)


if __name__ == "__main__":
    main()
