"""Fill the tables of benches/README.md and of other pages from the raw files in benches/results.

    python scripts/bench_tables.py --write    # after new raw files: marks old ones and writes the tables
    python scripts/bench_tables.py --check    # fails where pages and raw files differ; needs no git

A table stands between `<!-- table: name -->` and `<!-- end -->`; `bench_peers.py` and `bench_papers.py` say what is in
it. Figures in the other text of benches/README.md must be in a raw file, too. The check takes for figures the numbers
with a decimal point and those of three digits and more.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import bench_papers
import bench_peers
from bench_raw import ROOT, Results, Table

TABLES = bench_peers.TABLES | bench_papers.TABLES
RESULTS = Path("benches", "results")
BENCHES = Path("benches", "README.md")
SITE = "https://github.com/stickbreak/stickbreak/blob/main/benches/results/"
# Each page, and where its links to raw files begin; None: its tables do not name their raw files.
PAGES = {
    BENCHES: "results/",
    Path("benches", "linalg.md"): "results/",
    Path("docs", "samplers.md"): SITE,
    Path("docs", "decisions", "merges.md"): SITE,
    Path("README.md"): None,
}
MARKED = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?:(?!<!--).)*(<!-- end -->)", re.DOTALL)
# Parts of a page in which numbers are no figures: tables, headings, code and the targets of links.
NO_FIGURES = re.compile(r"<!-- table.*?<!-- end -->|^#[^\n]*|```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*\d)")


def rendered(table: Table) -> str:
    """The lines of a Markdown table; all columns but the first are aligned to the right."""
    heads = [
        "|".join(("", *(f" {cell} " if cell else " " for cell in row), "")) for row in (table.columns, *table.rows)
    ]
    return "\n".join([heads[0], "|---|" + "--:|" * (len(table.columns) - 1), *heads[1:]])


def filled(page: str, results: Results, links: str | None) -> str:
    """The page with its tables written anew."""

    def fill(match: re.Match[str]) -> str:
        results.read.clear()
        text = rendered(TABLES[match["name"]](results))
        if links is not None:
            text += "\n\nRaw: " + ", ".join(raw.mention(links) for raw in results.read.values()) + "."
        return f"{match[1]}{text}\n{match[3]}"

    return MARKED.sub(fill, page)


def strays(page: str, results: Results) -> Iterator[str]:
    """Figures outside the tables that no raw file has."""
    known = {number.lstrip("-") for name in results.names for number in numbers(results[name].text)}
    for number in numbers(NO_FIGURES.sub("", page)):
        if ("." in number or len(number) > 2) and number.lstrip("-") not in known:
            yield number


def numbers(text: str) -> Iterator[str]:
    return (match[0].replace(",", "") for match in NUMBER.finditer(text))


def complaints(root: Path) -> Iterator[str]:
    """What is wrong with the raw files or, if nothing is, with the pages."""
    results = Results(root / RESULTS)
    headless = [name for name in results.names if not results.has_head(name)]
    for name in headless:
        yield f"{(RESULTS / name).as_posix()}: no commit, date and CPU, as benches/common/head.py prints them"
    if headless:
        return
    for page, links in PAGES.items():
        text = (root / page).read_text(encoding="utf-8")
        try:
            same = filled(text, results, links) == text
        except LookupError as error:
            yield f"{page.as_posix()}: {error}"
            continue
        if not same:
            yield f"{page.as_posix()}: its tables are not those of the raw files; scripts/bench_tables.py --write"
    for number in strays((root / BENCHES).read_text(encoding="utf-8"), results):
        yield f"{BENCHES.as_posix()}: {number} is in no raw file"


def write(root: Path) -> None:
    results = Results(root / RESULTS)
    for name in results.mark_old():
        print(f"{(RESULTS / name).as_posix()}: its mark of age changed")
    for page, links in PAGES.items():
        path = root / page
        path.write_text(filled(path.read_text(encoding="utf-8"), results, links), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true")
    choice.add_argument("--check", action="store_true")
    if parser.parse_args().write:
        write(ROOT)
    found = list(complaints(ROOT))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
