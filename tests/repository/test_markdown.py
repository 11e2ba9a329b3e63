"""Markdown files have no figures left to fill in, and their links lead to files that exist."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The site makes these pages from the sources of the gallery.
MADE_PAGES = {"docs/auto_gallery/index.rst": "docs/gallery/GALLERY_HEADER.rst"}
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)


def source_of(page: str) -> str:
    """The file from which a page is made, or the page itself."""
    made = re.fullmatch(r"docs/auto_gallery/(?:images/sphx_glr_)?(plot_\w+?)(?:_\d{3}\.png|\.rst)", page)
    return f"docs/gallery/{made[1]}.py" if made else MADE_PAGES.get(page, page)


def complaints(root: Path, names: list[str]) -> Iterator[str]:
    for name in names:
        text = (root / name).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), start=1):
            if "@@" in line:
                yield f"{name}:{number}: a placeholder: {line}"
        for match in LINK.finditer(CODE.sub("", text)):
            target = (match[1] or match[2]).partition("#")[0]
            if not target or re.match(r"[a-z]+:", target):
                continue
            page = (root / name).parent.joinpath(target).resolve()
            if not page.is_relative_to(root) or not (root / source_of(page.relative_to(root).as_posix())).exists():
                yield f"{name}: a link to {target}, which is not there"


def test_tracked_files() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    assert "README.md" in names
    assert list(complaints(ROOT.resolve(), names)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sound: [a](other.md), [b](../README.md#top), [c](#here), [d](https://e.org/f.md), `[e](gone.md)`", None),
        (
            "```python\nx[0](gone)\n```\n[![a](auto_gallery/images/sphx_glr_plot_1_001.png)](auto_gallery/plot_1.rst)",
            None,
        ),
        ("| 4 | @@4@@ |", "docs/page.md:1: a placeholder: | 4 | @@4@@ |"),
        ("[two\nlines](gone.md#part)", "docs/page.md: a link to gone.md, which is not there"),
        ("![picture](images/gone.svg)", "a link to images/gone.svg"),
        ("[word]: gone.md", "a link to gone.md"),
        ("[out](../../README.md)", "a link to ../../README.md"),
        ("[a](auto_gallery/plot_2.rst)", "a link to auto_gallery/plot_2.rst"),
    ],
)
def test_what_is_found(text: str, words: str | None, tmp_path: Path) -> None:
    for name in ("README.md", "docs/other.md", "docs/gallery/plot_1.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "docs/page.md").write_text(text)
    found = list(complaints(tmp_path.resolve(), ["README.md", "docs/page.md"]))
    assert len(found) == (words is not None)
    assert words is None or words in found[0]
