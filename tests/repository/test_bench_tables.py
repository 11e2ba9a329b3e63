"""The figures of benches/README.md and of the pages that quote it are those of the raw files."""

import shutil
import sys
from pathlib import Path

import pytest

import bench_raw
import bench_tables
from common.head import first_line, print_head


def test_pages_show_the_raw_files(checkout: Path) -> None:
    assert list(bench_tables.complaints(checkout)) == []


def test_the_page_of_benches_stays_short(checkout: Path) -> None:
    assert len((checkout / bench_tables.BENCHES).read_text(encoding="utf-8").split()) <= 2500


def test_paths_of_measured_code_exist(checkout: Path) -> None:
    for paths in (bench_raw.CORE, *bench_raw.MEASURED.values()):
        for path in paths:
            assert (checkout / path).exists(), path


def test_the_first_line_that_benches_print_is_read_back() -> None:
    found = bench_raw.HEAD.fullmatch(first_line())
    assert found is not None or first_line().startswith("commit unknown")


def test_benches_print_their_options(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(checkout / "benches" / "structure.py"), "--first", "5", "a set"])
    print_head()
    assert capsys.readouterr().out == f"{first_line()}\npython benches/structure.py --first 5 'a set'\n"


@pytest.fixture
def copy(checkout: Path, tmp_path: Path) -> Path:
    """The pages and the raw files."""
    shutil.copytree(checkout / bench_tables.RESULTS, tmp_path / bench_tables.RESULTS)
    for page in bench_tables.PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout / page, tmp_path / page)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("benches/README.md", "| 0.674 |", "| 0.574 |", "benches/README.md: its tables"),
        ("README.md", "| 4.18 |", "| 5.18 |", "README.md: its tables"),
        ("benches/README.md", "five passes", "five passes of 0.12345 s", "0.12345 is in no raw file"),
        (
            "benches/results/threads.txt",
            "two threads are 1.96",
            "two threads are 1.76",
            "benches/README.md: its tables",
        ),
        (
            "benches/results/threads.txt",
            "two threads are",
            "both are",
            "benches/README.md: benches/results/threads.txt",
        ),
        ("benches/results/threads.txt", "commit ", "", "threads.txt: no commit, date and CPU"),
    ],
)
def test_what_is_found(copy: Path, name: str, old: str, new: str, words: str) -> None:
    path = copy / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = list(bench_tables.complaints(copy))
    assert any(words in complaint for complaint in found), found
