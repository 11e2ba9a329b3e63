"""Reads the raw files of benches: what their first line says, whether they are old, and single figures."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLD = "; older than the code it measures"
# What `benches/common/head.py` writes; in a JSON file it is the value of "head".
HEAD = re.compile(
    r"commit (?P<commit>[0-9a-f]{7,40}(?: with uncommitted changes)?), (?P<date>\d{4}-\d\d-\d\d), "
    rf"(?P<cpu>[^;\"\n]+)(?P<old>{OLD})?"
)
# In so many characters at the top of a file.
NEAR_TOP = 300
# Paths of the code that a raw file measures. Of files that are not listed it is the whole core.
CORE = ("src",)
KERNELS = ("src/linalg", "src/local_step", "src/likelihood", "src/simd.rs")
CHAINS = ("src/mcmc", "src/likelihood", "src/process", "src/linalg")
MEASURED = {
    "rust/documents.txt": ("src/local_step", "src/likelihood"),
    "rust/global_step.txt": ("src/likelihood", "src/linalg", "src/global_step.rs"),
    "rust/instructions.txt": KERNELS,
    "rust/kd_trees.txt": ("src/data", "src/local_step"),
    "rust/linalg.txt": ("src/linalg",),
    "rust/local_step.txt": KERNELS,
    "rust/samplers.txt": CHAINS,
    "rust/trees.txt": CHAINS,
    "merges.txt": ("src/moves",),
    "samplers.txt": CHAINS,
    "papers/tree_guided.txt": CHAINS,
}


@dataclass(frozen=True)
class Table:
    """A table of a page; cells are texts."""

    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Raw:
    """The text of a raw file, or of a part of it, and its first line."""

    name: str
    text: str
    head: re.Match[str]

    def after(self, words: str) -> Raw:
        """The part that begins with these words."""
        at = self.text.find(words)
        if at < 0:
            raise LookupError(f"benches/results/{self.name}: no {words!r}")
        return Raw(self.name, self.text[at:], self.head)

    def find(self, pattern: str) -> list[str]:
        """The groups of the first match."""
        match = re.search(pattern, self.text, re.MULTILINE)
        if match is None:
            raise LookupError(f"benches/results/{self.name}: nothing matches {pattern!r}")
        return [group or "" for group in match.groups()]

    def row(self, label: str) -> list[str]:
        """The fields of the first line of a table that has this label, parted by spaces."""
        return self.find(rf"^ *{re.escape(label)}(?:  +|$)(.*)$")[0].split()

    def mention(self, links: str) -> str:
        """A link, the commit, the date, and whether the code is newer."""
        old = ", older" if self.head["old"] else ""
        return f"[{self.name}]({links}{self.name}) ({self.head['commit']}, {self.head['date']}{old})"


class Results:
    """The folder of raw files. It remembers which were read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = sorted(
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in {".txt", ".json"}
        )
        self.read: dict[str, Raw] = {}

    def has_head(self, name: str) -> bool:
        return HEAD.search(self._text(name), 0, NEAR_TOP) is not None

    def __getitem__(self, name: str) -> Raw:
        text = self._text(name)
        head = HEAD.search(text, 0, NEAR_TOP)
        if head is None:
            raise LookupError(f"benches/results/{name}: no commit, date and CPU")
        self.read[name] = Raw(name, text, head)
        return self.read[name]

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def mark_old(self) -> list[str]:
        """Note in each raw file whether code that it measures has changed since; return the names of those changed."""
        marked = []
        for name in self.names:
            raw = self[name]
            mark = OLD if changed_since(raw.head["commit"].split()[0], MEASURED.get(name, CORE)) else ""
            if mark != (raw.head["old"] or ""):
                end = raw.head.end("cpu")
                (self.folder / name).write_text(
                    raw.text[:end] + mark + raw.text[raw.head.end() :], encoding="utf-8", newline="\n"
                )
                marked.append(name)
        return marked


def changed_since(commit: str, paths: tuple[str, ...]) -> bool:
    """Whether a later commit touches one of the paths."""
    command = ["git", "log", "-1", "--format=%h", f"{commit}..HEAD", "--", *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the age of a raw file of commit {commit} is unknown: {done.stderr.strip()}")
    return bool(done.stdout.strip())


def short(number: str) -> str:
    """Three significant digits."""
    return f"{float(number):.3g}"
