"""The page about the papers: what it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def test_source_files_that_the_page_names_exist() -> None:
    named = re.findall(r"`(src/[\w/.]+)`", PAGE)
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_experiments_of_the_page_are_those_of_the_makefile_and_have_raw_files() -> None:
    named = {name for row in PAGE.splitlines() for name in re.findall(r"`(\w+)`", row.rsplit("|", 2)[-2:][0])}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    experiments = set(re.findall(r"^EXPERIMENTS := (.*)$", makefile, re.MULTILINE)[0].split())
    assert named == experiments
    missing = [name for name in named if not (ROOT / "benches" / "results" / "papers" / f"{name}.txt").exists()]
    assert missing == []
