"""Checks citations of docs/mathematics.md: each section and item that a source names must exist.

A citation is the word "mathematics" and a section: "mathematics 4.5", "mathematics 4.4 to 4.8", "mathematics 2a.1"
(item 1 of the list in section 2a), "mathematics 7, number 11" (row 11 of the table in section 7). `check_structure.py`
runs this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = "docs/mathematics.md"
FOLDERS = {"*.rs": ("src", "crates", "benches", "tests", "examples"), "*.py": ("python", "tests", "benches", "scripts")}
# They hold the rules below and examples of their breach.
EXEMPT = ("scripts/check_citations.py", "tests/repository/")

LABEL = r"\d+(?:\.\d+)*(?:[a-z](?![a-z])'*)?(?:\.\d+)?"
# White space, with the start of the next line of a comment.
GAP = r"(?:\s+(?://[/!]?\s+|\#\s+)?)"
JOIN = rf"(?:,?{GAP}(?:and|to){GAP}|,{GAP})"
CITATION = re.compile(
    rf"\bmathematics,?{GAP}(?:sections?{GAP})?(?P<labels>{LABEL}(?:{JOIN}{LABEL})*)"
    rf"(?:,{GAP}(?:number|item)s?{GAP}(?P<numbers>\d+(?:{JOIN}\d+)*))?",
    re.IGNORECASE,
)
# Other documents than the page.
REFUSED = re.compile(
    rf"\bspec(?:ification)?,?{GAP}(?:sections?{GAP})?\d\S*"
    rf"|\bspec(?:ification)?{GAP}of{GAP}(?:missing|MCMC)\b|\bof{GAP}the{GAP}spec\b"
    rf"|\bsections?{GAP}[^.()]{{0,40}}\bof{GAP}(?:the|their){GAP}specification"
    rf"|\bmoves{GAP}recipe\b"
    r"|\b(?:variational|missing|mcmc|evidence|topics|moves-recipe)\.md\b",
    re.IGNORECASE,
)


def labels_of_page(text: str) -> set[str]:
    """Return the sections of the page, and as `2a#1` the items of their lists and tables."""
    labels: set[str] = set()
    here: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            heading = re.match(rf"#{{2,4}} ({LABEL}(?:, {LABEL})*)\.? ", line)
            here = heading.group(1).split(", ") if heading else []
            labels.update(here)
        elif item := re.match(r"(\d+)\. |\| (\d+) \|", line):
            labels.update(f"{section}#{item.group(1) or item.group(2)}" for section in here)
    return labels


def cited(match: re.Match[str]) -> list[str]:
    """Return every label that a citation names; of a range, both ends."""
    labels = re.findall(LABEL, match["labels"])
    return labels + [f"{labels[-1]}#{number}" for number in re.findall(r"\d+", match["numbers"] or "")]


def check_citations(root: Path) -> Iterator[str]:
    """Comments cite sections of docs/mathematics.md that exist, and no other specification."""
    page = root / PAGE
    known = labels_of_page(page.read_text(encoding="utf-8")) if page.exists() else set()
    for pattern, folders in FOLDERS.items():
        for path in sorted(path for folder in folders for path in (root / folder).rglob(pattern)):
            name = path.relative_to(root).as_posix()
            if name.startswith(EXEMPT):
                continue
            text = path.read_text(encoding="utf-8")
            for match in CITATION.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                for label in cited(match):
                    # "2a.1" may be item 1 of section 2a.
                    if not known & {label, re.sub(r"\.(\d+)$", r"#\1", label)}:
                        yield f"{name}:{line}: {PAGE} has no section or item {label.replace('#', ', number ')}"
            for match in REFUSED.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                words = " ".join(match.group().split())
                yield f"{name}:{line}: cite {PAGE}, as in `mathematics 4.5`, instead of `{words}`"
