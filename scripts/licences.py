"""Collects the licences of the crates that are linked into the wheel.

    python scripts/licences.py            rewrite LICENSES-THIRD-PARTY.txt
    python scripts/licences.py --check    fail where it is not what would be written

`make lint` runs the check. Crates that only run while the core is built (macros, build scripts) are not linked.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "LICENSES-THIRD-PARTY.txt"
# The platforms for which there are wheels: .github/workflows/wheels.yml.
TARGETS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
TEXTS = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)
HEAD = """\
The core of stickbreak is linked with the Rust crates below, and with the standard library of Rust (MIT OR Apache-2.0,
https://www.rust-lang.org). Their licences allow that; this file repeats them. `python scripts/licences.py` writes it.
"""
LINE = "=" * 100


class Crate(NamedTuple):
    """A crate that is linked: its name and version, and where its files are."""

    name: str
    version: str
    licence: str
    source: str
    authors: str
    folder: Path

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"


def linked(root: Path = ROOT) -> list[Crate]:
    """Return the crates that are part of the core on some platform, by name and version."""
    targets = [word for target in TARGETS for word in ("--target", target)]
    tree = ["tree", "-p", "stickbreak-python", "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    lines = set(_cargo(root, *tree, *targets).splitlines())
    titles = {" ".join(line.split()[:2]).replace(" v", " ") for line in lines}
    packages = json.loads(_cargo(root, "metadata", "--format-version", "1"))["packages"]
    found = [
        Crate(
            package["name"],
            package["version"],
            (package["license"] or "").replace("/", " OR "),
            package["repository"] or f"https://crates.io/crates/{package['name']}",
            ", ".join(package["authors"]).replace(" <>", "") or "its contributors",
            Path(package["manifest_path"]).parent,
        )
        for package in packages
        if package["source"] and f"{package['name']} {package['version']}" in titles
    ]
    return sorted(found, key=lambda crate: (crate.name, crate.version))


def texts(crate: Crate) -> list[str]:
    """Return the licence texts of a crate, with normalised line ends."""
    files = [path for path in sorted(crate.folder.iterdir()) if path.is_file() and TEXTS.search(path.name)]
    found = (path.read_text(encoding="utf-8", errors="replace") for path in files if path.suffix != ".rs")
    return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in found]


def written(crates: list[Crate]) -> str:
    """Return the file: a list of crates, and each text once, below the crates that have it."""
    by_words: dict[str, tuple[str, list[Crate]]] = {}
    silent = []
    for crate in crates:
        found = texts(crate)
        for text in found:
            # Copies differ in spaces and ends of lines.
            by_words.setdefault(" ".join(text.split()), (text, []))[1].append(crate)
        if not found:
            silent.append(f"{crate.title}, copyright of {crate.authors}")
    parts = [HEAD, *(f"{crate.title}: {crate.licence}, {crate.source}" for crate in crates)]
    if silent:
        parts += ["", "Without a text of their own (those of their licences stand below):", *silent]
    for text, owners in by_words.values():
        parts += ["", LINE, f"Of {', '.join(crate.title for crate in owners)}:", "", text]
    return "\n".join(parts) + "\n"


def _cargo(root: Path, *arguments: str) -> str:
    run = subprocess.run(["cargo", *arguments, "--locked"], cwd=root, capture_output=True, text=True, encoding="utf-8")
    if run.returncode:
        sys.exit(f"cargo {arguments[0]} failed:\n{run.stderr}")
    return run.stdout


def main() -> int:
    text = written(linked())
    if sys.argv[1:] == ["--check"]:
        same = PLACE.is_file() and PLACE.read_text(encoding="utf-8") == text
        print(f"{PLACE.name}: {'as it should be' if same else 'out of date; run python scripts/licences.py'}")
        return 0 if same else 1
    if sys.argv[1:]:
        print(__doc__)
        return 2
    PLACE.write_text(text, encoding="utf-8")
    print(f"wrote {PLACE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
